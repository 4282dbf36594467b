"""What the engine on Spark refuses when tables are opened, from schemas, names and settings alone; and that
no error of the engine's, which may quote a row, hangs on one of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.backends import release_statement, spark_files
from incrowd.backends.spark import Spark
from incrowd.backends.spark_session import open_session
from incrowd.backends.spark_sql import SETTINGS
from incrowd.errors import BackendError, CatalogError, IncrowdError
from incrowd.query.grammar import read as read_text
from tests import servers
from tests.backends.engines import house
from tests.backends.houses import capped, plan_of, run
from tests.backends.parsing import tree
from tests.backends.spark_houses import LOCAL
from tests.backends.test_spark import catalog, rows

COLUMNS = {"user_id": {"type": "integer"}, "age": {"type": "integer"}}
OWN = f"own_{os.getpid()}"
ONE = pa.table({"user_id": [1], "age": [30]})


def written(folder: Path, **files: pa.Table) -> Path:
    for name, table in files.items():
        place = folder / name.replace("__", "/").replace("_is_", "=")
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place.with_suffix(".parquet"))
    return folder


def refused(said: str, place: Path | str | list[str] | None, **table: Any) -> None:
    with pytest.raises(CatalogError, match=said) as told:
        Spark(catalog(place, **table))
    assert isinstance(told.value.__context__, IncrowdError | None)


# Files.


def test_files_of_one_table_that_store_a_column_differently_are_refused(tmp_path: Path) -> None:
    other = pa.table({"user_id": ["1"], "age": [30]})
    refused(
        "columns.user_id: some files hold it as bigint and some as string",
        written(tmp_path / "t", a=ONE, b=other),
    )
    moments = [
        pa.table({"user_id": [1], "at": pa.array([1], pa.timestamp(unit, zone))})
        for unit, zone in (("ms", None), ("us", None), ("us", "UTC"))
    ]
    columns = {"user_id": {"type": "integer"}, "at": {"type": "timestamp"}}
    for place, pair in enumerate([(0, 1), (1, 2)]):
        folder = written(tmp_path / str(place), a=moments[pair[0]], b=moments[pair[1]])
        refused("columns.at: some files hold it as timestamp", folder, columns=columns)
    refused(
        "columns.age: files spell its name in different ways",
        written(tmp_path / "c", a=ONE, b=ONE.rename_columns(["user_id", "AGE"])),
    )
    refused(
        "columns.age: some files hold it as bigint and some as group",
        written(tmp_path / "g", a=ONE, b=pa.table({"user_id": [1], "age": [[30]]})),
    )
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([1]), pa.array([2])], ["user_id", "age", "age"])
    refused("columns.age: a column of type two columns cannot be read", written(tmp_path / "d", a=twice))


def test_integers_of_different_widths_are_one_type_and_undeclared_columns_none_of_ours(
    tmp_path: Path,
) -> None:
    small = pa.table(
        {"user_id": pa.array([2], pa.int16()), "age": pa.array([2**32 - 1], pa.uint32()), "x": [1]}
    )
    folder = written(tmp_path, a=ONE.append_column("x", pa.array(["a"])), b=small)
    assert rows(Spark(catalog(folder))) == [(1, 30), (2, 2**32 - 1)]


def test_a_column_without_values_is_null_whatever_it_is_declared_as(tmp_path: Path) -> None:
    names = {"n": "integer", "w": "text", "at": "timestamp", "on": "date", "yes": "boolean", "x": "float"}
    columns = {"user_id": {"type": "integer"}, **{name: {"type": kind} for name, kind in names.items()}}
    nothing = pa.table({"user_id": [1], **{name: pa.nulls(1) for name in names}})
    folder = written(tmp_path, a=nothing)
    engine = Spark(catalog(folder, columns=columns))
    assert rows(engine) == [(1, *[None] * len(names))]
    moment, day = pa.array([1], pa.timestamp("us")), pa.array([1], pa.date32())
    written(folder, b=pa.table({"user_id": [2], "n": [1], "at": moment, "on": day, "x": [0.5]}))
    with pytest.raises(CatalogError, match="let the owner open them again"):
        engine.refresh(["t"])
    none, some = rows(Spark(catalog(folder, columns=columns)))
    assert none == (1, *[None] * len(names))
    assert [value is None for value in some] == [False, False, True, False, False, True, False]
    written(folder, c=pa.table({"user_id": [3], "w": ["x"]}))
    refused("columns.w: some files hold it as null and some as string", folder, columns=columns)


def test_a_file_that_two_paths_lead_to_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, a=ONE, b=ONE)
    for second in (folder, folder / "*.parquet", folder / "a.parquet"):
        refused("two of its paths lead to the same file", [str(folder), str(second)])
    refused("two of its paths lead to the same file", str(folder) + "{,/a.parquet}")


def test_a_link_beside_its_file_is_refused_at_once_and_later(tmp_path: Path) -> None:
    folder = written(tmp_path, a=ONE)
    engine = Spark(catalog(folder))
    for link in (os.symlink, os.link):
        link(folder / "a.parquet", folder / "b.parquet")
        refused("two of its paths lead to the same file", folder)
        with pytest.raises(CatalogError, match="let the owner open them again"):
            engine.refresh(["t"])
        (folder / "b.parquet").unlink()


def test_a_folder_of_empty_text_is_refused_in_words(tmp_path: Path) -> None:
    table = pa.table({"user_id": [1, 2], "age": [1, 2], "zip": ["1", ""]})
    pq.write_to_dataset(table, tmp_path, partition_cols=["zip"])
    refused("a folder of its files has no value behind its =", tmp_path)


@pytest.mark.parametrize("bad", ["=secret", "zap=secret", "secret"])
def test_a_malformed_folder_is_refused_and_not_named(tmp_path: Path, bad: str) -> None:
    folder = written(tmp_path, zip_is_1__a=ONE)
    (folder / bad).mkdir()
    pq.write_table(ONE, folder / bad / "a.parquet")
    with pytest.raises(CatalogError, match=r"tables.t: Spark cannot read it \(\w+\)") as told:
        Spark(catalog(folder))
    assert "secret" not in str(told.value) and told.value.__context__ is None


def test_a_column_that_is_in_files_and_names_folders_is_refused(tmp_path: Path) -> None:
    refused("columns.age: it is both in files and the name of folders", written(tmp_path, age_is_7__a=ONE))


def test_files_of_another_make_that_come_later_stop_questions_not_single_rows(tmp_path: Path) -> None:
    engine = Spark(catalog(written(tmp_path, a=ONE)))
    written(tmp_path, b=pa.table({"user_id": ["x"], "age": [1]}))
    with pytest.raises(BackendError, match="changed while the question ran") as told:
        engine.run(tree("SELECT COUNT(*) AS n FROM t"))
    assert told.value.__context__ is None
    with pytest.raises(BackendError, match="let the owner open them again"):
        engine.version(["t"])
    with pytest.raises(CatalogError, match="let the owner open them again") as before:
        engine.refresh(["t"])
    assert before.value.__context__ is None


EVERY = pa.table(
    {
        "a": pa.array([1], pa.timestamp("ms", "UTC")),
        "b": pa.array([1], pa.timestamp("ns")),
        "c": pa.array([1], pa.uint8()),
        "d": pa.array([1], pa.uint64()),
        "e": pa.array([1], pa.decimal128(9, 2)),
        "f": ["x"],
        "g": [b"x"],
        "h": pa.array([1], pa.date32()),
        "i": pa.array([1], pa.time64("us")),
        "j": [[1]],
        "k": [{"x": 1, "y": 2}],
        "l.m": [1.5],
        "n": pa.array([1.5], pa.float16()),
        "o": [True],
        "p": pa.nulls(1),
    }
)


@pytest.mark.parametrize("engine", ["spark", "spark connect"])
def test_footers_say_the_same_whoever_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """By this machine, by the driver's Java, by the ends of files that a server sends."""
    tmp_path.chmod(0o755)
    many = pa.table({f"column {number}": [number] for number in range(2000)})
    folder = written(tmp_path, every=EVERY, many=many)
    session = open_session(LOCAL if engine == "spark" else servers.spark_connect(), SETTINGS)
    files = spark_files.listings(session, {"t": [str(folder)]})["t"].files
    here = spark_files.footers(session, files, {})
    assert list(here[files[0]].values()) == [
        "timestamp[ms, UTC]", "timestamp[ns]", "bigint", "decimal(20,0)", "decimal(9,2)", "string", "binary",
        "date", "int64 time", "group", "group", "double", "fixed_len_binary float16", "boolean", "null",
    ]  # fmt: skip
    monkeypatch.setattr(spark_files, "_here", lambda file: None)
    assert spark_files.footers(session, files, {}) == here
    assert max(file.length for file in files) > spark_files._TAIL
    if engine != "spark":
        session.stop()


