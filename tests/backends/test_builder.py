"""A statement is put together from columns that are made once, and reads as it was built."""

from __future__ import annotations

import pytest
from sqlglot import exp

from incrowd.backends import Statement, release_statement
from incrowd.backends.builder import Columns
from incrowd.backends.trees import column, joined, number, text_of
from tests.backends.houses import capped, plan_of
from tests.backends.parsing import plain, tree

ASKED = {
    "sums": "SELECT v.cat, SUM(v.f), AVG(v.f), SUM(v.f) FILTER (WHERE v.b) FROM visits AS v GROUP BY v.cat",
    "pairs": "SELECT v.grp, SUM(v.x, contribution_bounds_per_group => (-2, 9)) FROM visits AS v GROUP BY 1",
    "cells": "SELECT v.cat, MEDIAN(v.x), MAX(v.f) FROM visits AS v GROUP BY v.cat",
    "joined": "SELECT c.region, COUNT(*) FROM visits AS v JOIN cities AS c ON v.city = c.city GROUP BY 1",
    "alone": "SELECT COUNT(*), SUM(v.x) FROM visits AS v",
}


def built(name: str, mode: str = "user") -> Statement:
    (leaf,) = plan_of(ASKED[name], mode, rows=None).leaves
    return release_statement(*capped(leaf, 3, 5))


def test_equal_expressions_share_a_column() -> None:
    columns = Columns("v")
    twice = [joined(exp.Add, column("a"), number(1)) for _ in range(2)]
    other = joined(exp.Add, column("a"), number(2))
    assert [columns.name(expression) for expression in (*twice, other)] == ["v0", "v0", "v1"]
    assert [text_of(expression) for expression in columns.picked()] == ["a + 1 AS v0", "a + 2 AS v1"]


@pytest.mark.parametrize("mode", ["row", "user", "per"])
@pytest.mark.parametrize("name", ASKED)
def test_every_select_of_a_statement_has_the_same_columns(name: str, mode: str) -> None:
    statement = built(name, mode)
    parts = [statement.tree]
    while isinstance(parts[0], exp.Union):
        parts = [parts[0].this, parts[0].expression, *parts[1:]]
    listed = [[expression.alias_or_name for expression in part.expressions] for part in parts]
    assert len(parts) == len(statement.parts) and all(names == listed[0] for names in listed)
    width = max(len(part.columns) if part.kind != "totals" else 2 for part in statement.parts)
    keys = [f"k{place}" for place in range(statement.keys)]
    assert listed[0] == ["part", *keys, "cell", *(f"n{place}" for place in range(width))]


@pytest.mark.parametrize("mode", ["row", "user", "per"])
@pytest.mark.parametrize("name", ASKED)
def test_text_of_a_statement_reads_as_its_tree(name: str, mode: str) -> None:
    statement = built(name, mode).tree
    assert plain(tree(text_of(statement))) == plain(statement)


@pytest.mark.parametrize("name", ASKED)
def test_no_node_of_a_statement_stands_in_two_places(name: str) -> None:
    nodes = list(built(name).tree.walk())
    assert len({id(node) for node in nodes}) == len(nodes)
    for node in nodes:
        assert all(child.parent is node for child in node.iter_expressions())


def test_building_leaves_the_plan_as_it_is() -> None:
    (leaf,) = plan_of(ASKED["sums"], "user", rows=1).leaves
    measures = [measure.value for measure in leaf.measures.values() if measure.value is not None]
    first, second = (text_of(release_statement(leaf).tree) for _ in range(2))
    assert first == second
    assert all(node.parent is None for node in (leaf.rows, *measures))


@pytest.mark.parametrize(
    ("sql", "mode", "kept"),
    [
        (ASKED["sums"], "user", False),
        (ASKED["joined"], "user", None),
        ("SELECT COUNT(*) FROM visits AS v JOIN cities AS c ON v.city = c.city", "row", True),
    ],
)
def test_rows_are_kept_where_they_are_numbered_and_a_plain_scan_is_not(
    sql: str, mode: str, kept: bool | None
) -> None:
    (leaf,) = plan_of(sql, mode, rows=1).leaves
    rows = next(release_statement(leaf).tree.find_all(exp.CTE))
    assert rows.args.get("materialized") is kept
