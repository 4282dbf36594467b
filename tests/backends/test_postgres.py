"""PostgreSQL as owners have it: types of its own, roles with few rights, views, time zones, failures."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import yaml

from incrowd import Curator
from incrowd.backends import DuckDB, open_backend, release_statement
from incrowd.backends.postgres import Postgres, _refuse_encoding
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import BackendError, IncrowdError
from incrowd.query import Contribution, bound, parse
from tests.backends.parsing import tree

COLUMNS: dict[str, dict[str, Any]] = {
    "person": {"type": "text"},
    "small": {"type": "integer", "bounds": [-5, 5]},
    "price": {"type": "decimal", "bounds": [0, 100]},
    "whole": {"type": "integer", "bounds": [0, 100]},
    "weight": {"type": "float", "bounds": [0, 100]},
    "code": {"type": "text"},
    "mood": {"type": "text", "domain": ["glad", "sad"]},
    "seen": {"type": "timestamp"},
    "born": {"type": "date"},
    "said": {"type": "integer", "bounds": [0, 100]},
}
CREATE = """
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN cents AS numeric(12, 2);
CREATE TABLE "Visits" (
  person uuid, small smallint, price cents, whole numeric, weight real, code char(6), mood mood,
  seen timestamptz, born date, said text, secret text);
INSERT INTO "Visits" VALUES
  ('00000000-0000-0000-0000-000000000001', 3, 9.99, 7, 1.5, 'ab', 'glad',
   '2024-01-01 01:30+02', '1960-02-29', '12', 's'),
  ('00000000-0000-0000-0000-000000000002', -3, 0.1, 2.5, 'NaN', 'ä', 'sad',
   '2024-01-01 23:30-05', '0044-03-15 BC', ' 12', 's'),
  ('00000000-0000-0000-0000-000000000003', NULL, 'NaN', 1e30, 'Infinity', NULL, NULL,
   'infinity', 'infinity', 'x', NULL),
  (NULL, 1, 1, 'Infinity', 1, 'zz', 'sad', '-infinity', NULL, NULL, NULL);
CREATE VIEW recent AS SELECT * FROM "Visits";
"""


def catalog(url: str, table: str = "public.Visits", **source: Any) -> Catalog:
    return check(
        {
            "sources": {"db": {"url": url, **source}},
            "tables": {"visits": {"table": table, "unit": "person", "columns": COLUMNS}},
            "budget": {"epsilon": 10.0, "delta": 1e-3},
        }
    )


@pytest.fixture
def database(postgres_database: str) -> str:
    with psycopg.connect(postgres_database) as owner:
        owner.execute(CREATE.encode())
    return postgres_database


@pytest.fixture
def engine(database: str) -> Iterator[Postgres]:
    opened = Postgres(catalog(database))
    yield opened
    opened.close()


def the_same_in_duckdb() -> DuckDB:
    """What the table above holds, as the catalog's types have it."""
    people = [f"00000000-0000-0000-0000-00000000000{i}" for i in (1, 2, 3)]
    micros = pa.array([1704065400_000000, 1704169800_000000, 2**63 - 1, -(2**63) + 1], pa.int64())
    days = pa.array([-3593, -735160, 2**31 - 1, None], pa.int32())
    table = pa.table(
        {
            "person": [*people, None],
            "small": [3, -3, None, 1],
            "price": [9.99, 0.1, None, 1.0],
            "whole": [7, 3, None, None],
            "weight": [1.5, float("nan"), float("inf"), 1.0],
            "code": ["ab", "ä", None, "zz"],
            "mood": ["glad", "sad", None, "sad"],
            "seen": micros.cast(pa.timestamp("us")),
            "born": days.cast(pa.date32()),
            "said": [12, None, None, None],
        }
    )
    frames = {
        "sources": {"f": {"frame": "f"}},
        "tables": {"visits": {"unit": "person", "columns": COLUMNS}},
        "budget": {"epsilon": 1.0},
    }
    return DuckDB(check(frames), {"f": table})


@pytest.mark.parametrize(
    "column",
    [*COLUMNS, "CAST(EXTRACT(HOUR FROM seen) AS BIGINT)", "seen > '2024-01-01 00:00'", "born < '1970-01-01'"],
)
def test_each_type_of_the_database_is_read_as_the_catalog_declares_it(engine: Postgres, column: str) -> None:
    sql = f"SELECT {column} AS v, COUNT(*) AS n FROM visits GROUP BY 1"
    if column in ("seen", "born"):
        sql = sql.replace(
            column, f"CASE WHEN {column} >= '2000-01-01' THEN 1 WHEN {column} < '2000-01-01' THEN 0 END", 1
        )
    answer, expected = (
        sorted(map(str, backend._run(tree(sql)).to_pylist())) for backend in (engine, the_same_in_duckdb())
    )
    assert answer == expected