# Tables of Spark's catalog.


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    """A session with a database of its own, whose tables lie in the test's folder."""
    made = open_session(LOCAL, {})
    made.sql(f"CREATE DATABASE {OWN} LOCATION '{tmp_path / OWN}'")
    made.sql(f"USE {OWN}")
    yield made
    made.sql(f"DROP DATABASE {OWN} CASCADE")


def test_only_parquet_tables_without_surprises_are_read(session: Any) -> None:
    made = {
        "csv": "(user_id INT, age INT) USING csv OPTIONS (mode 'FAILFAST')",
        "json": "(user_id INT, age INT) USING json",
        "orc": "(user_id INT, age INT) USING orc",
        "folders": "(user_id INT, age INT) USING parquet PARTITIONED BY (user_id)",
        "collated": "(user_id STRING COLLATE UTF8_LCASE, age INT) USING parquet",
    }
    said = {"folders": "is kept in folders", "collated": "identifies units but has a collation"}
    for kind, definition in made.items():
        session.sql(f"CREATE TABLE {kind} {definition}")
        columns = COLUMNS
        if kind == "collated":
            session.sql(f"INSERT INTO {kind} VALUES ('ann', 1)")
            columns = {**COLUMNS, "user_id": {"type": "text"}}
        refused(said.get(kind, "is no stored table in Spark"), None, table=f"{OWN}.{kind}", columns=columns)
    session.range(1).createOrReplaceGlobalTempView(f"{OWN}_view")
    refused("is no stored table in Spark", None, table=f"global_temp.{OWN}_view")
    session.catalog.dropGlobalTempView(f"{OWN}_view")
    session.sql("CREATE TABLE old USING parquet AS SELECT 1 AS user_id")
    session.sql("ALTER TABLE old ADD COLUMN age INT DEFAULT 5")
    refused("with a default that is not in them", None, table=f"{OWN}.old")


