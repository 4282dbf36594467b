"""Measures of one leaf: the cap of each, and that equal ones are asked for once."""

from __future__ import annotations

import pytest

from tests.query.asked import leaf_of, measures_of


@pytest.mark.parametrize(
    ("aggregate", "mode", "contribution", "caps"),
    [
        ("COUNT(*)", "user", {}, [None]),
        ("COUNT(*)", "user", {"rows": 3}, [3]),
        ("COUNT(*)", "row", {}, [1]),
        ("SUM(x)", "user", {"rows": 2}, [40]),
        ("SUM(x)", "row", {}, [20]),
        ("SUM(f)", "user", {}, [None]),
        ("AVG(x)", "user", {"rows": 4}, [4, 4]),
        ("COUNT(DISTINCT user_id)", "user", {}, [1]),
        ("SUM(x)", "user", {"groups": 2}, [None]),
        ("SUM(x, contribution_bounds_per_group => (-3, 2))", "user", {}, [3]),
        ("SUM(x, contribution_bounds_per_group => (-3, 2))", "row", {}, [3]),
        ("MEDIAN(x)", "user", {"rows": 5}, [5]),
    ],
)
def test_a_cap_is_rows_times_the_largest_value(
    aggregate: str, mode: str, contribution: dict[str, float], caps: list[float | None]
) -> None:
    assert [measure.cap for measure in measures_of(aggregate, mode, **contribution)] == caps


def test_an_equal_measure_is_asked_for_once() -> None:
    assert len(leaf_of("AVG(x) + COUNT(x)").measures) == 3
    assert len(leaf_of("VAR_POP(x) + AVG(x)").measures) == 3
    assert len(leaf_of("AVG(x) + AVG(f)").measures) == 4
