"""Questions about closed periods stay on record while rows of later periods arrive."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import CatalogError, Curator
from incrowd.catalog import load
from incrowd.curator.curator import FREE
from incrowd.curator.ledger import Ledger

TODAY = dt.datetime.now(dt.UTC).date()
OLD = dt.date(2024, 5, 3)
COLUMNS = """{id: {type: integer}, day: {type: date}, at: {type: timestamp},
             cost: {type: float, bounds: [0, 10]}}"""
CLOSED = "SELECT COUNT(*) AS n FROM visits WHERE day < DATE '2024-06-01'"


def policy(folder: Path, source: str, period: str = "{column: day, by: month}") -> Path:
    """The owner's file of visits with periods, of people without and of a public table, with its ledger."""
    folder.mkdir(exist_ok=True)
    write(folder / "people.parquet", [1, 2, 3])
    pq.write_table(pa.table({"day": [OLD, TODAY], "season": ["spring", "now"]}), folder / "days.parquet")
    file = folder / "curator.yaml"
    file.write_text(f"""
sources:
  visits: {source}
  people: {{parquet: people.parquet}}
  days: {{parquet: days.parquet}}
tables:
  visits: {{source: visits, unit: id, contribution: 3, period: {period}, columns: {COLUMNS}}}
  people: {{source: people, unit: id, contribution: 1, columns: {COLUMNS}}}
  days: {{source: days, private: false}}
budget: {{epsilon: 100, delta: 1e-6}}
""")
    catalog = load(file)
    Ledger.found(catalog.ledger_url, catalog).close()
    return file


def write(file: Path, ids: list[int], day: dt.date | None = OLD) -> None:
    """A file of visits on one day."""
    moments = None if day is None else dt.datetime(day.year, day.month, day.day, 12)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "day": pa.array([day] * len(ids), pa.date32()),
        "at": pa.array([moments] * len(ids), pa.timestamp("us")),
        "cost": pa.array([1.0] * len(ids)),
    }
    pq.write_table(pa.table(columns), file)


def grown(folder: Path, source: str = "{parquet: 'visits/*.parquet'}", **options: str) -> Path:
    """The owner's file of visits in one Parquet file, to which others may come."""
    (folder / "visits").mkdir()
    write(folder / "visits/1.parquet", list(range(50)))
    return policy(folder, source, **options)


CONFINED = [
    "day < DATE '2024-06-01'",
    "day <= '2024-05-31' AND cost > 0",
    "(cost > 0 AND (day BETWEEN '2024-01-01' AND '2024-05-31'))",
    "day = DATE '2024-05-03'",
    "day IN ('2024-05-03', '2024-05-04')",
    "DATE '2024-06-01' > day",
    "day < '2024-05-31 12:00:00'",
]
WHOLE = [
    "day < DATE '2024-06-01' OR cost > 5",
    "NOT (day >= DATE '2024-06-01')",
    "NOT day < DATE '2024-06-01'",
    "day > DATE '2024-01-01'",
    "day <> DATE '2024-05-03'",
    "day < DATE '2024-06-01' OR day IS NULL",
    "day IS NULL",
    "CAST(at AS DATE) < DATE '2024-06-01'",
    "at < '2024-06-01'",
    "COALESCE(day, DATE '2024-01-01') < DATE '2024-06-01'",
    f"day <= DATE '{TODAY}'",
    f"day < DATE '{TODAY}'",
    f"day IN ('2024-05-03', '{TODAY}')",
    "CASE WHEN cost > 5 THEN TRUE ELSE day < DATE '2024-06-01' END",
    "day IN (SELECT day FROM days)",
]


@pytest.mark.parametrize("condition", CONFINED)
def test_a_question_about_closed_periods_is_free_after_new_files_arrived(
    tmp_path: Path, condition: str
) -> None:
    asked = f"SELECT COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE {condition}"
    file = grown(tmp_path)
    with Curator.open(file) as curator:
        first = curator.ask(asked, epsilon=1.0)
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        write(tmp_path / "visits/3.parquet", list(range(50)), None)
        assert FREE in curator.price(asked, epsilon=1.0).notes
        again = curator.ask(asked, epsilon=1.0)
        assert again.recalled and again.to_arrow(0.95) == first.to_arrow(0.95)
    with Curator.open(file) as curator:
        assert curator.ask(asked, epsilon=0.5).to_arrow(0.95) == first.to_arrow(0.95)
        assert curator.budget()[0].left.epsilon == 99


@pytest.mark.parametrize("condition", WHOLE)
def test_any_other_condition_makes_it_a_question_about_all_rows(tmp_path: Path, condition: str) -> None:
    asked = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    with Curator.open(grown(tmp_path)) as curator:
        curator.ask(asked, epsilon=1.0)
        assert curator.ask(asked, epsilon=1.0).recalled
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        assert FREE not in curator.price(asked, epsilon=1.0).notes
        assert not curator.ask(asked, epsilon=1.0).recalled


