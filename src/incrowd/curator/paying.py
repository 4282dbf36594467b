"""A payment: a price that is reserved once, and what was released for it.

The same question on the same data is on record and costs nothing. Otherwise the price is spent durably
before any private row is read, and stays spent whatever happens next. What is released is recorded once.

The same question that is asked while the first is at work waits for its answer (`Ledger.claim`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from incrowd.backends import Progress
from incrowd.curator.ledger import Ledger, Reservation
from incrowd.errors import LedgerError
from incrowd.privacy import Guarantee

WAIT = 600.0
"""Seconds that a question waits for the answer of the same question that is at work."""
_OFTEN, _SELDOM = 0.01, 0.5


class OvertakenError(Exception):
    """Another process took over the claim of this one, which must release nothing."""


@dataclass
class Payment:
    """What one analyst pays for one question on one version of the data.

    recorded: what was released, once it is on record. recalled: whether it was before this payment.
    """

    ledger: Ledger
    analyst: str
    question: str
    version: str
    recorded: bytes | None = None
    recalled: bool = False
    reservation: Reservation | None = None
    drawn: bool = False

    @classmethod
    def recall(cls, ledger: Ledger, analyst: str, question: str, version: str) -> Payment:
        """A payment of nothing so far; with the answer, if it is on record for this analyst."""
        recorded = ledger.recall(question, version, analyst)
        return cls(ledger, analyst, question, version, recorded, recorded is not None)

    def reserve(self, guarantee: Guarantee, delta: float = 0.0, words: str | None = None) -> Payment:
        """The same, paid: every cap of the analyst is charged (`Ledger.reserve`).

        `words` is the question as it was asked, which the ledger keeps for the owner.
        """
        paid = self.ledger.reserve(
            self.analyst, guarantee, self.question, self.version, delta=delta, words=words
        )
        return replace(self, reservation=paid)

    def claim(
        self,
        guarantee: Guarantee,
        delta: float = 0.0,
        words: str | None = None,
        progress: Progress | None = None,
    ) -> Payment:
        """The same, paid and claimed; or with the answer of the same question that is at work elsewhere."""
        first = True
        for _ in _patience(progress):
            paid = None
            if first or not self.ledger.claimed(self.analyst, self.question, self.version):
                paid = self.ledger.claim(
                    self.analyst, guarantee, self.question, self.version, delta=delta, words=words
                )
            if paid is not None:
                return replace(self, reservation=paid)
            first = False
            recorded = self.ledger.recall(self.question, self.version, self.analyst)
            if recorded is not None:
                return replace(self, recorded=recorded, recalled=True)
        raise _impatient(self.analyst)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the claim until the answer is on record; an error ends it, and the price stays spent."""
        try:
            yield
        except BaseException:
            if self.reservation is not None:
                with contextlib.suppress(LedgerError):
                    self.ledger.let_go(self.reservation)
            raise

    def draw(self) -> None:
        """Note durably that noise is about to be drawn, once; OvertakenError if the claim was lost."""
        if self.drawn or self.reservation is None or not self.reservation.holder:
            return
        if not self.ledger.draw(self.reservation):
            raise OvertakenError
        self.drawn = True

    def awaited(self, progress: Progress | None = None) -> Payment:
        """The payment with the answer of whoever took over."""
        for _ in _patience(progress):
            recorded = self.ledger.recall(self.question, self.version, self.analyst)
            if recorded is not None:
                return replace(self, recorded=recorded, recalled=True)
        raise _impatient(self.analyst)

    def record(self, content: bytes) -> None:
        """Keep what was released."""
        if self.reservation is None:
            raise LedgerError("Nothing was reserved for this release, so it cannot be recorded.")
        self.ledger.record(self.reservation, content)
        self.recorded = content


def _patience(progress: Progress | None) -> Iterator[None]:
    """Turns to look again, ever more seldom, until `WAIT` is over."""
    deadline, pause = time.monotonic() + WAIT, _OFTEN
    yield
    while time.monotonic() < deadline:
        if progress is not None:
            progress(0.0)
        time.sleep(pause)
        pause = min(_SELDOM, pause * 1.5)
        yield


def _impatient(analyst: str) -> LedgerError:
    return LedgerError(
        f"The same question of {analyst} is at work already and had no answer after {WAIT / 60:g} minutes; "
        "ask again later, and its answer is free."
    )
