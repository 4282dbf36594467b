"""Aggregation inside one unit: sub-queries such as SELECT user_id, COUNT(*) ... GROUP BY user_id.

Each result row is a function of one unit's rows (ownership holds), so the aggregates are exact and
unbounded; what is computed from them later is clamped like any other value. Sums are of whole numbers or of
fixed-point numbers: a float sum depends on the order of the rows, and with it on other units' rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from incrowd.catalog.types import NUMERIC, SQL_TYPES
from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.expressions import as_condition, condition, total
from incrowd.query.graded_cells import ROWS_OF_ONE
from incrowd.query.grouping_sets import groupings, has_levels
from incrowd.query.measure import MOST_BOUND
from incrowd.query.ownership import Relation, Sources, carry_units, field_from
from incrowd.query.sql import bounds_of
from incrowd.query.typed import Field, Lookup, Typed, double, said

_SUM_BITS = 40
_EXACT = 2.0**53


def is_aggregating(select: exp.Select) -> bool:
    """Whether the select groups or aggregates at its own level."""
    if select.args.get("group") or select.args.get("having"):
        return True
    qualify = select.args.get("qualify")
    return any(own_aggregates(node) for node in [*select.expressions, *([qualify] if qualify else [])])


def own_aggregates(node: exp.Expr) -> list[exp.AggFunc]:
    """The aggregates of a projection: not those inside its sub-queries, nor the functions of windows."""
    home = node.find_ancestor(exp.Select)
    return [
        aggregate
        for aggregate in node.find_all(exp.AggFunc)
        if aggregate.find_ancestor(exp.Select) is home and not of_window(aggregate)
    ]


def of_window(function: exp.AggFunc) -> bool:
    """Whether it is the function of a window: such a one aggregates nothing, it runs over what there is."""
    around: exp.Expr = function
    while isinstance(around.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        around = around.parent
    return isinstance(around.parent, exp.Window) and around.arg_key == "this"


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """What the select groups by.

    These are the GROUP BY expressions; for DISTINCT, the SELECT list; for GROUP BY ALL, the columns of the
    SELECT list that hold no aggregate and no window.
    """
    group = select.args.get("group")
    plain = [
        column.unalias()
        for column in select.expressions
        if not own_aggregates(column) and not column.find(exp.Window)
    ]
    if group is None:
        if select.args.get("distinct") and not is_aggregating(select):
            return plain
        return []
    others = any(value for key, value in group.args.items() if key not in ("expressions", "all"))
    if others or has_levels(select):
        raise QueryError(
            "CUBE, ROLLUP and GROUPING SETS are not possible inside a sub-query per unit; write plain GROUP "
            "BY there, and the levels in the outermost SELECT."
        )
    return plain if group.args.get("all") else list(group.expressions)


def all_keys(select: exp.Select) -> list[exp.Expr]:
    """What the select groups by in any of its levels."""
    levels = groupings(select)
    return group_keys(select) if levels is None else list(levels.keys)


def groups_by_unit(select: exp.Select, below: Sources) -> bool:
    """True if all of the unit's columns are keys, so that every group belongs to one unit."""
    if has_levels(select):
        return False
    return bool(below.parts) and set(below.parts) <= _unit_keys(select, below)


def _unit_keys(select: exp.Select, below: Sources) -> set[str]:
    """Which parts of the unit are among the keys; also the empty text if some key is no part of it."""
    return {below.field(key).unit if isinstance(key, exp.Column) else "" for key in group_keys(select)}


def aggregate_per_unit(select: exp.Select, below: Sources) -> Relation:
    """A sub-query that groups by the protected unit (or any aggregation of public rows)."""
    keys = group_keys(select)
    if below.units is not None and not groups_by_unit(select, below):
        raise QueryError(
            "A sub-query that aggregates private rows must group by the protected unit; to aggregate over "
            "people, do it in the outermost SELECT."
        )
    if select.args.get("distinct") and is_aggregating(select):
        raise QueryError("DISTINCT together with aggregates is not possible here; use GROUP BY alone.")
    lookup = below.lookup
    fields: dict[str, Field] = {}
    rows = below.select(select.args.get("where"))
    for column in select.expressions:
        name, node = column.alias_or_name, column.unalias()
        typed = _grouped(node, keys, lookup)
        rows = rows.select(exp.alias_(typed.sql, name, quoted=True), copy=False)
        # No engine puts an expression in place through a GROUP BY.
        fields[name] = replace(field_from(node, typed, below, name), weight=1)
    units, rows = carry_units(rows, below)
    by = [_by(total(key, lookup), below) for key in keys]
    rows = rows.group_by(
        *[column for column in by if column is not None], *[column.copy() for column in below.units or ()]
    )
    having = select.args.get("having")
    if having is not None:
        rows = rows.having(as_condition(_grouped(having.this, keys, lookup), having.this, "HAVING").sql)
    single = bool(below.parts) and _unit_keys(select, below) == set(below.parts)
    unique = _names_of(keys, select)
    return Relation(
        rows, fields, units, below.tables, below.materialize, single or below.single, unique=unique
    )


