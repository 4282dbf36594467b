"""Aggregation inside one unit: sub-queries such as SELECT user_id, COUNT(*) ... GROUP BY user_id.

Each result row is a function of one unit's rows (ownership holds), so the aggregates are exact and unbounded; what
is computed from them later is clamped like any other value. Sums are of whole numbers or of fixed-point
numbers: a float sum depends on the order of the rows, and with it on other units' rows.
"""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.expressions import as_float, condition, total
from incrowd.query.relations import UNIT, Relation, Sources, field_from
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Field, Lookup, Typed, real

_SUM_BITS = 40


def is_aggregating(select: exp.Select) -> bool:
    """Whether the select groups or aggregates at its own level."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(own_aggregates(each) for each in select.expressions)


def own_aggregates(node: exp.Expression) -> list[exp.AggFunc]:
    """The aggregates of an expression, not those inside sub-queries."""
    return [
        each
        for each in node.find_all(exp.AggFunc)
        if each.find_ancestor(exp.Select) is node.find_ancestor(exp.Select) or node.find_ancestor(exp.Select) is None
    ]


def group_keys(select: exp.Select) -> list[exp.Expression]:
    """The GROUP BY expressions; all plain columns of the SELECT for GROUP BY ALL and DISTINCT."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        if group is None and not select.args.get("distinct"):
            return []
        return [each.unalias() for each in select.expressions if not own_aggregates(each)]
    for extra in ("cube", "rollup", "grouping_sets", "totals"):
        if group.args.get(extra):
            raise QueryError("CUBE, ROLLUP and GROUPING SETS are not possible; ask for each grouping by itself.")
    return list(group.expressions)


def aggregate_per_unit(select: exp.Select, below: Sources) -> Relation:
    """A sub-query that groups by the protected unit."""
    keys = group_keys(select)
    if below.units is not None:
        missing = [each for each in below.units if not any(each.sql() == key.sql() for key in keys)]
        if missing or not below.units:
            raise QueryError(
                "A sub-query that aggregates private rows must group by the protected unit; "
                "to aggregate over people, do it in the outermost SELECT."
            )
    if select.args.get("distinct") and (select.args.get("group") or not isinstance(select.args["distinct"], exp.Distinct) or select.args["distinct"].args.get("on")):
        raise QueryError("SELECT DISTINCT together with GROUP BY or ON is not possible here; use GROUP BY alone.")
    lookup = below.lookup
    fields: dict[str, Field] = {}
    projections: list[exp.Expression] = []
    for each in select.expressions:
        name, node = each.alias_or_name, each.unalias()
        typed = _grouped(node, keys, lookup)
        projections.append(exp.alias_(typed.sql, name, quoted=True))
        fields[name] = field_from(node, typed, below, name)
    units = None
    if below.units is not None:
        for index, column in enumerate(below.units):
            projections.append(exp.alias_(column.copy(), f"{UNIT}{index}", quoted=True))
        units = tuple(f"{UNIT}{index}" for index in range(len(below.units)))
    rows = exp.Select(expressions=projections, from_=below.from_, joins=below.joins)
    where = select.args.get("where")
    if where is not None:
        rows = rows.where(condition(where.this, lookup, "WHERE").sql)
    rows = rows.group_by(*[total(key, lookup).sql for key in keys])
    having = select.args.get("having")
    if having is not None:
        rows = rows.having(_grouped(having.this, keys, lookup).sql)
    return Relation(rows, fields, units, below.tables, below.materialize)


def _grouped(node: exp.Expression, keys: list[exp.Expression], lookup: Lookup) -> Typed:
    """An expression over group keys and aggregates, in total form."""
    stand_ins: dict[str, Typed] = {}

    def replace_part(part: exp.Expression) -> exp.Expression:
        text = part.sql(DIALECT)
        found: Typed | None = None
        if any(part == key for key in keys):
            found = total(part, lookup)
        elif isinstance(part, exp.Filter):
            found = _aggregate(part.this, lookup, condition(part.expression.this, lookup, "FILTER"))
        elif isinstance(part, exp.AggFunc):
            found = _aggregate(part, lookup, None)
        if found is None:
            return part
        name = f"__agg{len(stand_ins)}"
        stand_ins[name] = found
        del text
        return exp.column(name, table="__agg")

    stripped = node.copy().transform(replace_part)

    def find(column: exp.Column) -> Typed:
        if column.table != "__agg":
            raise QueryError(f"{column.name} must be in GROUP BY or inside an aggregate.")
        return stand_ins[column.name]

    return total(stripped, find)


