"""Tests that are short for other tests, written out: BETWEEN SYMMETRIC, ANY and ALL of a list, tuples, NVL2.

    x BETWEEN SYMMETRIC 9 AND 1         x BETWEEN 1 AND 9
    x = ANY([1, 2])                     x IN (1, 2)
    x > ALL((1, 2))                     x > 1 AND x > 2
    LIST_CONTAINS([1, 2], x)            x IN (1, 2)
    (x, y) IN ((1, 2), (3, 4))          (x = 1 AND y = 2) OR (x = 3 AND y = 4)
    x LIKE ANY ('a%', 'b%')             x LIKE 'a%' OR x LIKE 'b%'
    NVL2(x, 1, 2)                       CASE WHEN NOT x IS NULL THEN 1 ELSE 2 END
    SAFE_DIVIDE(x, y)                   x / NULLIF(y, 0)

Each is true, false or unknown on the same rows as what it stands for. Lists and tuples of anything but
constants stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from incrowd.query.balancing import joined
from incrowd.query.ownership import World
from incrowd.query.sql import number

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike)


def expand_tests(tree: exp.Query, world: World) -> exp.Query:
    """The tree with its short tests written out, the innermost first."""
    for node in reversed(list(tree.find_all(*_EXPANSIONS))):
        written = _EXPANSIONS[type(node)](node)
        if written is not node:
            node.replace(written)
    return tree


def _symmetric(node: exp.Expr) -> exp.Expr:
    """Between the lower and the higher end, whichever comes first."""
    if not node.args.get("symmetric"):
        return node
    ends = [node.args["low"], node.args["high"]]
    numbers = [number(end) for end in ends]
    if numbers[0] is not None and numbers[1] is not None:
        low, high = ends if numbers[0] <= numbers[1] else reversed(ends)
        return exp.Between(this=node.this.copy(), low=low.copy(), high=high.copy())
    both = [
        exp.Between(this=node.this.copy(), low=low.copy(), high=high.copy())
        for low, high in (ends, ends[::-1])
    ]
    return exp.paren(exp.Or(this=both[0], expression=both[1]))


def _in(node: exp.Expr) -> exp.Expr:
    """(x, y) IN ((1, 2), (3, 4)), which only some engines know."""
    listed = node.expressions
    if not isinstance(node.this, exp.Tuple) or not listed:
        return node
    names = node.this.expressions
    alike = all(isinstance(row, exp.Tuple) and len(row.expressions) == len(names) for row in listed)
    if not alike or not names:
        return node
    rows: list[exp.Expr] = []
    for row in listed:
        sides = zip(names, row.expressions, strict=True)
        tests: list[exp.Expr] = [exp.EQ(this=name.copy(), expression=value.copy()) for name, value in sides]
        rows.append(exp.paren(joined(exp.And, tests)))
    return exp.paren(joined(exp.Or, rows))


def _quantified(node: exp.Expr) -> exp.Expr:
    """x = ANY(list) and x <> ALL(list), and the same of other comparisons."""
    quantifier = node.expression
    if isinstance(quantifier, exp.Any):
        every, inner = False, quantifier.this
    elif isinstance(quantifier, exp.All):
        every, inner = True, quantifier.this
    elif isinstance(quantifier, exp.Anonymous) and str(quantifier.this).upper() == "ALL":
        every, inner = True, exp.Tuple(expressions=[part.copy() for part in quantifier.expressions])
        inner = inner.expressions[0] if len(inner.expressions) == 1 else inner
    else:
        return node
    query = inner.unnest() if isinstance(inner, exp.Paren | exp.Subquery) else inner
    same = exp.NEQ if every else exp.EQ
    if isinstance(query, exp.Select) and type(node) is same:
        test: exp.Expr = exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))
        return exp.Not(this=test) if every else test
    listed = _constants(inner)
    if not listed:
        return node
    if type(node) is same:
        test = exp.In(this=node.this.copy(), expressions=listed)
        return exp.Not(this=test) if every else test
    # The parser keeps NOT LIKE as a part of the LIKE.
    kept = {key: value for key, value in node.args.items() if key not in ("this", "expression")}
    tests = [type(node)(this=node.this.copy(), expression=value, **kept) for value in listed]
    return exp.paren(joined(exp.And if every else exp.Or, tests))


def _contains(node: exp.Expr) -> exp.Expr:
    """LIST_CONTAINS([1, 2], x). NULL in the list is equal to nothing, and makes no miss unknown."""
    listed = _constants(node.this) if isinstance(node.this, exp.Array) else []
    known = [value for value in listed if not isinstance(value, exp.Null)]
    return exp.In(this=node.expression.copy(), expressions=known) if known else node


def _constants(node: exp.Expr) -> list[exp.Expr]:
    """The constants of a list or of values in brackets; none if something else is among them."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    parts = inner.expressions if isinstance(inner, exp.Array | exp.Tuple) else [inner]
    constant = all(
        isinstance(part, exp.Literal | exp.Null | exp.Boolean) or number(part) is not None for part in parts
    )
    return [part.copy() for part in parts] if constant else []


def _nvl2(node: exp.Expr) -> exp.Expr:
    there = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
    default = node.args.get("false")
    return exp.Case(
        ifs=[exp.If(this=there, true=node.args["true"].copy())],
        default=None if default is None else default.copy(),
    )


def _safe_divide(node: exp.Expr) -> exp.Expr:
    by = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
    top, below = (
        exp.Paren(this=side) if isinstance(side, exp.Binary) else side for side in (node.this.copy(), by)
    )
    return exp.paren(exp.Div(this=top, expression=below, typed=False, safe=False))


_EXPANSIONS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Between: _symmetric,
    exp.In: _in,
    **dict.fromkeys(_COMPARISONS, _quantified),
    exp.ArrayContains: _contains,
    exp.Contains: _contains,
    exp.Nvl2: _nvl2,
    exp.SafeDivide: _safe_divide,
}
