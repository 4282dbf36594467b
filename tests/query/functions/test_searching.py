"""Searching for constants in texts: DuckDB's own values, and the refusals of what engines disagree about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed

LETTERS = st.one_of(st.none(), st.text(st.sampled_from("ab/ßé\u0301🧑"), max_size=9))


@pytest.mark.parametrize(
    "sql",
    [
        "POSITION('a' IN s)",
        "STRPOS(s, 'ab')",
        "INSTR(s, '🧑')",
        "SPLIT_PART(s, 'a', 1)",
        "SPLIT_PART(s, 'aa', 2)",
        "SPLIT_PART(s, '/', 9)",
        "ENDS_WITH(s, 'b')",
        "SUFFIX(s, 'ß/')",
    ],
)
@settings(max_examples=25, deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=6))
def test_a_value_is_that_of_duckdb_and_within_its_claim(sql: str, texts: list[str | None]) -> None:
    rows = [{**corner_rows()[0], "s": text} for text in texts]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(sql, rows)
    assert not refuted(claim, rows)


def test_only_the_first_letters_of_a_huge_text_are_divided() -> None:
    row = {**corner_rows()[0], "s": "a" * 20_000 + "/b"}
    assert computed(typed("SPLIT_PART(s, '/', 1)").sql, [row]) == ["a" * 10_000]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("STRPOS(s, '')", "What POSITION looks for must be a constant text of at least one letter."),
        ("STRPOS(s, c)", "must be a constant text"),
        ("SPLIT_PART(s, '', 1)", "What divides the text in SPLIT_PART must be a constant text"),
        ("SPLIT_PART(s, '/', 0)", "SPLIT_PART counts parts from 1 to 1,000 here."),
        ("SPLIT_PART(s, '/', -1)", "SPLIT_PART counts parts from 1"),
        ("ENDS_WITH(s, c)", "The end in ENDS_WITH must be a constant text"),
        ("STRPOS(x, 'a')", "needs text, but x is of type integer"),
    ],
)
def test_what_engines_disagree_about_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
