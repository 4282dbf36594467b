"""The engine: sources become views of declared columns, and no row decides how others are read."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one

from incrowd.backends import DuckDB, release_statement
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import BackendError, CatalogError
from incrowd.query import Contribution, bound, parse
from tests.backends.parsing import tree

COLUMNS = {"user_id": {"type": "integer"}, "age": {"type": "integer"}}


def catalog(source: dict[str, Any], **table: Any) -> Catalog:
    declared = {"unit": "user_id", "columns": COLUMNS, **table}
    return check({"sources": {"s": source}, "tables": {"t": declared}, "budget": {"epsilon": 1.0}})


def rows(engine: DuckDB) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine._run(tree("SELECT * FROM t ORDER BY ALL")).to_pylist()]


def test_csv_is_read_record_by_record(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(
        b'user_id,age,note\n1,30,"hi, there"\r\n2,abc,x\r3,44,\n\n5,50,"two\nlines ""\r\n"\n"6",7,a'
    )
    assert rows(DuckDB(catalog({"csv": str(file)}))) == [(1, 30), (2, None), (3, 44), (5, 50), (6, 7)]


def test_csv_files_are_matched_by_the_names_of_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user_id,age\n1,30\n", "utf-8")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfage;user_id\n7;8\n")
    (tmp_path / "d.csv").write_text("user_id\n9\n", "utf-8")
    with gzip.open(tmp_path / "c.csv.gz", "wt", encoding="utf-8") as file:
        file.write("AGE\tUSER_ID\n5\t6\n")
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.csv.gz", "d.csv")]
    assert rows(DuckDB(catalog({"csv": paths}))) == [(1, 30), (6, 5), (8, 7), (9, None)]


@pytest.mark.parametrize("first", ["", "user_id,,age\n", "user_id,age,AGE\n"])
def test_a_csv_file_without_names_is_refused(tmp_path: Path, first: str) -> None:
    (tmp_path / "a.csv").write_text(first + "1,2,3\n" * bool(first), "utf-8")
    with pytest.raises(CatalogError, match="must name the columns"):
        DuckDB(catalog({"csv": str(tmp_path / "a.csv")}))


def test_values_that_do_not_fit_their_type_are_null(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"user_id": ["1", "x", "2.5"], "age": [1.4, float("nan"), 1e300]}), tmp_path / "a.parquet"
    )
    answer = rows(DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")})))
    assert sorted(answer, key=str) == [(1, 1), (None, None), (None, None)]


def test_a_database_is_read_only_and_its_tables_may_be_called_otherwise(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.db")) as local:
        local.execute("CREATE TABLE people AS SELECT 1 AS user_id, 2 AS age")
    engine = DuckDB(catalog({"duckdb": str(tmp_path / "d.db")}, table="people"))
    assert rows(engine) == [(1, 2)]
    with pytest.raises(BackendError):
        engine.run(parse_one("DELETE FROM t"))  # type: ignore[arg-type]
    before = engine.version(["t"])
    engine.close()
    with duckdb.connect(str(tmp_path / "d.db")) as local:
        local.execute("INSERT INTO people SELECT range, 1 FROM range(100000)")
    assert DuckDB(catalog({"duckdb": str(tmp_path / "d.db")}, table="people")).version(["t"]) != before


def test_public_columns_get_the_catalogs_types() -> None:
    moods = pa.array(["a", "b"]).dictionary_encode()
    frame = pa.table(
        {
            "mood": moods,
            "when": pa.array([dt.datetime(2020, 1, 1)] * 2, pa.timestamp("us", "UTC")),
            "n": [1, 2],
        }
    )
    frame = frame.append_column("parts", pa.array([[1], [2]]))
    engine = DuckDB(catalog({"frame": "f"}, private=False, unit=None, columns={}), {"f": frame})
    assert engine.public_types("t") == {"mood": "VARCHAR", "when": "TIMESTAMP", "n": "BIGINT"}


def test_frames_of_all_kinds_are_read_and_their_version_tells_nothing_of_their_rows() -> None:
    import pandas as pd
    import polars as pl

    values = {"user_id": [1, 2], "age": [3, 4]}
    arrays = {name: np.array(column) for name, column in values.items()}
    made = [pa.table(values), pd.DataFrame(values), pl.DataFrame(values), arrays]
    engines = [DuckDB(catalog({"frame": "f"}), {"f": frame}) for frame in made]
    assert all(rows(engine) == [(1, 3), (2, 4)] for engine in engines)
    assert engines[0].version(["t"]) == engines[0].version(["t"]) != engines[3].version(["t"])
    other = DuckDB(catalog({"frame": "f"}), {"f": pa.table({"user_id": [1, 2], "age": [3, 5]})})
    assert other.version(["t"]) != engines[0].version(["t"])


def test_what_cannot_be_read_is_said_with_the_path_to_it() -> None:
    with pytest.raises(CatalogError, match="was not given"):
        DuckDB(catalog({"frame": "f"}))
    with pytest.raises(CatalogError, match=r"tables\.t\.columns\.age: the source has no such column"):
        DuckDB(catalog({"frame": "f"}), {"f": pa.table({"user_id": [1]})})
    with pytest.raises(CatalogError, match="expected a data frame"):
        DuckDB(catalog({"frame": "f"}), {"f": 3})
    with pytest.raises(CatalogError, match="no engine for postgresql"):
        DuckDB(catalog({"url": "postgresql://host/db"}))


def test_an_error_of_the_engine_says_nothing_of_rows_and_names_no_variable() -> None:
    engine = DuckDB(catalog({"frame": "f"}), {"f": pa.table({"user_id": [1], "age": [77]})})
    secret = pa.table({"a": [1]})
    for progress in (None, lambda share: None):
        with pytest.raises(BackendError) as failure:
            engine._run(tree("SELECT CAST(CAST(age AS TEXT) || 'x' AS INTEGER) FROM t"), progress)
        told = [failure.value, failure.value.__cause__, failure.value.__context__]
        assert "77" not in str(told) and told[1:] == [None, None]
    with pytest.raises(BackendError):
        engine._run(tree("SELECT * FROM secret"))
    assert secret.num_rows == 1


def test_progress_is_reported_up_to_the_end() -> None:
    engine = DuckDB(catalog({"frame": "f"}), {"f": pa.table({"user_id": [1], "age": [77]})})
    seen: list[float] = []
    assert engine.run(tree("SELECT COUNT(*) AS n FROM t"), seen.append).to_pylist() == [{"n": 1}]
    assert seen[-1] == 1.0 and all(0 <= share <= 1 for share in seen)
    with pytest.raises(BackendError):
        engine._run(tree("SELECT nothing FROM t"), seen.append)


def test_a_frame_whose_text_is_no_text_is_refused_when_it_is_opened() -> None:
    """DuckDB would fail by what one row holds, in the middle of a question that was paid."""
    offsets = np.array([0, 1, 3, 4], dtype=np.int32)
    broken = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xff\xfeb")])
    frame = pa.table({"user_id": [1, 2, 3], "age": broken})
    with pytest.raises(CatalogError, match="UTF-8") as caught:
        DuckDB(catalog({"frame": "f"}), {"f": frame})
    assert "xff" not in str(caught.value)


@pytest.mark.parametrize("rows", ["t", "(SELECT * FROM t WHERE age >= 0) AS s"])
def test_a_view_whose_rows_are_others_at_each_reading_is_read_once(tmp_path: Path, rows: str) -> None:
    file = tmp_path / "rows.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE every AS SELECT 1 AS user_id, i % 2 AS age FROM range(200) AS r(i)")
        made.execute("CREATE VIEW sampled AS SELECT * FROM every WHERE random() < 0.02")
    facts = catalog({"duckdb": str(file)}, table="sampled")
    sql = f"SELECT age, COUNT(*) AS n FROM {rows} GROUP BY age"
    (leaf,) = bound(parse(sql), facts, None, Contribution(rows=1.0, groups=1.0)).leaves
    engine = DuckDB(facts)
    for _ in range(40):
        released = engine.run(release_statement(leaf).tree).to_pylist()
        counted = sum(row["n0"] or 0 for row in released if row["part"] == 0)
        assert counted <= leaf.measures["m0"].sensitivity_steps


def test_a_column_is_found_by_its_own_name_and_not_by_one_that_looks_alike() -> None:
    columns = {"user_id": {"type": "integer"}, "straße": {"type": "integer"}}
    frame = pa.table({"user_id": [1], "straße": [2], "strasse": [3]})
    assert rows(DuckDB(catalog({"frame": "f"}, columns=columns), {"f": frame})) == [(1, 2)]
    with pytest.raises(CatalogError, match="one name in SQL"):
        DuckDB(catalog({"frame": "f"}), {"f": pa.table({"USER_ID": [7], "user_id": [1], "age": [2]})})


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"USER_ID": [7], "user_id": [1], "age": [2]}), tmp_path / "a.parquet")
    with pytest.raises(CatalogError, match=r"two columns of a\.parquet have the same name"):
        DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")}))


def test_files_that_change_while_they_are_read_answer_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("user_id,age\n1,30\n")
    engine = DuckDB(catalog({"csv": str(file)}))

    def appended(share: float) -> None:
        with file.open("a") as more:
            more.write("2,40\n")

    with pytest.raises(BackendError, match="changed while the question ran"):
        engine.run(tree("SELECT COUNT(*) AS n FROM t"), appended)
    with pytest.raises(BackendError, match="changed"):
        engine.run(tree("SELECT COUNT(*) AS n FROM t"))
    engine.refresh(["t"])
    assert engine.run(tree("SELECT COUNT(*) > 1 AS more FROM t")).to_pylist() == [{"more": True}]
    file.write_text('user_id,age\n1,"30\n')
    with pytest.raises(CatalogError, match="never closed"):
        engine.refresh(["t"])


_IN_A_PROMPT = """
import duckdb, pyarrow as pa
from incrowd import Curator
from incrowd.curator.scratch import scratch

def bar(connection):
    names = ("enable_progress_bar", "enable_progress_bar_print")
    return [connection.sql(f"SELECT current_setting('{name}')").fetchall()[0][0] for name in names]

assert bar(duckdb.connect())[0], "a prompt has no bar any more: this test finds nothing"
curator = Curator.from_tables(people=pa.table({"id": [1, 2], "x": [1, 2]}), unit="id", budget=(9.0, 0.0))
engine = curator.backend._connection
assert bar(engine) == [False, False]
curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1.0, contribution=1, progress=lambda share: None)
assert bar(engine)[1] is False
with scratch() as local:
    assert not bar(local)[0]
from incrowd.curator import sandbox_worker
with duckdb.connect(config=sandbox_worker.SETTINGS).cursor() as cursor:
    assert not bar(cursor)[0]
"""


def test_no_bar_is_drawn_by_the_engine() -> None:
    """DuckDB draws one after two seconds in a prompt or a notebook, which `python -c` is like."""
    subprocess.run([sys.executable, "-c", _IN_A_PROMPT], check=True, env={**os.environ, "PYTHONPATH": "src"})
