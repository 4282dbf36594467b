"""Filling and joining texts: DuckDB's own values, and bounds on what they can take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed

LETTERS = st.one_of(st.none(), st.text(st.sampled_from("ab/ßé🧑"), max_size=9))


@pytest.mark.parametrize(
    "sql",
    [
        "LPAD(s, 5, '0')",
        "LPAD(s, 2, 'ß')",
        "RPAD(s, 5, 'ab')",
        "RPAD(s, 1, ' ')",
        "CONCAT_WS('-', s, c, s)",
        "CONCAT_WS('', s, s)",
        "CONCAT_WS('ab', s, NULL)",
    ],
)
@settings(max_examples=25, deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=6))
def test_a_value_is_that_of_duckdb_and_within_its_claim(sql: str, texts: list[str | None]) -> None:
    rows = [{**row, "s": text} for text in texts for row in corner_rows("c")]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(sql, rows)
    assert not refuted(claim, rows)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("LPAD(s, 5, 'ab')", "LPAD fills with one letter here"),
        ("LPAD(s, 0, '0')", "LPAD fills texts up to a length from 1 to 1,000 here."),
        ("RPAD(s, 1001, '0')", "RPAD fills texts up to a length from 1 to 1,000 here."),
        ("RPAD(s, y, '0')", "must be a constant whole number"),
        ("RPAD(s, 3, '')", "The filling of RPAD must be a constant text of at least one letter."),
        ("CONCAT_WS(s, c, c)", "The separator of CONCAT_WS must be a constant text."),
        ("CONCAT_WS('-', x)", "needs text, but x is of type integer; CAST it AS TEXT."),
        ("REVERSE(s)", "read a text from its end with RIGHT(x, n)"),
        ("INITCAP(s)", "write UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2))"),
    ],
)
def test_what_could_grow_or_differs_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
