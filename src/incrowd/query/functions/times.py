"""Functions of dates and timestamps, NULL outside the years 1 to 9999.

Engines raise on arithmetic near the ends of their calendars, and differ on infinite dates: both are kept
out by a guard.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.errors import QueryError
from incrowd.query.combining import as_moment, in_calendar
from incrowd.query.differences import boundaries, elapsed, unit_asked
from incrowd.query.functions.formats import FORMATS
from incrowd.query.functions.parts import NAMED_PARTS, PART_NODES, inside_calendar
from incrowd.query.functions.signature import Function, name_of
from incrowd.query.moments import part
from incrowd.query.ordinals import MONTHS
from incrowd.query.spans import FIRST, LAST, unit_named
from incrowd.query.sql import DIALECT
from incrowd.query.truncating import FINE, UNITS, truncated
from incrowd.query.typed import Typed, double


def unit_of(node: exp.Expr) -> str:
    """The unit that a truncation or a difference names, such as MONTH."""
    unit = node.args.get("unit")
    return unit_named(str(unit.name)).upper() if unit is not None else "DAY"


def _truncate(node: exp.Expr, arguments: list[Typed]) -> Typed:
    unit = unit_of(node)
    if unit not in UNITS:
        raise QueryError(f"DATE_TRUNC to {unit} is not possible here; use {', '.join(UNITS)}.")
    # The parser puts the unit first where it knows that a date is truncated.
    value = inside_calendar(node, arguments[-1])
    call = exp.func("DATE_TRUNC", exp.Literal.string(unit), value.sql, dialect=DIALECT)
    kind: Kind = "date" if value.kind == "date" and unit not in FINE else "timestamp"
    limits = None
    if value.limits is not None:
        ends = (truncated(as_moment(end), unit) for end in value.limits)
        low, high = (end.date() if kind == "date" else end for end in ends)
        limits = (low, high)
    return Typed(exp.cast(call, kind.upper()), kind, nullable=value.nullable, limits=limits)


def _units_begun(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """DATE_DIFF('month', start, end)."""
    end, start = arguments[:2]
    return boundaries(node, unit_asked(node, unit_of(node)), start, end)


def whole_units(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """TIMESTAMPDIFF(MONTH, start, end), and DuckDB's DATE_SUB('day', start, end) of units up to weeks."""
    name = name_of(node)
    if len(arguments) != 3 or not isinstance(arguments[0].sql, exp.Literal):
        raise QueryError(f"{name} takes a unit and two dates, as in {name}('day', first, last).")
    unit = unit_asked(node, arguments[0].sql.name)
    if name != "TIMESTAMPDIFF" and unit in MONTHS:
        raise QueryError(
            f"{name} in {unit}S has rules of its own for the last days of months; write "
            f"TIMESTAMPDIFF({unit}, {arguments[1].said}, {arguments[2].said})."
        )
    return elapsed(node, unit, arguments[1], arguments[2])


def since_1970(value: Typed) -> Typed:
    """The whole days of a date, or seconds of a timestamp, since 1970; NULL outside the years 1 to 9999."""
    inside = in_calendar(value, str(FIRST.date()), str(LAST.date()))
    start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
    call = exp.func(
        "DATE_DIFF", exp.Literal.string("day"), start, exp.cast(inside.sql, "DATE"), dialect=DIALECT
    )
    number: exp.Expr = exp.cast(call, "DOUBLE")
    if value.kind == "timestamp":
        number = exp.Mul(this=number, expression=double(86_400.0))
        for name, seconds in (("HOUR", 3_600.0), ("MINUTE", 60.0), ("SECOND", 1.0)):
            more = exp.Mul(this=exp.cast(part(name, inside), "DOUBLE"), expression=double(seconds))
            number = exp.Add(this=number, expression=more)
        number = exp.paren(number)
    return Typed(number, "integer", nullable=True, said=value.said)


TIMES: dict[type[exp.Expr], Function] = {
    **PART_NODES,
    **FORMATS,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.DateDiff: _units_begun,
}
TIMES_BY_NAME: dict[str, Function] = {
    **NAMED_PARTS,
    **dict.fromkeys(("TIMESTAMPDIFF", "DATE_SUB", "DATESUB"), whole_units),
}
