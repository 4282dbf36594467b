"""Windows in sub-queries over one person's rows: others' rows change no row, and nobody gains any."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd import Curator
from incrowd.backends import release_statement
from incrowd.curator.request import Request
from incrowd.query import parse
from incrowd.query.ownership import Relation, World, select_rows, sources
from incrowd.query.rules import rewrite
from incrowd.query.windows import has_windows, in_layers
from tests.backends.houses import catalog_of, engine_of, public_fields

PEOPLE = [None, 1, 1, 1, 2, 2, None]
VALUES = [4, 7, None, 7, 2, 9, 1]
WINDOWS = (
    "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY x) AS a, "
    "RANK() OVER (PARTITION BY user_id ORDER BY x DESC) AS b, "
    "LAG(x) OVER (PARTITION BY user_id ORDER BY x) AS c, COUNT(x) OVER (PARTITION BY user_id) AS d"
)


def visits(people: list[int | None] = PEOPLE, values: list[int | None] = VALUES) -> pa.Table:
    return pa.table({"user_id": pa.array(people, pa.int64()), "x": pa.array(values, pa.int64())})


def tree_of(sql: str) -> tuple[exp.Select, World]:
    world = World(catalog_of("user"), public_fields(engine_of("user")))
    tree = rewrite(parse(sql).tree, world)
    assert isinstance(tree, exp.Select)
    return tree, world


def planned(sql: str) -> Relation:
    return select_rows(*tree_of(sql))


def rows(sql: str, table: pa.Table) -> list[Any]:
    with duckdb.connect(":memory:") as engine:
        engine.register("visits", table)
        return sorted(engine.execute(sql).fetchall(), key=repr)


def ours(select: str, names: str, table: pa.Table) -> list[Any]:
    return rows(f"SELECT {names} FROM ({planned(select).sql.sql('duckdb')})", table)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT x FROM visits", False),
        ("SELECT RANK() OVER (PARTITION BY user_id) AS r FROM visits", True),
        ("SELECT x FROM visits QUALIFY RANK() OVER (PARTITION BY user_id) = 1", True),
        ("SELECT r FROM (SELECT RANK() OVER (PARTITION BY user_id) AS r FROM visits) AS v", False),
    ],
)
def test_windows_are_those_of_the_select_itself(sql: str, found: bool) -> None:
    tree = parse(sql).tree
    assert isinstance(tree, exp.Select)
    assert has_windows(tree) is found


def test_layers_leave_no_window_in_the_select_above_them() -> None:
    tree, world = tree_of(f"SELECT user_id, x, {WINDOWS} FROM visits")
    above, below = in_layers(tree, sources(tree, world))
    assert not has_windows(above) and below.parts == ("column",)


def test_values_are_those_worked_out_by_hand() -> None:
    assert ours(f"SELECT user_id, x, {WINDOWS} FROM visits", "user_id, x, a, b, c, d", visits()) == sorted(
        [
            (1, 7, 1, 1, None, 2), (1, 7, 2, 1, 7, 2), (1, None, 3, 3, 7, 2),
            (2, 2, 1, 2, None, 2), (2, 9, 2, 1, 2, 2),
            (None, 1, 1, 2, None, 2), (None, 4, 2, 1, 1, 2),
        ],
        key=repr,
    )  # fmt: skip


def test_a_person_who_leaves_takes_their_own_rows_and_changes_no_other() -> None:
    select = f"SELECT user_id, x, {WINDOWS} FROM visits"
    whole = ours(select, "user_id, x, a, b, c, d", visits())
    assert len(whole) == len(PEOPLE)
    for person in (1, 2, None):
        kept = [(who, x) for who, x in zip(PEOPLE, VALUES, strict=True) if who != person]
        rest = ours(select, "user_id, x, a, b, c, d", visits([who for who, _ in kept], [x for _, x in kept]))
        assert rest == [row for row in whole if row[0] != person]


def test_no_rows_have_no_windows() -> None:
    assert ours(f"SELECT user_id, {WINDOWS} FROM visits", "*", visits([], [])) == []


@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_a_condition_on_a_window_drops_rows_as_the_engine_does(least: int) -> None:
    select = (
        f"SELECT user_id, x FROM visits QUALIFY COUNT(x) OVER (PARTITION BY user_id ORDER BY x) > {least}"
    )
    assert ours(select, "user_id, x", visits()) == rows(select, visits())


def test_a_row_of_each_person_counts_each_person_once() -> None:
    table = pa.table({"id": [1, 1, 1, 2, 3, None], "v": [5, 5, None, 8, None, 4]})
    curator = Curator.from_tables(t=table, unit="id", budget=(1.0, 0.0))
    first = "SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY v) AS nth FROM t"
    for condition, people in (("nth = 1", 3), ("nth = 3", 1), ("nth > 3", 0)):
        sql = f"SELECT COUNT(*) AS n FROM ({first}) AS f WHERE {condition}"
        (leaf,) = curator.prepare(Request(sql, contribution=1)).plan.leaves
        counted = curator._backend.run(release_statement(leaf).tree).to_pylist()
        assert sum(row["n0"] or 0 for row in counted) == people * leaf.measures["m0"].sensitivity_steps