def test_timestamps_have_periods_and_constants_with_zones_confine_nothing(tmp_path: Path) -> None:
    closed = "SELECT COUNT(*) AS n FROM visits WHERE at < '2024-06-01 12:30:00'"
    zoned = "SELECT COUNT(*) AS n FROM visits WHERE at < '2024-06-01 12:30:00+02:00'"
    with Curator.open(grown(tmp_path, period="{column: at, by: year}")) as curator:
        for asked in (closed, zoned, CLOSED):
            curator.ask(asked, epsilon=1.0)
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        assert curator.ask(closed, epsilon=1.0).recalled
        assert not curator.ask(zoned, epsilon=1.0).recalled
        assert not curator.ask(CLOSED, epsilon=1.0).recalled


JOINED = {
    # Inside a sub-query, through projections, on both sides of a join, in ON: all scans are confined.
    "SELECT COUNT(*) AS n FROM (SELECT id, day FROM visits WHERE day < '2024-06-01') v": True,
    "SELECT COUNT(*) AS n FROM (SELECT id AS i, day AS d FROM visits) v WHERE v.d < '2024-06-01'": True,
    "WITH v AS (SELECT * FROM visits) SELECT COUNT(*) AS n FROM v WHERE day < '2024-06-01'": True,
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.id = b.id "
    "WHERE a.day < '2024-06-01' AND b.day < '2024-06-01'": True,
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.id = v.id AND v.day < '2024-06-01'": True,
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.id = v.id WHERE v.day < '2024-06-01'": True,
    "SELECT COUNT(*) AS n FROM visits v JOIN days d ON v.day = d.day WHERE v.day < '2024-06-01'": True,
    "SELECT SUM(k) AS n FROM (SELECT id, CASE WHEN COUNT(*) > 1 THEN 1 ELSE 0 END AS k FROM visits "
    "WHERE day < '2024-06-01' GROUP BY id) v": True,
    # One scan is not.
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.id = b.id WHERE a.day < '2024-06-01'": False,
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN people p ON p.id = v.id AND v.day < '2024-06-01'": False,
    "SELECT COUNT(*) AS n FROM visits v JOIN days d ON v.day = d.day WHERE d.day < '2024-06-01'": False,
    "SELECT COUNT(*) AS n FROM (SELECT id, MAX(CAST(day AS TEXT)) AS day FROM visits GROUP BY id) v "
    "WHERE v.day < '2024-06-01'": False,
    "SELECT COUNT(*) AS n FROM (SELECT id, COALESCE(day, DATE '2024-01-01') AS day FROM visits) v "
    "WHERE v.day < '2024-06-01'": False,
    "SELECT COUNT(*) FILTER (WHERE day < '2024-06-01') AS n FROM visits": False,
    "SELECT a.n + b.n AS n FROM (SELECT COUNT(*) AS n FROM visits WHERE day < '2024-06-01') a, "
    "(SELECT COUNT(*) AS n FROM visits) b": False,
}


@pytest.mark.parametrize("asked", JOINED)
def test_every_scan_of_the_table_must_be_confined(tmp_path: Path, asked: str) -> None:
    with Curator.open(grown(tmp_path)) as curator:
        curator.ask(asked, epsilon=1.0)
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        assert curator.ask(asked, epsilon=1.0).recalled is JOINED[asked]


def test_other_tables_count_where_they_are_read(tmp_path: Path) -> None:
    joined = "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.id = p.id WHERE v.day < '2024-06-01'"
    with Curator.open(grown(tmp_path)) as curator:
        for asked in (joined, CLOSED):
            curator.ask(asked, epsilon=1.0)
        write(tmp_path / "people.parquet", [1, 2, 3, 4])
        assert curator.ask(CLOSED, epsilon=1.0).recalled
        assert not curator.ask(joined, epsilon=1.0).recalled
        pq.write_table(pa.table({"day": [OLD], "season": ["spring"]}), tmp_path / "days.parquet")
        assert not curator.ask(CLOSED, epsilon=1.0).recalled


def test_a_record_from_before_the_period_was_declared_is_found_while_nothing_changed(tmp_path: Path) -> None:
    file = grown(tmp_path)
    declared = file.read_text()
    file.write_text(declared.replace("period: {column: day, by: month}, ", ""))
    with Curator.open(file) as curator:
        first = curator.ask(CLOSED, epsilon=1.0).to_arrow()
    file.write_text(declared)
    with Curator.open(file) as curator:
        assert curator.ask(CLOSED, epsilon=1.0).to_arrow() == first
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        assert not curator.ask(CLOSED, epsilon=1.0).recalled


