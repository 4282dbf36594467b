"""AVG, VAR and STDDEV: ratios of sums over the same rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, Operand
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
    if _by_unit(asked, leaf):
        return _of_units(value, asked, leaf)
    measures = (leaf.centred(value, asked.label), leaf.rows_of(value, asked.label))
    return Aggregate("", "avg", asked.label, measures)


def _by_unit(asked: Asked, leaf: Measuring) -> bool:
    """Whether each unit's own average is averaged, as GoogleSQL's clause and bounds per group mean it.

    Where the clause limits rows, they are what is averaged. A unit with one row is its own average.
    """
    bounded = asked.bounds is not None and asked.bounds.per == "group"
    pooled = leaf.clause is not None and leaf.clause.rows is None
    return (bounded or pooled) and not leaf.below.single


def _of_units(value: Operand, asked: Asked, leaf: Measuring) -> Aggregate:
    """The average of each unit's average in the group: bounds per group are of it, those per row of rows."""
    if value.wide:
        raise QueryError(
            f"{asked.label} averages units' averages here, which need bounds: write {asked.function}(..., "
            "contribution_bounds_per_group => (0, 100)), with the ends that you expect."
        )
    if asked.bounds is not None and asked.bounds.per == "row":
        inside = value.column.clamped
        value = replace(value, typed=value.typed.but(sql=inside))
    # The count comes first: it says what both weigh.
    count = leaf.number_of_units(value.present, f"the number of units of {asked.label}")
    note = f"{asked.label} is the average of each unit's own average in the group."
    return Aggregate("", "avg", asked.label, (leaf.means(value, asked.label), count), note=note)


def spread(asked: Asked, leaf: Measuring) -> Aggregate:
    """VAR and STDDEV."""
    value, label = leaf.operand(asked), asked.label
    sample, root = SPREADS[type(asked.node)]
    measures = (leaf.centred(value, label), leaf.squares(value, label), leaf.rows_of(value, label))
    return Aggregate("", "var", label, measures, sample=sample, root=root)