def _names_of(keys: list[exp.Expr], select: exp.Select) -> frozenset[str] | None:
    """The columns that hold the keys; None unless there is one for each. Constants divide no group.

    The unit's own columns are grouped by too, but they are the same in all rows of the keys' unit.
    """
    named = {column.unalias(): column.alias_or_name for column in select.expressions}
    varying = [key for key in keys if key.find(exp.Column)]
    return frozenset(named[key] for key in varying) if all(key in named for key in varying) else None


def _grouped(node: exp.Expr, keys: list[exp.Expr], lookup: Lookup) -> Typed:
    """An expression over group keys and aggregates, in total form."""
    stand_ins: dict[str, Typed] = {}

    def replace_part(part: exp.Expr) -> exp.Expr:
        typed: Typed | None = None
        if any(part == key for key in keys):
            typed = total(part, lookup)
        elif isinstance(part, exp.Filter):
            typed = aggregate_of_unit(part.this, lookup, condition(part.expression.this, lookup, "FILTER"))
        elif isinstance(part, exp.AggFunc):
            typed = aggregate_of_unit(part, lookup, None)
        if typed is None:
            return part
        name = f"a{len(stand_ins)}"
        stand_ins[name] = typed.but(said=said(part))
        return exp.column(name, table="__aggregate")

    stripped = node.copy().transform(replace_part)

    def find(column: exp.Column) -> Typed:
        if column.table != "__aggregate":
            raise QueryError(f"{column.name} must be in GROUP BY or inside an aggregate.")
        return stand_ins[column.name]

    return total(stripped, find)


def _by(key: Typed, below: Sources) -> exp.Expr | None:
    """A key in GROUP BY; None for a constant, which divides no group.

    Rows of people are grouped by their unit in any case, so a constant can be left out. Public rows may have
    no other key: there the constant stays, in the type that it has. Bare, it would be the number of a
    column.
    """
    if key.sql.find(exp.Column):
        return key.sql
    if below.units is not None:
        return None
    floating = key.kind in NUMERIC and not key.integral
    return exp.cast(exp.paren(key.sql), "DOUBLE" if floating else SQL_TYPES[key.kind])


Chosen = Callable[[exp.Expr], exp.Expr]


def aggregate_of_unit(node: exp.Expr, lookup: Lookup, test: Typed | None) -> Typed:
    """An aggregate of one unit's rows, of those that pass the test if there is one."""

    def chosen(sql: exp.Expr) -> exp.Expr:
        return sql if test is None else exp.Case(ifs=[exp.If(this=test.sql.copy(), true=sql)])

    bounds = bounds_of(node)
    if bounds is not None and not (isinstance(node, exp.Sum | exp.Avg) and bounds.per == "row"):
        raise QueryError(
            f"Inside a sub-query per unit only SUM and AVG take bounds, and per row; {said(node)} takes none."
        )
    if node.args.get("expressions"):
        raise QueryError(f"{said(node)} takes one column here.")
    if isinstance(node, exp.Count):
        return _counted(_count(node, lookup, chosen))
    if isinstance(node, exp.CountIf):
        counted = condition(node.this, lookup, "COUNT_IF").sql
        ones = exp.Case(ifs=[exp.If(this=counted, true=exp.Literal.number("1"))])
        return _counted(exp.Count(this=chosen(ones)))
    if isinstance(node, exp.Min | exp.Max):
        value = total(node.this, lookup)
        if value.kind == "boolean":
            # Not every engine orders truth values; numbers they all do.
            least = type(node)(this=chosen(as_float(value, "MIN").sql))
            truth = exp.NEQ(this=exp.paren(least), expression=double(0.0))
            return value.but(sql=exp.paren(truth), nullable=True, values=None, said="")
        sql: exp.Expr = type(node)(this=chosen(value.sql))
        if value.kind == "float":
            # Zero has two signs, and which one an engine meets first depends on other rows: 0.0 + -0.0 is
            # 0.0.
            sql = exp.paren(exp.Add(this=exp.cast(sql, "DOUBLE"), expression=double(0.0)))
        return value.but(sql=sql, nullable=True, values=None, said="")
    if isinstance(node, exp.Sum | exp.Avg):
        value = as_float(total(node.this, lookup), type(node).__name__.upper())
        if bounds is not None:
            value = value.but(low=bounds.low, high=bounds.high)
        return _fixed_point(node, value, chosen)
    raise QueryError(
        f"{said(node)} is not possible inside a sub-query per unit; use COUNT, SUM, AVG, MIN or MAX there."
    )


