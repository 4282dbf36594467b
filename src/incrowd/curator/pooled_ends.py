"""The ends of sums over released groups, and of shares of them: windows, GROUP BY above GROUP BY, totals.

A released number is a truth and an error. Let the errors of the rows be independent and symmetrical, each
Laplace or Gaussian, reaching as far as h_i with confidence c. Then the error of their sum reaches as far as

    H = sqrt(h_1^2 + h_2^2 + ...)

with confidence c: exactly, where all are Gaussian. A sum of Laplace errors has a tail between that of one
Laplace error and the normal one of the same deviation, and h_i is the larger of the two (`Released.halves`).

A share s = A / B, where the numbers that A adds up are among those of B, is found by inverting a test
(Fieller 1954): the error of A - s B has the squared reach h_A^2 (1 - 2 s) + s^2 h_B^2, since it weighs the
part in A by 1 - s and the rest of B by s. All s for which A - s B is within it lie between the roots of

    s^2 (B^2 - h_B^2) - 2 s (A B - h_A^2) + A^2 - h_A^2 = 0

if B > h_B, and anywhere otherwise. A share of what cannot be negative lies between 0 and 1.

This needs rows that are released groups of their own (`Rows.apart`): a join may repeat a group, and its error
then counts twice. Where the errors are not known to be independent, low and high ends are added up
themselves, as for one number that all of them share. Nothing is said where released numbers decided which
rows are added up, or in which order (`Rows.chosen`): errors of numbers that were picked because they are
large do not cancel. The same holds for what is found by rank, as MAX(n) is, and for RANK itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from incrowd.curator.end_rules import LONGEST, Ends, Known, ends_of, turned
from incrowd.query.sql import DIALECT, number

_AROUND = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_PICKS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue, exp.First, exp.Last)
"""Functions that give one of the numbers as it is."""
_UNSURE = (exp.AggFunc, exp.Window, exp.Query, exp.Rand, exp.Uuid, exp.Anonymous)
_FLOATS = (exp.DType.DOUBLE, exp.DType.FLOAT)


@dataclass(frozen=True)
class Rows:
    """The rows that a select reads."""

    ends: Known
    fixed: frozenset[str]
    """The columns that hold no noise, by their text: keys, and all of public tables."""
    apart: bool
    """Whether each row is a released group of its own, so that the errors in a column are independent."""
    chosen: bool
    """Whether released numbers decided which rows there are."""

    def sure(self, node: exp.Expr) -> bool:
        """Whether no noise is in an expression."""
        return node.find(*_UNSURE) is None and self.keys_only(node)

    def keys_only(self, node: exp.Expr) -> bool:
        """Whether an expression reads no column with noise."""
        return all(column.sql(DIALECT) in self.fixed for column in node.find_all(exp.Column))


def pooled(nodes: Iterable[exp.Expr], rows: Rows, groups_chosen: bool) -> dict[str, Ends]:
    """The ends of all that is summed in these expressions, with those of columns, by text.

    groups_chosen: whether released numbers decided over which groups windows run.
    """
    known = dict(rows.ends)
    for node in nodes:
        for part in reversed(list(node.bfs())):
            windowed = isinstance(part, exp.Window)
            if isinstance(part, exp.AggFunc | exp.Window | exp.Filter) and not isinstance(
                part.parent, _AROUND
            ):
                ends = None if rows.chosen or (windowed and groups_chosen) else _of(part, rows, known)
            elif isinstance(part, exp.Div):
                ends = _share(part, known)
            else:
                continue
            if ends is not None:
                known[part.sql(DIALECT)] = ends
    return known


def half_of(node: exp.Expr, known: Known) -> exp.Expr | None:
    """How far the error of an expression reaches, where it is that of released numbers, added and scaled."""
    if isinstance(node, exp.Column | exp.AggFunc | exp.Filter | exp.Window):
        found = known.get(node.sql(DIALECT))
        return None if found is None or found.half is None else found.half.copy()
    if isinstance(node, exp.Paren | exp.Neg) or _as_float(node):
        return half_of(node.this, known)
    if isinstance(node, exp.Mul | exp.Div | exp.Add | exp.Sub):
        factors = number(node.this), number(node.expression)
        if factors[1] is not None:
            half, factor = half_of(node.this, known), factors[1]
        elif factors[0] is not None and not isinstance(node, exp.Div):
            half, factor = half_of(node.expression, known), factors[0]
        elif isinstance(node, exp.Add | exp.Sub):
            parts = half_of(node.this, known), half_of(node.expression, known)
            return None if parts[0] is None or parts[1] is None else _binary(exp.Add, parts[0], parts[1])
        else:
            return None
        if half is None or isinstance(node, exp.Add | exp.Sub):
            return half
        return _binary(type(node), half, _number(abs(factor)))
    return None


def _of(node: exp.Expr, rows: Rows, known: Known) -> Ends | None:
    """The ends of a sum, an average or a number that is picked, over rows that no noise decided."""
    function = _function(node)
    if not all(rows.sure(part) for part in _conditions(node)):
        return None
    argument = function.this
    if isinstance(function, exp.Count):
        counted = isinstance(argument, exp.Star) or (argument is not None and rows.sure(argument))
        return Ends(node.copy(), node.copy()) if counted and not function.expressions else None
    if not isinstance(argument, exp.Expr) or isinstance(argument, exp.Distinct | exp.Order):
        return None
    ends = ends_of(argument, known)
    if ends is None:
        return None
    if isinstance(function, _PICKS):
        others = [part for name, part in function.args.items() if name != "this" and part]
        picked = all(isinstance(part, exp.Expr) and number(part) is not None for part in others)
        return ends.map(lambda end: _over(node, end)) if picked else None
    if not isinstance(function, exp.Sum | exp.Avg):
        return None
    low, high = (_over(node, end) for end in ends)
    positive = _positive(argument, known)
    half = half_of(argument, known) if rows.apart else None
    if half is None:
        return Ends(low, high, positive=positive)
    squares = _binary(exp.Mul, half, half.copy())
    reach: exp.Expr = exp.Sqrt(this=_with(node, exp.Sum(this=squares)))
    if isinstance(function, exp.Avg):
        reach = _binary(exp.Div, reach, _with(node, exp.Count(this=argument.copy())))
    low = exp.Coalesce(this=_binary(exp.Sub, node, reach), expressions=[low])
    high = exp.Coalesce(this=_binary(exp.Add, node, reach), expressions=[high])
    return Ends(*_inside(low, high, node, None), reach, True) if positive else Ends(low, high, reach)


def _share(node: exp.Expr, known: Known) -> Ends | None:
    """The ends of A / B where A is a part of the sum B."""
    (over, top), (under, bottom) = _scaled(node.this), _scaled(node.expression)
    total = _function(bottom)
    if (
        not isinstance(total, exp.Sum)
        or isinstance(bottom, exp.Filter)
        or isinstance(bottom.this, exp.Filter)
    ):
        return None
    if bottom.args.get("order") or bottom.args.get("spec") or not over or not under:
        return None
    part = _function(top)
    summed = isinstance(part, exp.Sum) and _plain(part.this) == _plain(total.this)
    if not summed and not (isinstance(bottom, exp.Window) and _plain(top) == _plain(total.this)):
        return None
    inner, outer = (
        {one.sql(DIALECT) for one in side.args.get("partition_by") or []} for side in (top, bottom)
    )
    if summed and (isinstance(top, exp.Window) != isinstance(bottom, exp.Window) or not outer <= inner):
        return None
    halves = half_of(top, known), half_of(bottom, known)
    found = known.get(bottom.sql(DIALECT))
    box = ends_of(exp.Div(this=exp.paren(top.copy()), expression=exp.paren(bottom.copy())), known)
    if halves[0] is None or halves[1] is None or found is None or box is None:
        return None
    ends = _roots(top, bottom, (halves[0], halves[1]), box)
    if found.positive:
        ends = Ends(*_inside(ends.low, ends.high, _binary(exp.Div, _real(top), bottom), 1.0), positive=True)
    factor = over / under
    if factor != 1.0:
        scaled = ends.map(lambda end: _binary(exp.Mul, end, _number(abs(factor))))
        ends = scaled if factor > 0 else turned(scaled)
    return ends if sum(1 for _ in ends.high.walk()) <= LONGEST else None


def _roots(top: exp.Expr, bottom: exp.Expr, halves: tuple[exp.Expr, exp.Expr], box: Ends) -> Ends:
    """The roots of the theorem above; the quotient of the ends where the errors are not known to be apart."""
    a, b = _real(top), _real(bottom)
    first, second = (_binary(exp.Mul, half, half.copy()) for half in halves)
    p = _binary(exp.Sub, _binary(exp.Mul, b, b), second)
    q = _binary(exp.Sub, _binary(exp.Mul, a, b), first)
    r = _binary(exp.Sub, _binary(exp.Mul, a, a), first)
    inside = _binary(exp.Sub, _binary(exp.Mul, q, q), _binary(exp.Mul, p, r))
    root = exp.Sqrt(this=exp.Greatest(this=inside, expressions=[exp.Literal.number(0)]))
    unknown = exp.Is(this=exp.paren(_binary(exp.Add, *halves)), expression=exp.Null())
    sure = exp.GT(this=b, expression=exp.paren(halves[1].copy()))
    infinite = exp.cast(exp.Literal.string("Infinity"), "DOUBLE")

    def end(at_box: exp.Expr, side: type[exp.Binary], beyond: exp.Expr) -> exp.Expr:
        at_root = _binary(exp.Div, _binary(side, q, root), p)
        ifs = [exp.If(this=unknown.copy(), true=at_box), exp.If(this=sure.copy(), true=at_root)]
        return exp.Case(ifs=ifs, default=beyond)

    return Ends(end(box.low, exp.Sub, exp.Neg(this=infinite)), end(box.high, exp.Add, infinite.copy()))


def _inside(low: exp.Expr, high: exp.Expr, value: exp.Expr, most: float | None) -> tuple[exp.Expr, exp.Expr]:
    """Ends cut to what is possible, from 0 on or from 0 to `most`, except down and up to the value itself."""
    zero = exp.Least(this=exp.Literal.number(0), expressions=[value.copy()])
    low = exp.Greatest(this=low, expressions=[zero])
    if most is None:
        return low, exp.Greatest(this=high, expressions=[exp.Literal.number(0)])
    one = exp.Greatest(this=_number(most), expressions=[value.copy()])
    return low, exp.Least(this=high, expressions=[one])


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    """What decides which rows a function runs over, and in which order."""
    parts: list[exp.Expr] = []
    while isinstance(node, _AROUND):
        if isinstance(node, exp.Filter):
            parts.append(node.expression)
        if isinstance(node, exp.Window):
            parts += [*(node.args.get("partition_by") or []), *filter(None, [node.args.get("order")])]
        node = node.this
    return parts


def _function(node: exp.Expr) -> exp.Expr:
    while isinstance(node, _AROUND):
        node = node.this
    return node


def _over(node: exp.Expr, argument: exp.Expr) -> exp.Expr:
    """The same function over another argument."""
    function = _function(node).copy()
    function.set("this", argument)
    return _with(node, function)


def _with(node: exp.Expr, function: exp.Expr) -> exp.Expr:
    """Another function over the same rows."""
    if not isinstance(node, _AROUND):
        return function
    copy = node.copy()
    _function(copy).replace(function)
    return copy


def _positive(node: exp.Expr, known: Known) -> bool:
    """Whether what an expression estimates cannot be negative."""
    if isinstance(node, exp.Paren) or _as_float(node):
        return _positive(node.this, known)
    if isinstance(node, exp.Add):
        return _positive(node.this, known) and _positive(node.expression, known)
    found = known.get(node.sql(DIALECT))
    return found is not None and found.positive


def _scaled(node: exp.Expr) -> tuple[float, exp.Expr]:
    """A number, and what it multiplies."""
    if isinstance(node, exp.Paren) or _as_float(node) or isinstance(node, exp.Nullif):
        return _scaled(node.this)
    if isinstance(node, exp.Mul | exp.Div):
        left, right = number(node.this), number(node.expression)
        if right:
            factor, inner = _scaled(node.this)
            return factor * right if isinstance(node, exp.Mul) else factor / right, inner
        if left and isinstance(node, exp.Mul):
            factor, inner = _scaled(node.expression)
            return factor * left, inner
    return 1.0, node


def _plain(node: exp.Expr) -> str:
    """The text of an expression, without casts to floats."""
    while isinstance(node, exp.Paren) or _as_float(node):
        node = node.this
    return node.sql(DIALECT)


def _as_float(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.is_type(*_FLOATS)


def _real(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), "DOUBLE")


def _number(value: float) -> exp.Expr:
    return exp.cast(exp.Literal.number(repr(value)), "DOUBLE")


def _binary(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.paren(kind(this=left.copy(), expression=right.copy()), copy=False)
