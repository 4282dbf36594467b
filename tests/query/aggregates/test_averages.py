"""Averages, spreads and their pairs: the sums they are made of, and how each is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.query.asked import ENGINE, assert_refused, facts_of, measures_of


@pytest.mark.parametrize(
    ("aggregate", "facts"),
    [
        ("AVG(x)", [("pair", "joint", -5, 20, 7.5, True), ("pair", "joint", 0, 1, 0, True)]),
        (
            "VAR_POP(f)",
            [
                ("pair", "joint", -2.5, 7.5, 2.5, False),
                ("pair", "joint", 0, 25, 12.5, False),
                ("pair", "joint", 0, 1, 0, True),
            ],
        ),
        (
            "COVAR_POP(x, f)",
            [
                ("pair", "joint", -5, 20, 7.5, True),
                ("pair", "joint", -2.5, 7.5, 2.5, False),
                ("pair", "joint", -62.5, 62.5, 0, False),
                ("pair", "joint", 0, 1, 0, True),
            ],
        ),
        (
            "AVG(f, contribution_bounds_per_row => (0, 4))",
            [("pair", "joint", 0, 4, 2, False), ("pair", "joint", 0, 1, 0, True)],
        ),
    ],
)
def test_each_measure_is_bounded_as_the_owner_or_the_question_says(
    aggregate: str, facts: list[tuple[Any, ...]]
) -> None:
    assert facts_of(aggregate) == facts


def test_squares_vanish_before_float64_does() -> None:
    squares = measures_of("VAR_POP(f)")[1]
    assert squares.value is not None
    for value in ("2.5", "2.5000000000000004", "7.5", "-2.5"):
        ((square,),) = ENGINE.execute(
            f"SELECT {squares.value.sql('duckdb')} FROM (SELECT CAST('{value}' AS DOUBLE) AS f) AS visits"
        ).fetchall()
        assert abs(square - (float(value) - 2.5) ** 2) < 1e-9 and (square == 0 or square > 2.0**-230)
    small = measures_of("VAR_POP(f, contribution_bounds_per_row => (-1, 1))")[1]
    assert small.value is not None
    ((square,),) = ENGINE.execute(
        f"SELECT {small.value.sql('duckdb')} FROM (SELECT 1e-100 AS f) AS visits"
    ).fetchall()
    assert square == 0
    constant = measures_of("VAR_POP(f, contribution_bounds_per_row => (1, 1))")[1]
    assert constant.value is not None and (constant.low, constant.high) == (0, 0)


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("COVAR_POP(x, f, contribution_bounds_per_row => (0, 1))", "takes no contribution bounds"),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)
