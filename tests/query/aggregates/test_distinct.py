"""COUNT(DISTINCT ...) of anything: two counts of values, and when one is enough."""

from __future__ import annotations

import math

import pytest

from tests.backends.houses import plan_of
from tests.query.asked import assert_refused, leaf_of


@pytest.mark.parametrize(
    ("aggregate", "most"),
    [
        ("COUNT(DISTINCT x)", 26),
        ("COUNT(DISTINCT grp)", math.inf),
        ("COUNT(DISTINCT ts)", math.inf),
        ("COUNT(DISTINCT (cat, b))", 12),
        ("COUNT(DISTINCT FLOOR(x / 5))", 6),
        ("COUNT(DISTINCT user_id % 2)", 3),
        ("APPROX_COUNT_DISTINCT(t)", math.inf),
    ],
)
def test_no_more_values_are_counted_than_are_listed(aggregate: str, most: float) -> None:
    (column,) = leaf_of(aggregate).aggregates
    assert column.kind == "distinct" and column.between == (0, most)


def test_a_generous_cap_and_a_cap_of_one_are_asked_for() -> None:
    leaf = leaf_of("COUNT(DISTINCT grp)")
    generous, narrow = (leaf.measures[name] for name in leaf.aggregates[0].measures)
    assert (generous.level, generous.cap, generous.narrow) == ("value", None, False)
    assert (narrow.level, narrow.cap, narrow.narrow) == ("value", 1, True)
    assert generous.weigh_key != narrow.weigh_key
    assert leaf.aggregates[0].note.startswith("COUNT(DISTINCT grp) is the least that it can be")


def test_where_rows_are_declared_so_many_values_are_the_cap() -> None:
    assert [measure.cap for measure in leaf_of("COUNT(DISTINCT grp)", rows=5).measures.values()] == [5, 1]


def test_a_row_that_is_a_unit_has_one_value() -> None:
    leaf = leaf_of("COUNT(DISTINCT grp)", "row")
    (column,), (measure,) = leaf.aggregates, leaf.measures.values()
    assert (column.kind, measure.level, measure.cap, column.note) == ("count", "value", 1, "")
    assert leaf_of("COUNT(DISTINCT grp)", rows=1).aggregates[0].kind == "count"


def test_of_few_values_a_unit_may_have_all_and_nothing_is_chosen() -> None:
    leaf = leaf_of("COUNT(DISTINCT cat)")
    assert [measure.cap for measure in leaf.measures.values()] == [3, 1]
    assert leaf.aggregates[0].note == ""
    grouped = plan_of("SELECT city, COUNT(DISTINCT cat) AS n FROM visits GROUP BY city", "user").leaves[0]
    assert next(iter(grouped.measures.values())).cap is None


def test_the_protected_unit_is_counted_as_before() -> None:
    assert leaf_of("COUNT(DISTINCT user_id)").measures["m0"].level == "pair"
    assert leaf_of("COUNT(DISTINCT (user_id, day))", "per").measures["m0"].level == "pair"
    assert leaf_of("COUNT(DISTINCT user_id)", "per").measures["m0"].level == "value"


def test_absent_values_do_not_count() -> None:
    leaf = leaf_of("COUNT(DISTINCT f) FILTER (WHERE b)")
    present = leaf.measures["m0"].present
    assert present is not None and "Infinity" in present.sql("duckdb") and '"b"' in present.sql("duckdb")
    assert leaf_of("COUNT(DISTINCT (grp, f))").measures["m0"].present is None
    assert leaf_of("COUNT(DISTINCT grp, f)").measures["m0"].present is not None
    assert leaf_of("COUNT(DISTINCT 1)").measures["m0"].present is not None


@pytest.mark.parametrize(
    ("counted", "test"),
    [
        ("x", "BETWEEN CAST('-5' AS BIGINT) AND CAST('20' AS BIGINT)"),
        ("(x, grp)", "IS NULL"),
        ("cat", "IN (CAST('1' AS BIGINT), CAST('2' AS BIGINT), CAST('3' AS BIGINT))"),
        ("FLOOR(x / 5)", "BETWEEN CAST('-1' AS BIGINT) AND CAST('4' AS BIGINT)"),
    ],
)
def test_what_the_declaration_rules_out_does_not_count(counted: str, test: str) -> None:
    present = leaf_of(f"COUNT(DISTINCT {counted})").measures["m0"].present
    assert present is not None and test in present.sql("duckdb")


def test_bounds_far_apart_list_nothing() -> None:
    (column,) = leaf_of("COUNT(DISTINCT ROUND(LEAST(GREATEST(f, -1e18), 1e18)))").aggregates
    assert column.between == (0, math.inf)


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("COUNT(DISTINCT NULL)", "counts nothing, as NULL is no value; name a column in it."),
        ("COUNT(DISTINCT nothing)", "There is no column nothing"),
    ],
)
def test_what_counts_nothing_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)
