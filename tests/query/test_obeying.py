"""A clause agrees with the owner's declarations or is refused; its least number of units is applied last."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import plan_of

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


@pytest.mark.parametrize(
    "sql",
    [
        f"{WITH}(privacy_unit_column=user_id) COUNT(*) AS n FROM visits",
        f"{WITH}(privacy_unit_column=visits.user_id) COUNT(*) AS n FROM visits",
        f"{WITH}(privacy_unit_column=V.USER_ID) COUNT(*) AS n FROM visits AS v",
        f"{WITH}(privacy_unit_column=u) COUNT(*) AS n FROM (SELECT user_id AS u, x FROM visits) AS q",
        f"{WITH}(privacy_unit_column=s.user_id) COUNT(*) FROM visits v JOIN steps s ON v.user_id = s.user_id",
    ],
)
def test_the_declared_unit_may_be_named(sql: str) -> None:
    named, plain = plan_of(sql, "user"), plan_of(sql[: sql.index("OPT")] + sql[sql.index(")") + 1 :], "user")
    assert named.fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("unit", "mode", "said"),
    [
        ("city", "user", "The protected unit here is user_id, as the owner declared, not city; write"),
        ("q.user_id", "user", "not q.user_id; write privacy_unit_column=user_id, or leave it out."),
        ("user_id", "row", "Each row is a unit of its own here, so no column is; leave"),
        ("user_id", "per", "The owner protects user_id and day together, not user_id alone; leave"),
    ],
)
def test_no_other_unit_is_protected(unit: str, mode: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plan_of(f"{WITH}(privacy_unit_column={unit}) COUNT(*) FROM visits", mode)


def test_public_groups_must_be_public() -> None:
    asked = f"{WITH}(group_selection_strategy=PUBLIC_GROUPS) {{0}}, COUNT(*) AS n FROM visits GROUP BY {{0}}"
    assert plan_of(asked.format("city"), "user").leaves[0].public
    with pytest.raises(
        QueryError, match="The groups of grp are not public, so PUBLIC_GROUPS is not possible"
    ):
        plan_of(asked.format("grp"), "user")


@pytest.mark.parametrize(("mode", "level"), [("user", "pair"), ("per", "pair"), ("row", "row")])
def test_small_groups_are_hidden_by_a_released_number(mode: str, level: str) -> None:
    plan = plan_of(f"{WITH}(min_privacy_units_per_group=5) grp, AVG(x) AS a FROM visits GROUP BY grp", mode)
    (leaf,) = plan.leaves
    units = leaf.aggregates[-1]
    assert f"WHERE {units.name} >= 5" in plan.outer.sql("duckdb")
    assert (units.kind, leaf.measures[units.measures[0]].level) == ("count", level)
    assert units.note == "Groups are shown whose noisy number of units is at least 5."


def test_the_number_of_units_that_is_asked_anyway_decides() -> None:
    plan = plan_of(
        f"{WITH}(k_threshold=5) grp, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY grp", "user"
    )
    assert len(plan.leaves[0].measures) == 1


@pytest.mark.parametrize("least", ["0", "2.5", "-1", "1e10"])
def test_the_least_number_of_units_is_a_whole_number(least: str) -> None:
    with pytest.raises(QueryError, match="min_privacy_units_per_group must be a whole number from 1 to 2"):
        plan_of(f"{WITH}(min_privacy_units_per_group={least}) COUNT(*) FROM visits", "user")


def test_a_clause_in_two_selects_is_paid_once_and_says_so() -> None:
    one = f"{WITH}(epsilon=1) COUNT(*) AS n FROM visits"
    (note,) = plan_of(f"{one} UNION ALL {one} WHERE x > 1", "user").notes
    assert note.startswith("The DIFFERENTIAL_PRIVACY clause stands in 2 SELECTs; its epsilon is paid once")
    assert plan_of(one, "user").notes == ()
