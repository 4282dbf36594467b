"""One question, one moment: rows that change, connections that are cut and servers that crash meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import yaml

from incrowd import Curator
from incrowd.backends import postgres
from incrowd.backends.postgres import Postgres
from incrowd.curator.releasing import Exact
from incrowd.errors import BackendError
from tests import servers
from tests.backends.parsing import tree
from tests.backends.postgres_neighbours import execute, facts, visits
from tests.backends.test_postgres import said_by

COLUMNS = {"person": {"type": "text"}, "x": {"type": "integer", "bounds": [0, 10]}}
TOTALS = "SELECT COUNT(*) AS n, SUM(x) AS s FROM visits"
OTHERS = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
FLUSH = "SELECT pg_stat_force_next_flush()"


def furnish(url: str, people: int = 50) -> None:
    """People with one to five rows each, and a view of them."""
    execute(
        url,
        "CREATE TABLE visits (person text, x integer)",
        f"INSERT INTO visits SELECT p::text, p % 11 FROM generate_series(1, {people}) AS p, "
        "generate_series(0, 4) AS i WHERE i <= p % 5",
        "CREATE VIEW seen AS SELECT * FROM visits",
        FLUSH,
    )


def opened(url: str, folder: Path, table: str = "visits", **source: Any) -> Curator:
    file = folder / "curator.yaml"
    policy = {
        "sources": {"db": {"url": url, **source}},
        "tables": {"visits": {"table": f"public.{table}", "unit": "person", "columns": COLUMNS}},
        "budget": {"epsilon": 10.0, "delta": 1e-6},
    }
    file.write_text(yaml.safe_dump(policy))
    return Curator.open(file, new_ledger=not (folder / "curator.ledger").exists())


@pytest.fixture
def curator(postgres_database: str, tmp_path: Path) -> Iterator[Curator]:
    furnish(postgres_database)
    with opened(postgres_database, tmp_path) as curator:
        yield curator


def left(curator: Curator) -> float:
    return float(curator.budget()[0].left.epsilon)


def between(monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], object]) -> list[tuple[Exact, ...]]:
    """Calls `meddle` between the census and the release; returns what the release would have been before."""
    execute_, seen = Curator.execute, []

    def meddled(*words: Any) -> Any:
        seen.append(execute_(*words))
        meddle()
        seen.append(execute_(*words))
        return seen[-1]

    monkeypatch.setattr(Curator, "execute", meddled)
    return seen


def numbers(exact: tuple[Exact, ...]) -> list[list[int]]:
    return [[int(steps) for steps in sums] for part in exact for sums in part.sums.values()]


def recorded_under(folder: Path) -> list[str]:
    """The versions of the data that answers are on record for."""
    (file,) = folder.glob("*.ledger")
    with contextlib.closing(sqlite3.connect(file)) as ledger:
        return [version for (version,) in ledger.execute("SELECT data_version FROM incrowd_answers")]


@pytest.mark.parametrize("table", ["visits", "seen"])
def test_census_and_release_see_the_rows_of_one_moment(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    furnish(postgres_database)
    more = "INSERT INTO visits SELECT p::text, 10 FROM generate_series(1, 900) AS p"
    with opened(postgres_database, tmp_path, table) as curator:
        with monkeypatch.context() as patched:
            seen = between(patched, lambda: execute(postgres_database, "DELETE FROM visits", more, FLUSH))
            with curator.snapshot() as rows:
                version = rows.version
            assert not curator.ask(TOTALS, epsilon=1.0).recalled
            before, after = map(numbers, seen)
            assert before == after and any(any(sums) for sums in before)
            assert table == "seen" or recorded_under(tmp_path) == [version]
        with monkeypatch.context() as patched:
            seen = between(patched, lambda: None)
            assert not curator.ask(TOTALS, epsilon=1.0).recalled
            assert numbers(seen[0]) != before
        # Anybody's write makes other data of a view.
        assert table == "seen" or curator.ask(TOTALS, epsilon=1.0).recalled


def test_a_table_cannot_be_emptied_under_a_question(
    curator: Curator, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUNCATE takes rows away even from older snapshots, so it must wait."""

    def truncate() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            execute(postgres_database, "SET lock_timeout = 50", "TRUNCATE visits")

    seen = between(monkeypatch, truncate)
    curator.ask(TOTALS, epsilon=1.0)
    assert numbers(seen[0]) == numbers(seen[1])


