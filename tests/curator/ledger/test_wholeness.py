"""Opening refuses a ledger that lacks entries or answers, wherever they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Ledger
from incrowd.curator.ledger.pages import TAIL
from incrowd.errors import LedgerError
from incrowd.privacy import pure
from tests.curator.ledger.test_verify import tamper

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))


def make(where: Path | str) -> None:
    """A ledger that is longer than what every ask looks at."""
    with closing(Ledger.found(where, CATALOG)) as ledger:
        for number in range(TAIL // 2 + 10):
            ledger.record(ledger.reserve("analyst", pure(1e-6), f"q{number}", "v"), b"answer")


# The entries: 1 open, 2 budget, 3 reserve, 4 answer, 5 reserve, and so on.
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM incrowd_entries WHERE seq = 2", "lacks entries: its entry 3 does not follow the one"),
        ("DELETE FROM incrowd_entries WHERE seq IN (5, 6, 9)", "lacks entries: its entry 7 does not follow"),
        ("DELETE FROM incrowd_answers", "lacks the answer of entry 4, whose question would be"),
        ("DELETE FROM incrowd_answers WHERE seq = 10", "lacks the answer of entry 10"),
        ("UPDATE incrowd_answers SET seq = seq + 1 WHERE seq = 10", "lacks the answer of entry 10"),
        ("UPDATE incrowd_answers SET question = 'p' WHERE seq = 10", "lacks the answer of entry 10"),
        ("UPDATE incrowd_answers SET data_version = 'w' WHERE seq = 10", "lacks the answer of entry 10"),
        ("UPDATE incrowd_answers SET analyst = 'eve' WHERE seq = 10", "lacks the answer of entry 10"),
        ("UPDATE incrowd_entries SET hash = previous WHERE seq = 5", "its entry 6 does not follow"),
    ],
)
def test_a_ledger_that_lacks_something_is_not_opened(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    Ledger.open(path, CATALOG).close()
    tamper(path, change)
    with pytest.raises(LedgerError, match=said):
        Ledger.open(path, CATALOG)


@pytest.mark.parametrize(
    ("table", "said"),
    [("incrowd_entries", "its entry 5 does not follow"), ("incrowd_answers", "lacks the answer of entry 4")],
)
def test_a_ledger_on_a_server_that_lacks_something_is_not_opened(
    postgres_database: str, table: str, said: str
) -> None:
    make(postgres_database)
    Ledger.open(postgres_database, CATALOG).close()
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER".encode())
        owner.execute(f"DELETE FROM {table} WHERE seq = 4".encode())
    with pytest.raises(LedgerError, match=said):
        Ledger.open(postgres_database, CATALOG)


def guards_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1").fetchall()


def test_a_trigger_that_was_taken_off_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    guards = guards_of(path)
    assert len(guards) == 4
    tamper(
        path, "CREATE TRIGGER incrowd_entries_no_update BEFORE UPDATE ON incrowd_entries BEGIN SELECT 1; END"
    )
    Ledger.open(path, CATALOG).close()
    assert guards_of(path) == guards


def test_where_a_trigger_was_taken_off_everything_is_verified_before_it_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    tamper(path, "UPDATE incrowd_answers SET payload = x'00' WHERE seq = 4")
    with pytest.raises(LedgerError, match=r"was altered, .*: the answer of entry 4 was altered; run"):
        Ledger.open(path, CATALOG)
    assert guards_of(path) == []


@pytest.mark.parametrize(
    "statement", ["DROP TRIGGER {0}_append_only ON {0}", "ALTER TABLE {0} DISABLE TRIGGER USER"]
)
def test_a_trigger_that_was_taken_off_on_a_server_is_put_back(postgres_database: str, statement: str) -> None:
    make(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        for table in ("incrowd_entries", "incrowd_answers"):
            owner.execute(statement.format(table).encode())
        Ledger.open(postgres_database, CATALOG).close()
        for table in ("incrowd_entries", "incrowd_answers"):
            with pytest.raises(psycopg.Error, match="is append-only"):
                owner.execute(f"DELETE FROM {table}".encode())
