"""Bits of whole numbers: DuckDB's values where it has them, NULL where it raises, and the claimed range."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from tests.query.one_table import Row, computed, corner_rows, refuted, rows, typed

CALLS = [
    *("{} & 5", "{} & y", "{} | 5", "{} | y", "XOR({}, 5)", "XOR({}, y)", "~{}", "{} >> 2", "{} >> 63"),
    *(
        "{} << 1",
        "{} << 62",
        "{} << 63",
        "{} & -4",
        "{} | -4",
        "BIT_COUNT({})",
        "{} << 0",
        "5 & {}",
        "{} & 0",
    ),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("inner", ["x", "y", "n", "k", "(x + 1)", "ROUND(u)", "(y - 9)", "NULL"])
def test_no_row_refutes_what_is_claimed(call: str, inner: str) -> None:
    assert not refuted(typed(call.format(inner)), corner_rows("x", "y") + corner_rows("n", "k", "u"))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([call for call in CALLS if "<<" not in call]), st.sampled_from(["x", "y", "n"]), rows()
)
def test_a_value_is_that_of_duckdb(call: str, inner: str, given_rows: list[Row]) -> None:
    assert computed(typed(call.format(inner)).sql, given_rows) == computed(call.format(inner), given_rows)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("5 << 2", 20),
        ("-1 << 1", None),
        ("1 << 62", 2**62),
        ("2 << 62", None),
        ("0 << 63", 0),
        ("1 << 63", None),
        ("-8 >> 1", -4),
        ("1e19 & 1", None),
    ],
)
def test_shifts_that_lose_bits_are_null(sql: str, value: int | None) -> None:
    sql = sql.replace("1e19", "ROUND(1e19)")
    assert computed(typed(sql).sql, corner_rows()[:1]) == [value]


@pytest.mark.parametrize(
    ("sql", "ends"),
    [
        ("x & 6", (0, 6)),
        ("y & n", (0, 4)),
        ("y | 3", (0, 7)),
        ("XOR(y, 8)", (0, 15)),
        ("~x", (-21, 4)),
        ("x >> 1", (-3, 10)),
        ("y << 2", (4, 16)),
        ("BIT_COUNT(y)", (0, 3)),
        ("BIT_COUNT(n)", (0, 64)),
    ],
)
def test_the_range_is_that_of_the_bits(sql: str, ends: tuple[int, int]) -> None:
    assert (typed(sql).low, typed(sql).high) == ends


def test_a_mask_of_few_bits_lists_its_values() -> None:
    assert typed("n & 5").values == (0, 1, 4, 5)
    assert typed("n & 127").values is None
    assert typed("n & y").values is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("f & 1", "f & 1 needs whole numbers, but f is of type float; CAST it AS BIGINT."),
        ("x << y", "The number of places of BITWISELEFTSHIFT must be a constant whole number."),
        ("x << 64", "x << 64 must shift by a constant from 0 to 63."),
        ("x >> -1", "must shift by a constant from 0 to 63."),
        ("BIT_COUNT(s)", "BIT_COUNT(s) needs whole numbers, but s is of type text"),
    ],
)
def test_what_has_no_safe_form_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        typed(sql)
    assert said in str(refusal.value)
