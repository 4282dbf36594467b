"""Aggregates that are other aggregates: MEAN is AVG, GEOMEAN is EXP of an AVG, SEM a deviation over a root.

Each is written as what it is, on trees, before measures are collected. What is computed outside of the
aggregates is post-processing of released numbers, with intervals that go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.operands import AS_WRITTEN
from incrowd.query.aggregates.ordering import ORDERS
from incrowd.query.aggregates.quotients import AGGREGATES, plainly_asked, quotient
from incrowd.query.aggregates.refusing import refusal_of
from incrowd.query.expressions import total
from incrowd.query.sql import bounds_of, number, with_bounds
from incrowd.query.typed import Lookup, said

_SAME: Mapping[str, type[exp.Expr]] = {
    "MEAN": exp.Avg,
    "FAVG": exp.Avg,
    "FSUM": exp.Sum,
    "KAHAN_SUM": exp.Sum,
    "SUMKAHAN": exp.Sum,
    "SUM_NO_OVERFLOW": exp.Sum,
    "STD": exp.Stddev,
    "VAR": exp.Variance,
    "APPROX_MEDIAN": exp.Median,
}
"""Other names of aggregates of one column."""
_RANKED: Mapping[str, type[exp.Expr]] = {
    "APPROX_PERCENTILE": exp.PercentileCont,
    "RESERVOIR_QUANTILE": exp.PercentileCont,
}
"""Other names of quantiles."""
MOST_PARTS = 1000
"""The most parts that APPROX_QUANTILES divides rows into."""
Around = Callable[[exp.Expr], exp.Expr]


class Expanding:
    """What the aggregates of one SELECT are, in terms of others."""

    def __init__(self, select: exp.Select, lookup: Lookup) -> None:
        self._taken, self._lookup = plainly_asked(select), lookup

    def __call__(self, node: exp.Expr) -> exp.Expr | None:
        """The expression over other aggregates that a node stands for; None if it stands for itself."""
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            raise refusal_of(node, said(node))
        meant = expanded(node, self._lookup) or quotient(node, self._taken, self._lookup)
        return None if meant is None else as_written(meant, said(node))


def as_written(node: exp.Expr, label: str) -> exp.Expr:
    """The expression; where it is one aggregate, that is called what the user wrote."""
    inner = node.unnest()
    if isinstance(inner, AGGREGATES):
        inner.meta[AS_WRITTEN] = label
    return node


def expanded(node: exp.Expr, lookup: Lookup) -> exp.Expr | None:
    """The expression over other aggregates that an aggregate is; None if it is none but itself."""
    plain, around = _unfiltered(node)
    if isinstance(plain, exp.Min | exp.Max) and isinstance(plain.this, exp.Distinct):
        # Values that occur twice have the same ends.
        (value, *others) = plain.this.expressions
        return None if others else around(with_bounds(type(plain)(this=value.copy()), bounds_of(plain)))
    if isinstance(_rank_of(plain), exp.Order):
        return around(_within_group(plain))
    if ranks := _ranks(plain):
        return exp.Array(expressions=[around(_ranked(plain, rank)) for rank in ranks])
    if isinstance(plain, exp.ApproxQuantiles):
        return exp.Array(expressions=[around(one) for one in _boundaries(plain)])
    if isinstance(plain, exp.ApproxDistinct):
        return around(_distinct(plain.this))
    if not isinstance(plain, exp.AnonymousAggFunc):
        return None
    name, arguments = plain.name, [part.copy() for part in plain.expressions]
    if name in _SAME:
        (value,) = _taken(plain, 1)
        return around(with_bounds(_SAME[name](this=value), bounds_of(plain)))
    if name in _RANKED:
        value, rank = _taken(plain, 2)
        return around(with_bounds(_RANKED[name](this=value, expression=rank), bounds_of(plain)))
    if name == "COUNT_DISTINCT" and arguments:
        return around(_distinct(*arguments))
    if name in ("GEOMEAN", "GEOMETRIC_MEAN"):
        (value,) = _unbounded(plain, 1)
        logarithm = exp.Ln(this=value)
        if total(value, lookup).bounded and not total(logarithm, lookup).bounded:
            raise QueryError(
                f"{said(plain)} needs a lower bound above zero: write {name}(GREATEST({said(value)}, "
                "1)), say."
            )
        return exp.Exp(this=around(exp.Avg(this=logarithm)))
    if name == "SEM":
        (value,) = _unbounded(plain, 1)
        root = exp.Sqrt(this=around(exp.Count(this=value.copy())))
        deviation = around(exp.StddevSamp(this=value))
        return exp.Div(this=deviation, expression=root, typed=False, safe=False)
    return None


def _unfiltered(node: exp.Expr) -> tuple[exp.Expr, Around]:
    """The aggregate itself, and what puts its FILTER around another."""
    if not isinstance(node, exp.Filter):
        return node, lambda made: made
    return node.this, lambda made: exp.Filter(this=made, expression=node.expression.copy())


def _ranks(node: exp.Expr) -> list[exp.Expr]:
    """The ranks of a quantile that is asked for a list of them: it is the list of its quantiles."""
    listed = _rank_of(node)
    if not isinstance(listed, exp.Array):
        return []
    constant = all(number(rank) is not None for rank in listed.expressions)
    if not (constant and 1 <= len(listed.expressions) <= MOST_PARTS):
        raise QueryError(
            f"{said(node)} needs 1 to {MOST_PARTS} constant ranks between 0 and 1, as in [0.25, 0.5, 0.75]."
        )
    return list(listed.expressions)


def _rank_of(node: exp.Expr) -> exp.Expr | None:
    """What stands in the place of a quantile's rank."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, ORDERS):
        rank: exp.Expr | None = node.this.this
    elif isinstance(node, exp.AnonymousAggFunc) and node.name in _RANKED and len(node.expressions) == 2:
        rank = node.expressions[1]
    elif isinstance(node, ORDERS):
        rank = node.args.get("quantile") or node.args.get("expression")
    else:
        rank = None
    return rank


