"""What WHERE says about bounds: no value that a row can still have is left out, and no other is kept."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.query.bounding import limits_in, narrower
from incrowd.query.typed import Field

DAYS = [dt.date(2024, 1, day) for day in range(1, 9)]
WHOLE = Field("integer", limits=(-3, 4))
DATES = Field("date", limits=(DAYS[0], DAYS[-1]))
TIMES = Field("timestamp", limits=(dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 1, 8, 18)))


def bounded(field: Field, condition: str) -> Field:
    """What is known after one comparison of x."""
    for column, low, high in limits_in(sqlglot.parse_one(condition, read="duckdb")):
        assert column.name == "x"
        field = narrower(field, low, high)
    return field


@settings(max_examples=200)
@given(
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(-5, 6),
    st.booleans(),
    st.booleans(),
)
def test_the_bounds_are_the_least_and_most_that_satisfy_a_comparison(
    sign: str, constant: int, flipped: bool, days: bool
) -> None:
    tests: dict[str, Any] = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    moment = dt.date(2024, 1, 4) + dt.timedelta(days=constant)
    text = f"'{moment.isoformat()}'" if days else str(constant)
    field, values = (DATES, DAYS) if days else (WHOLE, list(range(-3, 5)))
    value = moment if days else constant
    kept = [each for each in values if (tests[sign](value, each) if flipped else tests[sign](each, value))]
    known = bounded(field, f"{text} {sign} x" if flipped else f"x {sign} {text}")
    if not kept:
        assert known == field
    else:
        assert known.limits == (kept[0], kept[-1]) and not known.nullable


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("x >= '2024-01-03'", dt.datetime(2024, 1, 3), TIMES.limits[1]),  # type: ignore[index]
        ("x < '2024-01-03'", TIMES.limits[0], dt.datetime(2024, 1, 2, 23, 59, 59, 999_999)),  # type: ignore[index]
        ("x > '2024-01-03'", dt.datetime(2024, 1, 3, 0, 0, 0, 1), TIMES.limits[1]),  # type: ignore[index]
        ("x <= '2024-01-03 10:30'", TIMES.limits[0], dt.datetime(2024, 1, 3, 10, 30)),  # type: ignore[index]
        (
            "x <= TIMESTAMP '2024-01-03 10:30:15.25'",
            TIMES.limits[0],  # type: ignore[index]
            dt.datetime(2024, 1, 3, 10, 30, 15, 250_000),
        ),
        ("x BETWEEN DATE '2024-01-02' AND '2024-01-03'", dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 3)),
    ],
)
def test_moments_are_read_to_the_microsecond(condition: str, low: Any, high: Any) -> None:
    known = bounded(TIMES, condition)
    assert known.limits == (low, high) and not known.nullable


@pytest.mark.parametrize(
    "condition",
    [
        *("x = 3", "x > y", "x > 1.5", "x > 'soon'", "x > '2024-02-30'", "x > '20240103'", "x > NULL"),
        *("x > '2024-01-03T10:00'", "x > '9999-12-31'", "x > DATE '2024-01-03 10:30'", "x > -'2024-01-03'"),
        *("x > 12345678901234567890", "x + 1 > 2", "NOT x > 2", "x BETWEEN y AND z", "x + 1 BETWEEN 1 AND 2"),
    ],
)
@pytest.mark.parametrize("field", [WHOLE, DATES, TIMES], ids=lambda field: field.kind)
def test_what_is_no_constant_of_the_columns_kind_says_nothing(condition: str, field: Field) -> None:
    assert bounded(field, condition) == field


def test_a_day_with_a_time_of_day_says_nothing_about_dates() -> None:
    assert bounded(DATES, "x > '2024-01-03 10:30'") == DATES
    assert bounded(WHOLE, "x > '2024-01-03'") == WHOLE and bounded(DATES, "x > 3") == DATES


@pytest.mark.parametrize(
    "field",
    [
        Field("integer"),
        Field("float", 0.0, 9.0, limits=(0.0, 9.0)),
        Field("integer", limits=(0, 9), values=(0, 5)),
        Field("integer", limits=(0, 9), domain="numbers.n"),
    ],
)
def test_columns_that_are_not_listed_by_their_bounds_stay_as_they_are(field: Field) -> None:
    assert bounded(field, "x > 2") == field


def test_both_ends_of_between_count() -> None:
    assert bounded(WHOLE, "x BETWEEN -1 AND 2").limits == (-1, 2)
    assert bounded(WHOLE, "x BETWEEN -9 AND 9").limits == (-3, 4)
    assert bounded(WHOLE, "x BETWEEN 2 AND 1") == WHOLE
