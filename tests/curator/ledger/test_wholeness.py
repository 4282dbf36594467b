"""Opening refuses a ledger that lacks entries or answers, wherever they were."""

from __future__ import annotations

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
