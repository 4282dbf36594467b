"""Ratios of two sums over the same rows: weighted averages, and any SUM over a SUM that is not negative.

WEIGHTED_AVG(x, w), or SUM(w * x) / SUM(w), is c + sum(w (x - c)) / sum(w) for any centre c: with c near the
values, a row moves the sum above the line by little. Both sums have the same rows, so that they are bounded
together, by rows or in one ball (`measure`), and a heavy unit's sums shrink alike. Other ratios are taken as
they are.

The sums are bounded like those of an average: of a row, w is clamped into its bounds, and w (x - c) into the
product of w's bounds and the distance of x's from c. So adding or removing a unit moves both by what
`measure` says, whatever the rows hold.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, Operand, both, operand_of
from incrowd.query.measure import Measure
from incrowd.query.plan import Aggregate
from incrowd.query.typed import said

WEIGHTED = ("WEIGHTED_AVG", "WAVG")
RATIO = "RATIO"
"""What a quotient of sums is called between its recognition and its measures; nobody can write it."""


def weighted(asked: Asked, leaf: Measuring) -> Aggregate:
    """WEIGHTED_AVG(x, w): the average of x in which a row counts w times."""
    x, w = _two(asked, leaf)
    if w.low < 0:
        weight = said(asked.node.expressions[1])
        raise QueryError(
            f"{asked.label} needs weights that are not negative: write GREATEST({weight}, 0) for them."
        )
    most = max(abs(w.low), abs(w.high)) * (x.high - x.low) / 2
    product = exp.Mul(this=w.column.shifted(0.0), expression=x.shifted)
    words = f"the weighted sum of {asked.label}"
    measure = Measure("", "row", "rows", x.present, product, -most, most, 0.0, False, label=words)
    measure = replace(measure, offset=x.centre, raw=True)
    total = leaf.add(leaf.in_ball(measure, w, x), leaf.rows_of_ratio(w, x))
    weight = _sum(w, f"the weights of {asked.label}", leaf)
    return Aggregate("", "ratio", asked.label, (total, weight), between=(x.low, x.high))


def ratio(asked: Asked, leaf: Measuring) -> Aggregate:
    """The sum of one value over that of another, which is not negative."""
    above, below = _two(asked, leaf)
    sums = tuple(_sum(value, f"a sum of {asked.label}", leaf) for value in (above, below))
    least = 0.0 if above.low >= 0 else -float("inf")
    most = 0.0 if above.high <= 0 else float("inf")
    return Aggregate("", "ratio", asked.label, sums, between=(least, most))


def _two(asked: Asked, leaf: Measuring) -> tuple[Operand, Operand]:
    """Both values. A row counts if both are present."""
    if asked.bounds is not None or len(asked.node.expressions) != 2:
        raise QueryError(
            f"{asked.label} takes a value and its weight, and no contribution bounds; put LEAST and GREATEST "
            "around them instead."
        )
    one, two = (operand_of(value, asked.function, None, None, leaf.below) for value in asked.node.expressions)
    present = both(both(one.present, two.present), asked.test)
    wide = one.wide or two.wide
    one, two = (replace(value, present=present, tested=True, wide=wide) for value in (one, two))
    return one, two


def _sum(value: Operand, label: str, leaf: Measuring) -> str:
    """The sum of a value as it is, over the rows of the ratio."""
    measure = Measure(
        "",
        "row",
        "rows",
        value.present,
        value.typed.sql,
        value.low,
        value.high,
        whole=value.whole,
        label=label,
        tested=True,
        absent_if_null=value.checked,
        raw=True,
    )
    return leaf.add(leaf.in_ball(measure, value), leaf.rows_of_ratio(value))
