"""SUM: of values that are clamped by row, or of totals that are clamped per unit and group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.query.asked import facts_of, leaf_of


@pytest.mark.parametrize(
    ("aggregate", "facts"),
    [
        ("SUM(x)", [("row", "own", -5, 20, 0, True)]),
        ("SUM(f)", [("row", "own", -2.5, 7.5, 0, False)]),
        ("SUM(x, contribution_bounds_per_row => (0, 3))", [("row", "own", 0, 3, 0, True)]),
        ("SUM(x, contribution_bounds_per_group => (0, 30))", [("pair", "own", 0, 30, 0, True)]),
        ("SUM(x + 1)", [("row", "own", -4, 21, 0, True)]),
    ],
)
def test_each_measure_is_bounded_as_the_owner_or_the_question_says(
    aggregate: str, facts: list[tuple[Any, ...]]
) -> None:
    assert facts_of(aggregate) == facts


def test_a_declared_contribution_caps_the_sum_of_that_column_alone() -> None:
    assert [measure.cap for measure in leaf_of("SUM(w)", source="steps").measures.values()] == [2.5]
    assert [measure.cap for measure in leaf_of("SUM(w + 0)", source="steps").measures.values()] == [None]
    assert [measure.cap for measure in leaf_of("SUM(w)", "row", source="steps").measures.values()] == [1]
