"""Functions that pick one of their arguments: LEAST, GREATEST, COALESCE, NULLIF."""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.types import TIMES, Kind
from incrowd.errors import QueryError
from incrowd.query.combining import as_float, comparable, hull_of, unite
from incrowd.query.functions.signature import Function, name_of
from incrowd.query.typed import Typed


def _extremum(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LEAST and GREATEST: how an analyst clamps. NULLs are passed over, as in DuckDB and PostgreSQL."""
    first = arguments[0]
    nullable = all(number.nullable for number in arguments)
    if first.kind in TIMES and all(number.kind == first.kind for number in arguments):
        rest = [number.sql for number in arguments[1:]]
        sql = type(node)(this=first.sql, expressions=rest, ignore_nulls=True)
        return Typed(sql, first.kind, nullable=nullable)
    numbers = [as_float(number, name_of(node)) for number in arguments]
    lows = [number.low for number in numbers]
    highs = [number.high for number in numbers]
    known_lows = [number for number in lows if number is not None]
    known_highs = [number for number in highs if number is not None]
    least = isinstance(node, exp.Least)
    # A NULL argument leaves the others: an end holds for all only if some argument is always there to
    # enforce it.
    sure_lows = [number.low for number in numbers if number.low is not None and not number.nullable]
    sure_highs = [number.high for number in numbers if number.high is not None and not number.nullable]
    complete_low = min(known_lows) if len(known_lows) == len(lows) else None
    complete_high = max(known_highs) if len(known_highs) == len(highs) else None
    if least:
        low, high = complete_low, min(sure_highs) if sure_highs else complete_high
    else:
        low, high = max(sure_lows) if sure_lows else complete_low, complete_high
    kind: Kind = "integer" if all(number.kind == "integer" for number in numbers) else "float"
    rest = [number.sql for number in numbers[1:]]
    sql = type(node)(this=numbers[0].sql, expressions=rest, ignore_nulls=True)
    size = max(number.size for number in numbers)
    return Typed(sql, kind, low, high, nullable, size=size, wide=hull_of(numbers))


def _coalesce(node: exp.Expr, arguments: list[Typed]) -> Typed:
    facts, sqls = unite(arguments, "COALESCE")
    sql = exp.Coalesce(this=sqls[0], expressions=sqls[1:])
    return facts.but(sql=sql, nullable=all(argument.nullable for argument in arguments))


def _nullif(node: exp.Expr, arguments: list[Typed]) -> Typed:
    left, right = comparable(arguments[0], arguments[1], "NULLIF")
    return left.but(sql=exp.Nullif(this=left.sql, expression=right.sql), nullable=True, said="")


def first_known(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """ISNULL(x, y), the same as COALESCE(x, y)."""
    if len(arguments) != 2:
        raise QueryError("ISNULL takes two arguments, as in ISNULL(x, 0); write x IS NULL for the test.")
    return _coalesce(node, arguments)


CHOICES: dict[type[exp.Expr], Function] = {
    exp.Least: _extremum,
    exp.Greatest: _extremum,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
}
