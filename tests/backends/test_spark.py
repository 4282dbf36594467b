"""The engine on Spark: what its plans do and do not contain, how it reads columns, and what happens when
there is no Java, no file, no time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from incrowd.backends import release_statement
from incrowd.backends import spark_session as sessions
from incrowd.backends.spark import Spark
from incrowd.backends.spark_sql import DIALECT
from incrowd.backends.translation import translate
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import BackendError, CatalogError
from tests import servers
from tests.backends.engines import house
from tests.backends.houses import capped, plan_of, run
from tests.backends.parsing import tree
from tests.backends.spark_houses import LOCAL, SparkHouse

COLUMNS = {"user_id": {"type": "integer"}, "age": {"type": "integer"}}


def catalog(path: Path | str | list[str] | None, url: str = LOCAL, **table: Any) -> Catalog:
    declared = {"unit": "user_id", "columns": COLUMNS, **table}
    if path is not None:
        declared["path"] = path if isinstance(path, list) else str(path)
    source = {"url": url, **({"timeout": declared.pop("timeout")} if "timeout" in declared else {})}
    return check({"sources": {"s": source}, "tables": {"t": declared}, "budget": {"epsilon": 1.0}})


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"user_id": [1, 2, 2], "age": [30, 40, 50]}), path)
    return path


@pytest.fixture
def spark_house() -> Iterator[SparkHouse]:
    user_house = house("spark", "user")
    assert isinstance(user_house, SparkHouse)
    yield user_house


def rows(engine: Spark) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{name}"' for name in engine._catalog.tables["t"].columns)
    return sorted(
        (tuple(row.values()) for row in engine._run(tree(f"SELECT {names} FROM t")).to_pylist()), key=repr
    )


# Plans.


def plan_nodes(engine: Spark, statement: exp.Query) -> list[str]:
    """The operators of the plan that is executed, from the root on."""
    frame = engine._session.sql(engine.statement(statement))
    return [
        node["class"].rpartition(".")[2]
        for node in json.loads(frame._jdf.queryExecution().sparkPlan().toJSON())
    ]


QUESTIONS = {
    "user": [
        "SELECT v.cat, COUNT(*), SUM(v.f), COUNT(DISTINCT v.user_id), MAX(v.x) FROM visits AS v GROUP BY ALL",
        "SELECT UPPER(v.grp), AVG(v.f) FROM visits AS v JOIN cities AS c ON v.city = c.city GROUP BY 1",
        "SELECT COUNT(*) FROM visits",
    ],
    "row": ["SELECT c.region, SUM(v.f) FROM visits AS v JOIN cities AS c ON v.city = c.city GROUP BY 1"],
}


@pytest.mark.parametrize("mode", QUESTIONS)
def test_only_aggregated_groups_leave_spark_and_no_function_of_python_runs_there(mode: str) -> None:
    engine = house("spark", mode).backend
    assert isinstance(engine, Spark)
    for sql in QUESTIONS[mode]:
        (leaf,) = plan_of(sql, mode, rows=3, groups=3).leaves
        statement = release_statement(*capped(leaf, 5, 5))
        run(engine, statement)
        nodes = plan_nodes(engine, statement.tree)
        assert not [
            node for node in nodes if any(word in node for word in ("Python", "Arrow", "Batch", "Pandas"))
        ]
        parts = len(statement.parts)
        tops = nodes[1:] if nodes[0] == "UnionExec" else nodes
        assert (nodes[0] == "UnionExec") == (parts > 1)
        # Each part: projections of whole groups over an aggregate, and no row below it passes by.
        root = next(node for node in tops if node not in ("ProjectExec",))
        assert "Aggregate" in root
        frame = engine._session.sql(engine.statement(statement.tree))
        plan = frame._jdf.queryExecution().optimizedPlan()
        stacked = [plan.children().apply(at) for at in range(plan.children().size())] if parts > 1 else [plan]
        assert len(stacked) == parts
        for part in stacked:
            top = part
            while top.nodeName() == "Project":
                top = top.children().apply(0)
            assert top.nodeName() == "Aggregate"


def test_rows_that_are_units_are_known_by_file_and_position_at_every_reading() -> None:
    engine = house("spark", "row").backend
    assert isinstance(engine, Spark)
    (leaf,) = plan_of(QUESTIONS["row"][0], "row", rows=3, groups=3).leaves
    text = engine.statement(release_statement(*capped(leaf, 5, 5)).tree)
    assert "row_number" not in text.lower()
    engine._attach(engine._views)
    plan = engine._session.sql(text)._jdf.queryExecution().optimizedPlan()
    assert plan.deterministic()
    assert "row_index" in plan.toString()
    marks = engine._session.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT __place) AS m FROM incrowd_0").toArrow()
    (counts,) = marks.to_pylist()
    assert counts["n"] == counts["m"]


def test_sums_are_exact_within_64_bits_and_stop_at_their_ends(tmp_path: Path) -> None:
    top, bottom = 2**63 - 1, -(2**63)
    groups: list[list[Any]] = [
        [top, top, top],
        [bottom, bottom, -1],
        [top, top, bottom, bottom, 2**21, -(2**42), 5],
        [top, 1],
        [top, 1, -1],
        [bottom, 1],
        [bottom, -1, 1],
        [2**62, 2**61, 2**61 - 1],
        [-1] * 50 + [2**21] * 50,
        [None],
    ]
    pairs = [(value, group) for group, values in enumerate(groups) for value in values]
    table = pa.table(
        {"user_id": pa.array([pair[0] for pair in pairs], pa.int64()), "age": [g for _, g in pairs]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    answer = Spark(catalog(tmp_path / "a.parquet"))._run(
        tree("SELECT age, SUM(user_id) AS s FROM t GROUP BY age")
    )
    sums = [None if values == [None] else sum(values) for values in groups]
    expected = [
        total if total is None or bottom <= total <= top else top if total > 0 else -top for total in sums
    ]
    assert [row["s"] for row in sorted(answer.to_pylist(), key=lambda row: row["age"])] == expected


def test_a_number_of_more_than_64_bits_is_refused(people: Path) -> None:
    with pytest.raises(BackendError, match="more than 64 bits"):
        Spark(catalog(people)).run(tree(f"SELECT COUNT(*) AS n FROM t WHERE CAST({2**63} AS HUGEINT) > age"))


def test_texts_of_a_statement_arrive_as_they_are(people: Path) -> None:
    engine = Spark(catalog(people))
    texts = [
        "it's",
        "a\\b",
        "\\",
        "\\u0041",
        "\\'",
        "${env:HOME}",
        "n\nl\tt",
        "'; --",
        '"`',
        "ü😀",
        "%_",
        ":x ?",
        "",
    ]
    picked = ", ".join(f"""'{text.replace("'", "''")}' AS c{at}""" for at, text in enumerate(texts))
    (row,) = engine._run(tree(f"SELECT {picked} FROM t WHERE age = 30")).to_pylist()
    assert list(row.values()) == texts


