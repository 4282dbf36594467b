"""Functions of text: DuckDB's own values, no text longer than it was, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.functions.texts import LONGEST_JOINED
from tests.query.one_table import computed, corner_rows, refuted, typed

TEXTS = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12))
CALLS = [
    *(
        "LOWER(s)",
        "UPPER(s)",
        "TRIM(s)",
        "LENGTH(s)",
        "SUBSTRING(s, 2)",
        "SUBSTRING(s, 2, 3)",
        "LEFT(s, 2)",
        "RIGHT(s, 2)",
        "LEFT(s, 0)",
    ),
    *(
        "s || c",
        "CONCAT(s, c)",
        "CONCAT(s, '-', c)",
        "REPLACE(s, 'a', 'b')",
        "REPLACE(s, 'ab', '')",
        "STARTS_WITH(s, 'a')",
        "CONTAINS(s, c)",
    ),
    *("SUBSTRING(s, 1, 0)", "s || NULL", "CONCAT(s, NULL)"),
]


@pytest.mark.parametrize("sql", CALLS)
@settings(max_examples=15, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_a_value_is_that_of_duckdb_and_within_its_claim(sql: str, texts: list[str | None]) -> None:
    given_rows = [{**row, "s": text} for text in texts for row in corner_rows("c")]
    claim = typed(sql)
    assert computed(claim.sql, given_rows) == computed(sql.replace("TRIM(s)", "TRIM(s, ' ')"), given_rows)
    assert not refuted(claim, given_rows)


@pytest.mark.parametrize(
    ("sql", "nullable"),
    [
        ("LOWER(s)", True),
        ("LOWER(c)", False),
        ("s || c", True),
        ("c || c", False),
        ("CONCAT(s, c)", False),
        ("LENGTH(c)", False),
        ("LEFT(s, 1)", True),
        ("CONTAINS(c, s)", True),
        ("CONTAINS(s, c)", True),
        ("STARTS_WITH(c, 'a')", False),
        ("REPLACE(c, 'a', '')", False),
        ("REPLACE(s, 'a', '')", True),
    ],
)
def test_null_comes_from_null_alone(sql: str, nullable: bool) -> None:
    assert typed(sql).nullable is nullable


def test_joined_texts_are_cut_before_they_are_joined() -> None:
    given_rows = [{**corner_rows()[0], "s": "z" * (LONGEST_JOINED + 5)}]
    (joined,) = computed(typed("s || s").sql, given_rows)
    assert joined == "z" * 2 * LONGEST_JOINED
    (literal,) = computed(typed(f"'{'q' * (LONGEST_JOINED + 5)}' || c").sql, corner_rows())
    assert literal == "q" * LONGEST_JOINED + "a"


def test_a_length_is_a_whole_number_from_zero() -> None:
    claim = typed("LENGTH(s)")
    assert (claim.kind, claim.low, claim.high, claim.integral, claim.size) == ("integer", 0, None, True, 64)
    assert typed("CONTAINS(s, 'a')").values == (False, True)
    assert (typed("CONTAINS(s, 'a')").low, typed("CONTAINS(s, 'a')").high) == (0, 1)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SUBSTRING(s, 0)", "SUBSTRING counts from 1 here, and takes no negative lengths."),
        ("SUBSTRING(s, 1, -1)", "counts from 1 here"),
        ("LEFT(s, -1)", "takes no negative lengths."),
        ("LEFT(s, y)", "The place of LEFT must be a constant whole number."),
        ("SUBSTRING(s, 1.5)", "The place of SUBSTRING must be a constant whole number."),
        ("RIGHT(s, 1000001)", "The place of RIGHT"),
        ("REPLACE(s, 'a', 'bb')", "REPLACE must not make the text longer"),
        ("REPLACE(s, '', '')", "REPLACE must not make the text longer"),
        ("REPLACE(s, c, 'a')", "REPLACE takes a text and two constant texts."),
        ("REPLACE(s, 'ab', c)", "REPLACE takes a text and two constant texts."),
        ("x || s", "needs text, but x is of type integer; CAST it AS TEXT."),
        ("CONTAINS(s, x)", "CONTAINS needs text, but x is of type integer"),
        ("TRIM(s, 'ab')", "TRIM takes one argument here."),
        ("LENGTH(x)", "LENGTH needs text, but x is of type integer; CAST it AS TEXT."),
    ],
)
def test_what_could_grow_or_fail_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)


def test_a_place_may_be_as_large_as_is_allowed() -> None:
    assert typed("LEFT(s, 1000000)").kind == "text"
