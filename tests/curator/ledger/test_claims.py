"""Claims: the same question at once is paid once, and noise is drawn once for each payment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from incrowd.catalog import SOLE_ANALYST, check
from incrowd.curator.ledger import Ledger, claims, schema
from incrowd.curator.ledger.backups import backup
from incrowd.curator.ledger.pages import Page
from incrowd.curator.ledger.store import connect
from incrowd.errors import LedgerError
from incrowd.privacy import pure
from incrowd.privacy.amounts import UNITS

OWNER_FILE = {
    "sources": {"s": {"csv": "a.csv"}},
    "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
    "budget": {"epsilon": 1.0},
}
_CRASH = """
import os, sys
from incrowd.catalog import SOLE_ANALYST, check
from incrowd.curator.ledger import Ledger
from incrowd.privacy import pure
ledger = Ledger.open(sys.argv[1], check({owner_file!r}))
paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
if sys.argv[2] == "drawn":
    assert ledger.draw(paid)
print(paid.seq, flush=True)
os._exit(9)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    opened = Ledger.found(place, check(OWNER_FILE))
    yield opened
    opened.close()


def spent(ledger: Ledger) -> float:
    epsilon = ledger.remaining(SOLE_ANALYST)[0].spent.epsilon
    assert epsilon is not None
    return epsilon / UNITS


def holders(ledger: Ledger) -> list[str]:
    """Who holds claims."""
    with ledger.store.reading() as connection:
        return list(connection.scalars(select(schema.claims.c.holder)))


def crashed(place: str, *, drawn: bool) -> int:
    """The reservation of a process that claimed the question and is gone."""
    code = _CRASH.replace("{owner_file!r}", repr(OWNER_FILE))
    words = [sys.executable, "-c", code, place, "drawn" if drawn else "open"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    return int(done.stdout)


def test_a_claimed_question_is_not_paid_again(ledger: Ledger, place: str) -> None:
    paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert paid is not None
    other = Ledger.open(place, check(OWNER_FILE))
    for curator in (ledger, other):
        assert curator.claimed(SOLE_ANALYST, "q", "v")
        assert curator.claim(SOLE_ANALYST, pure(0.25), "q", "v") is None
    assert ledger.draw(paid)
    ledger.record(paid, b"noisy")
    assert other.claim(SOLE_ANALYST, pure(0.25), "q", "v") is None
    assert other.recall("q", "v", SOLE_ANALYST) == b"noisy"
    assert spent(ledger) == 0.25 and ledger.verify().ok
    other.close()


def test_what_a_crashed_process_paid_is_used(ledger: Ledger, place: str) -> None:
    first = crashed(place, drawn=False)
    paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert paid is not None and paid.seq == first
    assert ledger.draw(paid)
    ledger.record(paid, b"noisy")
    assert spent(ledger) == 0.25 and ledger.verify().ok


def test_what_may_have_been_drawn_before_a_crash_is_paid_again(ledger: Ledger, place: str) -> None:
    first = crashed(place, drawn=True)
    paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert paid is not None and paid.seq > first
    assert spent(ledger) == 0.5


def test_another_price_question_or_version_is_paid_for_itself(ledger: Ledger, place: str) -> None:
    crashed(place, drawn=False)
    assert ledger.claim(SOLE_ANALYST, pure(0.25), "other", "v") is not None
    assert ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v2") is not None
    assert spent(ledger) == 0.75
    assert ledger.claim(SOLE_ANALYST, pure(0.125), "q", "v") is not None
    assert spent(ledger) == 0.875


def test_a_slow_one_that_was_overtaken_draws_nothing(ledger: Ledger) -> None:
    slow = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert slow is not None
    claims.let_go(slow.holder)  # as a process looks that is gone
    second = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert second is not None and second.seq == slow.seq
    assert [ledger.draw(slow), ledger.draw(second), ledger.draw(second)] == [False, True, False]
    ledger.let_go(slow)
    assert ledger.claimed(SOLE_ANALYST, "q", "v")


def test_an_error_ends_a_claim_and_leaves_the_price_spent(ledger: Ledger) -> None:
    paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert paid is not None
    ledger.let_go(paid)
    assert not ledger.claimed(SOLE_ANALYST, "q", "v")
    assert ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v") is not None
    assert spent(ledger) == 0.5


def test_nobody_waits_for_a_payment_that_failed_at_its_end(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(page: Page) -> None:
        raise LedgerError("The anchor cannot be used.")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "note", unreachable)
        with pytest.raises(LedgerError, match="anchor"):
            ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    assert holders(ledger) == []
    assert ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v") is not None
    assert spent(ledger) == 0.5


def test_a_claim_that_could_not_be_ended_ends_with_the_next_one(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable() -> None:
        raise LedgerError("The ledger cannot be reached.")

    kept, lost = (ledger.claim(SOLE_ANALYST, pure(0.25), question, "v") for question in ("kept", "lost"))
    assert kept is not None and lost is not None
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "writing", unreachable)
        with pytest.raises(LedgerError, match="reached"):
            ledger.let_go(lost)
    assert set(holders(ledger)) == {kept.holder, lost.holder}
    after = ledger.claim(SOLE_ANALYST, pure(0.25), "other", "v")
    assert after is not None and set(holders(ledger)) == {kept.holder, after.holder}


def test_a_claim_of_another_machine_is_left_behind_after_an_hour(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    paid = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v", now=now)
    assert paid is not None
    monkeypatch.setattr(claims, "_machine", lambda: "another")
    assert ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v", now=now + timedelta(minutes=59)) is None
    second = ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v", now=now + timedelta(minutes=61))
    assert second is not None and second.seq == paid.seq


def test_a_backup_knows_no_claims(ledger: Ledger, tmp_path: Path) -> None:
    """Noise may be drawn after the backup: a claim that is brought back would let it be drawn again."""
    ledger.claim(SOLE_ANALYST, pure(0.25), "q", "v")
    backup(ledger, tmp_path / "backup")
    store = connect(tmp_path / "backup", backup=True)
    with store.reading() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM incrowd_claims").scalar() == 0
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM incrowd_entries").scalar()
    store.close()
