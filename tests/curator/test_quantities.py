"""What numbers are about: the cap of each, in its own measure, and who would count for more."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.quantities import beyond_of, caps_of, factors_of, sentences, weighed_of
from incrowd.curator.released import Noisy, Released, Stated
from incrowd.curator.request import Request
from incrowd.query import Plan

PEOPLE = pa.table({"id": [1, 1, 2], "pay": [4.0, 5.0, 6.0], "town": ["york", "hull", "york"]})
ALL = "SELECT COUNT(*), SUM(pay), AVG(pay), STDDEV(pay), MEDIAN(pay), COUNT(DISTINCT id) FROM people"


def plan_of(sql: str, unit: str = "id", **options: Any) -> Plan:
    with Curator.from_tables(
        people=PEOPLE,
        unit=unit,
        bounds={"pay": (-20, 10)},
        domains={"town": ["york", "hull"]},
        budget=(1, 1e-6),
    ) as made:
        return made.prepare(Request(sql, **options)).plan


def test_sums_have_caps_in_values_and_all_else_in_rows() -> None:
    assert caps_of(plan_of(ALL, contribution=3)) == {
        "COUNT(*)": 3.0,
        "SUM(pay)": 60.0,
        "AVG(pay)": 3.0,
        "STDDEV(pay)": 3.0,
        "MEDIAN(pay)": 3.0,
        "COUNT(DISTINCT id)": None,
    }


def test_units_that_are_counted_by_group_have_caps_in_groups() -> None:
    sql = "SELECT town, COUNT(DISTINCT id) FROM people GROUP BY town"
    assert caps_of(plan_of(sql, groups=2)) == {"COUNT(DISTINCT id)": 2.0}


def test_where_each_row_is_a_unit_nothing_is_cut() -> None:
    caps = caps_of(plan_of(ALL.replace("DISTINCT id", "id"), unit="row"))
    assert len(caps) == 6 and set(caps.values()) == {None}


def test_caps_that_are_still_to_be_chosen_are_left_out() -> None:
    assert caps_of(plan_of(ALL)) == {"COUNT(DISTINCT id)": None}


def released(**stated: Stated) -> Released:
    return Released(pa.table({"m0": [1]}), {}, stated=stated)


def test_what_was_released_says_the_caps_that_were_chosen() -> None:
    plan = plan_of("SELECT COUNT(*), SUM(pay) FROM people")
    count, total = (aggregate.measures[0] for aggregate in plan.leaves[0].aggregates)
    release = released(**{count: Stated(12.0, 2, 50.0), total: Stated(150.5, 0)})
    assert caps_of(plan, [release]) == {"COUNT(*)": 12.0, "SUM(pay)": 150.5}
    assert beyond_of(plan, [release]) == {"COUNT(*)": 2, "SUM(pay)": 0}


def test_who_exceeds_a_declared_cap_is_not_known() -> None:
    plan = plan_of("SELECT COUNT(*) FROM people", contribution=3)
    assert caps_of(plan, [released()]) == {"COUNT(*)": 3.0}
    assert beyond_of(plan, [released()]) == {}


def test_each_leaf_has_its_own_release() -> None:
    plan = plan_of(
        "SELECT a.n, b.s FROM (SELECT COUNT(*) AS n FROM people) a, (SELECT SUM(pay) AS s FROM people) b"
    )
    first, second = (leaf.aggregates[0].measures[0] for leaf in plan.leaves)
    releases = [released(**{first: Stated(4.0, 1)}), released(**{second: Stated(32.0, 7)})]
    labels = [leaf.aggregates[0].label for leaf in plan.leaves]
    assert caps_of(plan, releases) == dict(zip(labels, (4.0, 32.0), strict=True))
    assert beyond_of(plan, releases) == dict(zip(labels, (1, 7), strict=True))
    with pytest.raises(ValueError, match="zip"):
        caps_of(plan, releases[:1])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (SELECT COUNT(*) m FROM people WHERE pay > 3) a, (SELECT COUNT(*) n FROM people) b",
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people WHERE pay > 3",
    ],
)
def test_two_numbers_of_one_name_are_told_apart(sql: str) -> None:
    plan = plan_of(sql)
    exact = Noisy("laplace", Fraction(1, 10**9))
    releases = [
        replace(
            released(m0=Stated(cap, beyond)),
            noise={"m0": exact},
            factors={"m0": (100, large, exact, exact)},
        )
        for cap, beyond, large in ((4.0, 1, 150), (32.0, 7, 200))
    ]
    assert caps_of(plan, releases) == {"COUNT(*)": 4.0, "COUNT(*) (2)": 32.0}
    assert beyond_of(plan, releases) == {"COUNT(*)": 1, "COUNT(*) (2)": 7}
    assert factors_of(plan, releases) == {"COUNT(*)": 1.5, "COUNT(*) (2)": 2.0}
    assert list(caps_of(plan_of(sql, contribution=3))) == ["COUNT(*)", "COUNT(*) (2)"]


def test_bounds_of_one_sum_make_two_numbers() -> None:
    plan = plan_of(
        "SELECT SUM(pay, contribution_bounds_per_row => (0, 5)), SUM(pay) FROM people", contribution=3
    )
    assert caps_of(plan) == {"SUM(pay)": 15.0, "SUM(pay) (2)": 60.0}


def test_what_was_not_scaled_has_no_factor() -> None:
    plan = plan_of("SELECT COUNT(*), AVG(pay) FROM people")
    assert factors_of(plan, [released(m0=Stated(4.0, 1))]) == {}


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (0, "no unit would count for more."),
        (1, "at most 1 unit would count for more."),
        (1_234, "at most 1,234 units would count for more."),
    ],
)
def test_a_sentence_says_cap_confidence_and_units(units: int, said: str) -> None:
    (sentence,) = sentences({"SUM(pay)": 12_345.678, "COUNT(*)": 3.0}, {"SUM(pay)": units}, 0.995)
    assert sentence == f"SUM(pay): each unit counts for at most 12,345.7; at 99.5% confidence, {said}"


def test_a_sentence_about_an_average_says_that_rows_are_weighed() -> None:
    """Beside an average of which extreme units count for less, the truth over all rows may lie elsewhere."""
    plan = plan_of("SELECT AVG(pay), COUNT(*) FROM people")
    assert weighed_of(plan) == {"AVG(pay)"}
    (sentence,) = sentences({"AVG(pay)": 2.5}, {"AVG(pay)": 7}, 0.95, weighed=weighed_of(plan))
    assert sentence == (
        "AVG(pay): each unit counts for at most 2.5 rows, fewer if its values are extreme, so this is about "
        "rows weighed so; at 95% confidence, at most 7 units would count for more."
    )
    (sentence,) = sentences({"AVG(pay)": 2.5}, {"AVG(pay)": 0}, 0.95, {"AVG(pay)"}, {"AVG(pay)"})
    assert "at most 2.5 rows of each group, fewer if" in sentence and "no unit would count" in sentence
