"""Ends through expressions: what lies between the ends of its parts lies between those of the whole."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.curator.end_rules import Ends, ends_of

CONNECTION = duckdb.connect(config={"threads": "1"})
KNOWN = {name: Ends(exp.column(f"{name}_low"), exp.column(f"{name}_high")) for name in ("a0", "a1")}
FORMS = [
    "({} + {})", "({} - {})", "({} * {})", "({} / {})", "-({})", "ROUND({})", "ROUND({}, 1)", "FLOOR({})",
    "CEIL({})", "SQRT({})", "ABS({})", "EXP({})", "GREATEST({}, {})", "LEAST({}, {})", "CAST({} AS DOUBLE)",
    "CAST({} AS BIGINT)", "TRY_CAST({} AS INTEGER)",
]  # fmt: skip
NUMBERS = st.floats(-20, 20).map(lambda number: round(number, 3))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(["a0", "a1", "2", "0.5", "-3", "0"]))
    form = draw(st.sampled_from(FORMS))
    return form.format(*(draw(expressions(depth - 1)) for _ in range(form.count("{}"))))


def value_of(sql: str, numbers: dict[str, float]) -> Any:
    columns = ", ".join(f"CAST({number!r} AS DOUBLE) AS {name}" for name, number in numbers.items())
    value = CONNECTION.sql(f"SELECT TRY({sql}) FROM (SELECT {columns})").fetchall()[0][0]
    return None if value is None else float(value)


def ends_in_numbers(sql: str, box: dict[str, tuple[float, float]]) -> tuple[Any, Any] | None:
    ends = ends_of(sqlglot.parse_one(sql, read="duckdb"), KNOWN)
    if ends is None:
        return None
    corners = {f"{name}_{end}": box[name][place] for name in box for place, end in enumerate(("low", "high"))}
    return value_of(ends.low.sql("duckdb"), corners), value_of(ends.high.sql("duckdb"), corners)


@settings(max_examples=300, deadline=None)
@given(expressions(), NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1), st.floats(0, 1))
@example("(a0 - a1)", 0.0, 1.0, 2.0, 5.0, 0.0, 1.0)
@example("(a0 - a1)", 0.0, 1.0, 2.0, 5.0, 1.0, 0.0)
@example("LEAST(a1, SQRT(-3))", 0.0, 0.0, 0.0, 1.0, 0.0, 1.0)
@example("(2 / a0)", -1.0, 1.0, 0.0, 0.0, 0.25, 0.0)
def test_the_value_lies_between_its_ends(
    sql: str, a: float, b: float, c: float, d: float, one: float, two: float
) -> None:
    box = {"a0": (min(a, b), max(a, b)), "a1": (min(c, d), max(c, d))}
    shares = dict(zip(box, (one, two), strict=True))
    inside = {name: low + shares[name] * (high - low) for name, (low, high) in box.items()}
    inside = {name: min(max(number, box[name][0]), box[name][1]) for name, number in inside.items()}
    ends, value = ends_in_numbers(sql, box), value_of(sql, inside)
    if ends is None or value is None or math.isnan(value) or None in ends:
        return
    slack = 1e-9 * max(1.0, abs(value))
    assert ends[0] - slack <= value <= ends[1] + slack


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("a0 + a1", 11, 24),
        ("a0 - a1", -19, -6),
        ("a0 * a1", 10, 80),
        ("a0 / a1", 0.05, 0.4),
        ("a1 / a0", 2.5, 20),
        ("a1 / (a0 - 2)", -math.inf, math.inf),
        ("-a0", -4, -1),
        ("ABS(a0 - 3)", 0, 2),
        ("ABS(a0 - 9)", 5, 8),
        ("SQRT(a0)", 1, 2),
        ("SQRT(a0 - 2)", 0, math.sqrt(2)),
        ("GREATEST(a0, a1, 12)", 12, 20),
        ("LEAST(a0, a1)", 1, 4),
        ("2 * a0 + 1", 3, 9),
        ("ROUND(a0 / 3, 1)", 0.3, 1.3),
        ("CAST(a0 AS INTEGER)", 1, 4),
    ],
)
def test_ends_are_as_narrow_as_interval_arithmetic_allows(sql: str, low: float, high: float) -> None:
    assert ends_in_numbers(sql, {"a0": (1, 4), "a1": (10, 20)}) == pytest.approx((low, high))


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(a0 AS TEXT)",
        "a0 > 1",
        "ROUND(1.234, a0)",
        "COALESCE(b, 1)",
        "b",
        "b + a0",
        "'x'",
        "LEAST(a0, SQRT(a1))",
    ],
)
def test_what_cannot_be_followed_has_no_ends(sql: str) -> None:
    assert ends_of(sqlglot.parse_one(sql, read="duckdb"), KNOWN) is None