@pytest.mark.parametrize(
    "change",
    [
        ("by: month", "by: month, revision: 2"),
        ("by: month", "by: year"),
        ("by: month", "by: month, closed_after: 5"),
        ("visits/*.parquet", "visits/[12].parquet"),
        ("period: {column: day, by: month}, ", ""),
        ("unit: id, contribution: 3", "unit: row"),
        ("contribution: 3", "contribution: 2"),
    ],
)
def test_another_promise_place_or_unit_is_other_data_once_rows_arrived(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    file = grown(tmp_path)
    with Curator.open(file) as curator:
        curator.ask(CLOSED, epsilon=1.0)
    write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
    file.write_text(file.read_text().replace(*change, 1))
    with Curator.open(file) as curator:
        assert not curator.ask(CLOSED, epsilon=1.0).recalled


def test_a_new_file_that_cannot_be_read_does_not_touch_what_is_on_record(tmp_path: Path) -> None:
    with Curator.open(grown(tmp_path)) as curator:
        first = curator.ask(CLOSED, epsilon=1.0).to_arrow()
        (tmp_path / "visits/2.parquet").write_bytes(b"PAR1 and no more")
        assert curator.ask(CLOSED, epsilon=1.0).to_arrow() == first
        with pytest.raises(CatalogError):
            curator.ask(CLOSED, epsilon=2.0)


def test_csv_files_and_duckdb_tables_may_grow_too(tmp_path: Path) -> None:
    rows = "id,day,at,cost\n" + "".join(f"{i},2024-05-03,2024-05-03 12:00:00,1\n" for i in range(50))
    (tmp_path / "visits").mkdir()
    (tmp_path / "visits/1.csv").write_text(rows)
    database = tmp_path / "v.duckdb"
    with duckdb.connect(database) as store:
        store.execute(f"CREATE TABLE visits AS FROM '{tmp_path}/visits/1.csv'")
    for place, source in enumerate(("{csv: '../visits/*.csv'}", "{duckdb: '../v.duckdb'}")):
        with Curator.open(policy(tmp_path / f"{place}", source)) as curator:
            first = curator.ask(CLOSED, epsilon=1.0).to_arrow()
        (tmp_path / "visits/2.csv").write_text(rows.replace("2024-05-03", str(TODAY)))
        with duckdb.connect(database) as store:
            store.execute(f"INSERT INTO visits FROM '{tmp_path}/visits/2.csv'")
        with Curator.open(tmp_path / f"{place}/curator.yaml") as curator:
            assert curator.ask(CLOSED, epsilon=1.0).to_arrow() == first
            assert not curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1.0).recalled


def test_rows_added_in_postgresql_leave_closed_periods_on_record(
    tmp_path: Path, postgres_database: str
) -> None:
    file = tmp_path / "curator.yaml"
    file.write_text(f"""
sources: {{main: {{url: '{postgres_database}'}}}}
tables:
  visits: {{unit: id, contribution: 3, period: {{column: day, by: day}}, columns: {COLUMNS}}}
budget: {{epsilon: 100, delta: 1e-6}}
""")
    everything = "SELECT COUNT(*) AS n FROM visits"
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute("CREATE TABLE visits (id bigint, day date, at timestamp, cost float8)")
        owner.execute(
            "INSERT INTO visits SELECT i, '2024-05-03', '2024-05-03', 1 FROM generate_series(1, 50) i"
        )
        owner.execute("SELECT pg_stat_force_next_flush()")
        with Curator.open(file, new_ledger=True) as curator:
            first = curator.ask(CLOSED, epsilon=1.0).to_arrow()
            curator.ask(everything, epsilon=1.0)
            owner.execute("INSERT INTO visits VALUES (7, CURRENT_DATE, now(), 1), (8, NULL, NULL, 2)")
            owner.execute("INSERT INTO visits VALUES (9, 'infinity', 'infinity', 1)")
            owner.execute("SELECT pg_stat_force_next_flush()")
            assert FREE in curator.price(CLOSED, epsilon=1.0).notes
            assert curator.ask(CLOSED, epsilon=1.0).to_arrow() == first
            assert not curator.ask(everything, epsilon=1.0).recalled


def test_files_added_for_spark_leave_closed_periods_on_record(tmp_path: Path) -> None:
    (tmp_path / "visits").mkdir()
    write(tmp_path / "visits/1.parquet", list(range(50)))
    file = tmp_path / "curator.yaml"
    file.write_text(f"""
sources: {{main: {{url: 'spark://local[1]'}}}}
tables:
  visits: {{path: 'visits/*.parquet', unit: id, contribution: 3, period: {{column: day, by: day}},
           columns: {COLUMNS}}}
budget: {{epsilon: 100, delta: 1e-6}}
""")
    with Curator.open(file, new_ledger=True) as curator:
        first = curator.ask(CLOSED, epsilon=1.0).to_arrow()
        write(tmp_path / "visits/2.parquet", list(range(50)), TODAY)
        assert curator.ask(CLOSED, epsilon=1.0).to_arrow() == first
        assert not curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1.0).recalled