# Columns.


def test_columns_of_every_type_are_read_in_their_declared_type(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    wide = [Decimal("12345678901234567.123456789"), Decimal("0.1"), Decimal("2.5"), None]
    table = pa.table(
        {
            "User_ID": pa.array([1, 2, 3, 2**63], pa.uint64()),
            "small": pa.array([1, -2, 3, None], pa.int8()),
            "single": pa.array([0.1, float("nan"), float("-inf"), None], pa.float32()),
            "wide": pa.array(wide, pa.decimal128(38, 9)),
            "whole": pa.array(wide, pa.decimal128(38, 9)),
            "real": pa.array([0.5, 1.5, 1e300, float("nan")]),
            "text": pa.array([" 12", "12", "1e3", "ä"]),
            "zoned": pa.array([0, 1, -(2**63), 2**63 - 1], pa.timestamp("us", "Europe/Paris")),
            "label": pa.array(["x", None, "", "x"]).dictionary_encode(),
            "bytes": pa.array([b"\xff", b"ok", None, b""], pa.binary()),
        }
    )
    pq.write_table(table, path)
    types = {
        "user_id": "integer",
        "small": "integer",
        "single": "float",
        "wide": "decimal",
        "whole": "integer",
        "real": "integer",
        "text": "float",
        "zoned": "timestamp",
        "label": "text",
    }
    declared = {"columns": {name: {"type": kind} for name, kind in types.items()}}
    engine, reference = Spark(catalog(path, **declared)), duckdb.connect()
    picked = ", ".join(
        f"TRY_CAST({'CAST(wide AS VARCHAR)' if name == 'wide' else name} AS {kind}) AS {name}"
        for name, kind in (
            ("user_id", "BIGINT"),
            ("small", "BIGINT"),
            ("single", "DOUBLE"),
            ("wide", "DOUBLE"),
            ("whole", "BIGINT"),
            ("real", "BIGINT"),
        )
    )
    names = ", ".join(types)
    answer = engine._run(tree(f"SELECT {names} FROM t"))
    expected = reference.sql(f"SELECT {picked} FROM '{path}'").to_arrow_table()
    for name in expected.column_names:
        assert repr(answer.column(name).to_pylist()) == repr(expected.column(name).to_pylist()), name
    assert answer.column("text").to_pylist() == [None, 12.0, 1000.0, None]
    assert answer.column("zoned").cast(pa.int64()).to_pylist() == [0, 1, -(2**63), 2**63 - 1]
    assert answer.column("label").to_pylist() == ["x", None, "", "x"]
    with pytest.raises(CatalogError, match=r"columns.bytes: a column of type binary cannot be read as text"):
        Spark(catalog(path, columns={"user_id": {"type": "integer"}, "bytes": {"type": "text"}}))


def test_text_that_is_not_utf_8_is_null(tmp_path: Path) -> None:
    broken = pa.array([b"\xff\xfe", "ä".encode()], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"user_id": [1, 2], "name": broken}), tmp_path / "a.parquet")
    columns = {"user_id": {"type": "integer"}, "name": {"type": "text"}}
    assert rows(Spark(catalog(tmp_path / "a.parquet", columns=columns))) == [(1, None), (2, "ä")]


