"""The ends of intervals, carried through the SQL above the released numbers by interval arithmetic.

A released aggregate a0 comes with a0_low and a0_high. `with_ends` adds name_low and name_high beside each
column of the answer whose ends follow from these. A column whose ends cannot be followed gets none.

Every rule keeps this: if each operand lies between its ends, so does the result. Operands that share a number
are treated as if they could move apart, which is never too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlglot import exp

from incrowd.query import Plan
from incrowd.query.sql import DIALECT, from_items


class Ends(NamedTuple):
    """The SQL of an expression's low and high end."""

    low: exp.Expr
    high: exp.Expr

    def map(self, wrap: Callable[[exp.Expr], exp.Expr]) -> Ends:
        """Both ends through a function that never falls."""
        return Ends(wrap(self.low), wrap(self.high))


LONGEST = 400
"""The ends of an expression are followed while they have at most this many nodes."""
Known = Mapping[str, Ends]
"""The ends of columns, by the column's text."""


def with_ends(plan: Plan) -> exp.Query:
    """The plan's SQL over released tables, with ends beside the columns that have them."""
    released = {
        name: [aggregate.name for aggregate in leaf.aggregates] for name, leaf in plan.released.items()
    }
    return _with_ends(plan.outer.copy(), released)


def _with_ends(query: exp.Query, released: Mapping[str, list[str]]) -> exp.Query:
    if not isinstance(query, exp.Select):
        return query
    known = _ends_of_sources(query, released)
    if query.args.get("group") or query.args.get("distinct"):
        return query
    if any(column.find(exp.AggFunc, exp.Window) for column in query.expressions):
        return query
    names = {column.alias_or_name for column in query.expressions}
    picked: list[exp.Expr] = []
    for column in query.expressions:
        picked.append(column)
        name = column.alias_or_name
        ends = ends_of(column.unalias(), known)
        if ends is not None and ends.low != ends.high and not {f"{name}_low", f"{name}_high"} & names:
            picked.append(exp.alias_(ends.low, f"{name}_low", quoted=True))
            picked.append(exp.alias_(ends.high, f"{name}_high", quoted=True))
    query.set("expressions", picked)
    return query


def _ends_of_sources(select: exp.Select, released: Mapping[str, list[str]]) -> dict[str, Ends]:
    """The columns of FROM that have ends. Sub-queries get ends of their own, in place."""
    known: dict[str, Ends] = {}

    def add(name: str, table: str | None, quoted: bool) -> None:
        low, high = (exp.column(f"{name}{end}", table=table, quoted=quoted) for end in ("_low", "_high"))
        known[exp.column(name, table=table, quoted=quoted).sql(DIALECT)] = Ends(low, high)

    for source in from_items(select):
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            inner = _with_ends(source.this, released)
            source.set("this", inner)
            names = {column.alias_or_name for column in inner.selects}
            for name in names:
                if f"{name}_low" in names and f"{name}_high" in names:
                    add(name, source.alias_or_name, quoted=True)
        elif isinstance(source, exp.Table):
            for name in released.get(source.name, ()):
                add(name, None, quoted=False)
    return known


def ends_of(node: exp.Expr, known: Known) -> Ends | None:
    """The ends of an expression; None where they cannot be followed."""
    if isinstance(node, exp.Column):
        column = known.get(node.sql(DIALECT))
        return None if column is None else column.map(lambda end: end.copy())
    if isinstance(node, exp.Literal):
        return None if node.is_string else Ends(node.copy(), node.copy())
    if isinstance(node, exp.Paren):
        return ends_of(node.this, known)
    rule = _RULES.get(type(node))
    ends = None if rule is None else rule(node, known)
    # A product repeats each side's ends twice: many of them would make the SQL grow without bound.
    too_long = ends is not None and sum(1 for _ in ends.high.walk()) > LONGEST
    return None if too_long else ends


def _negated(node: exp.Expr, known: Known) -> Ends | None:
    inner = ends_of(node.this, known)
    return None if inner is None else Ends(*(exp.Neg(this=exp.paren(end)) for end in (inner.high, inner.low)))


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
    corners = [_joined(node, a, b) for a in left for b in right]
    low = exp.Least(this=corners[0], expressions=corners[1:])
    return Ends(low, _greatest([corner.copy() for corner in corners]))


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
    exp.Sqrt: _root,
    exp.Abs: _size,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
}
