"""The units that times are cut off at: what a moment becomes, and all units between two moments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
STEPS: dict[str, dt.timedelta] = {
    "SECOND": dt.timedelta(seconds=1),
    "MINUTE": dt.timedelta(minutes=1),
    "HOUR": dt.timedelta(hours=1),
    "DAY": dt.timedelta(days=1),
    "WEEK": dt.timedelta(weeks=1),
}
UNITS = (*reversed(MONTHS), *reversed(STEPS))
"""The units, from the longest to the shortest."""
FINE = frozenset({"HOUR", "MINUTE", "SECOND"})
"""The units that are shorter than a day."""


def truncated(moment: dt.datetime, unit: str) -> dt.datetime:
    """The start of the unit that holds a moment; the first year, where that would be before it.

    >>> truncated(dt.datetime(2024, 2, 29, 10, 30), "WEEK")
    datetime.datetime(2024, 2, 26, 0, 0)
    """
    if unit in MONTHS:
        months = MONTHS[unit]
        first = (moment.year * 12 + moment.month - 1) // months * months
        return dt.datetime(max(first // 12, 1), first % 12 + 1, 1)
    start = moment.replace(microsecond=0)
    if unit != "SECOND":
        start = start.replace(second=0)
    if unit in ("HOUR", "DAY", "WEEK"):
        start = start.replace(minute=0)
    if unit in ("DAY", "WEEK"):
        start = start.replace(hour=0)
    return start - dt.timedelta(days=start.weekday()) if unit == "WEEK" else start


def starts(unit: str, low: dt.datetime, high: dt.datetime) -> Iterator[dt.datetime]:
    """The starts of all units from the one that holds `low` to the one that holds `high`."""
    start = truncated(low, unit)
    if unit in MONTHS:
        months = MONTHS[unit]
        first, last = ((moment.year * 12 + moment.month - 1) // months for moment in (start, high))
        for number in range(first, last + 1):
            yield dt.datetime(max(number * months // 12, 1), number * months % 12 + 1, 1)
        return
    while start <= high:
        yield start
        start += STEPS[unit]
