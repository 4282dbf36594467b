"""Which leaves the levels of a question become, and the SQL that stacks them."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from incrowd.query import Plan
from incrowd.query.levels import families
from tests.backends.houses import plan_of


def planned(columns: str, levels: str, mode: str = "user", **limits: float) -> Plan:
    return plan_of(f"SELECT {columns} FROM visits GROUP BY {levels}", mode, **limits)


def kept(plan: Plan) -> list[tuple[int, ...] | None]:
    return [None if leaf.totals is None else leaf.totals.kept for leaf in plan.leaves]


def test_sums_are_one_family_of_which_the_finest_alone_reads_rows() -> None:
    plan = planned("cat, b, COUNT(*) AS n, AVG(x) AS x", "CUBE (cat, b)")
    assert kept(plan) == [(0, 1), (0,), (1,), ()]
    assert [leaf.adds_up(index) for index, leaf in enumerate(plan.leaves)] == [False, True, True, True]
    assert families(plan.leaves) == {0: [0, 1, 2, 3]}
    assert [[key.name for key in leaf.keys] for leaf in plan.leaves] == [["k0", "k1"], ["k0"], ["k0"], []]


def test_cells_that_nobody_asks_for_are_not_released() -> None:
    plan = planned("cat, b, COUNT(*) AS n", "GROUPING SETS ((cat), (b))")
    assert [leaf.read for leaf in plan.leaves] == [False, True, True]


@pytest.mark.parametrize("asked", ["COUNT(DISTINCT user_id)", "MEDIAN(x)", "COUNT(DISTINCT t)"])
def test_what_does_not_add_up_is_a_leaf_for_each_level(asked: str) -> None:
    plan = planned(f"cat, COUNT(*) AS n, {asked} AS z", "ROLLUP (cat)")
    assert kept(plan) == [None, None]
    notes = [part.note for leaf in plan.leaves for part in leaf.columns.values() if part.note]
    assert any("does not add up" in note for note in notes)


def test_where_each_row_is_a_unit_counts_of_units_add_up() -> None:
    assert kept(planned("cat, COUNT(*) AS n", "ROLLUP (cat)", "row")) == [(0,), ()]


def test_private_groups_without_their_finest_level_stand_apart() -> None:
    plan = planned("cat, grp, COUNT(*) AS n", "GROUPING SETS ((cat), (grp))")
    assert kept(plan) == [None, None]
    assert kept(planned("cat, grp, COUNT(*) AS n", "ROLLUP (cat, grp)")) == [(0, 1), (0,), ()]


def test_one_level_is_a_plain_question() -> None:
    plan = planned("cat, COUNT(*) AS n", "GROUPING SETS ((cat))")
    assert kept(plan) == [None]


def test_the_order_of_rows_may_name_columns_of_the_answer() -> None:
    plan = planned("cat, COUNT(*) AS a0", "ROLLUP (cat) ORDER BY a0")
    assert plan.outer.sql("duckdb").endswith('ORDER BY "a0"')
    plan = planned("cat, COUNT(*) AS n", "ROLLUP (cat) ORDER BY COUNT(*)")
    assert plan.outer.sql("duckdb").endswith('ORDER BY "n"')
    plan = planned("cat", "ROLLUP (cat) ORDER BY COUNT(*)")
    assert plan.outer.sql("duckdb").endswith('ORDER BY "levels"."a0"')


def test_other_levels_are_another_question() -> None:
    asked = [planned("COUNT(*) AS n", levels) for levels in ("ROLLUP (cat, b)", "CUBE (cat, b)", "cat, b")]
    assert len({plan.fingerprint for plan in asked}) == 3


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM visits GROUP BY ROLLUP (user_id)", "Grouping by user_id would single out"),
        (
            "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY CUBE (user_id)) AS s",
            "Grouping by user_id would single out",
        ),
        ("SELECT x, COUNT(*) FROM visits GROUP BY ROLLUP (cat)", "x must be in GROUP BY"),
        (
            "SELECT GROUPING(b), COUNT(*) FROM visits GROUP BY ROLLUP (cat)",
            "takes keys of GROUP BY; b is",
        ),
    ],
)
def test_levels_do_not_open_what_groups_keep_shut(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        plan_of(sql, "user")
    assert said in str(refusal.value)
