"""COUNT and COUNT_IF: rows that count, units, and rows whose number per unit and group is bounded."""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.distinct import count_values
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, Operand, both
from incrowd.query.aggregates.summing import bounded_sum
from incrowd.query.expressions import condition, total
from incrowd.query.plan import Aggregate
from incrowd.query.typed import Typed, double


def count_if(asked: Asked, leaf: Measuring) -> Aggregate:
    """COUNT_IF(condition)."""
    if asked.bounds is not None:
        raise QueryError(
            f"{asked.label} takes no bounds; write COUNT(*, contribution_bounds_per_group => (low, high)) "
            "FILTER (WHERE the condition)."
        )
    counted = condition(asked.node.this, leaf.below.lookup, "COUNT_IF").sql
    return _rows(asked, both(asked.test, counted), leaf)


def count(asked: Asked, leaf: Measuring) -> Aggregate:
    """COUNT(*), COUNT(x) and COUNT(DISTINCT ...)."""
    inner = asked.node.this
    if isinstance(inner, exp.Distinct):
        if asked.bounds is not None:
            raise QueryError(f"{asked.label} counts each value once and takes no bounds; leave them out.")
        return _units(inner, asked, leaf)
    present = asked.test
    if inner is not None and not isinstance(inner, exp.Star):
        counted = total(inner, leaf.below.lookup)
        if counted.nullable:
            there = exp.Not(this=exp.Is(this=exp.paren(counted.sql), expression=exp.null()))
            present = both(present, there)
    return _rows(asked, present, leaf) if asked.bounds is None else _per_group(asked, present, leaf)


def _rows(asked: Asked, present: exp.Expr | None, leaf: Measuring) -> Aggregate:
    return Aggregate("", "count", asked.label, (leaf.number(present, asked.label),), whole=True)


def _units(inner: exp.Distinct, asked: Asked, leaf: Measuring) -> Aggregate:
    """COUNT(DISTINCT unit), or of values. Of the unit's columns, group keys need not be listed."""
    listed = inner.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Tuple):
        listed = listed[0].expressions
    columns = [column for column in listed if isinstance(column, exp.Column)]
    parts = {leaf.below.field(column).unit for column in columns}
    keys = {leaf.below.field(column).unit for column in leaf.keys if isinstance(column, exp.Column)}
    wanted = set(leaf.below.parts)
    if len(columns) != len(listed) or "" in parts or "column" not in parts or not wanted <= parts | keys:
        return count_values(inner.expressions, asked, leaf)
    number = leaf.number_of_units(asked.test, asked.label)
    return Aggregate("", "count", asked.label, (number,), whole=True)


def _per_group(asked: Asked, present: exp.Expr | None, leaf: Measuring) -> Aggregate:
    """COUNT with bounds per group: a sum of ones whose total per unit and group is clamped."""
    assert asked.bounds is not None
    if asked.bounds.per != "group":
        raise QueryError(f"{asked.label} counts each row once; bound it with contribution_bounds_per_group.")
    one = Typed(double(1.0), "integer", 1, 1, False)
    value = Operand(one, present, asked.bounds.low, asked.bounds.high)
    return Aggregate("", "sum", asked.label, (bounded_sum(value, asked.label, leaf, False),), whole=True)
