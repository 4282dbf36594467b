"""Two hospitals that each publish a k-anonymous table: the worked example of the composition attack.

After Ganta, Kasiviswanathan, Smith (2008), Figure 1. A woman of 28 from zip 13012 is known to have been in
both. Each table hides her among others; the two together do not. This module holds the data and the look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ward:
    """A class of a published table: all whose zip and age fit, and the conditions among them."""

    zip_prefix: str
    youngest: int
    oldest: int
    conditions: tuple[str, ...]

    def fits(self, zip_code: str, age: int) -> bool:
        """Whether a person of this zip and age is hidden here."""
        return zip_code.startswith(self.zip_prefix) and self.youngest <= age <= self.oldest


FIRST = (
    Ward("130", 0, 29, ("AIDS", "heart disease", "viral infection", "viral infection")),
    Ward("130", 40, 150, ("cancer", "heart disease", "viral infection", "viral infection")),
    Ward("130", 30, 39, ("cancer", "cancer", "cancer", "cancer")),
)
"""The first hospital's table, 4-anonymous."""

SECOND = (
    Ward("130", 0, 34, ("AIDS", "tuberculosis", "flu", "tuberculosis", "cancer", "cancer")),
    Ward("130", 35, 150, ("cancer",) * 3 + ("tuberculosis", "viral infection", "viral infection")),
)
"""The second hospital's table, 6-anonymous."""


def anonymity(table: tuple[Ward, ...]) -> int:
    """The k for which a table is k-anonymous: the size of its smallest class.

    >>> anonymity(FIRST), anonymity(SECOND)
    (4, 6)
    """
    return min(len(ward.conditions) for ward in table)


def conditions(table: tuple[Ward, ...], zip_code: str, age: int) -> frozenset[str]:
    """The conditions that a published table leaves possible for somebody of this zip and age."""
    return frozenset(condition for ward in table if ward.fits(zip_code, age) for condition in ward.conditions)


def worked_example(zip_code: str = "13012", age: int = 28) -> dict[str, Any]:
    """What each table tells about a patient of both, and what the two tell together, as plain values.

    >>> told = worked_example("13012", 28)
    >>> told["first hospital"]["candidates"]
    ['AIDS', 'heart disease', 'viral infection']
    >>> told["second hospital"]["candidates"], told["both"]
    (['AIDS', 'cancer', 'flu', 'tuberculosis'], ['AIDS'])
    """
    first, second = conditions(FIRST, zip_code, age), conditions(SECOND, zip_code, age)
    return {
        "person": {"zip": zip_code, "age": age},
        "first hospital": {"k": anonymity(FIRST), "candidates": sorted(first)},
        "second hospital": {"k": anonymity(SECOND), "candidates": sorted(second)},
        "both": sorted(first & second),
    }