def test_relative_paths_start_at_the_owners_file_and_wildcards_and_folders_are_followed(
    tmp_path: Path,
) -> None:
    for month in ("01", "02"):
        (tmp_path / f"rows/month={month}").mkdir(parents=True)
        table = pa.table({"user_id": [int(month)], "age": [30]})
        pq.write_table(table, tmp_path / f"rows/month={month}/a.parquet")
    for path in ("rows", "rows/*/a.parquet"):
        assert rows(Spark(catalog(path).located(tmp_path / "curator.yaml"))) == [(1, 30), (2, 30)]


# Catalog tables, versions, errors.


@pytest.fixture
def stored(people: Path, spark_house: SparkHouse) -> Iterator[str]:
    """A table and a view of Spark's own catalog, over files."""
    session = spark_house.backend._session
    name = f"people_{os.getpid()}"
    session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{people.parent}'")
    session.sql(f"CREATE VIEW {name}_seen AS SELECT * FROM {name}")
    yield name
    session.sql(f"DROP VIEW {name}_seen")
    session.sql(f"DROP TABLE {name}")


def test_tables_of_sparks_catalog_are_read_and_their_version_follows_their_files(
    stored: str, people: Path
) -> None:
    engine = Spark(catalog(None, table=f"default.{stored}"))
    assert rows(engine) == [(1, 30), (2, 40), (2, 50)]
    before = engine.version(["t"])
    assert engine.version(["t"]) == before
    pq.write_table(pa.table({"user_id": [9], "age": [9]}), people.parent / "more.parquet")
    assert engine.version(["t"]) != before
    engine.refresh(["t"])
    assert (9, 9) in rows(engine)


def test_a_view_whose_rows_may_be_others_at_each_reading_is_refused(
    stored: str, spark_house: SparkHouse
) -> None:
    with pytest.raises(CatalogError, match=r"is no stored table in Spark.*name the table behind it"):
        Spark(catalog(None, table=f"{stored}_seen"))


