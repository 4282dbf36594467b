"""Tables and views of a DuckDB file: collations, generated columns, and views that let one person push out
another.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from incrowd.backends import DuckDB, release_statement
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError
from incrowd.query import Contribution, bound, parse
from tests.backends.parsing import tree


def catalog(file: Path, columns: dict[str, str], **table: Any) -> Catalog:
    declared = {"unit": "id", "columns": {name: {"type": kind} for name, kind in columns.items()}, **table}
    return check(
        {"sources": {"s": {"duckdb": str(file)}}, "tables": {"t": declared}, "budget": {"epsilon": 1.0}}
    )


def made(file: Path, *statements: str) -> Path:
    with duckdb.connect(str(file)) as connection:
        for statement in statements:
            connection.execute(statement)
    return file


def sums(engine: DuckDB, facts: Catalog, sql: str) -> dict[Any, int]:
    (leaf,) = bound(parse(sql), facts, None, Contribution(rows=1.0, groups=1.0)).leaves
    released = engine.run(release_statement(leaf).tree).to_pylist()
    return {row.get("k0"): row["n0"] for row in released if row["part"] == 0}


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT"])
def test_one_spelling_answers_for_no_other(tmp_path: Path, collation: str) -> None:
    file = made(
        tmp_path / "d.db",
        f"CREATE TABLE t (id INTEGER, disease VARCHAR COLLATE {collation})",
        "INSERT INTO t SELECT i, 'flu' FROM range(500) AS r(i)",
        "INSERT INTO t VALUES (999, 'FLU'), (998, 'flú'), (997, 'flu\u0301')",
        "CREATE VIEW v AS SELECT * FROM t",
    )
    for place in ("t", "v"):
        facts = catalog(file, {"id": "integer", "disease": "text"}, table=place)
        engine = DuckDB(facts)
        assert engine.run(tree("SELECT COUNT(*) AS n FROM t WHERE disease = 'flu'")).to_pylist() == [
            {"n": 500}
        ]
        by_spelling = sums(engine, facts, "SELECT disease, COUNT(*) AS n FROM t GROUP BY disease")
        assert len(by_spelling) == 4 and by_spelling["flu"] == 500 * by_spelling["FLU"]


def test_ids_that_a_collation_calls_equal_are_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "d.db", "CREATE TABLE t (id VARCHAR COLLATE NOCASE)", "CREATE VIEW v AS FROM t")
    for place in ("t", "v"):
        with pytest.raises(CatalogError, match="has a collation"):
            DuckDB(catalog(file, {"id": "text"}, table=place))


def test_columns_that_are_other_at_each_reading_are_read_once(tmp_path: Path) -> None:
    file = made(
        tmp_path / "d.db",
        "CREATE TABLE t (id INTEGER, k INTEGER GENERATED ALWAYS AS (CAST(random() * 2 AS INTEGER)))",
        "INSERT INTO t (id) SELECT 1 FROM range(200)",
    )
    facts = catalog(file, {"id": "integer", "k": "integer"})
    engine = DuckDB(facts)
    (leaf,) = bound(
        parse("SELECT k, COUNT(*) AS n FROM t GROUP BY k"), facts, None, Contribution(rows=1.0, groups=1.0)
    ).leaves
    for _ in range(20):
        released = engine.run(release_statement(leaf).tree).to_pylist()
        assert sum(row["n0"] for row in released if row["part"] == 0) <= leaf.measures["m0"].sensitivity_steps


@pytest.mark.parametrize(
    "view",
    [
        "SELECT * FROM t USING SAMPLE 10 ROWS",
        "SELECT * FROM t USING SAMPLE 10% (bernoulli)",
        "SELECT * FROM t LIMIT 10",
        "SELECT * FROM t ORDER BY id LIMIT 1000000",
        "SELECT * FROM t WHERE id IN (SELECT id FROM t TABLESAMPLE 5 ROWS)",
        "SELECT * FROM read_csv('{folder}/a.csv')",
        "SELECT * FROM t JOIN read_parquet('{folder}/*.parquet') USING (id)",
    ],
)
def test_views_in_which_one_row_pushes_out_another_or_that_read_files_are_refused(
    tmp_path: Path, view: str
) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    duckdb.execute(f"COPY (SELECT 1 AS id) TO '{tmp_path}/a.parquet'")
    file = made(
        tmp_path / "d.db",
        "CREATE TABLE t AS SELECT i AS id FROM range(100) AS r(i)",
        f"CREATE VIEW inner_view AS {view.format(folder=tmp_path)}",
        "CREATE VIEW v AS SELECT * FROM inner_view",
    )
    with pytest.raises(CatalogError, match="store its rows as a table"):
        DuckDB(catalog(file, {"id": "integer"}, table="v"))


def test_a_database_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    file = made(tmp_path / "d.db", "CREATE TABLE t AS SELECT 1 AS id")
    engine = DuckDB(catalog(file, {"id": "integer"}))
    made(tmp_path / "e.db", "CREATE TABLE t AS SELECT i AS id FROM range(5) AS r(i)").replace(file)
    engine.refresh(["t"])
    assert engine.run(tree("SELECT COUNT(*) AS n FROM t")).to_pylist() == [{"n": 5}]


def test_a_view_that_raises_for_some_row_is_refused_at_opening(tmp_path: Path) -> None:
    file = made(
        tmp_path / "d.db",
        "CREATE TABLE r AS SELECT 1 AS id, '77' AS x",
        "CREATE VIEW t AS SELECT id, CAST(x AS INTEGER) AS x FROM r",
    )
    DuckDB(catalog(file, {"id": "integer", "x": "integer"})).close()
    made(file, "INSERT INTO r VALUES (2, 'secret')")
    with pytest.raises(CatalogError, match="TRY_CAST") as caught:
        DuckDB(catalog(file, {"id": "integer", "x": "integer"}))
    told = caught.value
    assert "secret" not in str([told, told.__cause__, told.__context__])


def test_a_view_is_computed_once_for_each_state_of_its_database(tmp_path: Path) -> None:
    file = made(
        tmp_path / "d.db",
        "CREATE TABLE r AS SELECT i AS id FROM range(9) AS r(i)",
        "CREATE VIEW t AS SELECT id, random() AS x FROM r",
    )
    facts = catalog(file, {"id": "integer", "x": "float"}).located(tmp_path / "curator.yaml")
    held = []
    for _ in range(2):
        with closing(DuckDB(facts)) as engine:
            held.append(engine._run(tree("SELECT id, x FROM t ORDER BY id")).to_pylist())
    assert held[0] == held[1]
    made(file, "INSERT INTO r VALUES (9)")
    with closing(DuckDB(facts)) as engine:
        assert engine.run(tree("SELECT COUNT(*) AS n FROM t")).to_pylist() == [{"n": 10}]
    assert len(list((tmp_path / "curator.copies").glob("*.copy"))) == 1


def test_a_table_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    file = made(tmp_path / "d.db", "CREATE TABLE visits (i INT)", "CREATE SCHEMA s; CREATE TABLE s.w (i INT)")
    with pytest.raises(CatalogError, match=r"no table t that can be read; it has s\.w, visits\.") as caught:
        DuckDB(catalog(file, {"id": "integer"}))
    assert caught.value.__context__ is None


_WRITER = """
import duckdb, os, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("SET checkpoint_threshold = '1GB'")
connection.execute(f"INSERT INTO r VALUES ({sys.argv[2]})")
os._exit(0)
"""
"""Ends as a crash would, so that the row stays in the log."""


@pytest.mark.parametrize("place", ["r", "v"])
def test_rows_in_the_log_beside_a_database_are_a_change_of_it(tmp_path: Path, place: str) -> None:
    file = made(
        tmp_path / "d.db",
        "CREATE TABLE r AS SELECT i AS id FROM range(9) AS r(i)",
        "CREATE VIEW v AS SELECT id FROM r WHERE id >= 0",
    )
    facts = catalog(file, {"id": "integer"}, table=place).located(tmp_path / "curator.yaml")
    held = []
    for number in (9, 10, 11):
        with closing(DuckDB(facts)) as engine:
            held.append((engine.version(["t"]), engine.run(tree("SELECT COUNT(*) AS n FROM t")).to_pylist()))
        subprocess.run([sys.executable, "-c", _WRITER, str(file), str(number)], check=True)
        assert (tmp_path / "d.db.wal").exists()
    assert [counts for _, counts in held] == [[{"n": 9}], [{"n": 10}], [{"n": 11}]]
    assert len({version for version, _ in held}) == 3
