"""What only a ledger on a PostgreSQL server meets: its settings, its failures, and curators that share it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError
from incrowd.privacy import pure

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))


@pytest.fixture
def ledger(postgres_database: str) -> Iterator[Ledger]:
    opened = Ledger.found(postgres_database, CATALOG)
    yield opened
    opened.close()


def administer(url: str, *statements: str) -> list[Any]:
    """Run statements beside the curator; the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def set_defaults(url: str, **settings: str) -> None:
    database = url.rpartition("/")[2]
    administer(url, *(f"ALTER DATABASE {database} SET {name} = {value}" for name, value in settings.items()))


def sessions_of(url: str) -> str:
    return f"pg_stat_activity WHERE datname = '{url.rpartition('/')[2]}' AND pid <> pg_backend_pid()"


def test_commits_wait_for_the_disk_and_take_their_time_whatever_the_servers_defaults(
    postgres_database: str,
) -> None:
    set_defaults(postgres_database, synchronous_commit="off", statement_timeout="'1h'")
    ledger = Ledger.found(postgres_database, CATALOG)
    with ledger._store.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "0"
    ledger.close()


@pytest.mark.parametrize("isolation", ["'repeatable read'", "serializable"])
def test_writers_wait_for_their_turn_whatever_the_servers_defaults(
    postgres_database: str, isolation: str
) -> None:
    set_defaults(postgres_database, default_transaction_isolation=isolation, lock_timeout="1")
    first, second = Ledger.found(postgres_database, CATALOG), Ledger.open(postgres_database, CATALOG)
    first.reserve("analyst", pure(0.1), "q", "v")
    paid: list[int] = []
    waiter = threading.Thread(
        target=lambda: paid.append(second.reserve("analyst", pure(0.1), "q", "v").seq), daemon=True
    )
    with first.writing() as page:
        head = page.head
        page.connection.exec_driver_sql(
            "UPDATE incrowd_head SET day = day"
        )  # so that it did change meanwhile
        waiter.start()
        waiting = f"SELECT count(*) FROM {sessions_of(postgres_database)} AND wait_event_type = 'Lock'"
        while waiter.is_alive() and administer(postgres_database, waiting) != [(1,)]:
            pass
    waiter.join()
    assert paid == [head.seq + 1]
    assert first.verify().require().reservations == 2
    first.close()
    second.close()


def test_a_frozen_curator_does_not_stop_the_others_for_ever(ledger: Ledger) -> None:
    with ledger._store.writing() as connection:
        limits = ("lock_timeout", "idle_in_transaction_session_timeout")
        assert all(connection.exec_driver_sql(f"SHOW {limit}").scalar() == "5min" for limit in limits)
        # A machine that vanished holds its lock until the server asks after it.
        asked = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
        assert [int(connection.exec_driver_sql(f"SHOW {name}").scalar() or 0) for name in asked] == [
            30,
            10,
            3,
        ]


def test_a_connection_lost_between_asks_is_made_again(ledger: Ledger, postgres_database: str) -> None:
    for number in range(3):
        ledger.reserve("analyst", pure(0.1), "q", "v")
        administer(
            postgres_database, f"SELECT pg_terminate_backend(pid) FROM {sessions_of(postgres_database)}"
        )
        assert ledger.verify().require().reservations == number + 1


def test_a_connection_lost_in_mid_ask_spends_nothing_and_reads_nothing(
    ledger: Ledger, postgres_database: str
) -> None:
    end = f"SELECT pg_terminate_backend(pid) FROM {sessions_of(postgres_database)}"
    for step in range(1, 7):
        seen: list[int] = []

        def after(*_: Any, seen: list[int] = seen, step: int = step) -> None:
            seen.append(1)
            if len(seen) == step:
                administer(postgres_database, end)

        for name in ("after_cursor_execute", "commit"):
            event.listen(ledger._store.engine, name, after)
        with pytest.raises(LedgerError, match="lost its connection; see what is left"):
            ledger.reserve("analyst", pure(0.1), "q", "v")
        for name in ("after_cursor_execute", "commit"):
            event.remove(ledger._store.engine, name, after)
        assert ledger.verify().require().reservations == 0
    ledger.reserve("analyst", pure(0.1), "q", "v")
    assert ledger.verify().require().reservations == 1


def altered(url: str, **parts: str) -> str:
    """The address with another database, password or option."""
    base, _, database = url.rpartition("/")
    role, _, host = base.partition("@")
    role = f"{role.rpartition(':')[0]}:{parts['password']}" if "password" in parts else role
    return f"{role}@{host}/{parts.get('database', database)}{parts.get('options', '')}"