def _within_group(node: exp.Expr) -> exp.Expr:
    """QUANTILE_CONT(x, rank ORDER BY x DESC), which is DuckDB for WITHIN GROUP, in the words of SQL."""
    order = _rank_of(node)
    assert order is not None
    if [part.this for part in order.expressions] != [node.this]:
        raise QueryError(f"{said(node)} orders by something else; write ORDER BY {said(node.this)} in it.")
    ranked = with_bounds(type(node)(this=order.this.copy()), bounds_of(node))
    ordered = exp.Order(expressions=[part.copy() for part in order.expressions])
    return exp.WithinGroup(this=ranked, expression=ordered)


def _ranked(node: exp.Expr, rank: exp.Expr) -> exp.Expr:
    """The quantile with one rank in the place of its list."""
    one = node.copy()
    place = _rank_of(one)
    assert place is not None
    place.replace(rank.copy())
    return one


def _boundaries(node: exp.ApproxQuantiles) -> Iterator[exp.Expr]:
    """The ends of so many parts of equal size: the least value, quantiles, and the largest value."""
    parts = None if node.expression is None else number(node.expression)
    if parts is None or not (parts.is_integer() and 1 <= parts <= MOST_PARTS):
        raise QueryError(
            f"{said(node)} needs the number of parts, a whole number from 1 to {MOST_PARTS}, as in "
            "APPROX_QUANTILES(x, 4)."
        )
    for place in range(int(parts) + 1):
        one: exp.Expr = exp.PercentileCont(
            this=node.this.copy(), expression=exp.Literal.number(repr(place / parts))
        )
        if place in (0, parts):
            one = (exp.Max if place else exp.Min)(this=node.this.copy())
        yield with_bounds(one, bounds_of(node))


def _distinct(*values: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.Distinct(expressions=[value.copy() for value in values]))


def _taken(node: exp.AnonymousAggFunc, many: int) -> list[exp.Expr]:
    """The arguments, if there are so many."""
    if len(node.expressions) != many:
        raise QueryError(f"{said(node)} takes {'one column' if many == 1 else 'two arguments'} here.")
    return [part.copy() for part in node.expressions]


def _unbounded(node: exp.AnonymousAggFunc, many: int) -> list[exp.Expr]:
    """The arguments of an aggregate that takes no bounds."""
    if bounds_of(node) is not None:
        raise QueryError(
            f"{said(node)} takes no contribution bounds; put LEAST and GREATEST around the column instead."
        )
    return _taken(node, many)