def test_a_role_that_may_only_read_the_declared_columns_is_enough(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as owner:
        reads = ", ".join(f'"{name}"' for name in COLUMNS)
        owner.execute(b"GRANT SELECT (" + reads.encode() + b') ON "Visits" TO PUBLIC')
        rights = owner.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        )
        assert rights.fetchone() == (False, False, False)
    with Curator(catalog(database), Postgres(catalog(database)), _memory(database)) as curator:
        answer = curator.ask("SELECT mood, COUNT(*) AS n FROM visits GROUP BY mood", epsilon=1.0)
    assert answer.to_arrow().column("mood").to_pylist() == ["glad", "sad", None]


def _memory(url: str) -> Any:
    from incrowd.curator.ledger import Ledger

    return Ledger.open(None, catalog(url))


def test_statements_cannot_write(engine: Postgres) -> None:
    with engine._moments.checking() as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute('DELETE FROM public."Visits"')


def test_nothing_is_left_on_the_server(database: str, engine: Postgres) -> None:
    objects = "SELECT COUNT(*) FROM pg_class"
    with psycopg.connect(database, autocommit=True) as owner:
        before = owner.execute(objects).fetchone()
        engine.run(tree("SELECT COUNT(*) AS n FROM visits"))
        assert owner.execute(objects).fetchone() == before


def test_large_results_come_in_chunks_and_whole(engine: Postgres) -> None:
    listed = "SELECT v FROM (VALUES " + ", ".join(f"({i})" for i in range(25_001)) + ") AS t(v)"
    answer = engine._run(tree(listed))
    assert sorted(answer.column("v").to_pylist()) == list(range(25_001))
    assert answer.column("v").num_chunks == 3


def test_an_empty_result_has_its_columns(engine: Postgres) -> None:
    answer = engine.run(tree("SELECT mood, COUNT(*) AS n FROM visits WHERE small > 100 GROUP BY mood"))
    assert (answer.column_names, answer.num_rows) == (["mood", "n"], 0)


def test_the_version_changes_with_the_rows_and_only_with_them(database: str, engine: Postgres) -> None:
    first = engine.version(["visits"])
    assert engine.version(["visits"]) == first
    with psycopg.connect(database) as owner:
        owner.execute('UPDATE "Visits" SET small = 4')
        owner.execute("SELECT pg_stat_force_next_flush()")  # the counters lag behind otherwise
    assert engine.version(["visits"]) != first


def test_a_view_is_new_after_any_change_in_the_database(database: str) -> None:
    engine = Postgres(catalog(database, "recent"))
    first = engine.version(["visits"])
    with psycopg.connect(database) as owner:
        owner.execute('UPDATE "Visits" SET small = 4')
    assert engine.version(["visits"]) != first
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 4}]
    engine.close()


def test_a_statement_that_takes_too_long_is_stopped_with_a_sentence(database: str) -> None:
    engine = Postgres(catalog(database, timeout=1))
    squares = " CROSS JOIN ".join(
        f"(VALUES {', '.join('(1)' for _ in range(40))}) AS t{i}(v)" for i in range(9)
    )
    with pytest.raises(BackendError, match=r"stopped the question after 1 seconds.*timeout"):
        engine._run(tree(f"SELECT COUNT(*) AS n FROM {squares}"))
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 4}]
    engine.close()


_ACTIVE = (
    "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%CROSS JOIN%' "
    "AND datname = current_database() AND pid <> pg_backend_pid()"
)


def test_ctrl_c_ends_the_question_and_its_statement(database: str) -> None:
    engine = Postgres(catalog(database))
    squares = " CROSS JOIN ".join(
        f"(VALUES {', '.join('(1)' for _ in range(40))}) AS t{i}(v)" for i in range(9)
    )
    with psycopg.connect(database, autocommit=True) as owner:

        def running() -> bool:
            return owner.execute(_ACTIVE).fetchone() != (0,)

        def press() -> None:
            while not running():
                pass
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            engine._run(tree(f"SELECT COUNT(*) AS n FROM {squares}"))
        assert not running()
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 4}]
    engine.close()


def said_by(made: Any) -> str:
    with pytest.raises(IncrowdError) as refused:
        made()
    said = str(refused.value)
    assert said.endswith(".") and "\n" not in said
    return said