def _counted(sql: exp.Expr) -> Typed:
    """A number of rows of one unit: there may be any number of them."""
    wide = (0.0, float(ROWS_OF_ONE))
    return Typed(sql, "integer", 0, None, False, integral=True, size=64, wide=wide)


def _count(node: exp.Expr, lookup: Lookup, chosen: Chosen) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise QueryError("COUNT(DISTINCT ...) takes one column here.")
        return exp.Count(this=exp.Distinct(expressions=[chosen(total(inner.expressions[0], lookup).sql)]))
    if inner is None or isinstance(inner, exp.Star):
        return exp.Count(this=chosen(exp.Literal.number("1")))
    return exp.Count(this=chosen(total(inner, lookup).sql))


def _fixed_point(node: exp.Expr, value: Typed, chosen: Chosen) -> Typed:
    """SUM or AVG of one unit's values as whole numbers of steps: exact, whatever the order of the rows."""
    name = type(node).__name__.upper()
    if value.low is None or value.high is None:
        raise QueryError(
            f"{name} of {said(node.this)} inside a sub-query needs bounds on its values; declare them or "
            "write LEAST and GREATEST around it."
        )
    limit = max(abs(value.low), abs(value.high)) or 1.0
    check_bounds(value.low, value.high, said(node.this), name)
    exponent = _SUM_BITS - math.ceil(math.log2(limit))
    if value.kind == "integer" and (exponent > 0 or limit <= _EXACT):
        exponent = 0
    # Half a step is added before scaling: then nothing can vanish below float64.
    shifted = exp.Add(this=exp.paren(clamped(value)), expression=double(math.ldexp(0.5, -exponent)))
    scaled = exp.Mul(this=exp.paren(shifted), expression=double(math.ldexp(1.0, exponent)))
    steps = exp.cast(exp.Floor(this=scaled), "BIGINT")
    summed = exp.cast(_clamped_sum(chosen(steps)), "DOUBLE")
    sql: exp.Expr = exp.Mul(this=summed, expression=double(math.ldexp(1.0, -exponent)))
    if isinstance(node, exp.Sum):
        # What is never negative adds up to nothing negative, however many rows there are.
        low = 0.0 if value.low >= 0 else None
        high = 0.0 if value.high <= 0 else None
        wide = (min(value.low, 0.0) * ROWS_OF_ONE, max(value.high, 0.0) * ROWS_OF_ONE)
        return Typed(exp.paren(sql), value.kind, low, high, True, size=320, wide=wide)
    counted = exp.cast(exp.Count(this=chosen(steps.copy())), "DOUBLE")
    divisor = exp.Nullif(this=counted, expression=double(0.0))
    sql = exp.Div(this=exp.paren(sql), expression=divisor, typed=False, safe=False)
    return Typed(exp.paren(sql), "float", value.low, value.high, True, size=400)


def _clamped_sum(steps: exp.Expr) -> exp.Expr:
    """A sum of 64-bit integers, kept to 62 bits: engines turn wider integers into floats in different ways.

    No unit comes near: its rows have at most 2^53 steps each.
    """
    summed = exp.Sum(this=steps)
    ends = [exp.cast(exp.Literal.string(str(sign * 2**61)), "INT128") for sign in (-1, 1)]
    cases = [
        exp.If(this=test(this=summed.copy(), expression=end), true=end.copy())
        for test, end in zip((exp.LT, exp.GT), ends, strict=True)
    ]
    return exp.cast(exp.Case(ifs=cases, default=summed), "BIGINT")


def check_bounds(low: float, high: float, what: str, function: str) -> None:
    """Refuse bounds whose squares would leave float64, or vanish below it."""
    most = max(abs(low), abs(high))
    if most > MOST_BOUND:
        raise QueryError(f"The bounds of {what} are too wide for {function}; narrow them.")
    if 0 < most < 1 / MOST_BOUND:
        raise QueryError(f"The bounds of {what} are too close to zero for {function}; ask in a smaller unit.")


def clamped(value: Typed) -> exp.Expr:
    """The value, clamped into its bounds; NULL if it is NULL or NaN. Engines order NaN above infinity."""
    assert value.low is not None and value.high is not None
    sql, low, high = value.sql, double(value.low), double(value.high)
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=sql.copy(), expression=low), true=low.copy()),
            exp.If(this=exp.LTE(this=sql.copy(), expression=high), true=sql.copy()),
            exp.If(this=exp.LTE(this=sql.copy(), expression=double(math.inf)), true=high.copy()),
        ]
    )
