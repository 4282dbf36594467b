"""A payment: a price that is reserved once, and what was released for it.

The same question on the same data is on record and costs nothing. Otherwise the price is spent durably
before any private row is read, and stays spent whatever happens next. What is released is recorded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from incrowd.curator.ledger import Ledger, Reservation
from incrowd.errors import LedgerError
from incrowd.privacy import Guarantee


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

    def record(self, content: bytes) -> None:
        """Keep what was released."""
        if self.reservation is None:
            raise LedgerError("Nothing was reserved for this release, so it cannot be recorded.")
        self.ledger.record(self.reservation, content)
        self.recorded = content
