"""What tuning bought: noisy measurements behind values of the owner's file, which are no promises.

`contribution: 5` that an owner declares says that nobody has more than five rows. The same line with an entry
under `bought` says that few have: how many at most follows from the noisy census in that entry. Everything
here is released already, and public. Without its entry a value is declared by the owner.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from incrowd.catalog.declaration import Count, Declaration, Delta, Name, Positive, Text, fault, shown

MOST_CELLS = 64
MOST_UNITS = 2**53
LEAST_EDGE, MOST_EDGE = 2.0**-250, 2.0**250
"""Squares of weights stay inside float64, so that nothing can fail once a question is paid."""


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise fault(f"expected a whole number, not {shown(value)}")
    return value


def _units(value: object) -> tuple[int, ...]:
    said = "expected the noisy numbers of units, as tuning wrote them"
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= MOST_CELLS:
        raise fault(said)
    units = tuple(_whole(number) for number in value)
    if max(map(abs, units)) > MOST_UNITS:
        raise fault(said)
    return units


def _edge(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_EDGE <= value <= MOST_EDGE:
        raise fault("expected what the first cell of the census reaches to, as tuning wrote it")
    return float(value)


def _day(value: object) -> dt.date:
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise fault(f"expected a day such as 2026-01-31, not {shown(value)}")
    return value


def _pair(value: object) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise fault("expected two values, [low, high]")
    return value[0], value[1]


Day = Annotated[dt.date, BeforeValidator(_day)]


class Bought(Declaration):
    """What a measurement cost, when it was made, and which answer of the ledger it is part of."""

    epsilon: Positive
    delta: Delta = 0.0
    at: Day
    answer: Text


class BoughtContribution(Bought):
    """A noisy census of what units contribute.

    units: about how many contribute up to `up_to`, up to twice that, and so on; the last, how many more.
    """

    up_to: Annotated[float, BeforeValidator(_edge)]
    units: Annotated[tuple[int, ...], BeforeValidator(_units)]


class BoughtBounds(Bought):
    """Bounds that are narrower than the declared ones: at 95%, at most `outside` units have other values."""

    declared: Annotated[tuple[Any, Any], BeforeValidator(_pair)]
    outside: Annotated[int, BeforeValidator(_whole)]


class BoughtDomain(Bought):
    """The values that many units share; one that fewer than about `least` units have may be missing."""

    least: Count


class BoughtColumn(Declaration):
    """What was bought about a column."""

    bounds: BoughtBounds | None = None
    contribution: BoughtContribution | None = None
    domain: BoughtDomain | None = None


class BoughtTable(Declaration):
    """What was bought about a table."""

    contribution: BoughtContribution | None = None
    columns: Mapping[Name, BoughtColumn] = Field(default_factory=dict)


NOTHING = BoughtTable()
