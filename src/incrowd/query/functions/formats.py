"""Dates as text: DAYNAME, MONTHNAME and STRFTIME with a constant format; and LAST_DAY.

Every engine names and pads in its own way, by its own locale. Here texts are put together from whole numbers
and English names, so that they are the same everywhere. A text is as long as its format allows, whatever the
row holds, and NULL where the date is outside the calendar.

Where a date has bounds, all texts it may become are known, and public as group keys.
"""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.casts import cast
from incrowd.query.combining import as_moment
from incrowd.query.functions.parts import inside_calendar, part_of, start_of
from incrowd.query.functions.signature import Function, name_of, one
from incrowd.query.moments import whole
from incrowd.query.shifting import by_interval
from incrowd.query.spans import Interval, Span
from incrowd.query.truncating import FINE, MONTHS, STEPS, starts, truncated
from incrowd.query.typed import ENUMERABLE, Typed, said

Written = Callable[[exp.Expr, Typed], exp.Expr]
_DAYS = tuple(calendar.day_name[(place - 1) % 7] for place in range(7))
_MONTHS = tuple(calendar.month_name[1:])
LONGEST = 100
"""How many letters a format may have."""


def _digits(name: str, width: int) -> Written:
    """A part as digits with leading zeros; its last digits alone if it is longer."""

    def written(node: exp.Expr, value: Typed) -> exp.Expr:
        number = exp.cast(part_of(node, name, value).sql, "TEXT")
        if not width:
            return number
        padded = exp.DPipe(this=exp.Literal.string("0" * width), expression=number, safe=True)
        return exp.Right(this=exp.paren(padded), expression=exp.Literal.number(str(width)))

    return written


def _named(name: str, names: Sequence[str], first: int) -> Written:
    """A part as a word."""

    def written(node: exp.Expr, value: Typed) -> exp.Expr:
        number = part_of(node, name, value).sql
        cases = [
            exp.If(
                this=exp.EQ(this=number.copy(), expression=whole(first + place)),
                true=exp.Literal.string(word),
            )
            for place, word in enumerate(names)
        ]
        return exp.paren(exp.Case(ifs=cases))

    return written


_CODES: dict[str, Written] = {
    "%Y": _digits("YEAR", 4),
    "%y": _digits("YEAR", 2),
    "%m": _digits("MONTH", 2),
    "%-m": _digits("MONTH", 0),
    "%d": _digits("DAY", 2),
    "%-d": _digits("DAY", 0),
    "%j": _digits("DOY", 3),
    "%H": _digits("HOUR", 2),
    "%M": _digits("MINUTE", 2),
    "%S": _digits("SECOND", 2),
    "%G": _digits("ISOYEAR", 4),
    "%V": _digits("WEEK", 2),
    "%u": _digits("ISODOW", 0),
    "%w": _digits("DOW", 0),
    "%A": _named("DOW", _DAYS, 0),
    "%a": _named("DOW", [day[:3] for day in _DAYS], 0),
    "%B": _named("MONTH", _MONTHS, 1),
    "%b": _named("MONTH", [month[:3] for month in _MONTHS], 1),
}
_MEANING = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
_UNITS = (
    ("SECOND", ("%S",)),
    ("MINUTE", ("%M",)),
    ("HOUR", ("%H",)),
    ("DAY", ("%d", "%-d", "%j", "%A", "%a", "%u", "%w", "%V", "%G")),
    ("MONTH", ("%m", "%-m", "%B", "%b")),
)
"""The units that codes tell apart, from the shortest."""


def pieces(node: exp.Expr, form: str) -> Iterator[str]:
    """The codes of a format, and the letters between them."""
    place = 0
    while place < len(form):
        length = 1 if form[place] != "%" else 3 if form[place + 1 : place + 2] == "-" else 2
        piece = form[place : place + length]
        place += length
        if piece in _MEANING:
            yield from pieces(node, _MEANING[piece])
        elif length > 1 and piece != "%%" and piece not in _CODES:
            raise QueryError(f"{said(node)} holds {piece}, which is not known here; use {', '.join(_CODES)}.")
        else:
            yield "%" if piece == "%%" else piece


