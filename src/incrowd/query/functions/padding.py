"""Texts filled up to a length, and texts joined with something between them: LPAD, RPAD, CONCAT_WS.

They are made of ||, LEFT, RIGHT and SUBSTRING, which are the same on every engine. Each text is cut before it
is joined, so no row can exhaust memory.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.searching import constant_text
from incrowd.query.functions.signature import Function, as_text, whole_constant
from incrowd.query.functions.texts import cut
from incrowd.query.typed import Typed

LONGEST_PADDED = 1_000
MOST_JOINED = 40


def _pad(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """LPAD(x, n, '0') is the last n letters of n zeros and of the first n letters of x; RPAD is its mirror.

    A text of more than n letters is cut to its first n, as everywhere.
    """
    left = bool(node.args.get("is_left"))
    name = "LPAD" if left else "RPAD"
    value = as_text(node, arguments[0])
    length = whole_constant(node, arguments[1], "The length")
    fill = constant_text(arguments[2], f"The filling of {name}") if len(arguments) > 2 else " "
    if not 1 <= length <= LONGEST_PADDED:
        raise QueryError(f"{name} fills texts up to a length from 1 to {LONGEST_PADDED:,} here.")
    if left and len(fill) != 1:
        raise QueryError("LPAD fills with one letter here, as in LPAD(x, 5, '0').")
    filling = exp.Literal.string((fill * length)[:length])
    places = exp.Literal.number(str(length))
    begin = exp.Left(this=value.sql, expression=places)
    sql: exp.Expr
    if left:
        sql = exp.Right(this=exp.DPipe(this=filling, expression=begin, safe=True), expression=places.copy())
    else:
        sql = exp.Left(this=exp.DPipe(this=begin, expression=filling, safe=True), expression=places.copy())
    return Typed(sql, "text", nullable=value.nullable)


def _concat_ws(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """CONCAT_WS('-', a, b): each text that is not NULL with the separator in front, without the first one."""
    if not 2 <= len(arguments) <= MOST_JOINED:
        raise QueryError(f"CONCAT_WS takes a separator and up to {MOST_JOINED - 1} texts.")
    between = arguments[0].sql
    if not (isinstance(between, exp.Literal) and between.is_string and len(between.name) <= LONGEST_PADDED):
        raise QueryError("The separator of CONCAT_WS must be a constant text.")
    sql: exp.Expr = exp.Literal.string("")
    for part in (as_text(node, argument) for argument in arguments[1:]):
        led = exp.paren(exp.DPipe(this=between.copy(), expression=cut(part.sql), safe=True))
        piece = exp.Coalesce(this=led, expressions=[exp.Literal.string("")]) if part.nullable else led
        sql = exp.DPipe(this=sql, expression=piece, safe=True)
    start = exp.Literal.number(str(len(between.name) + 1))
    return Typed(exp.Substring(this=exp.paren(sql), start=start), "text", nullable=False)


PADDING: dict[type[exp.Expr], Function] = {exp.Pad: _pad, exp.ConcatWs: _concat_ws}
