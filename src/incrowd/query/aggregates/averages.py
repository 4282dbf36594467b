"""AVG, VAR and STDDEV: ratios of sums over the same rows."""

from __future__ import annotations

from sqlglot import exp

from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked
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
