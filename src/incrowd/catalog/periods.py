"""Periods: what the owner promises about tables to which rows are only ever added.

`period: {column: day, by: month}` says that rows of a closed month are not added, changed or removed any
more. A month is closed `closed_after` days after its end. No guarantee of privacy rests on the promise: it
decides which recorded answers are still true.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

from incrowd.catalog.declaration import Count, Declaration, Name, fault, number, shown

Span = Literal["day", "month", "year"]
_LONGEST = 3_660


def _span(value: object) -> object:
    if value not in get_args(Span):
        raise fault(f"expected day, month or year, not {shown(value)}")
    return value


def _days(value: object) -> int:
    result = number(value)
    if not (0 <= result <= _LONGEST and result.is_integer()):
        raise fault(f"must be a whole number of days from 0 to {_LONGEST}, not {shown(value)}")
    return int(result)


class Period(Declaration):
    """The column whose days, months or years are closed, one after the other.

    A period counts as closed `closed_after` days after its end by UTC, so that rows which come late, and
    days that end later elsewhere, are in. `revision` is raised by an owner who had to change closed rows
    after all: what was answered before is then about other data.
    """

    column: Name
    by: Annotated[Span, BeforeValidator(_span)]
    closed_after: Annotated[int, BeforeValidator(_days)] = 1
    revision: Count = 1

    def open_from(self, today: dt.date) -> dt.datetime:
        """The start of the first period that is not closed yet on a day.

        >>> Period(column="seen", by="month").open_from(dt.date(2026, 12, 1))
        datetime.datetime(2026, 11, 1, 0, 0)
        >>> Period(column="seen", by="month").open_from(dt.date(2026, 12, 2))
        datetime.datetime(2026, 12, 1, 0, 0)
        """
        day = today - dt.timedelta(days=self.closed_after)
        month = 1 if self.by == "year" else day.month
        return dt.datetime(day.year, month, day.day if self.by == "day" else 1)
