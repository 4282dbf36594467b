"""Aggregates over what persons add up to, whose bounds nobody declared: caps, cells and balls instead."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.errors import QueryError
from tests.query.asked import leaf_of

PER = (
    "(SELECT user_id, COUNT(*) AS n, SUM(x) AS total, SUM(f) AS fs, COUNT(DISTINCT cat) AS cats "
    "FROM visits GROUP BY user_id) AS p"
)
BY_CAT = "(SELECT user_id, cat, COUNT(*) AS n, SUM(f) AS fs FROM visits GROUP BY user_id, cat) AS p"


@pytest.mark.parametrize("value", ["p.n", "p.total", "p.fs", "p.n + 1", "p.fs / 2", "COALESCE(p.total, 0)"])
def test_a_sum_of_what_nobody_bounded_has_an_open_cap(value: str) -> None:
    leaf = leaf_of(f"SUM({value})", source=PER)
    (measure,) = leaf.measures.values()
    assert measure.cap is None and measure.wide and leaf.units
    assert measure.limit_of_row < 100, "the census is about what one row weighs"


@pytest.mark.parametrize("value", ["LEAST(p.n, 20)", "GREATEST(LEAST(p.total, 9), -9)", "p.n % 3"])
def test_a_sum_of_what_the_question_bounds_needs_no_census(value: str) -> None:
    leaf = leaf_of(f"SUM({value})", source=PER)
    (measure,) = leaf.measures.values()
    assert measure.cap == max(abs(measure.low), abs(measure.high)) and not measure.wide and not leaf.units


def test_averages_and_spreads_are_in_a_ball_and_ranks_in_cells_that_widen() -> None:
    leaf = leaf_of("AVG(p.n) + STDDEV(p.fs) + CORR(p.n, p.cats)", source=PER)
    assert all(measure.ball for measure in leaf.measures.values())
    assert all(value.histogram.bands for value in leaf.values.values())
    (ranked,) = leaf_of("MEDIAN(p.total)", source=PER).measures.values()
    assert ranked.bands and ranked.cap == 1.0


def test_a_person_with_many_rows_counts_for_one_in_a_count_beside() -> None:
    leaf = leaf_of("COUNT(*) + AVG(p.n)", source=PER)
    assert sorted(measure.cap or 0.0 for measure in leaf.measures.values()) == [0.0, 0.0, 1.0]


def test_a_sum_of_what_is_never_negative_is_never_negative() -> None:
    source = "(SELECT user_id, SUM(n) AS total FROM visits GROUP BY user_id) AS p"
    (measure,) = leaf_of("SUM(LEAST(p.total, 50))", source=source).measures.values()
    assert (measure.low, measure.high) == (0.0, 50.0)


@pytest.mark.parametrize("aggregate", ["AVG(LENGTH(t))", "SUM(f * 1e300)"])
def test_other_unbounded_values_still_need_bounds(aggregate: str) -> None:
    with pytest.raises(QueryError, match=r"needs bounds|too wide"):
        leaf_of(aggregate)


def visits() -> pa.Table:
    rng = np.random.default_rng(4)
    rows = rng.geometric(0.25, 20_000)
    who = np.repeat(np.arange(20_000), rows)
    cost = np.round(rng.lognormal(4, 1, len(who)), 2)
    return pa.table({"person": who, "cost": cost, "ward": rng.choice(["a", "b"], len(who))})


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("asked", "within"),
    [("AVG(total)", 0.03), ("MEDIAN(total)", 0.03), ("QUANTILE_CONT(total, 0.9)", 0.03), ("SUM(n)", 0.02),
     ("STDDEV(total)", 0.2), ("AVG(n)", 0.03), ("MAX(n)", 0.35), ("SUM(total)", 0.02)],
)  # fmt: skip
def test_the_answer_is_near_the_truth(asked: str, within: float) -> None:
    """At epsilon 4 the noise of 20,000 people is a tenth of the tolerance: beyond it with a chance < 1e-9."""
    table = visits()
    sub = "(SELECT person, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY person)"
    curator = Curator.from_tables(visits=table, unit="person", budget=(4.0, 0.0), bounds={"cost": (0, 1e5)})
    answer = curator.ask(f"SELECT {asked} AS v FROM {sub}", epsilon=4.0).to_arrow()["v"][0].as_py()
    with duckdb.connect() as plain:
        plain.register("visits", table)
        exact = "QUANTILE_CONT(n, 0.99)" if asked.startswith("MAX") else asked
        ((truth,),) = plain.sql(f"SELECT {exact} FROM {sub}").fetchall()
    assert abs(answer - truth) <= within * truth


def test_averages_by_group_of_people_who_are_in_several() -> None:
    leaf = leaf_of("AVG(p.n)", source=BY_CAT)
    assert leaf.units and all(measure.ball for measure in leaf.measures.values())
