"""Exported names whose modules are imported when a name is first used, so that importing a room is quick.

A room that exports lazily lists its names twice: for type checkers and editors under `if TYPE_CHECKING`, and
in the table that it gives to `lazy_names`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, origins: Mapping[str, str], rooms: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: each name with its module, and sub-packages by name.

    >>> getattribute, names = lazy_names("incrowd", {"pure": "incrowd.privacy"}, ["noise"])
    >>> getattribute("pure")(1.0).epsilon(0)
    1.0
    """
    packages = frozenset(rooms)

    def get(name: str) -> Any:
        if name in origins:
            value = getattr(import_module(origins[name]), name)
        elif name in packages:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origins, *packages})

    return get, names