def test_a_server_that_cannot_be_used_is_told_without_its_password(postgres_database: str) -> None:
    refused = {
        altered(postgres_database, password="secret"): "refuses the role or its password; mend the URL",
        altered(postgres_database, database="nowhere"): "has no such database; create it first",
        altered(
            postgres_database, options="?options=-csearch_path%3Dpg_catalog"
        ): "right to write its tables",
        altered(postgres_database, options="?options=-csearch_path%3Dnone"): "has no schema to write in",
        altered(postgres_database, options="?options=-cdefault_transaction_read_only%3Don"): "is read-only",
    }
    for url, said in refused.items():
        with pytest.raises(LedgerError, match=said) as caught:
            Ledger.found(url, CATALOG)
        told = str(caught.value)
        assert url.partition("@")[0].rpartition(":")[2] not in told and "\n" not in told
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger.open(postgres_database, CATALOG)
    assert administer(postgres_database, "SELECT tablename FROM pg_tables WHERE tableowner = 'tester'") == []


def test_tables_of_somebody_else_are_left_alone(postgres_database: str) -> None:
    administer(postgres_database, "CREATE TABLE incrowd_sums (a integer)")
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger.open(postgres_database, CATALOG)
    with pytest.raises(LedgerError, match="tables of a ledger"):
        Ledger.found(postgres_database, CATALOG)
    administer(postgres_database, "DROP TABLE incrowd_sums", "CREATE TABLE people (a integer)")
    ledger = Ledger.found(postgres_database, CATALOG)  # beside other tables it may lie
    assert ledger.verify().ok
    ledger.close()


@pytest.mark.parametrize("table", ["incrowd_entries", "incrowd_answers"])
def test_the_server_itself_refuses_to_change_what_is_written(
    ledger: Ledger, postgres_database: str, table: str
) -> None:
    ledger.record(ledger.reserve("analyst", pure(0.1), "q", "v"), b"x")
    for statement in (f"UPDATE {table} SET seq = seq + 100", f"DELETE FROM {table}", f"TRUNCATE {table}"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            administer(postgres_database, statement)
    assert ledger.verify().require().reservations == 1


# The entries: 1 open, 2 budget, 3 reserve, 4 answer, 5 reserve.
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE incrowd_entries SET analyst = 'eve' WHERE seq = 3", "entry 3 was altered"),
        ("UPDATE incrowd_entries SET body = '{' WHERE seq = 5", "entry 5 cannot be read"),
        ("DELETE FROM incrowd_entries WHERE seq = 3", "entry 3 is missing"),
        ("DELETE FROM incrowd_entries WHERE seq = 5", "cut off at the end"),
        ("UPDATE incrowd_sums SET spent = '?'", "the sum of dataset"),
        ("UPDATE incrowd_answers SET payload = 'forged'", "the answer of entry 4 was altered"),
        ("UPDATE incrowd_head SET day = '1999-01-01'", "the head was altered"),
    ],
)
def test_what_was_changed_beside_the_curator_is_found(
    ledger: Ledger, postgres_database: str, statement: str, said: str
) -> None:
    ledger.record(ledger.reserve("analyst", pure(0.1), "q", "v"), b"x")
    ledger.reserve("analyst", pure(0.1), "q", "v")
    tables = ("incrowd_entries", "incrowd_answers")
    administer(
        postgres_database, *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables), statement
    )
    assert any(said in fault for fault in ledger.verify().faults)


CURATORS = """
import json, os, sys
from incrowd import Curator
from incrowd.errors import BudgetExceeded
path, folder, processes, asks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
SHARED = "SELECT COUNT(*) AS n FROM people"

def work(number):
    curator, paid, refused = Curator.open(path), 0, 0
    shared = curator.ask(SHARED, epsilon=0.5)
    assert shared.recalled
    for each in range(asks):
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {number * asks + each}"
        try:
            assert not curator.ask(sql, epsilon=0.05).recalled
            paid += 1
        except BudgetExceeded:
            refused += 1
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump([paid, refused, shared.to_arrow().to_pylist()], file)
    curator.close()

first = Curator.open(path, new_ledger=True)
known = first.ask(SHARED, epsilon=0.5).to_arrow().to_pylist()
first.close()
children = []
for number in range(processes):
    child = os.fork()
    if child == 0:
        status = 3
        try:
            work(number)
            status = 0
        finally:
            os._exit(status)
    children.append(child)
assert not any([os.waitpid(child, 0)[1] for child in children])
print(json.dumps(known))
"""


def test_curators_in_several_processes_share_budget_and_answers(
    postgres_database: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("who,age\n" + "".join(f"{n},{n % 90}\n" for n in range(500)))
    declared = {
        "sources": {"here": {"csv": "people.csv"}},
        "tables": {
            "people": {"unit": "who", "columns": {"who": {"type": "integer"}, "age": {"type": "integer"}}}
        },
        "budget": {"epsilon": 1.0},
        "ledger": postgres_database,
    }
    (tmp_path / "curator.yaml").write_text(json.dumps(declared))
    processes, asks = 3, 6
    arguments = [str(tmp_path / "curator.yaml"), str(tmp_path), str(processes), str(asks)]
    done = subprocess.run(
        [sys.executable, "-c", CURATORS, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(processes)]
    assert sum(paid for paid, _, _ in results) == 10, "what the first question left, to the last unit"
    assert sum(refused for _, refused, _ in results) == processes * asks - 10
    assert all(shared == json.loads(done.stdout) for _, _, shared in results)
