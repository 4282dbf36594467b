"""Statements as trees, and the one place where a tree becomes text.

A statement stays a sqlglot tree until its engine runs it: nothing is pasted into text, and no text is parsed
again. A node has one parent, so a node that is used a second time is copied (`own`).
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from incrowd.backends.recent import recent
from incrowd.query.sql import DIALECT

_Node = TypeVar("_Node", bound=exp.Expr)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: 1,
    exp.And: 2,
    exp.Not: 3,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), 4),
    **dict.fromkeys((exp.Is, exp.In, exp.Between, exp.Like), 4),
    exp.Add: 6,
    exp.Sub: 6,
    exp.Mul: 7,
    exp.Div: 7,
    exp.Collate: 8,
}
"""The binding strength of operators on which all engines agree. Others get parentheses inside one another."""
_TIGHT = 9
"""The level of every other operator; its operands get parentheses."""
_CHAINS = (exp.Or, exp.And, exp.Add, exp.Sub, exp.Mul, exp.Div)
"""Operators that associate to the left: their left side may have the same level."""
_OPERATORS = (exp.Binary, exp.Unary, exp.Predicate, exp.AtTimeZone)
_CLOSED = (exp.Paren, exp.RegexpFullMatch, exp.SubqueryPredicate, exp.Corr)
"""Operators that are written with their own brackets."""
_FIXED = (*_CLOSED, exp.Escape, exp.Dot, exp.Kwarg, exp.PropertyEQ)
"""Operators whose operands take no parentheses."""
_SIDES = ("this", "expression", "low", "high")


def own(node: _Node) -> _Node:
    """The node itself if it has no parent yet, else a copy."""
    return node if node.parent is None else node.copy()


def column(name: str, table: str = "") -> exp.Column:
    """A column by name, with its relation if several relations have a column of that name."""
    named = exp.Identifier(this=name, quoted=False)
    if not table:
        return exp.Column(this=named)
    return exp.Column(this=named, table=exp.Identifier(this=table, quoted=False))


def cast(node: exp.Expr, to: exp.DType) -> exp.Cast:
    """CAST to a type without parameters."""
    return exp.Cast(this=own(node), to=exp.DataType(this=to, nested=False))


def number(value: int) -> exp.Expr:
    """A whole number, as wide as it needs to be."""
    return exp.Literal.number(value)


def integer(value: int) -> exp.Cast:
    """A whole number of 64 bits."""
    return cast(number(value), exp.DType.BIGINT)


def wide(value: int) -> exp.Cast:
    """A whole number of 128 bits."""
    return cast(number(value), exp.DType.INT128)


def missing(to: exp.DType = exp.DType.BIGINT) -> exp.Cast:
    """NULL of a type."""
    return cast(exp.Null(), to)


def joined(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """An operator with its two sides."""
    return kind(this=own(left), expression=own(right))


def quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """left / right of floats. The flags, as DuckDB's parser sets them, keep sqlglot from adding guards."""
    return exp.Div(this=own(left), expression=own(right), typed=False, safe=False)


def applied(kind: type[exp.Expr], *arguments: exp.Expr) -> exp.Expr:
    """A function of one or more arguments."""
    first, *others = (own(argument) for argument in arguments)
    return kind(this=first, expressions=others) if others else kind(this=first)


def chosen(*cases: tuple[exp.Expr, exp.Expr], default: exp.Expr | None = None) -> exp.Case:
    """CASE WHEN test THEN value ... ELSE default END."""
    ifs = [exp.If(this=own(test), true=own(value)) for test, value in cases]
    return exp.Case(ifs=ifs) if default is None else exp.Case(ifs=ifs, default=own(default))


def named(node: exp.Expr, name: str) -> exp.Alias:
    """node AS name."""
    return exp.Alias(this=own(node), alias=exp.Identifier(this=name, quoted=False))


def present(node: exp.Expr) -> exp.Not:
    """node IS NOT NULL."""
    return exp.Not(this=exp.Is(this=own(node), expression=exp.Null()))


def count(node: exp.Expr | None = None) -> exp.Count:
    """COUNT(node), or COUNT(*)."""
    return exp.Count(this=exp.Star() if node is None else own(node), big_int=True)


def total_of(node: exp.Expr) -> exp.Expr:
    """COALESCE(SUM(node), 0)."""
    return applied(exp.Coalesce, exp.Sum(this=own(node)), number(0))


def table_rows(table: str) -> exp.Select:
    """The statement that reads all of a table.

    >>> text_of(table_rows("my table"))
    'SELECT * FROM "my table"'
    """
    return exp.select("*").from_(exp.Table(this=exp.to_identifier(table, quoted=True)))


def distinct_values(domain: exp.Query) -> exp.Select:
    """The distinct values v of a query.

    >>> text_of(distinct_values(exp.select("v").from_("t")))
    'SELECT DISTINCT v FROM (SELECT v FROM t) AS domain'
    """
    alias = exp.TableAlias(this=exp.to_identifier("domain"))
    return exp.select("v").from_(exp.Subquery(this=domain.copy(), alias=alias)).distinct()


def quoted(name: str, dialect: str = DIALECT) -> str:
    """A quoted name in an engine's dialect, whatever its letters are.

    >>> quoted('a "b" c'), quoted("a`b", "spark")
    ('"a ""b"" c"', '`a``b`')
    """
    return exp.to_identifier(name, quoted=True).sql(dialect)


def constant(value: str, dialect: str = DIALECT) -> str:
    """A text constant in an engine's dialect.

    >>> constant("it's")
    "'it''s'"
    """
    return exp.Literal.string(value).sql(dialect)


def text_of(tree: exp.Expr, dialect: str = DIALECT) -> str:
    """A tree as text with the same meaning, with parentheses wherever operators would regroup without them.

    >>> sum_of = joined(exp.Add, column("a"), column("b"))
    >>> text_of(joined(exp.Mul, sum_of, joined(exp.Sub, column("c"), sum_of)))
    '(a + b) * (c - (a + b))'
    """
    whole = tree.copy()
    for node in list(whole.find_all(*_OPERATORS)):
        if not isinstance(node, _FIXED):
            for side in _SIDES:
                operand = node.args.get(side)
                if isinstance(operand, exp.Expr) and not _holds(node, side, operand):
                    node.set(side, exp.Paren(this=operand))
    return whole.sql(dialect, copy=False, unsupported_level=ErrorLevel.RAISE)


@recent
def statement_text(tree: exp.Query, dialect: str = DIALECT) -> str:
    """The text of a whole statement, rendered once for its proof and its run; the tree must not change."""
    return text_of(tree, dialect)


def digest_of(tree: exp.Query, dialect: str = DIALECT) -> bytes:
    """SHA-256 of a statement's text, which identifies the statement."""
    return hashlib.sha256(statement_text(tree, dialect).encode(errors="surrogatepass")).digest()


def _holds(node: exp.Expr, side: str, operand: exp.Expr) -> bool:
    """True if an operand stays together without parentheses."""
    if not isinstance(operand, _OPERATORS) or isinstance(operand, _CLOSED):
        return not isinstance(operand, exp.Query) or isinstance(operand, exp.Subquery)
    inner, outer = _LEVELS.get(type(operand)), _LEVELS.get(type(node), _TIGHT)
    if inner is None:
        return False
    if side == "this" and isinstance(node, _CHAINS):
        return inner >= outer
    return inner > outer
