"""What a sub-query says about the row around it is told from what it says about its own rows."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.sub_queries import aggregates_in, outer_columns, pulled, ungrouped


def select(sql: str) -> exp.Select:
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Select)
    return tree


def test_columns_of_other_tables_belong_to_the_row_around() -> None:
    tree = select(
        "SELECT s.a FROM s JOIN (SELECT t.b FROM t WHERE t.b > 1) AS u ON u.b = s.b WHERE s.c = r.d"
    )
    assert [column.sql() for column in outer_columns(tree, tree)] == ["r.d"]


def test_equations_are_keys_and_other_conditions_are_not() -> None:
    part = pulled(
        select(
            "SELECT s.a FROM s WHERE r.x = s.a AND s.b + 1 = r.y + r.z AND s.c > r.x AND s.d = 4 AND r.x = 1"
        )
    )
    assert [(pair.inner.sql(), pair.outer.sql()) for pair in part.pairs] == [
        ("s.a", "r.x"),
        ("s.b + 1", "r.y + r.z"),
    ]
    assert [node.sql() for node in part.others] == ["s.c > r.x", "r.x = 1"]
    assert part.select.sql() == "SELECT s.a FROM s WHERE s.d = 4"


def test_the_row_around_is_seen_in_where_only() -> None:
    with pytest.raises(QueryError, match="only in its WHERE"):
        pulled(select("SELECT s.a + r.x FROM s WHERE s.b = r.b"))


def test_a_grouping_gets_the_keys_that_are_pulled_out_of_it() -> None:
    tree = ungrouped(select("SELECT s.a AS a FROM s WHERE s.b = r.b GROUP BY s.a HAVING COUNT(*) > 1"))
    inner = 'SELECT s.a AS a, s.b AS "__g0" FROM s GROUP BY s.a, s.b HAVING COUNT(*) > 1'
    assert tree.sql() == (f'SELECT "__r"."a" AS "a" FROM ({inner}) AS "__r" WHERE "__r"."__g0" = r.b')


def test_aggregates_come_with_their_filters() -> None:
    tree = select("SELECT COUNT(*) FILTER (WHERE a > 1) + MAX(b) FROM s")
    assert [part.sql() for part in aggregates_in(tree.expressions[0])] == [
        "MAX(b)",
        "COUNT(*) FILTER(WHERE a > 1)",
    ]
