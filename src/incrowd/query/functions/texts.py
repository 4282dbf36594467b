"""Functions of text. None makes text longer than its argument, but for joining texts, which cuts them first:
no row can exhaust memory.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.signature import Function, as_text, name_of, one, whole_constant
from incrowd.query.typed import Typed

LONGEST_JOINED = 10_000


def _text_to_text(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_text(node, one(node, arguments))
    # Spaces only: what else is blank is not the same everywhere.
    blank = {"expression": exp.Literal.string(" ")} if isinstance(node, exp.Trim) else {}
    return Typed(type(node)(this=value.sql, **blank), "text", nullable=value.nullable)


def _length(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_text(node, one(node, arguments))
    sql = exp.cast(exp.Length(this=value.sql), "BIGINT")
    return Typed(sql, "integer", 0, None, value.nullable, integral=True, size=64)


def _slice(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_text(node, arguments[0])
    places = [whole_constant(node, argument, "The place") for argument in arguments[1:]]
    if any(place < 0 for place in places) or (isinstance(node, exp.Substring) and places[0] < 1):
        raise QueryError(f"{name_of(node)} counts from 1 here, and takes no negative lengths.")
    texts = [exp.Literal.number(str(place)) for place in places]
    if isinstance(node, exp.Substring):
        length = texts[1] if len(texts) > 1 else None
        sql: exp.Expr = exp.Substring(this=value.sql, start=texts[0], length=length)
    else:
        sql = type(node)(this=value.sql, expression=texts[0])
    return Typed(sql, "text", nullable=value.nullable)


def _concat(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """|| gives NULL beside NULL; CONCAT passes it over.

    Texts are joined up to their first 10,000 letters: sub-queries may double a text again and again, until it
    is too long for the engine, which then raises for rows that hold any text at all.
    """
    skips = isinstance(node, exp.Concat)
    parts = [as_text(node, part) for part in arguments]
    sqls = [
        exp.Coalesce(this=cut(part.sql), expressions=[exp.Literal.string("")])
        if skips and part.nullable
        else cut(part.sql)
        for part in parts
    ]
    sql: exp.Expr = sqls[0]
    for place, part in enumerate(sqls[1:]):
        sql = exp.DPipe(this=cut(sql) if place else sql, expression=part, safe=True)
    return Typed(exp.paren(sql), "text", nullable=not skips and any(part.nullable for part in parts))


def cut(sql: exp.Expr) -> exp.Expr:
    """A text's first letters, so many that a few of them fit into memory."""
    if isinstance(sql, exp.Literal):
        return exp.Literal.string(sql.name[:LONGEST_JOINED])
    return exp.Left(this=sql, expression=exp.Literal.number(str(LONGEST_JOINED)))


def _replace(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = as_text(node, arguments[0])
    if len(arguments) != 3 or any(
        not (isinstance(argument.sql, exp.Literal) and argument.sql.is_string) for argument in arguments[1:]
    ):
        raise QueryError("REPLACE takes a text and two constant texts.")
    old, new = arguments[1].sql, arguments[2].sql
    if not old.name or len(new.name) > len(old.name):
        raise QueryError("REPLACE must not make the text longer, so that no row can exhaust memory.")
    sql = exp.Replace(this=value.sql, expression=old, replacement=new)
    return Typed(sql, "text", nullable=value.nullable)


def _test(node: exp.Expr, arguments: list[Typed]) -> Typed:
    left, right = (as_text(node, argument) for argument in arguments)
    sql = type(node)(this=left.sql, expression=right.sql)
    return Typed(sql, "boolean", 0, 1, left.nullable or right.nullable, (False, True))


def _elsewhere(node: exp.Expr, arguments: list[Typed]) -> Typed:
    raise QueryError(
        f"{name_of(node)} turns letters with marks round in another way on each engine; read a text from its "
        "end with RIGHT(x, n) or ENDS_WITH(x, 'end')."
    )


def initcap(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """INITCAP, whose words are others on each engine."""
    raise QueryError(
        "INITCAP ends words at other letters on each engine; for the first letter, write "
        "UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2))."
    )


TEXTS: dict[type[exp.Expr], Function] = {
    exp.Reverse: _elsewhere,
    exp.Initcap: initcap,
    exp.Lower: _text_to_text,
    exp.Upper: _text_to_text,
    exp.Trim: _text_to_text,
    exp.Length: _length,
    exp.Substring: _slice,
    exp.Left: _slice,
    exp.Right: _slice,
    exp.DPipe: _concat,
    exp.Concat: _concat,
    exp.Replace: _replace,
    exp.StartsWith: _test,
    exp.Contains: _test,
}
