"""ROLLUP, CUBE and GROUPING SETS: the levels they stand for are those of DuckDB."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.grouping_sets import Groupings, groupings, has_levels

LEVELS = [
    "ROLLUP (a, b, c)",
    "CUBE (a, b)",
    "GROUPING SETS ((a, b), a, (), (a))",
    "a, ROLLUP (b, c)",
    "ROLLUP ((a, b), c)",
    "CUBE (a, (b, c))",
    "GROUPING SETS (ROLLUP (a, b), CUBE (c))",
    "CUBE (a), ROLLUP (b)",
    "ROLLUP (1, b)",
    "ROLLUP (a + 1, b)",
    "ROLLUP (a, a)",
]


def select_of(group: str) -> exp.Select:
    tree = sqlglot.parse_one(f"SELECT a, COUNT(*) AS n FROM t GROUP BY {group}", read="duckdb")
    assert isinstance(tree, exp.Select)
    return tree


def levels_of(group: str) -> Groupings:
    found = groupings(select_of(group))
    assert found is not None
    return found


@pytest.mark.parametrize("group", LEVELS)
def test_levels_are_those_of_duckdb(group: str) -> None:
    found = levels_of(group)
    keys = [key.sql("duckdb") for key in found.keys]
    bits = ", ".join(f"GROUPING({key})" for key in keys)
    rows = (
        duckdb.connect()
        .execute(f"SELECT {bits} FROM (SELECT 1 AS a, 2 AS b, 3 AS c) GROUP BY {group.replace('(1,', '(a,')}")
        .fetchall()
    )
    ours = [tuple(int(place not in level) for place in range(len(keys))) for level in found.levels]
    assert Counter(ours) == Counter(rows)


def test_rows_of_mysql_and_spark_are_read_too() -> None:
    assert levels_of("a, b WITH ROLLUP").levels == levels_of("ROLLUP (a, b)").levels
    assert levels_of("a, b WITH CUBE").levels == levels_of("CUBE (a, b)").levels


def test_plain_groups_have_no_levels() -> None:
    assert not has_levels(select_of("a"))
    assert groupings(select_of("a")) is None


def test_grouping_is_a_number_of_bits() -> None:
    found = levels_of("ROLLUP (a, b)")
    asked = sqlglot.parse_one("GROUPING(a, b)", read="duckdb")
    number = found.grouping(asked)
    assert number is not None
    assert number.sql("duckdb") == "(g0 * 2 + g1)"
    assert found.grouping(exp.column("a")) is None


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("CUBE (a, b, c, d, e, f, g)", "more than 64 levels"),
        ("CUBE (a, b, c), CUBE (d, e, f), CUBE (g)", "more than 64 levels"),
        ("GROUPING SETS (" + ", ".join(["a"] * 65) + ")", "more than 64 levels"),
        ("ROLLUP (7)", "GROUP BY 7 is the number of no column"),
    ],
)
def test_what_is_no_list_of_levels_is_refused(group: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        levels_of(group)
    assert said in str(refusal.value)


def test_grouping_takes_keys_only() -> None:
    with pytest.raises(QueryError, match="takes keys of GROUP BY"):
        levels_of("ROLLUP (a)").grouping(sqlglot.parse_one("GROUPING(b)", read="duckdb"))
