"""`incrowd init`: a file that loads, from real tables, with nothing in it that was read off the rows."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import duckdb
import psycopg
import pytest

from incrowd.catalog import load
from incrowd.cli.discovery import read_tables
from incrowd.curator import Curator
from tests.cli.conftest import Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    columns = "i AS user_id, 20 + i % 50 AS age, ['north', 'south'][1 + i % 2] AS region"
    with duckdb.connect("shop.duckdb") as engine:
        engine.execute(f"CREATE TABLE people AS SELECT {columns} FROM range(300) AS r(i)")
        engine.execute(
            "CREATE TABLE visits (user_id BIGINT, day DATE, seen TIMESTAMP, spent DOUBLE, tags VARCHAR[])"
        )
        engine.execute("COPY people TO 'people.csv'")
        engine.execute("COPY people TO 'people.parquet'")
    return tmp_path


GIVEN = (
    "--unit",
    "user_id",
    "--bounds",
    "age=0:120",
    "--domain",
    "region=north,south",
    "--budget",
    "2,1e-6",
    "--yes",
)


@pytest.mark.parametrize("file", ["people.csv", "people.parquet"])
def test_what_init_writes_can_be_asked_at_once(folder: Path, run: Run, file: str) -> None:
    assert run("init", file, *GIVEN).status == 0
    with Curator.open("curator.yaml") as curator:
        answer = curator.ask("SELECT region, AVG(age) AS age FROM people GROUP BY region", epsilon=0.5)
        assert answer.to_arrow().column("region").to_pylist()[:2] == ["north", "south"]
    column = load("curator.yaml").tables["people"].columns["age"]
    assert (column.type, column.bounds) == ("integer", (0, 120))


def test_several_files_and_a_database_become_one_catalog(folder: Path, run: Run) -> None:
    options = [
        *("--unit", "user_id", "--unit", "visits=user_id/day", "--budget", "1", "--yes"),
        *("--bounds", "visits.seen=2020-01-01 00:00:00..2025-12-31 23:59:59"),
        *("--bounds", "day=2020-01-01:2025-12-31"),
    ]
    result = run("init", "shop.duckdb", "people.csv", *options)
    assert result.status == 2 and "Two tables are called people" in result.err
    (folder / "people.csv").rename("clients.csv")
    result = run("init", "shop.duckdb", "clients.csv", *options)
    assert result.status == 0, result.err
    with Curator.open("curator.yaml") as curator:
        for table in ("people", "visits", "clients"):
            curator.price(f"SELECT COUNT(*) FROM {table}", epsilon=0.1)
        assert str(curator.catalog.tables["visits"].unit) == "user_id per day"
    assert (
        "tags" in (folder / "curator.yaml").read_text()
        and "tags" not in load("curator.yaml").tables["visits"].columns
    )


def test_nothing_from_the_rows_is_in_the_file(folder: Path, run: Run) -> None:
    run("init", "people.csv", "--unit", "user_id", "--budget", "1", "--yes")
    lines = (folder / "curator.yaml").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("id:"))  # random digits
    assert not [word for word in ("north", "south", "69", "299") if word in text]
    assert "guessed from rows" in text and "That is a leak" in text
    run("init", "people.parquet", "--unit", "user_id", "--budget", "1", "--yes", "--force")
    assert "no row was read" in (folder / "curator.yaml").read_text()


def test_what_is_left_open_is_marked_and_named(folder: Path, run: Run) -> None:
    result = run("init", "people.csv", "--yes")
    assert result.status == 0 and "replace FILL for the unit of people and the budget" in result.out
    asked = run("ask", "SELECT COUNT(*) FROM people")
    assert asked.status == 2 and "still says FILL" in asked.err


def test_the_owner_is_asked_for_what_options_do_not_say(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["nobody", "user_id", "120:0", "0:120", "north,south", "lots", "1.5,1e-6"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(said) + "\n"))
    result = run("init", "people.csv")
    assert result.status == 0, result.err
    assert "without looking at the data" in result.err and "'nobody' is not row" in result.err
    catalog = load("curator.yaml")
    table = catalog.tables["people"]
    assert (str(table.unit), table.columns["age"].bounds) == ("user_id", (0, 120))
    assert table.columns["region"].domain == ("north", "south")
    assert (catalog.budget.epsilon, catalog.budget.delta) == (1.5, 1e-6)


def test_when_the_input_ends_nothing_is_written(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("user_id\n"))
    result = run("init", "people.csv")
    assert result.status == 2 and result.err.rstrip().endswith("nothing was written.")
    assert not (folder / "curator.yaml").exists()


def test_a_file_that_is_there_is_kept_unless_forced(folder: Path, run: Run) -> None:
    (folder / "curator.yaml").write_text("mine")
    assert run("init", "people.csv", *GIVEN).status == 2
    assert run("init", "people.csv", *GIVEN, "--force", "--bounds", "region=1:2").status == 2
    assert (folder / "curator.yaml").read_text() == "mine"
    assert run("init", "people.csv", *GIVEN, "--force").status == 0


def test_json_tells_what_is_open(folder: Path, run: Run) -> None:
    result = run("init", "people.csv", "--json").json
    assert result["missing"] == ["the unit of people", "the budget"] and result["types_guessed_from_rows"]
    assert result["tables"]["people"]["age"] == "BIGINT"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["people.xlsx"], "There is no file people.xlsx"),
        (["."], "is a folder"),
        (["notes.md"], "is no table that can be read here"),
        (["broken.parquet"], "cannot be read as a parquet file"),
        (["broken.duckdb"], "cannot be read as a duckdb file"),
        (["people.csv", "--out", "nowhere/x.yaml"], "The folder nowhere does not exist"),
        (["people.csv", "--unit", "nobody"], "The unit 'nobody' is not row"),
        (["people.csv", "--unit", "shops=user_id"], "names a table shops"),
        (["people.csv", "--bounds", "age"], "--bounds needs a column and its values"),
        (["people.csv", "--bounds", "age=0"], "are not two bounds"),
        (["people.csv", "--bounds", "age=9:1"], "write the lower one first"),
        (["people.csv", "--bounds", "agee=0:1"], "names a column agee"),
        (["people.csv", "--domain", "region=a,,b"], "holds an empty value"),
        (["people.csv", "--budget", "x"], "is not epsilon,delta"),
        (["people.csv", "--budget", "1,2"], "is not epsilon,delta"),
        (["people.csv", "--budget", "-1"], "is not epsilon,delta"),
    ],
)
def test_a_wrong_word_is_told_and_nothing_is_written(
    folder: Path, run: Run, arguments: list[str], said: str
) -> None:
    for name in ("notes.md", "broken.parquet", "broken.duckdb"):
        (folder / name).write_text("secret words of a row")
    result = run("init", *arguments, "--yes")
    assert result.status == 2 and said in result.err
    assert result.err.count("\n") == 1 and "secret" not in result.err
    assert not (folder / "curator.yaml").exists()


def test_the_tables_of_a_database_make_a_file_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, postgres_database: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with psycopg.connect(postgres_database) as owner:
        owner.execute("CREATE TABLE people (user_id uuid, age int, region varchar(9), tags text[])")
        owner.execute(
            "INSERT INTO people SELECT gen_random_uuid(), 20 + i % 50, 'north' "
            "FROM generate_series(1, 300) AS r(i)"
        )
    result = run("init", postgres_database, *GIVEN)
    assert result.status == 0, result.err
    with Curator.open("curator.yaml") as curator:
        assert curator.catalog.tables["people"].columns["user_id"].type == "text"
        assert (
            curator.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region").to_arrow().num_rows == 3
        )


def test_a_database_that_cannot_be_listed_is_said(run: Run, postgres_database: str) -> None:
    assert "no table that its role may read" in run("init", postgres_database, "--yes").err
    assert "no engine is installed for oracle" in run("init", "oracle://x/y", "--yes").err
    assert "one database alone" in run("init", postgres_database, "people.csv", "--yes").err


def test_ids_that_begin_with_zeros_are_proposed_as_text(tmp_path: Path) -> None:
    """Declared as integers they would be nobody's: 007 may be another person than 7."""
    (tmp_path / "a.csv").write_text("id,zip,n\n007,01234,5\n008,99999,0\n")
    (table,) = read_tables([str(tmp_path / "a.csv")], tmp_path)
    assert table.columns == {"id": "VARCHAR", "zip": "VARCHAR", "n": "BIGINT"}