def _aggregate(node: exp.Expression, lookup: Lookup, test: Typed | None) -> Typed:
    def chosen(sql: exp.Expression) -> exp.Expression:
        return sql if test is None else exp.Case(ifs=[exp.If(this=test.sql.copy(), true=sql)])

    if isinstance(node, exp.Count):
        inner = node.this
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                raise QueryError("COUNT(DISTINCT ...) takes one column.")
            counted = chosen(total(inner.expressions[0], lookup).sql)
            return Typed(exp.Count(this=exp.Distinct(expressions=[counted])), "integer", 0, None, False)
        counted = exp.Literal.number("1") if inner is None or isinstance(inner, exp.Star) else total(inner, lookup).sql
        return Typed(exp.Count(this=chosen(counted)), "integer", 0, None, False)
    if isinstance(node, exp.Min | exp.Max):
        if node.expressions:
            raise QueryError(f"{node.sql(DIALECT)} takes one column here.")
        value = total(node.this, lookup)
        return value.but(sql=type(node)(this=chosen(value.sql)), nullable=True, values=None)
    if isinstance(node, exp.Sum | exp.Avg):
        return _fixed_point(node, as_float(total(node.this, lookup), type(node).__name__.upper()), chosen)
    raise QueryError(f"{node.sql(DIALECT)} is not possible inside a sub-query per unit; use COUNT, SUM, AVG, MIN or MAX there.")


def _fixed_point(node: exp.Expression, value: Typed, chosen: object) -> Typed:
    assert callable(chosen)
    name = type(node).__name__.upper()
    if value.low is None or value.high is None:
        raise QueryError(f"{name}({node.this.sql(DIALECT)}) inside a sub-query needs bounds on its values; declare them or write LEAST and GREATEST around it.".replace('"', ""))
    limit = max(abs(value.low), abs(value.high), 1e-300)
    exponent = min(_SUM_BITS - math.ceil(math.log2(limit)), 1000)
    if value.kind == "integer" and exponent > 0:
        exponent = 0
    scaled = exp.Floor(
        this=exp.Add(this=exp.Mul(this=exp.paren(clamped(value)), expression=real(math.ldexp(1.0, exponent))), expression=exp.cast(exp.Literal.string("0.5"), "DOUBLE"))
    )
    steps = exp.cast(scaled, "BIGINT")
    summed = exp.cast(exp.Sum(this=chosen(steps)), "DOUBLE")
    sql: exp.Expression = exp.Mul(this=summed, expression=real(math.ldexp(1.0, -exponent)))
    if isinstance(node, exp.Sum):
        kind = value.kind
        return Typed(exp.paren(sql), kind, None, None, True)
    counted = exp.cast(exp.Count(this=chosen(value.sql.copy())), "DOUBLE")
    sql = exp.Div(this=exp.paren(sql), expression=exp.Nullif(this=counted, expression=exp.Literal.number("0")))
    return Typed(exp.paren(sql), "float", value.low, value.high, True)


def clamped(value: Typed) -> exp.Expression:
    """The value inside its bounds, NaN as NULL, as a float."""
    assert value.low is not None and value.high is not None
    sql = value.sql
    low, high = real(value.low), real(value.high)
    inside = exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=sql.copy(), expression=low), true=exp.cast(low.copy(), "DOUBLE")),
            exp.If(this=exp.LTE(this=sql.copy(), expression=high), true=exp.cast(sql.copy(), "DOUBLE")),
            exp.If(this=exp.LTE(this=sql.copy(), expression=infinity()), true=exp.cast(high.copy(), "DOUBLE")),
        ]
    )
    return inside


def infinity() -> exp.Expression:
    """Positive infinity; engines order NaN above it."""
    return exp.cast(exp.Literal.string("Infinity"), "DOUBLE")