def test_a_collation_is_stripped_and_a_column_is_not_padded(session: Any) -> None:
    name = f"{OWN}.spelled"
    session.sql(
        f"CREATE TABLE {name} (user_id INT, ill STRING COLLATE UTF8_LCASE, code CHAR(5)) USING parquet"
    )
    session.sql(f"INSERT INTO {name} VALUES (1, 'flu', 'a'), (2, 'FLU', 'a')")
    columns = {"user_id": {"type": "integer"}, "ill": {"type": "text"}, "code": {"type": "text"}}
    engine = Spark(catalog(None, table=name, columns=columns))
    assert engine.run(tree("SELECT COUNT(*) AS n FROM t WHERE ill = 'flu'")).to_pydict() == {"n": [1]}
    assert len(engine.run(tree("SELECT ill, COUNT(*) AS n FROM t GROUP BY ill"))) == 2


def test_a_table_that_became_another_is_not_read(session: Any) -> None:
    name = f"{OWN}.swapped"
    session.sql(f"CREATE TABLE {name} USING parquet AS SELECT 1 AS user_id, 2 AS age")
    engine = Spark(catalog(None, table=name))
    assert rows(engine) == [(1, 2)]
    session.sql(f"DROP TABLE {name}")
    session.sql(f"CREATE VIEW {name} AS SELECT CAST(rand() * 9 AS INT) AS user_id, 2 AS age")
    with pytest.raises(BackendError, match="let the owner open them again") as told:
        rows(engine)
    assert told.value.__context__ is None


# Settings.


HOSTILE = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.legacy.timeParserPolicy": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION",
    "spark.sql.parquet.int96RebaseModeInRead": "EXCEPTION",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoredPathSegmentRegex": "^a",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
}


