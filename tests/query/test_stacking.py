"""UNION, INTERSECT and EXCEPT: counted as in plain SQL over rows of somebody, or refused."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import check_leaf, plan_of, tables_from
from tests.query.test_joining import check_count

STACKS = (
    "SELECT user_id FROM visits WHERE x > 3 UNION ALL SELECT user_id FROM steps",
    "SELECT x FROM visits UNION ALL SELECT m FROM steps UNION ALL SELECT NULL FROM visits",
    "SELECT user_id FROM visits UNION SELECT user_id FROM steps",
    "SELECT user_id FROM visits WHERE x > 0 INTERSECT SELECT user_id FROM steps",
    "SELECT user_id FROM visits EXCEPT SELECT user_id FROM steps WHERE m > 3",
    "SELECT user_id, cat FROM visits EXCEPT ALL SELECT user_id, m FROM steps",
    "SELECT user_id, cat FROM visits INTERSECT ALL SELECT user_id, x FROM visits",
    (
        "SELECT user_id, f FROM visits UNION SELECT user_id, x FROM visits INTERSECT SELECT user_id, m FROM "
        "steps"
    ),
    "SELECT user_id, d FROM visits UNION SELECT user_id, NULL FROM steps",
    (
        "SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id UNION ALL SELECT s.user_id, m FROM steps "
        "AS s JOIN visits AS v ON v.user_id = s.user_id"
    ),
)


@pytest.mark.parametrize("stack", STACKS)
def test_rows_are_counted_as_in_plain_sql(stack: str) -> None:
    # Dates beyond the calendar are NULL wherever values are compared.
    wild = " d " not in stack and ", d" not in stack
    check_count(f"SELECT COUNT(*) AS n FROM ({stack}) AS q", wild)


@pytest.mark.parametrize("stack", STACKS)
def test_one_unit_moves_the_numbers_by_no_more_than_is_stated(stack: str) -> None:
    for asked in ("COUNT(*) FROM", "q.k % 3, COUNT(*) FROM"):
        named = stack.replace("SELECT user_id", "SELECT user_id AS k", 1).replace(
            "SELECT x", "SELECT x AS k", 1
        )
        group = " GROUP BY 1" if "," in asked else ""
        (leaf,) = plan_of(f"SELECT {asked} ({named}) AS q{group}", "user").leaves
        for seed in range(3):
            check_leaf(leaf, "user", "add-remove", tables_from(seed, wild=True), 1, 1, most=4)


def test_a_unit_per_day_needs_both_of_its_columns() -> None:
    both = "SELECT COUNT(*) FROM (SELECT user_id, day FROM visits INTERSECT SELECT user_id, day FROM steps)"
    (leaf,) = plan_of(both, "per").leaves
    assert leaf.units == ()
    check_leaf(leaf, "per", "add-remove", tables_from(5, wild=True), 0, 1, most=9)
    with pytest.raises(QueryError, match="compares rows of different people"):
        plan_of(both.replace("user_id, day", "user_id"), "per")


@pytest.mark.parametrize(
    ("stack", "single"),
    [
        (STACKS[0], False),
        (STACKS[2], True),
        (STACKS[3], True),
        (STACKS[4], True),
        (STACKS[5], False),
        ("SELECT user_id FROM visits INTERSECT ALL SELECT user_id FROM steps", False),
    ],
)
def test_people_who_have_one_row_at_most_need_no_weights(stack: str, single: bool) -> None:
    (leaf,) = plan_of(f"SELECT COUNT(*) FROM ({stack}) AS q", "user").leaves
    assert (leaf.units == ()) is single


def test_facts_are_those_of_both_parts() -> None:
    parts = "SELECT user_id, x AS z, cat FROM visits UNION ALL SELECT user_id, m, m + 0 AS o FROM steps"
    sql = f"SELECT {{}} FROM ({parts}) AS q"
    (leaf,) = plan_of(sql.format("SUM(z), COUNT(DISTINCT user_id)"), "user", rows=1).leaves
    summed, *_ = leaf.measures.values()
    assert (summed.low, summed.high) == (-5, 20)
    (leaf,) = plan_of(sql.format("cat, COUNT(*)") + " GROUP BY cat", "user").leaves
    assert leaf.keys[0].values == (*range(10), None)
    (leaf,) = plan_of(
        "SELECT what, COUNT(*) FROM (SELECT 'visit' AS what FROM visits UNION ALL SELECT 'step' FROM steps) "
        "AS q GROUP BY what",
        "user",
    ).leaves
    assert leaf.keys[0].values == ("visit", "step")


@pytest.mark.parametrize(
    ("mode", "stack", "said"),
    [
        ("user", "SELECT x FROM visits UNION SELECT m FROM steps", "in the same place, or write UNION ALL."),
        ("user", "SELECT x FROM visits EXCEPT SELECT m FROM steps", "both parts, in the same place."),
        (
            "user",
            "SELECT user_id, x FROM visits INTERSECT SELECT m, user_id FROM steps",
            "INTERSECT compares rows of different people",
        ),
        ("user", "SELECT x, f FROM visits UNION ALL SELECT m FROM steps", "as many columns each: 2 and 1"),
        ("user", "SELECT t FROM visits UNION ALL SELECT m FROM steps", "which is of type"),
        (
            "user",
            "SELECT city FROM visits UNION ALL SELECT city FROM cities",
            "must be a SELECT over private rows",
        ),
        ("user", "SELECT x FROM visits UNION ALL SELECT m FROM steps LIMIT 3", "LIMIT on UNION"),
        ("user", "SELECT x FROM visits UNION ALL BY NAME SELECT m AS x FROM steps", "BY NAME on UNION"),
        ("row", "SELECT x FROM visits UNION ALL SELECT x FROM visits", "rows that are units of their own"),
    ],
)
def test_what_cannot_be_stacked_is_refused(mode: str, stack: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(f"SELECT COUNT(*) FROM ({stack}) AS q", mode)
    assert said in str(refusal.value)
