"""MEDIAN, quantiles, MIN and MAX: ranks of one histogram."""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked
from incrowd.query.expressions import total
from incrowd.query.plan import Aggregate
from incrowd.query.quantile_cells import BUCKETS, GROUPED, note_of, ranks_of
from incrowd.query.sql import bounds_of, with_bounds

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
    """PERCENTILE_CONT(rank) WITHIN GROUP (ORDER BY x) as a function of x and the rank."""
    ordered = node.expression.expressions
    if len(ordered) != 1 or ordered[0].args.get("desc") or not isinstance(node.this, ORDERS):
        raise QueryError(f"{label} needs a rank, and WITHIN GROUP (ORDER BY one column).")
    ranked = type(node.this)(this=ordered[0].this, expression=node.this.this)
    return with_bounds(ranked, bounds_of(node.this))
