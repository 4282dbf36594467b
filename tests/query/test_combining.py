"""Expressions side by side: in one arithmetic, in one kind, as one of several."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.combining import as_float, as_timestamp, comparable, in_calendar, truth, unite
from tests.query.one_table import computed, corner_rows, refuted, typed

COLUMNS = {
    "x": "integer",
    "f": "float",
    "b": "boolean",
    "s": "text",
    "d": "date",
    "m": "timestamp",
    "NULL": "null",
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x", [-5.0, 20.0, 0.0, 3.0, None]),
        ("b", [1.0, 0.0, None]),
        ("NULL", [None]),
        ("f", [-2.5, 7.5, 0.0, 1.25, None]),
    ],
)
def test_a_number_is_a_float64(sql: str, expected: list[float | None]) -> None:
    claim = as_float(typed(sql), "+")
    given_rows = corner_rows(sql) if sql != "NULL" else corner_rows()
    numbers = computed(claim.sql, given_rows)
    assert numbers == expected and all(value is None or type(value) is float for value in numbers)
    assert not refuted(claim, given_rows)
    assert as_float(claim, "+").sql == claim.sql


def test_a_truth_value_is_one_or_zero() -> None:
    claim = as_float(typed("b"), "+")
    assert (claim.kind, claim.low, claim.high, claim.values, claim.size) == ("integer", 0.0, 1.0, None, 1)
    assert as_float(typed("TRUE"), "+").values == (1,)
    assert as_float(typed("NULL"), "+").size == 0 and as_float(typed("NULL"), "+").kind == "float"
    assert not as_float(typed("x"), "+").integral
    with pytest.raises(QueryError, match=r"\+ needs numbers, but s is of type text\."):
        as_float(typed("s"), "+")


@given(st.dates(), st.dates(), st.dates())
def test_the_calendar_ends_where_it_is_told_to(day: dt.date, one: dt.date, two: dt.date) -> None:
    first, last = sorted((one, two))
    row = {**corner_rows()[0], "d": day}
    claim = in_calendar(typed("d"), str(first).zfill(10), str(last).zfill(10))
    assert claim.nullable
    assert computed(claim.sql, [row]) == [day if first <= day <= last else None]


def test_a_day_is_a_moment_and_a_moment_stays_one() -> None:
    assert as_timestamp(typed("m")) == typed("m")
    claim = as_timestamp(typed("d"))
    assert (claim.kind, claim.values, claim.nullable) == ("timestamp", None, True)
    assert computed(claim.sql, corner_rows("d")) == [
        None if row["d"] is None else dt.datetime(row["d"].year, row["d"].month, row["d"].day)
        for row in corner_rows("d")
    ]


@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_two_sides_of_a_comparison_are_of_one_type_in_the_engine(left: str, right: str) -> None:
    kinds = {COLUMNS[left], COLUMNS[right]}
    mixes = (
        len(kinds - {"null"}) == 1
        or "null" in kinds
        or kinds <= {"integer", "float"}
        or kinds <= {"date", "timestamp"}
    )
    if not mixes:
        with pytest.raises(
            QueryError,
            match=(
                f"= compares {left}, which is of type {COLUMNS[left]}, with {right}, which is of "
                f"type {COLUMNS[right]}; CAST one of them"
            ),
        ):
            comparable(typed(left), typed(right), "=")
        return
    one, two = comparable(typed(left), typed(right), "=")
    types = computed(
        f"TYPEOF({one.sql.sql('duckdb')}) || ' ' || TYPEOF({two.sql.sql('duckdb')})", corner_rows()
    )[0].split(" ", 1)
    assert types[0] == types[1] or "NULL" in (left, right)


def test_whole_numbers_held_in_two_ways_are_compared_as_floats() -> None:
    one, two = comparable(typed("x"), typed("x + 1"), "=")
    assert not one.integral and not two.integral
    assert comparable(typed("x"), typed("y"), "=")[0].integral


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("d", "'2020-02-29'", "date"),
        ("'2020-02-29'", "d", "date"),
        ("d", "'2020-02-29 10:00'", "timestamp"),
        ("m", "'2020-02-29'", "timestamp"),
    ],
)
def test_a_constant_text_beside_a_date_is_read_as_one(left: str, right: str, kind: str) -> None:
    one, two = comparable(typed(left), typed(right), "=")
    assert (one.kind, two.kind) == (kind, kind)
    assert {one.nullable, two.nullable} == {True}
    assert computed(
        f"{one.sql.sql('duckdb')} = {two.sql.sql('duckdb')}",
        [{**corner_rows()[0], "d": dt.date(2020, 2, 29), "m": dt.datetime(2020, 2, 29)}],
    ) == [kind == "date" or "10:00" not in right + left]
    with pytest.raises(QueryError):
        comparable(typed("d"), typed("s"), "=")


def test_a_truth_value_is_unknown_where_a_part_is() -> None:
    assert (
        truth(typed("b").sql, typed("y"), typed("x")).nullable
        and not truth(typed("b").sql, typed("y")).nullable
    )
    claim = truth(typed("b").sql)
    assert (claim.kind, claim.low, claim.high, claim.values) == ("boolean", 0, 1, (False, True))


@pytest.mark.parametrize(
    ("parts", "kind", "low", "high", "nullable", "values"),
    [
        (("x", "y"), "integer", -5, 20, True, tuple(range(-5, 21))),
        (("y", "k"), "integer", None, None, False, (1, 2, 3, 4)),
        (("x", "f"), "float", -5, 20, True, None),
        (("x", "n"), "integer", None, None, True, None),
        (("GREATEST(n, 3)", "y"), "integer", 1, None, False, None),
        (("LEAST(n, 3)", "y"), "integer", None, 4, False, None),
        (("y", "NULL"), "integer", 1, 4, True, (1, 2, 3, 4)),
        (("c", "'z'"), "text", None, None, False, ("a", "B", "cd", "z")),
        (("g", "2"), "float", 0.5, 2.0, False, None),
        (("NULL", "NULL"), "null", None, None, True, ()),
        (("y", "g"), "float", 0.5, 4, False, None),
    ],
)
def test_one_of_several_has_the_facts_of_all(
    parts: tuple[str, ...], kind: str, low: float, high: float, nullable: bool, values: tuple[object, ...]
) -> None:
    facts, sqls = unite([typed(part) for part in parts], "CASE")
    assert (facts.kind, facts.low, facts.high, facts.nullable, facts.values) == (
        kind,
        low,
        high,
        nullable,
        values,
    )
    assert len(sqls) == len(parts)
    if kind in ("integer", "float"):
        assert all("DOUBLE" in sql.sql("duckdb") for sql in sqls) and not facts.integral
    assert facts.size == max([typed(part).size for part in parts if part != "NULL"], default=facts.size)


def test_several_kinds_are_refused() -> None:
    with pytest.raises(
        QueryError, match=r"The branches of CASE are of different types \(date, text\); CAST them to one\."
    ):
        unite([typed("d"), typed("s")], "CASE")