def formatted(node: exp.Expr, value: Typed, form: str) -> Typed:
    """A date or timestamp as text."""
    if len(form) > LONGEST:
        raise QueryError(f"The format of {name_of(node)} has more than {LONGEST} letters; shorten it.")
    parts = list(pieces(node, form))
    if not any(piece in _CODES for piece in parts):
        raise QueryError(f"{said(node)} names no part of the date; write a format such as '%Y-%m'.")
    joined: exp.Expr | None = None
    for piece in parts:
        text = _CODES[piece](node, value) if piece in _CODES else exp.Literal.string(piece)
        joined = text if joined is None else exp.DPipe(this=joined, expression=text, safe=True)
    assert joined is not None
    return Typed(exp.paren(joined), "text", nullable=value.nullable, values=_values(parts, value))


def _values(parts: Sequence[str], value: Typed) -> tuple[str, ...] | None:
    """All texts that a date between its bounds may become; None where there are too many, or no bounds."""
    if value.limits is None:
        return None
    low, high = (as_moment(end) for end in value.limits)
    unit = next((unit for unit, codes in _UNITS if not set(codes).isdisjoint(parts)), "YEAR")
    if value.kind == "date" and unit in FINE:
        unit = "DAY"
    step = STEPS.get(unit) or dt.timedelta(days=28 * MONTHS[unit])
    if (high - low) / step >= ENUMERABLE:
        return None
    return tuple(dict.fromkeys(_text(parts, moment) for moment in starts(unit, low, high)))


def _text(parts: Sequence[str], moment: dt.datetime) -> str:
    iso = moment.isocalendar()
    numbers = {
        **{"%Y": f"{moment.year:04}", "%y": f"{moment.year % 100:02}", "%m": f"{moment.month:02}"},
        **{"%-m": str(moment.month), "%d": f"{moment.day:02}", "%-d": str(moment.day)},
        **{"%j": f"{moment.timetuple().tm_yday:03}", "%H": f"{moment.hour:02}", "%M": f"{moment.minute:02}"},
        **{"%S": f"{moment.second:02}", "%G": f"{iso[0]:04}", "%V": f"{iso[1]:02}", "%u": str(iso[2])},
        **{"%w": str(iso[2] % 7), "%A": _DAYS[iso[2] % 7], "%a": _DAYS[iso[2] % 7][:3]},
        **{"%B": _MONTHS[moment.month - 1], "%b": _MONTHS[moment.month - 1][:3]},
    }
    return "".join(numbers.get(piece, piece) for piece in parts)


def _formatted(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value, form = arguments
    if value.kind == "text" and form.kind != "text":
        value, form = form, value
    if not (isinstance(form.sql, exp.Literal) and form.sql.is_string):
        raise QueryError(f"{name_of(node)} needs a constant format, as in STRFTIME(d, '%Y-%m').")
    return formatted(node, inside_calendar(node, value), form.sql.name)


def _day_named(node: exp.Expr, arguments: list[Typed]) -> Typed:
    return formatted(node, inside_calendar(node, one(node, arguments)), "%A")


def _month_named(node: exp.Expr, arguments: list[Typed]) -> Typed:
    return formatted(node, inside_calendar(node, one(node, arguments)), "%B")


def _last_day(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LAST_DAY(d): the day before the next month begins."""
    value = inside_calendar(node, one(node, arguments))
    limits = None
    if value.limits is not None:
        low, high = (truncated(as_moment(end), "MONTH") for end in value.limits)
        limits = (low, high)
    first = exp.cast(start_of("MONTH", value), "TIMESTAMP")
    start = Typed(first, "timestamp", nullable=value.nullable, limits=limits)
    following = by_interval(node, start, Interval(Span(months=1)), None)
    last = cast(by_interval(node, following, Interval(Span(days=-1)), None), "date")
    return last if limits is None else last.but(values=_last_days(*limits))


def _last_days(low: dt.datetime, high: dt.datetime) -> tuple[dt.date, ...] | None:
    """The last days of the months from one start of a month to another; None for too many."""
    if (high - low).days / 28 >= ENUMERABLE:
        return None
    return tuple(
        start.date().replace(day=calendar.monthrange(start.year, start.month)[1])
        for start in starts("MONTH", low, high)
    )


FORMATS: dict[type[exp.Expr], Function] = {
    exp.TimeToStr: _formatted,
    exp.Dayname: _day_named,
    exp.Monthname: _month_named,
    exp.LastDay: _last_day,
}
