"""GoogleSQL's older words for the same things: ANON_SUM(x CLAMPED BETWEEN a AND b).

Each is put in the newer words before the parser reads it. ANON_COUNT, ANON_SUM and ANON_AVG clamp what a
unit adds to a group; the others clamp each row's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.tokens import CLOSE, OPEN, closing

_PREFIX = "anon_"
_NEWER: Mapping[str, tuple[str, str]] = {
    "anon_count": ("COUNT", "group"),
    "anon_sum": ("SUM", "group"),
    "anon_avg": ("AVG", "group"),
    "anon_var_pop": ("VAR_POP", "row"),
    "anon_stddev_pop": ("STDDEV_POP", "row"),
    "anon_percentile_cont": ("PERCENTILE_CONT", "row"),
    "anon_quantiles": ("APPROX_QUANTILES", "row"),
}
"""What each function is called today, and whether its bounds are of a unit's part of a group or of a row."""


def newer_names(tokens: Sequence[Token]) -> dict[int, str]:
    """Today's name of each older function, by the place of its bracket."""
    names = {}
    for place, (token, after) in enumerate(pairwise(tokens)):
        if fold(token.text).startswith(_PREFIX) and after.token_type == TokenType.L_PAREN:
            if fold(token.text) not in _NEWER:
                known = ", ".join(name.upper() for name in sorted(_NEWER))
                raise QueryError(f"The function {token.text} is not known; use {known}.")
            names[place + 1] = _NEWER[fold(token.text)][0]
    return names


def clamped(tokens: Sequence[Token]) -> dict[int, list[tuple[int, int, str]]]:
    """The edits that turn CLAMPED BETWEEN a AND b into a named argument, by the place of the bracket."""
    edits = {}
    for place in _clamping(tokens):
        opening = _around(tokens, place)
        function = "" if not opening else fold(tokens[opening - 1].text)
        if opening is None or function not in _NEWER:
            raise QueryError(
                "CLAMPED BETWEEN belongs into an ANON function, such as ANON_SUM(x CLAMPED BETWEEN 0 AND "
                "100); for others write SUM(x, contribution_bounds_per_group => (0, 100))."
            )
        end = closing(tokens, opening)
        middle = None if end is None else _conjunction(tokens, place + 2, end)
        if end is None or middle is None:
            raise QueryError("CLAMPED BETWEEN needs two numbers, as in CLAMPED BETWEEN 0 AND 100.")
        argument = f", contribution_bounds_per_{_NEWER[function][1]} => ("
        edits[opening] = [
            (tokens[place].start, tokens[place + 1].end + 1, argument),
            (tokens[middle].start, tokens[middle].end + 1, ","),
            (tokens[end].start, tokens[end].start, ")"),
        ]
    return edits


def _clamping(tokens: Sequence[Token]) -> Iterator[int]:
    for place, (token, after) in enumerate(pairwise(tokens)):
        if fold(token.text) == "clamped" and after.token_type == TokenType.BETWEEN:
            yield place


def _around(tokens: Sequence[Token], place: int) -> int | None:
    """The bracket that is open at a place."""
    around: list[int] = []
    for index, token in enumerate(tokens[:place]):
        if token.token_type in OPEN:
            around.append(index)
        elif token.token_type in CLOSE and around:
            around.pop()
    return around[-1] if around else None


def _conjunction(tokens: Sequence[Token], start: int, end: int) -> int | None:
    """The first AND between two places that stands in no further bracket."""
    depth = 0
    for place in range(start, end):
        token = tokens[place]
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if token.token_type == TokenType.AND and depth == 0:
            return place
    return None
