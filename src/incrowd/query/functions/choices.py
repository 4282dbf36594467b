"""Functions that pick one of their arguments: LEAST, GREATEST, COALESCE, NULLIF."""

from __future__ import annotations

from sqlglot import exp

from incrowd.query.combining import as_float, comparable, unite
from incrowd.query.functions.signature import Function, name_of
from incrowd.query.typed import TIMES, Kind, Typed


def _extremum(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LEAST and GREATEST: how an analyst clamps. NULLs are passed over, as in DuckDB and PostgreSQL."""
    first = arguments[0]
    nullable = all(each.nullable for each in arguments)
    if first.kind in TIMES and all(each.kind == first.kind for each in arguments):
        rest = [each.sql for each in arguments[1:]]
        sql = type(node)(this=first.sql, expressions=rest, ignore_nulls=True)
        return Typed(sql, first.kind, nullable=nullable)
    numbers = [as_float(each, name_of(node)) for each in arguments]
    lows = [each.low for each in numbers]
    highs = [each.high for each in numbers]
    known_lows = [each for each in lows if each is not None]
    known_highs = [each for each in highs if each is not None]
    least = isinstance(node, exp.Least)
    # A NULL argument leaves the others: an end holds for all only if some argument is always there to
    # enforce it.
    sure_lows = [each.low for each in numbers if each.low is not None and not each.nullable]
    sure_highs = [each.high for each in numbers if each.high is not None and not each.nullable]
    complete_low = min(known_lows) if len(known_lows) == len(lows) else None
    complete_high = max(known_highs) if len(known_highs) == len(highs) else None
    if least:
        low, high = complete_low, min(sure_highs) if sure_highs else complete_high
    else:
        low, high = max(sure_lows) if sure_lows else complete_low, complete_high
    kind: Kind = "integer" if all(each.kind == "integer" for each in numbers) else "float"
    rest = [each.sql for each in numbers[1:]]
    sql = type(node)(this=numbers[0].sql, expressions=rest, ignore_nulls=True)
    return Typed(sql, kind, low, high, nullable, size=max(each.size for each in numbers))


def _coalesce(node: exp.Expr, arguments: list[Typed]) -> Typed:
    facts, sqls = unite(arguments, "COALESCE")
    sql = exp.Coalesce(this=sqls[0], expressions=sqls[1:])
    return facts.but(sql=sql, nullable=all(each.nullable for each in arguments))


def _nullif(node: exp.Expr, arguments: list[Typed]) -> Typed:
    left, right = comparable(arguments[0], arguments[1], "NULLIF")
    return left.but(sql=exp.Nullif(this=left.sql, expression=right.sql), nullable=True, said="")


CHOICES: dict[type[exp.Expr], Function] = {
    exp.Least: _extremum,
    exp.Greatest: _extremum,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
}