def test_what_is_missing_or_forbidden_is_named_when_the_catalog_is_opened(database: str) -> None:
    assert "the database has no table nobody" in said_by(lambda: Postgres(catalog(database, "nobody")))
    wrong = {**COLUMNS, "height": {"type": "float"}}
    spelled = check(
        {
            "sources": {"db": {"url": database}},
            "tables": {"visits": {"table": "Visits", "unit": "person", "columns": wrong}},
            "budget": {"epsilon": 1.0},
        }
    )
    assert "tables.visits.columns.height: the source has no such column; it has person" in said_by(
        lambda: Postgres(spelled)
    )
    misread = check(
        {
            "sources": {"db": {"url": database}},
            "tables": {
                "visits": {"table": "Visits", "unit": "person", "columns": {"person": {"type": "date"}}}
            },
            "budget": {"epsilon": 1.0},
        }
    )
    assert open_backend(misread).run(tree("SELECT person AS p FROM visits")).column("p").null_count == 4


def test_a_server_that_is_not_there_is_said_without_the_password(database: str) -> None:
    url = database.replace("127.0.0.1", "nobody:sesame@127.0.0.1") if "@" not in database else database
    closed = url.rsplit(":", 1)[0] + ":1/nothing"
    said = said_by(lambda: Postgres(catalog(closed)))
    assert "the database cannot be reached" in said
    secret = closed.split("://")[1].split("@")[0].split(":")[-1]
    assert secret not in said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ana:sesame@127.0.0.1:1/x", "no server answers at its host and port"),
        ("postgresql://ana:1234#ses@ame.invalid/x", "no server has the name of its host"),
        ("postgresql://ana:sesame%zz@127.0.0.1:1/x", "its URL is not understood"),
        ("postgresql://ana:sesame@127.0.0.1:1/x?sslmode=sesame", "sslmode"),
        ("postgresql://ana:sesame@127.0.0.1:1/x?gssencmode=sesame", "see that its URL is right"),
    ],
)
def test_no_part_of_a_url_is_told_where_there_is_no_connection(url: str, said: str) -> None:
    for opened in (lambda: Postgres(catalog(url)), lambda: Postgres.describe(url)):
        told = said_by(opened)
        assert said in told
        assert not any(part in told for part in ("ana", "ses", "ame.invalid", "1234", "127"))


def test_one_catalog_is_on_one_engine(database: str) -> None:
    tables = {
        name: {"source": source, "table": "Visits", "unit": "person", "columns": {"person": {"type": "text"}}}
        for name, source in (("a", "one"), ("b", "two"))
    }
    budget = {"epsilon": 1.0}
    two = check(
        {
            "sources": {"one": {"url": database}, "two": {"url": database + "x"}},
            "tables": tables,
            "budget": budget,
        }
    )
    assert "in another database than a" in said_by(lambda: open_backend(two))
    tables["b"].pop("table")
    mixed = check(
        {"sources": {"one": {"url": database}, "two": {"csv": "x.csv"}}, "tables": tables, "budget": budget}
    )
    assert "put all tables of a catalog on one engine" in said_by(lambda: open_backend(mixed))
    unknown = check(
        {"sources": {"one": {"url": "oracle://x"}}, "tables": {"a": tables["a"]}, "budget": budget}
    )
    assert "no engine is installed for oracle; there are" in said_by(lambda: open_backend(unknown))


def test_an_owners_file_with_tables_and_ledger_in_the_database_answers(database: str, tmp_path: Path) -> None:
    declared = {
        "sources": {"db": {"url": database}},
        "tables": {"visits": {"table": "Visits", "unit": "person", "columns": COLUMNS}},
        "budget": {"epsilon": 2.0, "delta": 1e-6},
        "ledger": database,
    }
    file = tmp_path / "curator.yaml"
    file.write_text(yaml.safe_dump(declared))
    question = (
        "SELECT mood, COUNT(*) AS n, AVG(price) AS price, MEDIAN(weight) AS w FROM visits GROUP BY mood"
    )
    with Curator.open(file, new_ledger=True) as curator:
        first = curator.ask(question, epsilon=1.0)
        again = curator.ask(question, epsilon=1.0)
        assert again.recalled and again.to_arrow().equals(first.to_arrow())
        assert curator.ledger.verify().entries >= 1
    with psycopg.connect(database) as owner:
        owner.execute('INSERT INTO "Visits" (small) VALUES (1)')
        owner.execute("SELECT pg_stat_force_next_flush()")
    with Curator.open(file) as curator:
        assert not curator.ask(question, epsilon=1.0).recalled


def moved_by_one_unit(engine: Postgres, facts: Catalog, sql: str) -> float:
    """What the only unit of a table moves a measure by, in parts of its sensitivity."""
    (leaf,) = bound(parse(sql), facts, None, Contribution(rows=1.0, groups=1.0)).leaves
    numbers = engine.run(release_statement(leaf).tree).column("n0").to_pylist()
    return float(sum(number or 0 for number in numbers)) / leaf.measures["m0"].sensitivity_steps


