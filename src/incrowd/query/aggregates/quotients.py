"""Quotients of sums: SUM(x) / COUNT(*), COUNT_IF(c) / COUNT(*), SUM(w * x) / SUM(w), SUM(x) / SUM(y).

As two sums, each would have a cap and noise of its own, and the quotient an interval that knows nothing of
what both share. As an average, both are bounded together and a heavy unit's sum and count shrink alike
(`measure`), and its interval is that of a ratio. So the quotient is written as the AVG that it is:

    SUM(x) FILTER (WHERE p) / COUNT(*) FILTER (WHERE q) = AVG(CASE WHEN p THEN x ELSE 0 END) FILTER (WHERE q)

wherever each row with p is one with q, which is seen where q is absent or one of the conditions that p joins
by AND. Rows whose x is NULL count below the line and add nothing above it. A row whose x is NaN, which is no
number, counts on neither side. A bounded x that is out of its bounds is clamped into them and zero, where it
may be NULL. What is no average is a weighted one, or a ratio of two sums whose lower one is not negative
(`ratios`). Where both sums are asked for anyway, their quotient is computed from them, for nothing, and the
numbers of an answer agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from incrowd.catalog.types import NUMERIC
from incrowd.query.aggregates.ratios import RATIO
from incrowd.query.bounding import conjuncts
from incrowd.query.expressions import total
from incrowd.query.sql import DIALECT, ContributionBounds, bounds_of, number, with_bounds
from incrowd.query.typed import Lookup, Typed

AGGREGATES = (exp.Filter, exp.WithinGroup, exp.AggFunc)
"""The nodes that an aggregate of a question may be."""


@dataclass(frozen=True)
class Summed:
    """A sum or a count: what is summed (None for ones), over which rows, between which bounds."""

    value: exp.Expr | None
    tests: tuple[exp.Expr, ...]
    bounds: ContributionBounds | None = None
    counted: exp.Expr | None = None
    """The x of COUNT(x)."""


def plainly_asked(select: exp.Select) -> frozenset[str]:
    """The aggregates that a SELECT asks for outside of quotients, as text."""
    parts: list[exp.Expr] = list(select.expressions)
    parts += [select.args[clause] for clause in ("having", "qualify", "order") if select.args.get(clause)]
    return frozenset(node.sql(DIALECT) for part in parts for node in _aggregates(part))


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, AGGREGATES):
        yield node
    elif not (isinstance(node, exp.Div) and _parts(node) is not None):
        for part in node.iter_expressions():
            yield from _aggregates(part)


def quotient(node: exp.Expr, taken: Collection[str], lookup: Lookup) -> exp.Expr | None:
    """A quotient of sums as an average, times the constants that stand in it; None for anything else."""
    parts = _parts(node)
    if parts is None:
        return None
    above, below, constants = parts
    if above.sql(DIALECT) in taken and below.sql(DIALECT) in taken:
        return None
    one, two = _summed(above), _summed(below)
    if one is None or two is None or one == two:
        return None
    average = None if two.value is not None else _average(one, two, lookup)
    average = average or _weighted(one, two, lookup) or _ratio(one, two, lookup)
    for constant in constants if average is not None else ():
        if number(constant) != 1:
            average = exp.Mul(this=average, expression=constant.copy())
    return None if average is None else exp.paren(average)


def _parts(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, list[exp.Expr]] | None:
    """The aggregates above and below the line, and the constants that multiply."""
    if not isinstance(node, exp.Div):
        return None
    constants: list[exp.Expr] = []
    above, below = node.this, node.expression
    while not isinstance(above, AGGREGATES):
        if isinstance(above, exp.Paren) or _is_double(above):
            above = above.this
        elif isinstance(above, exp.Mul) and number(above.this) is not None:
            constants.append(above.this)
            above = above.expression
        elif isinstance(above, exp.Mul) and number(above.expression) is not None:
            constants.append(above.expression)
            above = above.this
        else:
            return None
    while not isinstance(below, AGGREGATES):
        zero = isinstance(below, exp.Nullif) and number(below.expression) == 0
        if not (isinstance(below, exp.Paren) or _is_double(below) or zero):
            return None
        below = below.this
    return above, below, constants


def _is_double(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DOUBLE


def _summed(node: exp.Expr) -> Summed | None:
    """A sum or a count, understood; None for other aggregates."""
    tests: tuple[exp.Expr, ...] = ()
    if isinstance(node, exp.Filter):
        tests = tuple(conjuncts(node.expression.this))
        node = node.this
    bounds = bounds_of(node)
    if isinstance(node, exp.Sum) and not isinstance(node.this, exp.Distinct):
        return None if bounds is not None and bounds.per != "row" else Summed(node.this, tests, bounds)
    if bounds is not None or node.args.get("expressions"):
        return None
    if isinstance(node, exp.CountIf):
        return Summed(None, (*tests, *conjuncts(node.this)))
    if not isinstance(node, exp.Count) or isinstance(node.this, exp.Distinct):
        return None
    counted = None if node.this is None or isinstance(node.this, exp.Star) else node.this
    return Summed(None, tests, None, counted)


def _average(above: Summed, below: Summed, lookup: Lookup) -> exp.Expr | None:
    """The average; None if rows above the line may not be below it, or if x has no bounds."""
    more = tuple(test for test in above.tests if test not in below.tests)
    if any(test not in above.tests for test in below.tests):
        return None
    counted = below.counted
    if counted is not None and not (counted == above.value or not total(counted, lookup).nullable):
        return None
    if above.value is None:
        if above.counted is not None and total(above.counted, lookup).nullable:
            more += (_there(above.counted),)
        return None if not more else _filtered(exp.Avg(this=_where(more, _one())), below.tests)
    typed = total(above.value, lookup)
    if typed.kind not in NUMERIC or not (typed.bounded or above.bounds is not None):
        return None
    value = above.value.copy() if counted is not None else _or_zero(above.value.copy(), typed)
    if more:
        value = _where(more, value)
    changed = bool(more) or (typed.nullable and counted is None)
    if above.bounds is not None and changed:
        return None
    return _filtered(with_bounds(exp.Avg(this=value), above.bounds), below.tests)


def _weighted(above: Summed, below: Summed, lookup: Lookup) -> exp.Expr | None:
    """SUM(w * x) / SUM(w) over the same rows, as a weighted average; None for anything else."""
    product = None if above.value is None else above.value.unnest()
    if below.value is None or above.tests != below.tests or above.bounds or below.bounds:
        return None
    weight = below.value.unnest()
    if not isinstance(product, exp.Mul):
        return None
    sides = [product.this.unnest(), product.expression.unnest()]
    if weight not in sides:
        return None
    value = sides[1] if sides[0] == weight else sides[0]
    typed = [total(part, lookup) for part in (value, weight)]
    if not all(part.kind in NUMERIC and part.bounded for part in typed) or (typed[1].low or 0) < 0:
        return None
    value = _or_zero(value.copy(), typed[0])
    made = exp.AnonymousAggFunc(this="WEIGHTED_AVG", expressions=[value, weight.copy()])
    return _filtered(made, below.tests)


def _ratio(above: Summed, below: Summed, lookup: Lookup) -> exp.Expr | None:
    """Any sum over one that is not negative; None if one of them has no bounds, or bounds of its own."""
    if above.bounds or below.bounds:
        return None
    common = tuple(test for test in above.tests if test in below.tests)
    values = []
    for side in (above, below):
        more = tuple(test for test in side.tests if test not in common)
        value = _one() if side.value is None else side.value
        typed = total(value, lookup)
        if typed.kind not in NUMERIC or not typed.bounded:
            return None
        if side is below and (typed.low or 0) < 0:
            return None
        if side.counted is not None and total(side.counted, lookup).nullable:
            more += (_there(side.counted),)
        value = _or_zero(value.copy(), typed)
        values.append(_where(more, value) if more else value)
    return _filtered(exp.AnonymousAggFunc(this=RATIO, expressions=values), common)


def _or_zero(value: exp.Expr, typed: Typed) -> exp.Expr:
    """What a value adds to a sum: nothing where it is NULL."""
    return exp.Coalesce(this=value, expressions=[exp.Literal.number("0")]) if typed.nullable else value


def _there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value.copy()), expression=exp.null()))


def _one() -> exp.Expr:
    return exp.Literal.number("1")


def _where(tests: tuple[exp.Expr, ...], value: exp.Expr) -> exp.Expr:
    """The value where all tests hold, and zero elsewhere."""
    return exp.Case(ifs=[exp.If(this=_all(tests), true=value)], default=exp.Literal.number("0"))


def _filtered(average: exp.Expr, tests: tuple[exp.Expr, ...]) -> exp.Expr:
    return exp.Filter(this=average, expression=exp.Where(this=_all(tests))) if tests else average


def _all(tests: tuple[exp.Expr, ...]) -> exp.Expr:
    return exp.and_(*(test.copy() for test in tests), copy=False)
