"""SUM: of clamped values, or of totals that are clamped per unit and group."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, Operand
from incrowd.query.measure import Level, Measure, Pooling
from incrowd.query.plan import Aggregate
from incrowd.query.typed import Census


def sum_of(asked: Asked, leaf: Measuring) -> Aggregate:
    """SUM(x)."""
    label, column = asked.label, asked.node.this
    # NULL adds nothing to a sum, so only the question's own FILTER is needed.
    value = replace(leaf.operand(asked, "SUM"), present=asked.test)
    if asked.bounds is not None and asked.bounds.per == "group":
        return Aggregate("", "sum", label, (bounded_sum(value, label, leaf, True),), whole=value.whole)
    cap: float | Census | None = None
    limit = max(abs(value.low), abs(value.high))
    if isinstance(column, exp.Column) and not leaf.below.single:
        field = leaf.below.field(column)
        cap = field.contribution if field.census is None else field.census if leaf.below.plain else None
    if cap is None and isinstance(leaf.rows, int | float) and not value.wide:
        cap = leaf.rows * limit
    measure = Measure("", "row", "own", asked.test, value.typed.sql, value.low, value.high, label=label)
    name = leaf.add(replace(measure, whole=value.whole, wide=value.wide), cap)
    return Aggregate("", "sum", label, (name,), whole=value.whole)


def bounded_sum(value: Operand, label: str, leaf: Measuring, skips: bool) -> str:
    """A sum whose total per unit and group is clamped into the bounds.

    skips: whether a unit adds nothing, rather than the bound next to 0, to a group where it has no value.
    """
    level: Level = "row" if leaf.below.single else "pair"
    limit = max(abs(value.low), abs(value.high))
    cap = None if leaf.groups is None else leaf.groups * limit
    # Where 0 lies between the bounds, a unit without a value adds it in both cases.
    pooled: Pooling = "present" if skips and not value.low <= 0 <= value.high else "total"
    measure = Measure(
        "",
        level,
        "own",
        value.present,
        value.typed.sql,
        value.low,
        value.high,
        whole=value.whole,
        label=label,
        pooled=pooled,
    )
    return leaf.add(measure, cap)
