"""A page is checked at its end: head, last entry, totals, and the entry that was seen last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Head, Ledger
from incrowd.curator.ledger.pages import TAIL, Page, entry_at
from incrowd.curator.ledger.store import Store, connect
from incrowd.errors import LedgerError
from incrowd.privacy import pure
from tests.curator.ledger.test_verify import tamper

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "a.ledger"
    ledger = Ledger.found(file, CATALOG)
    for number in range(3):
        ledger.reserve("analyst", pure(0.1), f"q{number}", "v")
    ledger.close()
    yield file


def read(path: Path, known: Head | None = None) -> Page:
    store: Store = connect(path)
    try:
        with store.reading() as connection:
            return Page.read(store, connection, known)
    finally:
        store.close()


def test_a_page_is_the_last_entry_with_the_totals_that_it_states(path: Path) -> None:
    page = read(path)
    assert page.head == Head(page.last.seq, page.last.hash) and page.last.kind == "reserve"
    assert page.totals.stated(page.day, page.terms) == page.last.content()["sums"]
    assert read(path, page.head).head == page.head


def test_an_entry_is_found_by_its_number(path: Path) -> None:
    store = connect(path)
    with store.reading() as connection:
        first, last = entry_at(connection, 1), entry_at(connection, None)
        assert first is not None and last is not None and (first.kind, last.kind) == ("open", "reserve")
        assert entry_at(connection, last.seq + 1) is None
    store.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM incrowd_head", "lacks parts that it once had"),
        ("DELETE FROM incrowd_entries WHERE seq > 3", "does not end where it should"),
        ("UPDATE incrowd_entries SET question = 'p' WHERE seq > 3", "does not end where it should"),
        ("DELETE FROM incrowd_entries WHERE seq = 3", "lacks entries: its entry 4 does not follow the one"),
        ("UPDATE incrowd_entries SET previous = 'x' WHERE seq = 4", "lacks entries: its entry 4 does not"),
        ("DELETE FROM incrowd_sums", "are not those that its last entry states"),
        ("UPDATE incrowd_head SET day = '2001-01-01'", "are not those that its last entry states"),
    ],
)
def test_what_does_not_fit_is_refused(path: Path, change: str, said: str) -> None:
    tamper(path, change)
    with pytest.raises(LedgerError, match=said):
        read(path)


def test_an_entry_that_was_seen_must_still_be_there(path: Path) -> None:
    seen = read(path).head
    with pytest.raises(LedgerError, match="was rolled back or replaced"):
        read(path, Head(seen.seq, "0" * len(seen.hash)))
    with pytest.raises(LedgerError, match="was rolled back or replaced"):
        read(path, Head(seen.seq + 1, seen.hash))


def test_entries_since_the_one_that_was_seen_must_all_be_there(path: Path) -> None:
    seen = read(path).head
    with closing(Ledger.open(path, CATALOG)) as ledger:
        for number in range(TAIL + 5):
            ledger.record(ledger.reserve("analyst", pure(1e-6), f"more {number}", "v"), b"answer")
    tamper(path, f"DELETE FROM incrowd_entries WHERE seq = {seen.seq + 2}")
    with pytest.raises(LedgerError, match=f"its entry {seen.seq + 3} does not follow the one before it"):
        read(path, seen)