def test_files_that_change_are_read_anew_under_another_version(people: Path) -> None:
    engine = Spark(catalog(people))
    before = engine.version(["t"])
    assert engine.version(["t"]) == before
    pq.write_table(pa.table({"user_id": [7, 8, 9, 10], "age": [1, 2, 3, 4]}), people)
    assert engine.version(["t"]) != before
    engine.refresh(["t"])
    assert rows(engine) == [(10, 4), (7, 1), (8, 2), (9, 3)]


def test_files_that_change_while_a_question_runs_are_an_error(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Spark(catalog(people))
    attach = engine._attach

    def changing(names: Iterable[str]) -> None:
        pq.write_table(pa.table({"user_id": [7], "age": [1]}), people)
        attach(names)

    monkeypatch.setattr(engine, "_attach", changing)
    with pytest.raises(BackendError, match="changed while the question ran; ask again when they are at rest"):
        engine.run(tree("SELECT COUNT(*) AS n FROM t"))


def test_what_cannot_be_read_is_refused_at_the_opening(tmp_path: Path, people: Path) -> None:
    with pytest.raises(CatalogError, match=r"tables.t: Spark cannot read it .*files at .*nothing.parquet"):
        Spark(catalog(tmp_path / "nothing.parquet"))
    with pytest.raises(CatalogError, match=r"tables.t: Spark cannot read it .*a table nowhere.people in its"):
        Spark(catalog(None, table="nowhere.people"))
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(CatalogError, match=r"tables.t: Spark cannot read it"):
        Spark(catalog(tmp_path / "text.parquet"))
    with pytest.raises(
        CatalogError, match=r"columns.weight: the source has no such column; it has user_id, age"
    ):
        Spark(catalog(people, columns={"user_id": {"type": "integer"}, "weight": {"type": "float"}}))
    with pytest.raises(
        CatalogError, match=r"this process runs Spark at local\[2\] already, and the URL names spark"
    ):
        Spark(catalog(people, "spark://127.0.0.1:1"))
    with pytest.raises(CatalogError, match=r"sources: the Spark Connect server cannot be reached"):
        Spark(catalog(people, "sc://127.0.0.1:1/;user_id=x"))


def test_an_error_while_a_question_runs_tells_nothing_of_the_rows(people: Path) -> None:
    engine = Spark(catalog(people))
    people.unlink()
    with pytest.raises(BackendError, match=r"^Spark could not finish the question \(\w+\)\.$") as told:
        engine.run(tree("SELECT COUNT(*) AS n FROM t"))
    assert told.value.__cause__ is None and told.value.__context__ is None


@pytest.mark.parametrize("engine", ["spark", "spark connect"])
def test_a_question_is_stopped_when_its_time_is_over(tmp_path: Path, engine: str) -> None:
    tmp_path.chmod(0o755)
    pq.write_table(pa.table({"user_id": range(200_000), "age": range(200_000)}), tmp_path / "a.parquet")
    url = LOCAL if engine == "spark" else servers.spark_connect()
    asked = Spark(catalog(tmp_path / "a.parquet", url, timeout=1))
    # Tasks look whether they are still wanted between batches.
    asked._session.conf.set("spark.sql.parquet.columnarReaderBatchSize", "1")
    with pytest.raises(
        BackendError, match="The database stopped the question after 1 seconds, and its price stays spent"
    ):
        # More pairs than any machine counts in the time that these tests have.
        asked._run(
            tree("SELECT COUNT(CASE WHEN a.age + b.age < a.user_id THEN 1 END) AS n FROM t AS a, t AS b")
        )
    asked.close()


def test_ctrl_c_ends_the_question_and_its_jobs(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user_id": range(200_000), "age": range(200_000)}), tmp_path / "a.parquet")
    asked = Spark(catalog(tmp_path / "a.parquet"))
    asked._session.conf.set("spark.sql.parquet.columnarReaderBatchSize", "1")
    tracker = asked._session.sparkContext.statusTracker()

    def press() -> None:
        while not tracker.getActiveJobsIds():
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        asked._run(
            tree("SELECT COUNT(CASE WHEN a.age + b.age < a.user_id THEN 1 END) AS n FROM t AS a, t AS b")
        )
    assert asked.run(tree("SELECT COUNT(*) AS n FROM t")).to_pylist() == [{"n": 200_000}]
    while tracker.getActiveJobsIds():
        pass
    asked.close()


def test_a_sessions_own_settings_hold_whoever_else_uses_spark(people: Path, spark_house: SparkHouse) -> None:
    from pyspark.sql import SparkSession

    user = SparkSession.builder.getOrCreate()
    user.conf.set("spark.sql.ansi.enabled", "true")
    user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        engine = Spark(catalog(people))
        assert engine._session.conf.get("spark.sql.ansi.enabled") == "false"
        assert engine._session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert user.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        engine.close()
        assert user.range(1).count() == 1, "the user's session goes on"
    finally:
        user.conf.unset("spark.sql.ansi.enabled")
        user.conf.unset("spark.sql.session.timeZone")


# Java.


def test_without_java_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sessions.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CatalogError, match=r"Spark needs Java 17 or newer, and none was found; .*JAVA_HOME"):
        sessions.java_home()
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CatalogError, match=r"Spark needs Java 17 or newer, and only 8 was found"):
        sessions.java_home()


