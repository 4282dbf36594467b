"""COVAR, CORR and REGR_*: sums over the rows in which both values are present."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, Operand, both, operand_of
from incrowd.query.measure import Measure
from incrowd.query.plan import Aggregate, AggregateKind

LINES: dict[type[exp.Expr], AggregateKind] = {
    exp.RegrSlope: "slope",
    exp.RegrIntercept: "intercept",
    exp.RegrR2: "r2",
    exp.RegrSxx: "sxx",
    exp.RegrSyy: "sxx",
    exp.RegrSxy: "sxy",
    exp.RegrAvgx: "avg",
    exp.RegrAvgy: "avg",
    exp.RegrCount: "count",
}
"""The regressions of y on x, and what each is made of. REGR_SYY is the REGR_SXX of y."""


def together(asked: Asked, leaf: Measuring) -> Aggregate:
    """COVAR and CORR of two columns."""
    one, two = _pair(asked, leaf)
    if isinstance(asked.node, exp.Corr):
        return Aggregate("", "corr", asked.label, _all_sums(one, two, asked.label, leaf))
    sums = _products(one, two, asked.label, leaf)
    return Aggregate("", "covar", asked.label, sums, sample=isinstance(asked.node, exp.CovarSamp))


def regression(asked: Asked, leaf: Measuring) -> Aggregate:
    """REGR_SLOPE(y, x) and its family: the line that fits y best, from x."""
    label, kind = asked.label, LINES[type(asked.node)]
    y, x = _pair(asked, leaf)
    if kind == "count":
        return Aggregate("", "count", label, (leaf.number(x.present, label),), whole=True)
    if kind in ("avg", "sxx"):
        value = y if isinstance(asked.node, exp.RegrAvgy | exp.RegrSyy) else x
        squares = (leaf.squares(value, label),) if kind == "sxx" else ()
        return Aggregate("", kind, label, (leaf.centred(value, label), *squares, leaf.rows_of(value, label)))
    if kind == "sxy":
        return Aggregate("", kind, label, _products(x, y, label, leaf))
    if kind == "r2":
        return Aggregate("", kind, label, _all_sums(x, y, label, leaf))
    *sums, cross, rows = _products(x, y, label, leaf)
    return Aggregate("", kind, label, (*sums, leaf.squares(x, label), cross, rows))


def _pair(asked: Asked, leaf: Measuring) -> tuple[Operand, Operand]:
    """Both values. A row counts if both are present."""
    if asked.bounds is not None:
        raise QueryError(
            f"{asked.label} takes no contribution bounds; declare bounds for both columns or use LEAST and "
            "GREATEST."
        )
    values = (asked.node.this, asked.node.expression)
    one, two = (operand_of(value, asked.function, None, None, leaf.below) for value in values)
    present = both(both(one.present, two.present), asked.test)
    wide = one.wide or two.wide
    one, two = (replace(value, present=present, tested=True, wide=wide) for value in (one, two))
    return one, two


def _products(one: Operand, two: Operand, label: str, leaf: Measuring) -> tuple[str, ...]:
    """Both centred sums, the sum of products, and the number of rows."""
    most = (one.high - one.low) * (two.high - two.low) / 4
    product = exp.Mul(this=one.shifted, expression=two.shifted)
    sums = tuple(leaf.centred(value, label) for value in (one, two))
    words = f"the sum of products of {label}"
    measure = Measure("", "row", "rows", one.present, product, -most, most, 0, False, label=words)
    cross = leaf.add(leaf.in_ball(measure, one, two), leaf.rows_of_ratio(one, two))
    return (*sums, cross, leaf.rows_of(one, label))


def _all_sums(one: Operand, two: Operand, label: str, leaf: Measuring) -> tuple[str, ...]:
    """The same, with the sums of squares of both."""
    first, second, cross, rows = _products(one, two, label, leaf)
    squares = tuple(leaf.squares(value, label) for value in (one, two))
    return (first, second, *squares, cross, rows)
