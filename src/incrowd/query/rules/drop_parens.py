"""Parentheses that group nothing are dropped: `WHERE (a > 1)` asks what `WHERE a > 1` asked, and is free.

One is dropped where the text without it is read as the same tree by the parser and by every engine: around a
name or a constant, alone between brackets or keywords, and where the inner operator binds more tightly than
the outer one, or as tightly on the left of a chain. Others stay, so that no two questions become one that the
engine reads as two: a = (b = c) and (a = b) = c.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.query.ownership import World

_LOGIC: dict[type[exp.Expr], int] = {exp.Or: 1, exp.And: 2, exp.Not: 3}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_TESTS = (*_COMPARISONS, exp.Is, exp.In, exp.Between)
_SUMS: dict[type[exp.Expr], int] = {exp.Add: 5, exp.Sub: 5, exp.Mul: 6, exp.Div: 6}
_LEVELS: dict[type[exp.Expr], int] = {**_LOGIC, **dict.fromkeys(_TESTS, 4), **_SUMS}
"""How tightly operators bind, where all engines agree."""
_CHAINS = (exp.Or, exp.And, *_SUMS)
_CALLS = (
    exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln,
    exp.Exp, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest, exp.Lower, exp.Upper, exp.Length, exp.Median,
    exp.Cast, exp.TryCast, exp.Case,
)  # fmt: skip
_ATOMS = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren, *_CALLS)
_BRACKETS = (
    exp.Where,
    exp.Having,
    exp.Qualify,
    exp.Select,
    exp.Alias,
    exp.Join,
    exp.If,
    exp.Paren,
    exp.Group,
    exp.Ordered,
    *_CALLS,
)
"""Nodes whose parts stand alone between keywords, commas or brackets."""


def drop_parens(tree: exp.Query, world: World) -> exp.Query:
    """The tree without parentheses that group nothing, the innermost first."""
    for paren in reversed(list(tree.find_all(exp.Paren))):
        if _needless(paren):
            paren.replace(paren.this)
    return tree


def _needless(paren: exp.Paren) -> bool:
    inner, outer = type(paren.this), type(paren.parent)
    if any(value for key, value in paren.args.items() if key != "this"):
        return False
    if outer in (exp.Group, exp.Ordered) and inner is exp.Literal:
        return False  # a bare number there is a place in the list
    if outer in _BRACKETS:
        return inner in _ATOMS or inner in _LEVELS
    if outer not in _LEVELS:
        return False
    if inner in _ATOMS:
        return True
    if inner not in _LEVELS or (outer in _TESTS and outer not in _COMPARISONS) or _ends_open(paren.this):
        return False
    if _LEVELS[inner] == _LEVELS[outer]:
        return outer in _CHAINS and paren.arg_key == "this"
    return _LEVELS[inner] > _LEVELS[outer]


def _ends_open(node: exp.Expr) -> bool:
    """True if an expression ends with NOT of something, which would reach for what follows: a + NOT b."""
    if not isinstance(node, exp.Binary):
        return False
    while isinstance(node, exp.Binary):
        node = node.expression
    return isinstance(node, exp.Not)
