"""Calls that take a unit of time as a bare word, where the parser would see a column: TIMESTAMPDIFF, DATEADD.

Such a call is marked, and its unit quoted, in the stream of tokens. In the tree DATEADD(month, 3, d) becomes
d + INTERVAL 3 MONTH, and DATE_SUB(d, INTERVAL 3 MONTH) becomes d - INTERVAL 3 MONTH.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.catalog.names import fold

UNIT_MARK = "__named__unit__"
"""Begins the names of such calls between the tokens and the tree; no question may hold it."""
_TAKING = ("timestampdiff", "dateadd", "timestampadd")
_MOVED_BACK = ("DATE_SUB", "SUBDATE", "DATESUB")


def quoted_units(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """The edits that mark such calls and quote their units."""
    for name, bracket, unit, comma in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if (
            fold(name.text) in _TAKING
            and bracket.token_type == TokenType.L_PAREN
            and comma.token_type == TokenType.COMMA
            and fold(unit.text).isalpha()
        ):
            yield name.start, name.end + 1, UNIT_MARK + fold(name.text).upper()
            if unit.token_type != TokenType.STRING:
                yield unit.start, unit.end + 1, f"'{unit.text}'"


def whole_units_call(unit: str, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    """TIMESTAMPDIFF(unit, start, end), marked."""
    return exp.Anonymous(
        this=f"{UNIT_MARK}TIMESTAMPDIFF", expressions=[exp.Literal.string(unit), start.copy(), end.copy()]
    )


def with_units(tree: exp.Query) -> exp.Query:
    """A question with its marked calls as what they mean."""
    # What lies deepest comes first, so that a call inside another is rewritten before it moves.
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        meant = _unmarked(call)
        if meant is not call:
            call.replace(meant)
    return tree


def _unmarked(node: exp.Anonymous) -> exp.Expr:
    name, given = str(node.this), node.expressions
    if name.upper() in _MOVED_BACK and len(given) == 2 and isinstance(given[1].unnest(), exp.Interval):
        return exp.paren(exp.Sub(this=exp.paren(given[0]), expression=given[1]))
    if not fold(name).startswith(UNIT_MARK):
        return node
    name = name[len(UNIT_MARK) :].upper()
    if name == "TIMESTAMPDIFF" or len(given) != 3:
        return exp.Anonymous(this=name, expressions=given)
    interval = exp.Interval(this=exp.paren(given[1]), unit=exp.var(given[0].name.upper()))
    return exp.paren(exp.Add(this=exp.paren(given[2]), expression=interval))
