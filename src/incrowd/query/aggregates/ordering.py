"""MEDIAN, quantiles, MIN and MAX: ranks of one histogram."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked
from incrowd.query.expressions import total
from incrowd.query.plan import Aggregate
from incrowd.query.quantile_cells import BUCKETS, GROUPED, note_of, ranks_of
from incrowd.query.sql import bounds_of, number, with_bounds

ORDERS = (
    exp.Median,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.Quantile,
    exp.ApproxQuantile,
    exp.Min,
    exp.Max,
)


def quantile(asked: Asked, leaf: Measuring) -> Aggregate:
    """The value at a rank."""
    label, ranks = asked.label, ranks_of(asked.node, asked.label)
    moment = total(asked.node.this, leaf.below.lookup).kind
    if moment in TIMES and asked.bounds is None:
        value = leaf.moment(asked)
    else:
        value = leaf.operand(asked)
    histogram = value.histogram(GROUPED if leaf.keys else BUCKETS, f"the histogram of {label}")
    return Aggregate(
        "",
        "quantile",
        label,
        (leaf.add(histogram, leaf.rows),),
        quantiles=ranks,
        whole=value.whole,
        note=note_of(asked.node, label),
        moment="date" if moment == "date" else "timestamp" if moment == "timestamp" else "",
    )


def within_group(node: exp.WithinGroup, label: str) -> exp.Expr:
    """PERCENTILE_CONT(rank) WITHIN GROUP (ORDER BY x) as a function of x and the rank.

    In descending order a rank is counted from the other end.
    """
    ordered = node.expression.expressions
    if len(ordered) != 1 or not isinstance(node.this, ORDERS):
        raise QueryError(f"{label} needs a rank, and WITHIN GROUP (ORDER BY one column).")
    rank = node.this.this
    if ordered[0].args.get("desc"):
        rank = _from_above(rank, label)
    ranked = type(node.this)(this=ordered[0].this, expression=rank)
    return with_bounds(ranked, bounds_of(node.this))


def _from_above(rank: exp.Expr | None, label: str) -> exp.Expr:
    """The rank from below that is this one from above, in decimals: 1 - 0.9 is 0.1."""
    value = None if rank is None else number(rank)
    if value is None or not 0 <= value <= 1:
        raise QueryError(f"{label} needs a constant rank between 0 and 1.")
    return exp.Literal.number(format(1 - Decimal(repr(value)), "f"))