def test_the_java_of_a_package_is_found_where_the_machine_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        home = sessions.java_home()
    assert sessions._java_version(home) >= 17


def test_what_the_dialect_does_not_know_is_refused() -> None:
    tables = {"t": plan_of("SELECT COUNT(*) FROM visits", "user").leaves[0].rows}
    with pytest.raises(BackendError, match="is not known on spark"):
        translate(tree("SELECT MD5(x) FROM t"), DIALECT, tables)


def aggregates_of(plan: Any) -> set[str]:
    """The names of the functions that a plan computes over several rows."""
    package = "org.apache.spark.sql.catalyst.expressions.aggregate."
    return set(re.findall(rf'"{re.escape(package)}(\w+)"', plan.toJSON())) - {
        "AggregateExpression",
        "Complete$",
        "Partial$",
        "PartialMerge$",
        "Final$",
    }


@pytest.mark.parametrize("mode", ["user", "row"])
def test_a_task_that_is_computed_again_has_the_same_result(mode: str) -> None:
    """What Spark itself knows about its plans: nothing random, and no order of rows that matters."""
    engine = house("spark", mode).backend
    assert isinstance(engine, Spark)
    engine._attach(engine._catalog.tables)
    for sql in QUESTIONS[mode]:
        (leaf,) = plan_of(sql, mode, rows=3, groups=3).leaves
        frame = engine._session.sql(engine.statement(release_statement(*capped(leaf, 5, 5)).tree))
        execution = frame._jdf.queryExecution()
        assert execution.optimizedPlan().deterministic()
        assert aggregates_of(execution.optimizedPlan()) <= {"Sum", "Count", "Min", "Max"}
        assert execution.toRdd().outputDeterministicLevel().toString() != "INDETERMINATE"
    drawn = engine._session.sql("SELECT g, SUM(r) AS s FROM (SELECT 1 AS g, rand() AS r) GROUP BY g")
    assert not drawn._jdf.queryExecution().optimizedPlan().deterministic()


def test_files_that_go_between_two_statements_end_the_question(tmp_path: Path) -> None:
    """With fewer files all of them were read before, but the answer would be recorded for more."""
    for part in range(2):
        rows_of = pa.table({"user_id": [1, 2, 2], "age": [30, 40, 50]})
        pq.write_table(rows_of, tmp_path / f"part-{part}.parquet")
    engine, question = Spark(catalog(tmp_path)), tree("SELECT COUNT(*) AS n FROM t")
    with engine.snapshot(["t"]) as first:
        assert first.version == engine.version(["t"])
        assert first.run(question).to_pylist() == [{"n": 6}]
        (tmp_path / "part-1.parquet").unlink()
        with pytest.raises(BackendError, match="changed while the question ran"):
            first.run(question)
    with engine.snapshot(["t"]) as second:
        assert second.version != first.version
        assert second.run(question).to_pylist() == [{"n": 3}]
