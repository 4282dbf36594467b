"""Cutting: the innermost aggregation over people becomes a leaf, and all above it stays SQL."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp

from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query import Contribution, Plan, bound, parse
from incrowd.query.leaves import Cutter
from incrowd.query.ownership import World
from tests.backends.houses import catalog_of, engine_of, plan_of, public_fields


def outer_of(sql: str, mode: str = "user") -> str:
    return plan_of(sql, mode).outer.sql("duckdb").replace('"', "")


@pytest.mark.parametrize(
    ("sql", "outer"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "SELECT a0 AS n FROM released_0"),
        (
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
            "SELECT k0 AS city, a0 AS n FROM released_0 ORDER BY k0",
        ),
        (
            "SELECT city, grp, COUNT(*) AS n FROM visits GROUP BY city, grp",
            "SELECT k0 AS city, k1 AS grp, a0 AS n FROM released_0 ORDER BY k0, k1",
        ),
        (
            "SELECT x + 1 AS y, COUNT(*) AS n FROM visits GROUP BY x + 1",
            "SELECT k0 AS y, a0 AS n FROM released_0 ORDER BY k0",
        ),
        (
            (
                "SELECT COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 5 ORDER BY SUM(x) DESC "
                "LIMIT 3 OFFSET 1"
            ),
            "SELECT a0 AS n FROM released_0 WHERE a0 > 5 ORDER BY a1 DESC LIMIT 3 OFFSET 1",
        ),
        ("SELECT 2 * SUM(x) / COUNT(*) AS z FROM visits", "SELECT (a0 * 2) AS z FROM released_0"),
        (
            "SELECT DISTINCT COUNT(*) AS n FROM visits GROUP BY city",
            "SELECT DISTINCT a0 AS n FROM released_0",
        ),
        ("SELECT DISTINCT city FROM visits", "SELECT k0 AS city FROM released_0 ORDER BY k0"),
        (
            "SELECT q.n + 1 AS m FROM (SELECT COUNT(*) AS n FROM visits) AS q",
            "SELECT q.n + 1 AS m FROM (SELECT a0 AS n FROM released_0) AS q",
        ),
        (
            (
                "SELECT q.n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS q JOIN cities "
                "AS c ON q.city = c.city"
            ),
            (
                "SELECT q.n AS n FROM (SELECT k0 AS city, a0 AS n FROM released_0 ORDER BY k0) AS q JOIN "
                "cities AS c ON q.city = c.city"
            ),
        ),
        (
            "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) AS n FROM visits",
            "SELECT a0 AS n FROM released_0 UNION ALL SELECT a0 AS n FROM released_0",
        ),
        (
            (
                "SELECT city, COUNT(*) AS n FROM visits GROUP BY 1 UNION ALL SELECT city, COUNT(*) AS n FROM "
                "visits GROUP BY 1"
            ),
            "SELECT k0 AS city, a0 AS n FROM released_0 UNION ALL SELECT k0 AS city, a0 AS n FROM released_0",
        ),
        (
            "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) AS n FROM steps",
            "SELECT a0 AS n FROM released_0 UNION ALL SELECT a0 AS n FROM released_1",
        ),
        (
            (
                "SELECT AVG(q.n) AS z FROM (SELECT user_id, COUNT(*, contribution_bounds_per_group => "
                "(0, 5)) AS n FROM visits GROUP BY city, user_id) AS q"
            ),
            None,
        ),
        (
            (
                "SELECT SUM(LEAST(q.n, 5)) AS z FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY "
                "user_id) AS q"
            ),
            "SELECT a0 AS z FROM released_0",
        ),
        (
            "SELECT MAX(q.n) AS z FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS q",
            "SELECT MAX(q.n) AS z FROM (SELECT k0 AS city, a0 AS n FROM released_0 ORDER BY k0) AS q",
        ),
        (
            (
                "SELECT u.n FROM (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) AS n FROM "
                "steps) AS u"
            ),
            (
                "SELECT u.n AS n FROM (SELECT a0 AS n FROM released_0 UNION ALL SELECT a0 AS n FROM "
                "released_1) AS u"
            ),
        ),
        (
            "SELECT r.m FROM (SELECT q.n + 1 AS m FROM (SELECT COUNT(*) AS n FROM visits) AS q) AS r",
            "SELECT r.m AS m FROM (SELECT q.n + 1 AS m FROM (SELECT a0 AS n FROM released_0) AS q) AS r",
        ),
    ],
)
def test_all_above_the_leaf_is_sql_over_released_tables(sql: str, outer: str | None) -> None:
    if outer is None:
        with pytest.raises(QueryError):
            outer_of(sql)
    else:
        assert outer_of(sql) == outer


def leaves(sql: str, mode: str = "user", relation: str = "add-remove", **contribution: float) -> Plan:
    return plan_of(sql, mode, relation, **contribution)


def test_rows_carry_units_and_keys_and_leave_out_nobodys() -> None:
    (leaf,) = leaves("SELECT city, COUNT(*) AS n FROM visits WHERE b GROUP BY city").leaves
    text = leaf.rows.sql("duckdb").replace('"', "")
    assert (
        "visits.user_id AS u0" in text
        and "AS k0" in text
        and "NOT visits.user_id IS NULL" in text
        and "visits.b" in text
    )
    assert (
        leaf.units == ("u0",) and leaf.tables == ("visits",) and not leaf.materialize and leaf.distance == 1
    )
    (per,) = leaves("SELECT COUNT(*) AS n FROM visits", "per").leaves
    assert per.units == ("u0", "u1") and "NOT visits.day IS NULL" in per.rows.sql("duckdb").replace('"', "")
    (row,) = leaves("SELECT COUNT(*) AS n FROM visits", "row").leaves
    assert row.units == () and not row.materialize
    (joined,) = leaves("SELECT COUNT(*) AS n FROM visits AS v JOIN cities AS c ON TRUE", "row").leaves
    assert joined.units == ("u0",) and joined.materialize
    (single,) = leaves("SELECT COUNT(*) AS n FROM (SELECT DISTINCT user_id FROM visits) AS q").leaves
    assert single.units == ()


def test_replacing_a_unit_is_twice_the_distance() -> None:
    (leaf,) = leaves("SELECT COUNT(*) AS n FROM visits", "user", "replace").leaves
    assert leaf.distance == 2


def test_equal_leaves_are_released_once() -> None:
    same = "SELECT COUNT(*) AS n FROM visits WHERE x > 1"
    assert len(leaves(f"{same} UNION ALL {same}").leaves) == 1
    assert len(leaves(f"{same} UNION ALL SELECT COUNT(*) AS n FROM visits WHERE x > 2").leaves) == 2
    assert len(leaves(f"{same} UNION ALL SELECT SUM(x) AS n FROM visits WHERE x > 1").leaves) == 2


def test_the_owners_number_of_rows_holds_for_a_table_alone() -> None:
    columns = {"id": {"type": "integer"}, "x": {"type": "integer", "bounds": [0, 9]}}
    tables = {
        "t": {"source": "t", "unit": "id", "contribution": 3, "columns": columns},
        "c": {"source": "t", "private": False, "columns": {"z": {"type": "integer"}}},
    }
    catalog = check({"sources": {"t": {"frame": "t"}}, "tables": tables, "budget": {"epsilon": 1.0}})
    for sql, given, cap in (
        ("SELECT COUNT(*) AS n FROM t", None, 3),
        ("SELECT COUNT(*) AS n FROM t", 7, 7),
        ("SELECT COUNT(*) AS n FROM t JOIN c ON t.x = c.z", None, None),
        ("SELECT COUNT(*) AS n FROM (SELECT x FROM t) AS q", None, 3),
        ("SELECT SUM(x) AS n FROM t", None, 27),
    ):
        (leaf,) = bound(parse(sql), catalog, None, Contribution(rows=given)).leaves
        assert [measure.cap for measure in leaf.measures.values()] == [cap], sql


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT city FROM cities",
            "The question reads public tables only; ask the database itself, it costs nothing.",
        ),
        (
            "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM cities",
            "Every part of a UNION must be about private tables; leave the others out.",
        ),
        (
            "SELECT x FROM visits",
            (
                "This would show the rows of people; ask for an aggregate instead, such as SELECT "
                "COUNT(*) or AVG(...) with GROUP BY."
            ),
        ),
        (
            "SELECT q.n FROM (SELECT COUNT(*) AS n FROM visits) AS q JOIN visits AS v ON TRUE",
            (
                "v holds private rows and cannot be joined to released numbers; use it inside the SELECT "
                "that aggregates."
            ),
        ),
        (
            "SELECT city, x, COUNT(*) FROM visits GROUP BY city",
            "x must be in GROUP BY or inside an aggregate.",
        ),
        ("SELECT COUNT(*) FROM visits HAVING x > 1", "x must be in GROUP BY or inside an aggregate."),
        ("SELECT FIRST(x IGNORE NULLS) FROM visits", "as it would show the value of a row"),
        (
            "SELECT COUNT(*) FROM visits GROUP BY CUBE (city, cat, b, x, f, t, grp)",
            "GROUP BY makes more than 64 levels; list those that are needed in GROUPING SETS.",
        ),
    ],
)
def test_what_would_pass_by_the_leaf_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        outer_of(sql)
    assert said in str(refusal.value)


def test_the_tree_that_was_asked_is_not_changed() -> None:
    question = parse("SELECT q.n FROM (SELECT COUNT(*) AS n FROM visits) AS q")
    before = question.tree.sql()
    bound(question, catalog_of("user"), public_fields(engine_of("user")))
    assert question.tree.sql() == before and isinstance(question.tree, exp.Select)


def test_a_query_that_is_no_select_is_refused_in_words() -> None:
    cutter = Cutter(World(catalog_of("user"), public_fields(engine_of("user"))), None, None)
    table = sqlglot.parse_one("SELECT * FROM visits", read="duckdb").find(exp.Table)
    with pytest.raises(QueryError, match=r"^TABLE is not possible here; write a SELECT"):
        cutter.cut(table)  # type: ignore[arg-type]


COUNTS = {
    "SELECT grp, COUNT(DISTINCT user_id) FROM visits GROUP BY grp": "m0",
    "SELECT grp, SUM(f), COUNT(DISTINCT user_id) FROM visits GROUP BY grp": "m1",
    "SELECT grp, COUNT(DISTINCT user_id) FILTER (WHERE b) FROM visits GROUP BY grp": None,
    "SELECT grp, COUNT(*) FROM visits GROUP BY grp": None,
    "SELECT grp, SUM(f) FROM visits GROUP BY grp": None,
    "SELECT cat, COUNT(DISTINCT user_id) FROM visits GROUP BY cat": None,
    "SELECT COUNT(DISTINCT user_id) FROM visits": None,
    "SELECT DISTINCT grp FROM visits": None,
}


@pytest.mark.parametrize("sql", COUNTS)
def test_a_count_of_all_units_of_a_private_group_decides_which_are_shown(sql: str) -> None:
    (leaf,) = plan_of(sql, "user").leaves
    assert leaf.shown_by == COUNTS[sql]


@pytest.mark.parametrize(
    ("mode", "rows", "shown_by"),
    [("row", None, "m0"), ("user", 1, "m0"), ("user", 2, None), ("user", None, None)],
)
def test_rows_decide_where_each_unit_counts_for_one(
    mode: str, rows: int | None, shown_by: str | None
) -> None:
    (leaf,) = plan_of("SELECT grp, COUNT(*) FROM visits GROUP BY grp", mode, rows=rows).leaves
    assert leaf.shown_by == shown_by


def test_an_average_by_a_count_that_decides_has_a_count_of_its_own() -> None:
    sql = "SELECT grp, COUNT(*), AVG(CASE WHEN b THEN 1 ELSE 0 END) FROM visits GROUP BY grp"
    (leaf,) = plan_of(sql, "row").leaves
    counted, average = leaf.aggregates
    assert leaf.shown_by is not None and counted.measures == (leaf.shown_by,)
    assert leaf.shown_by not in average.measures
    assert replace(leaf.measures[leaf.shown_by], name="") == replace(
        leaf.measures[average.measures[1]], name=""
    )


@pytest.mark.parametrize(("cap", "norm"), [(1.0, 1), (5.0, 1), (6.0, 2), (5_000.0, 2)])
def test_a_count_whose_cap_turns_out_to_be_small_is_bounded_in_l1(cap: float, norm: int) -> None:
    (leaf,) = plan_of("SELECT grp, COUNT(DISTINCT user_id) FROM visits GROUP BY grp", "user").leaves
    chosen = leaf.in_l2().with_caps(dict.fromkeys(leaf.uncapped, cap))
    count = chosen.measures["m0"]
    assert count.norm == norm and count.most_groups == max(2048, 2 * cap)
