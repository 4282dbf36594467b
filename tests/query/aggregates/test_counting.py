"""COUNT and COUNT_IF: what is counted, and how often one unit counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.houses import plan_of
from tests.query.asked import assert_refused, facts_of, leaf_of


@pytest.mark.parametrize(
    ("aggregate", "facts"),
    [
        ("COUNT(*)", [("row", "rows", 0, 1, 0, True)]),
        ("COUNT(DISTINCT user_id)", [("pair", "own", 0, 1, 0, True)]),
        ("COUNT(*, contribution_bounds_per_group => (0, 7))", [("pair", "own", 0, 7, 0, True)]),
    ],
)
def test_each_measure_is_bounded_as_the_owner_or_the_question_says(
    aggregate: str, facts: list[tuple[Any, ...]]
) -> None:
    assert facts_of(aggregate) == facts


def test_counts_of_units_are_capped_by_groups() -> None:
    sql = (
        "SELECT city, COUNT(DISTINCT user_id) AS z, SUM(x, contribution_bounds_per_group => (0, "
        "9)) AS y FROM visits GROUP BY city"
    )
    for groups, caps in ((None, [None, None]), (3, [3, 27])):
        (leaf,) = plan_of(sql, "user", groups=groups).leaves
        assert [measure.cap for measure in leaf.measures.values()] == caps


def test_a_unit_per_day_is_counted_by_both_columns_or_within_its_day() -> None:
    assert leaf_of("COUNT(DISTINCT (user_id, day))", "per").measures["m0"].level == "pair"
    assert leaf_of("COUNT(DISTINCT user_id)", "per").measures["m0"].level == "value"
    (leaf,) = plan_of("SELECT day, COUNT(DISTINCT user_id) AS z FROM visits GROUP BY day", "per").leaves
    assert leaf.measures["m0"].level == "pair"
    (leaf,) = plan_of("SELECT day, COUNT(DISTINCT day) AS z FROM visits GROUP BY day", "per").leaves
    assert leaf.measures["m0"].level == "value"


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        (
            "COUNT(*, contribution_bounds_per_row => (0, 1))",
            "counts each row once; bound it with contribution_bounds_per_group.",
        ),
        ("COUNT_IF(x)", "COUNT_IF needs a condition"),
        ("COUNT_IF(b, contribution_bounds_per_row => (0, 1))", "takes no bounds; write COUNT(*, "),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)