def test_a_connection_that_is_cut_costs_the_price_and_nothing_more(
    curator: Curator, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = f"SELECT pg_terminate_backend(pid) FROM {OTHERS}"
    with monkeypatch.context() as patched:
        between(patched, lambda: execute(postgres_database, cut))
        said = said_by(lambda: curator.ask(TOTALS, epsilon=1.0))
    assert "closed its connection" in said and "stays spent; ask again" in said
    assert left(curator) == 9
    curator.ask(TOTALS, epsilon=1.0)
    assert left(curator) == 8


def test_connections_that_the_server_dropped_are_replaced_before_anything_is_paid(
    curator: Curator, postgres_database: str
) -> None:
    curator.ask(TOTALS, epsilon=1.0)
    execute(postgres_database, f"SELECT pg_terminate_backend(pid) FROM {OTHERS}")
    curator.ask("SELECT COUNT(*) AS n FROM visits WHERE x > 3", epsilon=1.0)
    assert left(curator) == 8


def test_a_timeout_costs_the_price_and_that_of_the_role_does_not_count(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(postgres_database)
    role = f"ROLE {servers.OWNER} IN DATABASE {postgres_database.rpartition('/')[2]}"
    execute(postgres_database, f"ALTER {role} SET statement_timeout = '7s'")
    with opened(postgres_database, tmp_path, timeout=1) as curator:
        backend = curator.backend
        assert isinstance(backend, Postgres)
        with backend._moments.moment(backend._relations) as moment:
            for connection in (moment.checks, moment.rows):
                assert connection.execute("SHOW statement_timeout").fetchone() == ("1s",)
        streamed = postgres._streamed

        def slow(connection: psycopg.Connection[Any], text: str) -> pa.Table:
            connection.execute("SELECT pg_sleep(30)")
            return streamed(connection, text)

        with monkeypatch.context() as patched:
            patched.setattr(postgres, "_streamed", slow)
            assert "stopped the question after 1 seconds" in said_by(lambda: curator.ask(TOTALS, epsilon=1.0))
        assert left(curator) == 9
        curator.ask(TOTALS, epsilon=1.0)
        assert left(curator) == 8


def test_a_statement_that_an_administrator_stops_is_not_said_to_be_late(postgres_database: str) -> None:
    visits(postgres_database, "text", "'ann'")
    engine = Postgres(facts(postgres_database))
    squares = " CROSS JOIN ".join(f"(VALUES {'(1), ' * 39}(1)) AS t{i}(v)" for i in range(9))
    active = f"{OTHERS} AND state = 'active' AND query LIKE '%CROSS JOIN%'"

    def cancel() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as owner:
            while not owner.execute(f"SELECT pg_cancel_backend(pid) FROM {active}".encode()).fetchall():
                pass

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(BackendError, match="Somebody at the database stopped the question, and what was"):
        engine._run(tree(f"SELECT COUNT(*) AS n FROM {squares}"))
    engine.close()


def crash(url: str) -> None:
    """Kill a process of the server, which then ends all others, recovers and starts again."""
    with psycopg.connect(url) as owner:
        os.kill(owner.info.backend_pid, signal.SIGKILL)


def test_a_server_that_crashes_costs_the_price_and_its_counters_are_not_believed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash sets the counters to zero; as many rows again, and they say what they said before it."""
    server = servers.fragile_postgres()
    with server.database() as url:
        furnish(url)
        with opened(url, tmp_path) as curator:
            backend = curator.backend
            assert isinstance(backend, Postgres)
            with backend._moments.checking() as connection:
                counts = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'visits'"
                (inserted,) = connection.execute(counts).fetchone() or (0,)
            version = backend.version(["visits"])
            with monkeypatch.context() as patched:
                between(patched, lambda: crash(url))
                assert "closed its connection" in said_by(lambda: curator.ask(TOTALS, epsilon=1.0))
            assert left(curator) == 9
            curator.ask(TOTALS, epsilon=1.0)
            assert left(curator) == 8
            again = f"INSERT INTO visits SELECT '1', 1 FROM generate_series(1, {inserted})"
            execute(url, again, FLUSH)
            with backend._moments.checking() as connection:
                assert connection.execute(counts).fetchone() == (inserted,)
            assert backend.version(["visits"]) != version


def test_rows_that_nobody_counts_make_another_version_with_every_write(postgres_database: str) -> None:
    server = servers.postgres()
    name = postgres_database.rpartition("/")[2]
    visits(postgres_database, "text", "'ann'")
    with psycopg.connect(server.url("postgres", servers.SUPERUSER), autocommit=True) as root:
        root.execute(f"ALTER DATABASE {name} SET track_counts = off".encode())
    engine = Postgres(facts(postgres_database))
    first = engine.version(["visits"])
    execute(postgres_database, "INSERT INTO visits VALUES ('bob', 'a', 1, 'flu')")
    assert engine.version(["visits"]) != first
    engine.close()
