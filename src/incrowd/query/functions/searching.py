"""Where a constant text stands in a text: POSITION, SPLIT_PART, ENDS_WITH.

Each is a function of one text, so of one row. What is searched for is a constant of at least one letter:
about empty ones engines disagree. Letters are code points, compared one by one, and parts are counted from
the left without overlapping; nothing is longer than the text.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import truth
from incrowd.query.functions.signature import Function, as_text, whole_constant
from incrowd.query.functions.texts import cut
from incrowd.query.typed import Typed

MOST_PARTS = 1_000


def constant_text(typed: Typed, what: str) -> str:
    """A constant text of at least one letter."""
    if not (isinstance(typed.sql, exp.Literal) and typed.sql.is_string and typed.sql.name):
        raise QueryError(f"{what} must be a constant text of at least one letter.")
    return typed.sql.name


def _position(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """POSITION, STRPOS, INSTR, LOCATE and CHARINDEX: the place of the first letter, from 1; 0 if nowhere."""
    if len(arguments) != 2:
        raise QueryError("POSITION takes a text and what to look for, as in POSITION('a' IN x).")
    value = as_text(node, arguments[0])
    sought = exp.Literal.string(constant_text(arguments[1], "What POSITION looks for"))
    sql = exp.cast(exp.StrPosition(this=value.sql, substr=sought), "BIGINT")
    return Typed(sql, "integer", 0, None, value.nullable, integral=True, size=64)


def _split_part(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """SPLIT_PART(x, '/', 2): the second part; empty where there are fewer.

    Engines list all parts, so only the first 10,000 letters are divided: no row can exhaust memory.
    """
    if len(arguments) != 3:
        raise QueryError("SPLIT_PART takes a text, what divides it and a place, as in SPLIT_PART(x, '/', 2).")
    value = as_text(node, arguments[0])
    divider = exp.Literal.string(constant_text(arguments[1], "What divides the text in SPLIT_PART"))
    place = whole_constant(node, arguments[2], "The place")
    if not 1 <= place <= MOST_PARTS:
        raise QueryError(f"SPLIT_PART counts parts from 1 to {MOST_PARTS:,} here.")
    sql = exp.SplitPart(this=cut(value.sql), delimiter=divider, part_index=exp.Literal.number(str(place)))
    return Typed(sql, "text", nullable=value.nullable)


def ends_with(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """ENDS_WITH(x, 'abc'): whether the last letters are these."""
    if len(arguments) != 2:
        raise QueryError("ENDS_WITH takes a text and a constant end, as in ENDS_WITH(x, 'abc').")
    value = as_text(node, arguments[0])
    end = constant_text(arguments[1], "The end in ENDS_WITH")
    last = exp.Right(this=value.sql, expression=exp.Literal.number(str(len(end))))
    return truth(exp.EQ(this=last, expression=exp.Literal.string(end)), value)


SEARCHING: dict[type[exp.Expr], Function] = {
    exp.StrPosition: _position,
    exp.SplitPart: _split_part,
    exp.EndsWith: ends_with,
}
