"""Ends through SQL: which columns get them, and that nothing else about the answer changes."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from incrowd.curator.ends import with_ends, without_ends
from incrowd.query import Aggregate, Key, Plan
from incrowd.query.plan import Leaf


def plan_of(sql: str) -> Plan:
    aggregates = tuple(Aggregate(name, "sum", name, ("m0",)) for name in ("a0", "a1"))
    keys = (Key("k0", exp.column("k"), "integer"),)
    leaf = Leaf(exp.Select(), (), False, keys, {}, aggregates, 1, ())
    outer = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(outer, exp.Query)
    return Plan((leaf,), outer)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ('SELECT a0 AS "n" FROM released_0', ["n", "n_low", "n_high"]),
        ('SELECT k0 AS "k", a0 AS "n" FROM released_0', ["k", "n", "n_low", "n_high"]),
        ('SELECT a0 AS "n", 1 AS "n_low" FROM released_0', ["n", "n_low"]),
        ('SELECT SUM(a0) AS "n" FROM released_0', ["n", "n_low", "n_high"]),
        ('SELECT MAX(a0) AS "n" FROM released_0', ["n"]),
        ('SELECT COUNT(*) AS "n" FROM released_0', ["n"]),
        ('SELECT k0 AS "k", SUM(a0) AS "n" FROM released_0 GROUP BY k0', ["k", "n", "n_low", "n_high"]),
        ('SELECT a0 AS "k", SUM(a1) AS "n" FROM released_0 GROUP BY a0', ["k", "n"]),
        ('SELECT SUM(a0) AS "n" FROM released_0 WHERE k0 > 1', ["n", "n_low", "n_high"]),
        ('SELECT SUM(a0) AS "n" FROM released_0 WHERE a0 > 1', ["n"]),
        ('SELECT SUM(a0) FILTER (WHERE a0 > 1) AS "n" FROM released_0', ["n"]),
        ('SELECT SUM(DISTINCT a0) AS "n" FROM released_0', ["n"]),
        ('SELECT SUM(a0) OVER (ORDER BY k0) AS "n" FROM released_0', ["n", "n_low", "n_high"]),
        ('SELECT SUM(a0) OVER (ORDER BY a0) AS "n" FROM released_0', ["n"]),
        ('SELECT SUM(a0) OVER (PARTITION BY a1) AS "n" FROM released_0', ["n"]),
        (
            'SELECT a1 AS "m", SUM(a0) OVER () AS "n" FROM released_0 WHERE a0 > 1',
            ["m", "m_low", "m_high", "n"],
        ),
        (
            'SELECT SUM(a0) OVER () AS "n" FROM released_0 QUALIFY RANK() OVER (ORDER BY a0) = 1',
            ["n", "n_low", "n_high"],
        ),
        ('SELECT RANK() OVER (ORDER BY a0) AS "r" FROM released_0', ["r"]),
        ('SELECT LAG(a0, 1, 0) OVER (ORDER BY k0) AS "n" FROM released_0', ["n", "n_low", "n_high"]),
        ('SELECT LAG(a0, 1, a1) OVER (ORDER BY k0) AS "n" FROM released_0', ["n"]),
        ('SELECT LAG(a0) OVER (ORDER BY a0) AS "n" FROM released_0', ["n"]),
        (
            'SELECT SUM("s"."n") AS "m" FROM (SELECT a0 AS "n" FROM released_0 ORDER BY k0 LIMIT 2) AS "s"',
            ["m", "m_low", "m_high"],
        ),
        (
            'SELECT SUM("s"."n") AS "m" FROM (SELECT a0 AS "n" FROM released_0 ORDER BY a0 LIMIT 2) AS "s"',
            ["m"],
        ),
        ('SELECT DISTINCT a0 AS "n" FROM released_0', ["n"]),
        (
            'SELECT "s"."n" + 1 AS "m" FROM (SELECT a0 AS "n" FROM released_0) AS "s"',
            ["m", "m_low", "m_high"],
        ),
        ('SELECT a9 AS "n" FROM released_0', ["n"]),
        ('SELECT a0 AS "n" FROM elsewhere', ["n"]),
        ('SELECT 3 AS "n" FROM released_0', ["n"]),
        (
            "SELECT 'a' AS \"w\", a0 AS \"n\" FROM released_0 UNION ALL SELECT 'b', a1 AS m FROM released_0",
            ["w", "n", "n_low", "n_high"],
        ),
        (
            'SELECT a0 AS "n" FROM released_0 UNION ALL SELECT 0 AS "z" FROM released_0 ORDER BY "n"',
            ["n", "n_low", "n_high"],
        ),
        ('SELECT a0 AS "n" FROM released_0 UNION ALL SELECT MAX(a0) AS "n" FROM released_0', ["n"]),
        ('SELECT a0 AS "n" FROM released_0 UNION SELECT a1 AS "n" FROM released_0', ["n"]),
        (
            'SELECT (SELECT SUM(a0) AS "t" FROM released_0) + a1 AS "n" FROM released_0',
            ["n", "n_low", "n_high"],
        ),
        ('SELECT (SELECT MAX(a0) AS "t" FROM released_0) + a1 AS "n" FROM released_0', ["n"]),
    ],
)
def test_columns_get_ends_where_they_follow(sql: str, names: list[str]) -> None:
    plan = plan_of(sql)
    assert with_ends(plan).named_selects == names
    assert plan.outer.sql("duckdb") == sqlglot.parse_one(sql, read="duckdb").sql("duckdb")


def test_it_is_said_which_windows_have_no_ends() -> None:
    plan = plan_of(
        'SELECT RANK() OVER (ORDER BY a0) AS "r", ROW_NUMBER() OVER (ORDER BY k0) AS "i", a0 AS "n", '
        'SUM(a0) OVER () AS "t" FROM released_0'
    )
    assert without_ends(plan) == ("r",)


def test_a_union_in_from_keeps_its_ends() -> None:
    plan = plan_of(
        'SELECT SUM("u"."n") AS "t" FROM (SELECT a0 AS "n" FROM released_0 UNION ALL '
        'SELECT SUM("s"."m") AS "n" FROM (SELECT a1 AS "m" FROM released_0) AS "s") AS "u"'
    )
    query = with_ends(plan)
    assert query.named_selects == ["t", "t_low", "t_high"]
    columns = {
        f"a{place}{end}": [1.0 + place] * 3 for place in (0, 1) for end in ("", "_low", "_high", "_half")
    }
    with duckdb.connect() as engine:
        engine.register("released_0", pa.table({"k0": [1, 2, 3], **columns}))
        # The sum of the second side is 6 +- 2 sqrt(3); rows of a union may repeat a group, so ends are added.
        (row,) = engine.sql(query.sql("duckdb")).fetchall()
        assert row == pytest.approx((9.0, 9 - 12**0.5, 9 + 12**0.5))
