"""Brackets and lists in a stream of tokens."""

from __future__ import annotations

import sqlglot

from incrowd.query.tokens import closing, edited, listed


def test_a_bracket_is_closed_by_its_own() -> None:
    tokens = sqlglot.tokenize("f(a, (b), [c]) + (d", read="duckdb")
    assert closing(tokens, 1) == len(tokens) - 4
    assert closing(tokens, len(tokens) - 2) is None


def test_a_list_is_parted_at_its_own_commas() -> None:
    tokens = sqlglot.tokenize("(a, (b, c), d = [1, 2])", read="duckdb")
    parts = ["".join(token.text for token in part) for part in listed(tokens, 0, len(tokens) - 1)]
    assert parts == ["a", "(b,c)", "d=[1,2]"]


def test_edits_are_made_whatever_their_order() -> None:
    assert edited("abc", [(2, 3, "z"), (0, 0, "<"), (1, 2, "")]) == "<az"
