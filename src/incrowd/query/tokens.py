"""Brackets in a stream of tokens: what opens, what closes, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The place of the bracket that closes the one at `opening`; None if it stays open."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].token_type in OPEN) - (tokens[place].token_type in CLOSE)
        if depth == 0:
            return place
    return None


def listed(tokens: Sequence[Token], opening: int, end: int) -> Iterator[list[Token]]:
    """The parts of a list in brackets, between its commas."""
    part: list[Token] = []
    depth = 0
    for token in tokens[opening + 1 : end]:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if token.token_type == TokenType.COMMA and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """The text with each stretch from a start up to an end replaced; no two of them overlap.

    >>> edited("a b c", [(0, 1, "x"), (4, 4, "y ")])
    'x b y c'
    """
    for start, end, insert in sorted(edits, reverse=True):
        text = text[:start] + insert + text[end:]
    return text
