"""Rules for truth, choices, aggregates and windows, and the list of all rules for each engine."""

from __future__ import annotations

from sqlglot import exp

from incrowd.backends.totality.arithmetic import (
    ARITHMETIC,
    fitting,
    instead_of_nan,
    rounding,
)
from incrowd.backends.totality.cast_rules import CONVERSIONS
from incrowd.backends.totality.intervals import summed
from incrowd.backends.totality.limbs import limb_sum
from incrowd.backends.totality.moments import DUCKDB_MOMENTS, MOMENTS, POSTGRES_MOMENTS, SPARK_MOMENTS
from incrowd.backends.totality.strings import POSTGRES_STRINGS, SPARK_STRINGS, STRINGS
from incrowd.backends.totality.values import (
    MOST_ROWS,
    NUMBERS,
    Kind,
    Value,
    boolean,
    integer,
    numeric,
)
from incrowd.backends.totality.walk import Environment, NotTotalError, Rule, Walk, parts_of
from incrowd.backends.totality.window_rules import windowed


def _null(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    return Value(Kind.NULL, 1, 0)


def _boolean(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    return boolean().but(null=False)


def _paren(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    return walk.value(node.this, known)


def _case(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    assert isinstance(node, exp.Case)
    return walk.case(node, known)


def _connected(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    walk.truth(node.this, known)
    if not isinstance(node, exp.Not):
        walk.truth(node.expression, known)
    return boolean()


def _comparable(node: exp.Expr, one: Value, two: Value) -> None:
    """Refuse a comparison that needs a cast that may raise. One type, or two types of numbers, need none."""
    if Kind.NULL in (one.kind, two.kind):
        return
    if one.kind is two.kind and (one.kind is not Kind.OTHER or one.form == two.form):
        return
    if one.kind not in NUMBERS or two.kind not in NUMBERS:
        raise NotTotalError(node, "it compares values of different types")
    if {one.kind, two.kind} == {Kind.NUMERIC, Kind.DOUBLE}:
        raise NotTotalError(node, "it compares a decimal with a float")


def _compared(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    _comparable(node, walk.value(node.this, known), walk.value(node.expression, known))
    return boolean()


def _is(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    walk.value(node.this, known)
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise NotTotalError(node)
    return boolean()


def _between(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "low", "high")
    value = walk.value(node.this, known)
    for end in ("low", "high"):
        _comparable(node, value, walk.value(node.args[end], known))
    return boolean()


def _in(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expressions", "query")
    value = walk.value(node.this, known)
    for member in node.expressions:
        _comparable(node, value, walk.value(member, known))
    query = node.args.get("query")
    if query is not None:
        columns = walk.query(query)
        if len(columns) != 1:
            raise NotTotalError(node)
        _comparable(node, value, columns[0])
    return boolean()


def _coalesce(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expressions")
    parts = [walk.value(argument, known) for argument in (node.this, *node.expressions)]
    return walk.united(node, parts).but(null=all(part.null for part in parts))


def _nullif(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "expression")
    value, other = walk.value(node.this, known), walk.value(node.expression, known)
    _comparable(node, value, other)
    if value.kind in NUMBERS and other.kind is value.kind and other.low == other.high == 0 and not other.null:
        return value.but(zero=False, null=True)
    return value.but(null=True)


def _extremum(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LEAST and GREATEST skip NULL, so each argument that is never NULL bounds the result."""
    parts_of(node, "this", "expressions", "ignore_nulls")
    parts = [walk.value(argument, known) for argument in (node.this, *node.expressions)]
    result = walk.united(node, parts).but(null=all(part.null for part in parts))
    if result.kind not in NUMBERS:
        return result
    sure = [part for part in parts if not part.null and not part.empty and part.within(part.low, part.high)]
    if sure and isinstance(node, exp.Least):
        high = min(part.high for part in sure)
        return result.but(high=min(result.high, high), above=False, nan=False)
    if sure and isinstance(node, exp.Greatest):
        low = max(part.low for part in sure)
        return result.but(low=max(result.low, low), below=False)
    return result


def _counted(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        return integer(64, 1 if walk.grouped else 0, MOST_ROWS, null=False)
    if isinstance(inner, exp.Distinct):
        parts_of(inner, "expressions")
        if len(inner.expressions) != 1:
            raise NotTotalError(node)
        inner = inner.expressions[0]
    walk.value(inner)
    return integer(64, 0, MOST_ROWS, null=False)


def _summed(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    value = walk.value(node.this)
    if value.kind is not Kind.INTEGER:
        raise NotTotalError(node, "it is no sum of whole numbers")
    low, high = summed(value, MOST_ROWS)
    if not walk.engine.sum_bits:
        return numeric(low, high)
    if value.bits > 64:
        raise NotTotalError(node, "it is a sum of wide numbers")
    return fitting(node, low, high, walk.engine.sum_bits)


def _least_of_rows(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    value = walk.value(node.this)
    if value.kind in (Kind.OTHER, Kind.BOOLEAN, Kind.NULL):
        raise NotTotalError(node, "its type has no order that all engines know")
    return value.but(null=True)


_COMMON: dict[type[exp.Expr], Rule] = {
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Case: _case,
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _connected),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), _compared
    ),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    **dict.fromkeys((exp.Least, exp.Greatest), _extremum),
    exp.Count: _counted,
    exp.Sum: _summed,
    **dict.fromkeys((exp.Min, exp.Max), _least_of_rows),
    **ARITHMETIC,
    **CONVERSIONS,
    **STRINGS,
    **MOMENTS,
    exp.Window: windowed,
}
_OWN: dict[str, dict[type[exp.Expr], Rule]] = {
    "duckdb": {exp.Round: rounding, **DUCKDB_MOMENTS},
    "postgres": {exp.Round: rounding, **POSTGRES_STRINGS, **POSTGRES_MOMENTS},
    "spark": {
        exp.Case: limb_sum,
        exp.Rint: rounding,
        exp.Round: rounding,
        exp.Nanvl: instead_of_nan,
        **SPARK_STRINGS,
        **SPARK_MOMENTS,
    },
}
RULES: dict[str, dict[type[exp.Expr], Rule]] = {
    engine: {**_COMMON, **rules} for engine, rules in _OWN.items()
}
"""The rules of all known constructs, by engine."""
