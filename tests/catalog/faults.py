"""The fault that a declaration is refused with: its path and its sentence."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from incrowd.catalog.reading import spelled


def fault_of(declare: Callable[[], object]) -> str:
    """`path: sentence` of the fault, or the sentence alone where it is about the whole; a failure if none."""
    try:
        declared = declare()
    except PydanticCustomError as error:
        return _told((), error.message(), (error.context or {})["path"])
    except ValidationError as error:
        (first, *_) = error.errors()
        return _told(first["loc"], first["msg"], first.get("ctx", {}).get("path", ()))
    raise AssertionError(f"{declared!r} was accepted")


def _told(location: tuple[str | int, ...], message: str, path: tuple[str | int, ...]) -> str:
    place = spelled((*location, *path))
    return f"{place}: {message}" if place else message
