"""Tests with regular expressions: DuckDB's own values, NULL for huge texts, and what is refused."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed

TEXTS = [None, "", "a", "A", "ab\n", "b\na", "Aß1", "flu", "a.b@c.d", "\u212a"]


@pytest.mark.parametrize(
    "sql",
    [
        "s ~ '^a'",
        "s !~ 'b$'",
        "REGEXP_MATCHES(s, '[A-Za-z]')",
        "REGEXP_MATCHES(s, '^A', 'i')",
        "REGEXP_FULL_MATCH(s, 'a.')",
        "REGEXP_FULL_MATCH(s, 'a|flu')",
        "s SIMILAR TO 'a|fl[ut]'",
        "REGEXP_MATCHES(s, '^[^@]+@[^@]+[.][^@]+$')",
    ],
)
def test_a_value_is_that_of_duckdb(sql: str) -> None:
    rows = [{**corner_rows()[0], "s": text} for text in TEXTS]
    claim = typed(sql)
    assert computed(claim.sql, rows) == computed(sql, rows)
    assert not refuted(claim, rows)


def test_a_text_of_more_than_a_thousand_letters_is_null() -> None:
    rows = [{**corner_rows()[0], "s": "a" * length} for length in (1_000, 1_001)]
    assert computed(typed("s ~ 'a$'").sql, rows) == [True, None]
    assert computed(typed("s ~* 'A$'").sql, rows) == [True, None]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("s ~ c", "needs a constant pattern."),
        ("x ~ 'a'", "needs text, but x is of type integer"),
        ("REGEXP_MATCHES(s, 'a', 's')", "has an option that engines differ about; use 'i', or none."),
        ("s SIMILAR TO 'a%'", "write REGEXP_FULL_MATCH(x, 'a.*'), or LIKE."),
        ("s ~ '(ab)*'", "repeats a group"),
        ("s ~ 'x.*y.*z'", "repeats too much to be fast on every text"),
    ],
)
def test_what_engines_read_differently_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
