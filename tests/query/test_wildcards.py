"""Patterns of LIKE with ESCAPE: respelled, they match what DuckDB's own ESCAPE matches."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.wildcards import ESCAPE, is_respelled, respelled

LETTERS = st.sampled_from(["a", "%", "_", "!", "#", "\\", "ß"])


@given(st.lists(LETTERS, max_size=5), st.lists(LETTERS, max_size=5), st.sampled_from(["#", "!", "\\", "a"]))
def test_a_respelled_pattern_matches_the_same_texts(text: list[str], pattern: list[str], escape: str) -> None:
    written = "".join(pattern)
    try:
        mine = respelled(written, escape, "it")
    except QueryError:
        return
    assert is_respelled(mine)
    with duckdb.connect() as engine:
        row = engine.execute(
            "SELECT $t LIKE $p ESCAPE $e, $t LIKE $m ESCAPE $x",
            {"t": "".join(text), "p": written, "e": escape, "m": mine, "x": ESCAPE},
        ).fetchone()
    assert row is not None and row[0] == row[1]


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a#", "#"), ("#a", "#"), ("a", ""), ("a", "##"), ("a", "_")]
)
def test_what_engines_read_differently_is_refused(pattern: str, escape: str) -> None:
    with pytest.raises(QueryError):
        respelled(pattern, escape, "it")


@pytest.mark.parametrize("pattern", ["!", "a!b", "!!!"])
def test_other_spellings_are_told_apart(pattern: str) -> None:
    assert not is_respelled(pattern)
