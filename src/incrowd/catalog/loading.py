"""From the owner's file to a checked catalog; every mistake is one sentence with the path to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from incrowd.catalog import reading
from incrowd.catalog.catalog import Catalog
from incrowd.errors import CatalogError

_SAID = {
    "missing": "is missing",
    "string_type": "expected text",
    "dict_type": "expected names, each with its fields",
    "mapping_type": "expected names, each with its fields",
}


def load(path: str | Path) -> Catalog:
    """The catalog in the file at `path`, which relative paths in it start from."""
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise CatalogError("Name the owner's file by its path, such as Curator.open('curator.yaml').")
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CatalogError(f"There is no file {file}; run incrowd init to make one.") from None
    except IsADirectoryError:
        raise CatalogError(f"{file} is a folder; name the catalog's file in it.") from None
    except UnicodeEncodeError:
        raise CatalogError("The path of the owner's file holds half a character; mend the path.") from None
    except UnicodeDecodeError:
        raise CatalogError(f"{file} is not text in UTF-8; save it as such.") from None
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise CatalogError(f"{file} cannot be read: {reason}.") from None
    return parse(text, name=file.name).located(file)


def parse(text: str, *, name: str = "catalog") -> Catalog:
    """The catalog in `text`; `name` is what error messages call it.

    >>> parse("tables: {t: {private: false}}\\nsources: {s: {csv: t.csv}}\\nbudget: {epsilon: -1}")
    Traceback (most recent call last):
    ...
    incrowd.errors.CatalogError: catalog, line 3: budget.epsilon: must be above 0, not -1.
    """
    data, lines = reading.read(text, name)
    return check(data, name=name, lines=lines)


def check(data: Any, *, name: str = "catalog", lines: Mapping[reading.Path, int] | None = None) -> Catalog:
    """The catalog that plain values declare."""
    try:
        return Catalog.model_validate(data)
    except ValidationError as error:
        raise _first_fault(error, name, lines or {}) from None


def _first_fault(error: ValidationError, name: str, lines: Mapping[reading.Path, int]) -> CatalogError:
    """The fault that comes first in the file; one at a time is what a person mends."""
    faults = []
    for detail in error.errors(include_url=False, include_input=False):
        context = detail.get("ctx", {})
        path = tuple(part for part in detail["loc"] if part != "[key]") + tuple(context.get("path", ()))
        message = context.get("message") or _SAID.get(detail["type"]) or detail["msg"]
        faults.append((_line(path, lines), path, str(message)))
    line, path, message = min(faults, key=lambda fault: fault[0] or 0)
    return reading.located(path, message, name, line)


def _line(path: reading.Path, lines: Mapping[reading.Path, int]) -> int | None:
    """The line of `path`, or of the nearest thing around it that the file holds."""
    for end in range(len(path), -1, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None