def heavy(database: str, *more: str) -> None:
    with psycopg.connect(database) as owner:
        owner.execute(
            "CREATE TABLE heavy AS SELECT '1' AS person, i % 2 AS small, i % 2 + 1 AS whole, "
            "1.0 AS price, 1.0 AS weight, 'a' AS code, 'glad' AS mood, NULL::timestamp AS seen, "
            "NULL::date AS born, '1' AS said FROM generate_series(1, 200) AS i"
        )
        for statement in more:
            owner.execute(statement.encode())


def test_a_view_that_draws_a_sample_is_read_once(database: str) -> None:
    heavy(database, "CREATE VIEW sampled AS SELECT * FROM heavy TABLESAMPLE BERNOULLI (2)")
    facts = catalog(database, "sampled")
    engine = Postgres(facts)
    question = "SELECT small, COUNT(*) AS n FROM visits GROUP BY small"
    assert max(moved_by_one_unit(engine, facts, question) for _ in range(40)) <= 1
    engine.close()


def test_operators_of_the_database_cannot_take_the_place_of_ours(database: str) -> None:
    heavy(
        database,
        "CREATE FUNCTION whole(float8, int8) RETURNS float8 LANGUAGE sql AS 'SELECT 1.0::float8'",
        "CREATE OPERATOR / (LEFTARG = float8, RIGHTARG = int8, FUNCTION = whole)",
    )
    facts = catalog(database, "heavy")
    engine = Postgres(facts)
    assert moved_by_one_unit(engine, facts, "SELECT small, SUM(whole) FROM visits GROUP BY small") <= 1
    engine.close()


def test_text_that_the_client_was_not_set_up_for_is_read(database: str) -> None:
    heavy(database, "UPDATE heavy SET code = '€'")
    engine = Postgres(catalog(database + "?client_encoding=latin1", "heavy"))
    assert engine.run(tree("SELECT DISTINCT code FROM visits")).to_pylist() == [{"code": "€"}]
    engine.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_a_database_in_another_encoding_is_refused(encoding: str) -> None:
    connection: Any = SimpleNamespace(info=SimpleNamespace(parameter_status=lambda _: encoding))
    assert encoding in said_by(lambda: _refuse_encoding(connection))


def test_columns_that_differ_in_case_only_are_told_apart(database: str) -> None:
    heavy(database, 'ALTER TABLE heavy ADD COLUMN "Person" text, ADD COLUMN "Code" text')
    engine = Postgres(catalog(database, "heavy"))
    assert engine.run(tree("SELECT DISTINCT person, code FROM visits")).to_pylist() == [
        {"person": "1", "code": "a"}
    ]
    engine.close()
    heavy_now = 'ALTER TABLE heavy RENAME COLUMN person TO "PERSON"'
    with psycopg.connect(database) as owner:
        owner.execute(heavy_now.encode())
    assert "PERSON and Person" in said_by(lambda: Postgres(catalog(database, "heavy")))


def test_long_numbers_in_text_neither_overflow_nor_vanish(database: str) -> None:
    longest = ["9" * 40 + "e99", "-" + "9" * 40 + ".9e+99", "0." + "0" * 39 + "1e-99", "1e99", "0e0"]
    heavy(database, *(f"INSERT INTO heavy (person, code) VALUES ('2', '{text}')" for text in longest))
    facts = catalog(database, "heavy")
    engine = Postgres(facts)
    number = "CAST(code AS DOUBLE)"
    for form in (
        f"POWER({number}, 3)",
        f"{number} * {number} * {number}",
        f"1 / {number} / {number} / {number}",
        f"{number} % POWER({number}, 2)",
        f"ROUND({number} * {number}, 18)",
    ):
        sql = f"SELECT SUM({form}, contribution_bounds_per_row => (0, 1)) FROM visits"
        assert moved_by_one_unit(engine, facts, sql) <= 2
    engine.close()


def test_a_server_that_went_away_is_said_in_a_sentence(database: str) -> None:
    engine = Postgres(catalog(database))
    engine.close()
    assert "cannot be reached" in said_by(lambda: engine.version(["visits"]))
    assert "cannot be reached" in said_by(lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits")))


def test_computed_text_is_compared_by_code_points_whatever_the_locale(engine: Postgres) -> None:
    made = "CASE WHEN small > 0 THEN 'a' ELSE 'B' END < 'b' AS v, CAST(small AS TEXT) < '2' AS w"
    sql = f"SELECT {made} FROM visits"
    told = engine.statement(tree(sql))
    assert all(f"'{letter}' COLLATE \"C\"" in told for letter in "aB")
    assert "AS TEXT) COLLATE \"C\" < '2'" in told
    assert engine._run(tree(sql)).column("v").to_pylist() == [True] * 4
