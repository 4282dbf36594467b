"""AVG, VAR, STDDEV, COVAR and CORR: ratios of sums over the same rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, both, operand_of
from incrowd.query.measure import Measure
from incrowd.query.plan import Aggregate

SPREADS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
"""Whether a spread divides by n - 1, and whether it is a root."""


def average(asked: Asked, leaf: Measuring) -> Aggregate:
    """AVG(x)."""
    value = leaf.operand(asked, "AVG")
    measures = (leaf.centred(value, asked.label), leaf.rows_of(value, asked.label))
    return Aggregate("", "avg", asked.label, measures)


def spread(asked: Asked, leaf: Measuring) -> Aggregate:
    """VAR and STDDEV."""
    value, label = leaf.operand(asked), asked.label
    sample, root = SPREADS[type(asked.node)]
    measures = (leaf.centred(value, label), leaf.squares(value, label), leaf.rows_of(value, label))
    return Aggregate("", "var", label, measures, sample=sample, root=root)


def together(asked: Asked, leaf: Measuring) -> Aggregate:
    """COVAR and CORR of two columns."""
    node, label = asked.node, asked.label
    if asked.bounds is not None:
        raise QueryError(
            f"{label} takes no contribution bounds; declare bounds for both columns or use LEAST and "
            "GREATEST."
        )
    parts = [
        operand_of(value, asked.function, None, None, leaf.below) for value in (node.this, node.expression)
    ]
    # A row counts if both values are present.
    present = both(both(parts[0].present, parts[1].present), asked.test)
    wide = any(value.wide for value in parts)
    one, two = (replace(value, present=present, tested=True, wide=wide) for value in parts)
    most = (one.high - one.low) * (two.high - two.low) / 4
    product = exp.Mul(this=one.shifted, expression=two.shifted)
    sums = tuple(leaf.centred(value, label) for value in (one, two))
    words = f"the sum of products of {label}"
    measure = Measure("", "row", "rows", present, product, -most, most, 0, False, label=words)
    cross = leaf.add(leaf.in_ball(measure, one, two), leaf.rows_of_ratio(one, two))
    n = leaf.rows_of(one, label)
    if isinstance(node, exp.Corr):
        squares = tuple(leaf.squares(value, label) for value in (one, two))
        return Aggregate("", "corr", label, (*sums, *squares, cross, n))
    sample = isinstance(node, exp.CovarSamp)
    return Aggregate("", "covar", label, (*sums, cross, n), sample=sample)
