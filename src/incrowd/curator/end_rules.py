"""The ends of intervals through expressions over released numbers, by interval arithmetic.

Every rule keeps this: if each operand lies between its ends, so does the result. Operands that share a number
are treated as if they could move apart, which is never too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from incrowd.query.sql import DIALECT, number


@dataclass(frozen=True)
class Ends:
    """The SQL of an expression's low and high end."""

    low: exp.Expr
    high: exp.Expr
    half: exp.Expr | None = None
    """How far its error reaches on either side, where that is independent of those in other rows
    (`pooled_ends`); NULL where the released number itself has no such error.
    """
    positive: bool = False
    """True if what it estimates cannot be negative."""

    def __iter__(self) -> Iterator[exp.Expr]:
        return iter((self.low, self.high))

    def map(self, wrap: Callable[[exp.Expr], exp.Expr]) -> Ends:
        """Both ends through a function that never falls."""
        return Ends(wrap(self.low), wrap(self.high))


LONGEST = 1_500
"""The ends of an expression are followed while they have at most this many nodes."""
Known = Mapping[str, Ends]
"""The ends of columns, and of sums, windows, quotients and sub-queries whose ends were found, by their text.
"""
_KNOWN = (exp.Column, exp.AggFunc, exp.Filter, exp.Window, exp.Div, exp.Subquery)


def ends_of(node: exp.Expr, known: Known) -> Ends | None:
    """The ends of an expression; None where they cannot be followed."""
    if isinstance(node, _KNOWN):
        found = known.get(node.sql(DIALECT))
        if found is not None:
            return found.map(lambda end: end.copy())
    if isinstance(node, exp.Literal):
        return None if node.is_string else Ends(node.copy(), node.copy())
    if isinstance(node, exp.Paren):
        return ends_of(node.this, known)
    rule = _RULES.get(type(node))
    ends = None if rule is None else rule(node, known)
    # A product repeats each side's ends twice: many of them would make the SQL grow without bound.
    too_long = ends is not None and sum(1 for _ in ends.high.walk()) > LONGEST
    return None if too_long else ends


def turned(ends: Ends) -> Ends:
    """The ends of the same with the opposite sign."""
    return Ends(exp.Neg(this=exp.paren(ends.high)), exp.Neg(this=exp.paren(ends.low)))


def _negated(node: exp.Expr, known: Known) -> Ends | None:
    inner = ends_of(node.this, known)
    return None if inner is None else turned(inner)


def _rising(node: exp.Expr, known: Known) -> Ends | None:
    """A function of one number that never falls, with constants beside it."""
    inner = ends_of(node.this, known)
    if inner is None or any(
        part.find(exp.Column) for part in node.iter_expressions() if part is not node.this
    ):
        return None
    if isinstance(node, exp.Cast) and not node.to.is_type(*exp.DataType.NUMERIC_TYPES):
        return None

    def applied(end: exp.Expr) -> exp.Expr:
        copy = node.copy()
        copy.set("this", end)
        return copy

    return inner.map(applied)


def _absent_if_zero(node: exp.Expr, known: Known) -> Ends | None:
    """NULLIF(x, 0): x itself, or nothing."""
    zero = isinstance(node.expression, exp.Literal) and not node.expression.is_string
    return ends_of(node.this, known) if zero else None


def _root(node: exp.Expr, known: Known) -> Ends | None:
    inner = ends_of(node.this, known)
    zero = exp.Literal.number("0")
    return None if inner is None else inner.map(lambda end: exp.Sqrt(this=_greatest([end, zero.copy()])))


def _size(node: exp.Expr, known: Known) -> Ends | None:
    inner = ends_of(node.this, known)
    if inner is None:
        return None
    zero, negative = exp.Literal.number("0"), exp.Neg(this=exp.paren(inner.high.copy()))
    low = _greatest([inner.low.copy(), negative, zero])
    high = _greatest([inner.high.copy(), exp.Neg(this=exp.paren(inner.low.copy()))])
    return Ends(low, high)


def _extreme(node: exp.Expr, known: Known) -> Ends | None:
    """The largest or smallest of several; a root that does not exist would be left out of them: no roots."""
    if node.find(exp.Sqrt):
        return None
    parts = [ends_of(part, known) for part in (node.this, *node.expressions)]
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    low, high = (type(node)(this=side[0], expressions=list(side[1:])) for side in zip(*whole, strict=True))
    return Ends(low, high)


def _sum(node: exp.Expr, known: Known) -> Ends | None:
    left, right = ends_of(node.this, known), ends_of(node.expression, known)
    if left is None or right is None:
        return None
    return Ends(_joined(node, left.low, right.low), _joined(node, left.high, right.high))


def _difference(node: exp.Expr, known: Known) -> Ends | None:
    left, right = ends_of(node.this, known), ends_of(node.expression, known)
    if left is None or right is None:
        return None
    return Ends(_joined(node, left.low, right.high), _joined(node, left.high, right.low))


def _product(node: exp.Expr, known: Known) -> Ends | None:
    left, right = ends_of(node.this, known), ends_of(node.expression, known)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul) and (factor := number(node.expression)) is not None:
        return _multiplied(left, node.expression, factor)
    if isinstance(node, exp.Mul) and (factor := number(node.this)) is not None:
        return _multiplied(right, node.this, factor)
    corners = [_joined(node, a, b) for a in left for b in right]
    low = exp.Least(this=corners[0], expressions=corners[1:])
    return Ends(low, _greatest([corner.copy() for corner in corners]))


def _multiplied(ends: Ends, by: exp.Expr, factor: float) -> Ends:
    """The ends times a number; all corners of a product would repeat them."""
    low, high = ends if factor >= 0 else (ends.high, ends.low)
    by = exp.paren(by.copy())
    return Ends(
        exp.Mul(this=exp.paren(low), expression=by), exp.Mul(this=exp.paren(high), expression=by.copy())
    )


def _quotient(node: exp.Expr, known: Known) -> Ends | None:
    """As for a product; a divisor that may be zero leaves nothing sure."""
    corners, right = _product(node, known), ends_of(node.expression, known)
    if corners is None or right is None:
        return None
    sides = exp.Mul(this=exp.paren(right.low), expression=exp.paren(right.high))
    sure = exp.GT(this=sides, expression=exp.Literal.number("0"))
    infinite = exp.cast(exp.Literal.string("Infinity"), "DOUBLE")
    low = exp.Case(ifs=[exp.If(this=sure, true=corners.low)], default=exp.Neg(this=infinite))
    high = exp.Case(ifs=[exp.If(this=sure.copy(), true=corners.high)], default=infinite.copy())
    return Ends(low, high)


def _joined(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return type(node)(this=exp.paren(left.copy()), expression=exp.paren(right.copy()))


def _greatest(parts: list[exp.Expr]) -> exp.Expr:
    return exp.Greatest(this=parts[0], expressions=parts[1:])


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Known], Ends | None]] = {
    exp.Neg: _negated,
    exp.Round: _rising,
    exp.Floor: _rising,
    exp.Ceil: _rising,
    exp.Exp: _rising,
    exp.Cast: _rising,
    exp.TryCast: _rising,
    exp.Nullif: _absent_if_zero,
    exp.Sqrt: _root,
    exp.Abs: _size,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
}