def test_what_a_cluster_sets_for_all_sessions_changes_no_answer(tmp_path: Path) -> None:
    columns = {"user_id": {"type": "integer"}, "d": {"type": "date"}, "word": {"type": "text"}}
    days = pa.array([-700_000, 18_000], pa.int32()).cast(pa.date32())
    table = pa.table({"user_id": [1, 2], "d": days, "word": ["12x", "7"]})
    path = written(tmp_path, a=table)
    asked = "SELECT user_id, CAST(word AS INTEGER) AS n, EXTRACT(YEAR FROM d) AS y, 'x' AS c FROM t"
    shared = open_session(LOCAL, {}).sparkContext._jsc.sc().conf()
    for name, value in HOSTILE.items():
        shared.set(name, value)
    try:
        engine = Spark(catalog(path, columns=columns))
    finally:
        for name in HOSTILE:
            shared.remove(name)
    assert (
        engine._run(tree(asked)).to_pydict()
        == Spark(catalog(path, columns=columns))._run(tree(asked)).to_pydict()
    )
    assert {name: engine._session.conf.get(name) for name in SETTINGS} == dict(SETTINGS)
    assert engine._session.conf.get("spark.sql.files.ignoredPathSegmentRegex") == "^[._]"


def test_a_session_that_others_share_is_refused(tmp_path: Path) -> None:
    url = "sc://127.0.0.1:1/;session_id=00112233-4455-6677-8899-aabbccddeeff"
    refused("names a session, whose settings and views others share", written(tmp_path, a=ONE), url=url)


def test_a_setting_that_does_not_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_session(LOCAL, {})
    monkeypatch.setattr(type(made.conf), "set", lambda self, name, value: None)
    refused("Spark must let a session set spark.sql.ansi.enabled to false", written(tmp_path, a=ONE))


# Texts and truths.


def texts() -> list[str]:
    numbers = [
        "1e+5",
        "-.5",
        "5.",
        ".",
        "1_000",
        " 12",
        "+7",
        "007",
        "9223372036854775807",
        "9223372036854775808",
    ]
    numbers += [
        "-9223372036854775808",
        "1.4",
        "1e400",
        "0x10",
        "1f",
        "1d",
        "NaN",
        "infinity",
        "1e5L",
        "١٢",
        "1\n",
    ]
    days = [
        "0000-01-01",
        "0001-01-01",
        "2020-02-30",
        "2020-1-1",
        "2020-01-01 00:00",
        "2020-01-01T23:59:59.999999",
    ]
    days += [
        "2020-01-01 24:00",
        "2020-01-01Z",
        "epoch",
        "today",
        "9999-12-31",
        "10000-01-01",
        "2020-01-01 1:2",
    ]
    return [*numbers, *days, "t", "YES", "off", "", "tRUE", "ｔ", "null"]


def test_texts_are_read_by_the_shared_grammar(tmp_path: Path) -> None:
    kinds = ["integer", "float", "date", "timestamp", "boolean"]
    table = pa.table({"user_id": range(len(texts())), **dict.fromkeys(kinds, texts())})
    columns = {"user_id": {"type": "integer"}, **{kind: {"type": kind} for kind in kinds}}
    engine = Spark(catalog(written(tmp_path, a=table), columns=columns))
    names = ", ".join(f'"{name}"' for name in ["user_id", *kinds])
    answer = engine._run(tree(f"SELECT {names} FROM t")).sort_by("user_id").to_pydict()
    for kind in kinds:
        assert answer[kind] == [read_text(text, kind) for text in texts()], kind


def test_a_bare_null_is_a_condition_on_spark_too() -> None:
    engine = house("spark", "user").backend
    for sql in (
        "SELECT SUM(CASE WHEN NULL THEN x ELSE 1 END), COUNT_IF(NULL) FROM visits WHERE NOT (x = NULL)",
        "SELECT COUNT(*) FILTER (WHERE NULL) FROM visits",
    ):
        (leaf,) = plan_of(sql, "user", rows=3, groups=3).leaves
        released = run(engine, release_statement(*capped(leaf, 5, 5))).values
        assert {value for groups in released.values() for value in groups.values()} <= {0}
