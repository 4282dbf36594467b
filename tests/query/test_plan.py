"""Leaves and plans: which caps are open, what is public, and what the ledger knows them by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from incrowd.query.plan import Aggregate, Key, Leaf, Plan, released_index
from tests.backends.houses import plan_of

X = exp.column("x")


def test_caps_go_to_the_measures_that_have_none() -> None:
    (leaf,) = plan_of("SELECT city, COUNT(*), SUM(x), AVG(x) FROM visits GROUP BY city", "user").leaves
    assert set(leaf.uncapped) == {measure.weigh_key for measure in leaf.measures.values()}
    assert all(measure.cap is None for measure in leaf.measures.values())
    filled = leaf.with_caps(dict.fromkeys(leaf.uncapped, 7.0))
    assert all(measure.cap == 7.0 for measure in filled.measures.values()) and not filled.uncapped
    assert filled.with_caps({}) == filled
    assert all(
        leaf.uncapped[measure.weigh_key].weigh_key == measure.weigh_key for measure in leaf.measures.values()
    )


def test_only_counts_of_units_over_groups_are_bounded_in_l2() -> None:
    sql = "SELECT city, COUNT(DISTINCT user_id), COUNT(*), SUM(x) FROM visits GROUP BY city"
    (leaf,) = plan_of(sql, "user").leaves
    norms = {measure.label: measure.norm for measure in leaf.in_l2().measures.values()}
    assert [norm for label, norm in norms.items() if "DISTINCT" in label] == [2] and sorted(
        norms.values()
    ) == [1, 1, 2]
    assert leaf.in_l2().norm == 2 and leaf.norm == 1
    (whole,) = plan_of("SELECT COUNT(DISTINCT user_id) FROM visits", "user").leaves
    assert [measure.norm for measure in whole.in_l2().measures.values()] == [1]


def test_a_key_is_public_if_its_values_are_listed() -> None:
    key = Key("k0", X, "text")
    assert not key.public and replace(key, values=()).public
    assert leaf_with(key).public is False and leaf_with(replace(key, values=("a",))).public is True
    assert leaf_with().public is True
    assert leaf_with(replace(key, values=("a",)), key).public is False


def leaf_with(*keys: Key) -> Leaf:
    return Leaf(exp.select("x"), (), False, keys, {}, (), 1, ("t",))


BASE = "SELECT city, AVG(x) AS a FROM visits GROUP BY city"


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("select  City, avg(X) as a from VISITS group by 1", True),
        ("SELECT city AS town, AVG(x) AS b FROM visits GROUP BY city", True),
        ("SELECT v.city, AVG(v.x) AS a FROM visits AS v GROUP BY v.city", True),
        ("SELECT city, ROUND(AVG(x)) AS a FROM visits GROUP BY city HAVING AVG(x) > 1 ORDER BY 2", True),
        ("SELECT city, SUM(x) AS a FROM visits GROUP BY city", False),
        ("SELECT city, AVG(x) AS a FROM visits WHERE b GROUP BY city", False),
        ("SELECT grp AS city, AVG(x) AS a FROM visits GROUP BY 1", False),
        ("SELECT city, AVG(x) AS a FROM visits GROUP BY city LIMIT 3", True),
        ("SELECT city, AVG(LEAST(x, 5)) AS a FROM visits GROUP BY city", False),
        ("SELECT city, MEDIAN(x) AS a FROM visits GROUP BY city", False),
    ],
)
def test_the_ledger_knows_a_question_whatever_its_spelling(sql: str, same: bool) -> None:
    assert (plan_of(sql, "user").fingerprint == plan_of(BASE, "user").fingerprint) is same


def test_the_order_of_conditions_and_names_of_tables_make_no_other_question() -> None:
    spellings = [
        "SELECT COUNT(*) AS n FROM visits WHERE x > 3 AND (b OR n = 2) AND city = 'bonn'",
        "SELECT COUNT(*) AS n FROM visits WHERE 'bonn' = city AND (2 = n OR b) AND x > 3",
        "SELECT COUNT(*) AS n FROM visits AS w WHERE (w.city = 'bonn' AND w.x > 3) AND (w.b OR w.n = 2)",
    ]
    assert len({plan_of(sql, "user").fingerprint for sql in spellings}) == 1
    others = [
        "SELECT COUNT(*) AS n FROM visits WHERE x > 3 AND b OR n = 2 AND city = 'bonn'",
        "SELECT COUNT(*) AS n FROM visits WHERE x < 3 AND (b OR n = 2) AND city = 'bonn'",
        "SELECT COUNT(*) AS n FROM visits WHERE 3 > x AND (b OR n <> 2) AND city = 'bonn'",
        "SELECT COUNT(*) AS n FROM visits WHERE x > 3 AND (b AND n = 2) AND city = 'bonn'",
    ]
    assert len({plan_of(sql, "user").fingerprint for sql in (*others, spellings[0])}) == 5


def test_names_of_tables_inside_texts_are_values() -> None:
    sql = "SELECT COUNT(*) AS n FROM visits AS v WHERE v.city = '\"v\".x'"
    other = sql.replace("AS v ", "AS w ").replace(" v.city", " w.city")
    assert plan_of(sql, "user").fingerprint == plan_of(other, "user").fingerprint
    third = other.replace("'\"v\".x'", "'\"w\".x'")
    assert plan_of(sql, "user").fingerprint != plan_of(third, "user").fingerprint


def test_all_ranks_of_one_histogram_without_private_groups_are_one_question() -> None:
    """One release answers them: what is computed from its ranks is post-processing."""
    plans = [
        plan_of(f"SELECT {asked} AS a FROM visits", "user")
        for asked in ("MEDIAN(x)", "QUANTILE_CONT(x, 0.2)", "MAX(x) - MIN(x)", "2 * MEDIAN(x)")
    ]
    assert all(plan.any_rank for plan in plans) and len({plan.fingerprint for plan in plans}) == 1
    assert not plan_of("SELECT MEDIAN(x) AS a, COUNT(*) AS n FROM visits", "user").any_rank
    assert not plan_of("SELECT city, MEDIAN(x) AS a FROM visits GROUP BY 1", "user").any_rank


def test_everything_that_changes_an_answer_changes_the_fingerprint() -> None:
    pairs = [
        ("SELECT STDDEV(x) AS a FROM visits", "SELECT VARIANCE(x) AS a FROM visits"),
        ("SELECT VAR_POP(x) AS a FROM visits", "SELECT VAR_SAMP(x) AS a FROM visits"),
        (
            "SELECT city, QUANTILE_CONT(x, 0.2) AS a FROM visits GROUP BY 1",
            "SELECT city, QUANTILE_CONT(x, 0.3) AS a FROM visits GROUP BY 1",
        ),
        ("SELECT MEDIAN(x) AS a FROM visits", "SELECT MEDIAN(x) AS a FROM visits WHERE x > 3"),
        ("SELECT MEDIAN(x) AS a FROM visits", "SELECT MEDIAN(x + 1) AS a FROM visits"),
        (
            "SELECT city, COUNT(*) AS n FROM visits WHERE city IN ('bonn') GROUP BY 1",
            "SELECT city, COUNT(*) AS n FROM visits WHERE city IN ('köln') GROUP BY 1",
        ),
    ]
    for one, two in pairs:
        assert plan_of(one, "user").fingerprint != plan_of(two, "user").fingerprint
    assert plan_of(BASE, "user", rows=1).fingerprint != plan_of(BASE, "user", rows=2).fingerprint
    plan = plan_of("SELECT city, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY city", "user")
    other = Plan((plan.leaves[0].in_l2(),), plan.outer)
    assert other.fingerprint != plan.fingerprint


def test_a_plan_knows_its_released_tables_and_their_columns() -> None:
    plan = plan_of(
        (
            "SELECT city, COUNT(*), AVG(x) FROM visits GROUP BY city UNION ALL SELECT city, 1, 2 FROM "
            "(SELECT COUNT(*) AS city FROM steps) AS q"
        ),
        "user",
    )
    assert (
        list(plan.released) == ["released_0", "released_1"] and plan.released["released_1"] is plan.leaves[1]
    )
    assert list(plan.leaves[0].columns) == ["k0", "a0", "a1"] and plan.leaves[0].columns["k0"].label == "city"
    assert [released_index(name) for name in plan.released] == [0, 1]
    assert released_index("released_") is None and released_index("RELEASED_0") is None
    assert released_index("released_٣") is None and released_index("released_-1") is None


def test_an_aggregate_is_a_plain_estimate_unless_it_says_more() -> None:
    plain = Aggregate("a0", "sum", "SUM(x)", ("m0",))
    assert (plain.sample, plain.root, plain.whole, plain.quantiles, plain.note) == (
        False,
        False,
        False,
        (),
        "",
    )
