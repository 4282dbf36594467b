"""Casts: what each kind becomes as each other one, which claims survive, and what is refused."""

from __future__ import annotations

import datetime as dt
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.errors import QueryError
from incrowd.query.casts import as_whole, cast, nearest
from incrowd.query.grammar import read
from tests.query.one_table import computed, corner_rows, refuted, typed

FLOATS = st.floats(-1e19, 1e19) | st.integers(-(2**54), 2**54).map(lambda half: half / 2)


@settings(max_examples=100, deadline=None)
@given(FLOATS)
def test_a_float_becomes_the_nearest_whole_number_halves_to_even(value: float) -> None:
    (result,) = computed(nearest(exp.column("u", table="t")), [{**corner_rows()[0], "u": value}])
    assert result == (round(value) if abs(value) < 2**63 else None)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (sql, kind)
        for sql in ("x", "y", "f", "g", "n", "u", "b", "k", "x + 1", "NULL")
        for kind in ("integer", "float")
    ]
    + [
        ("x", "boolean"),
        ("f", "boolean"),
        ("x", "text"),
        ("b", "text"),
        ("d", "text"),
        ("m", "text"),
        ("c", "text"),
        ("d", "timestamp"),
        ("m", "date"),
        ("d", "date"),
        ("m", "timestamp"),
        ("b", "boolean"),
        ("NULL", "date"),
        ("s", "integer"),
        ("s", "float"),
        ("s", "boolean"),
        ("s", "date"),
        ("s", "timestamp"),
        ("k", "text"),
        ("x * 2", "text"),
    ],
)
def test_no_row_refutes_what_is_claimed_of_a_cast(sql: str, kind: Kind) -> None:
    claim = cast(typed(sql), kind)
    assert claim.kind == kind
    assert not refuted(
        claim, corner_rows(*[name for name in "xyfgnubkcdms" if name in sql and sql != "NULL"])
    )


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["integer", "float", "boolean", "date", "timestamp"]),
    st.text(max_size=8) | st.integers().map(str) | st.dates().map(str),
)
def test_text_is_read_by_its_grammar(kind: Kind, text: str) -> None:
    row = {**corner_rows()[0], "s": text.replace("\0", "").encode("utf-8", "ignore").decode()}
    assert computed(cast(typed("s"), kind).sql, [row]) == [read(row["s"], kind)]


@pytest.mark.parametrize(
    ("sql", "kind", "ends"),
    [
        ("f", "integer", (-3.0, 8.0)),
        ("g", "integer", (0.0, 2.0)),
        ("x", "integer", (-5, 20)),
        ("x", "float", (-5, 20)),
        ("b", "integer", (0.0, 1.0)),
        ("b", "float", (0.0, 1.0)),
        ("u", "integer", (None, None)),
        ("GREATEST(u, 2.5)", "integer", (2.0, None)),
        ("LEAST(u, 2.5)", "integer", (None, 3.0)),
        ("x", "boolean", (0, 1)),
        ("f + 0.25", "integer", (-3.0, 8.0)),
    ],
)
def test_ends_go_outwards_to_whole_numbers_and_no_further(
    sql: str, kind: Kind, ends: tuple[float | None, float | None]
) -> None:
    claim = cast(typed(sql), kind)
    assert (claim.low, claim.high) == ends


@pytest.mark.parametrize(
    ("sql", "kind", "nullable"),
    [
        ("y", "integer", False),
        ("g", "integer", True),
        ("y", "text", False),
        ("x", "text", True),
        ("y", "boolean", False),
        ("x", "boolean", True),
        ("c", "integer", True),
        ("d", "timestamp", True),
        ("y", "float", False),
        ("c", "text", False),
    ],
)
def test_null_is_possible_where_the_cast_can_fail(sql: str, kind: Kind, nullable: bool) -> None:
    assert cast(typed(sql), kind).nullable is nullable


def test_listed_values_and_sizes_survive_where_they_hold() -> None:
    assert cast(typed("k"), "integer").values == (1, 2, 3)
    assert cast(typed("x"), "boolean").values == (False, True)
    assert (
        cast(typed("s"), "integer").size == 64
        and cast(typed("s"), "float").size == 462
        and cast(typed("s"), "date").size == 1074
    )
    assert cast(typed("s"), "integer").integral and not cast(typed("s"), "float").integral
    assert cast(typed("f"), "integer").size == 64 and cast(typed("x + 1"), "integer").integral
    assert as_whole(typed("x")).sql() == '"t".x' and "TRY_CAST" in as_whole(typed("x + 1")).sql("duckdb")
    assert (
        nearest(exp.cast(exp.column("u"), "DOUBLE")).sql("duckdb") == "TRY_CAST(CAST(u AS DOUBLE) AS BIGINT)"
    )
    assert (
        nearest(exp.cast(exp.column("u"), "BIGINT")).sql("duckdb")
        == "TRY_CAST(CAST(CAST(u AS BIGINT) AS DOUBLE) AS BIGINT)"
    )


def test_a_moment_outside_the_calendar_has_no_day() -> None:
    row = {**corner_rows()[0], "m": dt.datetime(9999, 12, 31), "u": math.nan}
    assert computed(cast(typed("m"), "date").sql, [row]) == [dt.date(9999, 12, 31)]
    assert computed(cast(typed("u"), "integer").sql, [row]) == [None]


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        (
            "f",
            "text",
            "f is a float, which engines print in different ways; ROUND it before the CAST to text.",
        ),
        ("d", "integer", "d is of type date, which CAST cannot make a integer"),
        ("x", "date", "x is of type integer, which CAST cannot make a date; leave it out."),
        ("d", "boolean", "CAST cannot make a boolean"),
        ("b", "date", "CAST cannot make a date"),
    ],
)
def test_a_cast_without_one_meaning_is_refused(sql: str, kind: Kind, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        cast(typed(sql), kind)
    assert said in str(refusal.value)
