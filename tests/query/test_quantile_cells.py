"""Ranks and cells: which quantile is asked for, and cells that cover the range and no more."""

from __future__ import annotations

import math

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.quantile_cells import BUCKETS, EXTREME, cells_of, note_of, ranks_of


def call(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="duckdb")


@pytest.mark.parametrize(
    ("sql", "rank"),
    [
        ("MEDIAN(x)", 0.5),
        ("MIN(x)", EXTREME),
        ("MAX(x)", 1 - EXTREME),
        ("QUANTILE_CONT(x, 0.25)", 0.25),
        ("APPROX_QUANTILE(x, 1)", 1.0),
        ("QUANTILE_CONT(x, 0)", 0.0),
    ],
)
def test_a_rank_is_read_from_the_call(sql: str, rank: float) -> None:
    assert ranks_of(call(sql), sql) == (rank,)


@pytest.mark.parametrize("rank", ["1.5", "-0.1", "y", "'a'", "1.0000001"])
def test_a_rank_is_a_constant_between_0_and_1(rank: str) -> None:
    with pytest.raises(QueryError, match=r"needs a constant rank between 0 and 1\."):
        ranks_of(call(f"QUANTILE_CONT(x, {rank})"), f"QUANTILE_CONT(x, {rank})")


def test_several_ranks_stand_in_square_brackets() -> None:
    with pytest.raises(QueryError, match=r"ranks in square brackets, as in QUANTILE_CONT\(x, \[0.25, 0.75\]"):
        ranks_of(call("QUANTILE_CONT(x, (0.25, 0.75))"), "QUANTILE_CONT(x, (0.25, 0.75))")
    with pytest.raises(QueryError, match="needs a constant rank"):
        ranks_of(exp.Quantile(this=exp.column("x")), "QUANTILE(x)")


def test_an_extreme_says_what_it_is_answered_as() -> None:
    assert note_of(call("MIN(x)"), "MIN(x)").startswith(
        "MIN(x) is answered as the value that 1% of the rows lie below"
    )
    assert note_of(call("MAX(x)"), "MAX(x)").startswith(
        "MAX(x) is answered as the value that 1% of the rows lie above"
    )
    assert note_of(call("MEDIAN(x)"), "MEDIAN(x)") == ""


@given(st.integers(-(10**9), 10**9), st.integers(0, 3 * BUCKETS))
def test_whole_numbers_get_a_cell_each_while_they_are_few(low: int, span: int) -> None:
    first, last, cells = cells_of(low, low + span, True)
    if span < BUCKETS:
        assert (first, last, cells) == (low, low + span + 1, span + 1)
    else:
        assert (first, last, cells) == (low, low + span, BUCKETS)


@given(st.floats(-1e60, 1e60), st.floats(-1e60, 1e60), st.booleans())
def test_cells_cover_the_range(one: float, two: float, whole: bool) -> None:
    low, high = sorted((one, two))
    first, last, cells = cells_of(low, high, whole)
    assert first <= low and high <= last and first < last and 1 <= cells <= BUCKETS
    assert first >= math.floor(low) and last <= math.ceil(high) + 1 + 1e-9 * max(abs(low), 1.0)
    assert (last - first) / cells > 0


def test_a_constant_has_a_narrow_range_of_its_own() -> None:
    assert cells_of(3.0, 3.0, False) == (3.0, 3.0 + 3e-9, BUCKETS)
    assert cells_of(0.0, 0.0, False) == (0.0, 1e-9, BUCKETS)
    assert cells_of(0.0, 1.0, False) == (0.0, 1.0, BUCKETS)
    assert cells_of(0.5, 2.5, True) == (0, 4, 4)
