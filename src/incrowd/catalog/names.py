"""When two names are one name: the rule for tables and columns in every room.

SQL compares names without regard to case, and engines do so for the letters A to Z alone: DuckDB and
PostgreSQL hold `straße` and `STRASSE` apart, the Kelvin sign and k, `İ` and i, `Ä` and `ä`. Python's
`casefold`, `lower` and `upper` do not, so no name goes through them. (Spark would compare letters beyond
ASCII too; its sessions compare names exactly, and are only given folded ones.) Names of analysts, groups
and sources are no SQL: they are compared exactly.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(name: str) -> str:
    """A name as engines compare it: A to Z in lower case, all else as it is.

    >>> fold("Straße"), fold("ÄGE"), fold("\\N{KELVIN SIGN}")
    ('straße', 'Äge', 'K')
    """
    return name.translate(_TO_LOWER)


def same_but_for_case(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that SQL takes for one another; None if all are different.

    >>> same_but_for_case(["age", "sex", "Age"]), same_but_for_case(["straße", "STRASSE"])
    (('age', 'Age'), None)
    """
    spelled: dict[str, str] = {}
    for name in names:
        if fold(name) in spelled:
            return spelled[fold(name)], name
        spelled[fold(name)] = name
    return None


def spelling_of(name: str, declared: Iterable[str]) -> str | None:
    """The declared spelling of a name, whatever its case; None if it is not declared.

    >>> spelling_of("AGE", ["sex", "Age"]), spelling_of("STRASSE", ["straße"])
    ('Age', None)
    """
    return next((spelling for spelling in declared if fold(spelling) == fold(name)), None)
