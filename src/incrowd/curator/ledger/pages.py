"""A page: the ledger as one transaction sees it, checked at its end.

The last entry must be the one that the head names and be sealed by its own hash, and the totals must be those
that it states. The entry that this process saw last must still be in the chain; each entry since, and the
hundred before it, must follow the one before. Whatever was lost, emptied, altered or rolled back is thus
noticed by the next ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.chain import Entry, Head, Kind, seal
from incrowd.curator.ledger.store import Store
from incrowd.curator.ledger.totals import Totals
from incrowd.errors import LedgerError

NOBODY: Mapping[str, str] = MappingProxyType({})
MEND = "run incrowd ledger verify, and bring back the newest backup with incrowd ledger restore"

TAIL = 100
"""How many entries before the one that was seen last every ask looks at."""


@dataclass
class Page:
    """The end of the ledger within a transaction: the last entry, the day, the terms in force, the totals."""

    connection: Connection
    last: Entry
    day: str
    terms: str
    totals: Totals

    @classmethod
    def read(cls, store: Store, connection: Connection, known: Head | None, *, lock: bool = False) -> Page:
        """The page as stored, held until the transaction ends if `lock`; LedgerError if it does not fit.

        `known` is an entry that must be in the chain.
        """
        head = read_head(store, connection, lock=lock)
        last = entry_at(connection, None)
        if last is None or (last.seq, last.hash) != (head.seq, head.hash) or last.sealed_hash() != last.hash:
            raise LedgerError(
                f"The ledger {store.name} does not end where it should, so nothing can be asked; {MEND}."
            )
        if known is not None:
            require_in_chain(store, connection, known, "was seen there before")
        _require_linked(store, connection, head.seq if known is None else min(known.seq, head.seq))
        totals = Totals.read(connection)
        if totals.stated(head.day, head.caps) != last.content().get("sums"):
            raise LedgerError(
                f"The sums in the ledger {store.name} are not those that its last entry states, so nothing "
                f"can be asked; {MEND}."
            )
        return cls(connection, last, head.day, head.caps, totals)

    @property
    def head(self) -> Head:
        """The last entry's number and hash."""
        return Head(self.last.seq, self.last.hash)

    def append(
        self,
        kind: Kind,
        body: Mapping[str, object],
        *,
        at: datetime,
        totals: Totals | None = None,
        day: str | None = None,
        terms: str | None = None,
        who: Mapping[str, str] = NOBODY,
    ) -> Entry:
        """Write an entry, and what it makes of totals, day and terms."""
        after, self.totals = self.totals, totals or self.totals
        self.day, self.terms = day or self.day, self.terms if terms is None else terms
        stated = {"sums": self.totals.stated(self.day, self.terms)}
        self.last = seal(self.head, at=at, kind=kind, body={**body, **stated}, **who)
        self.connection.execute(insert(schema.entries), [dict(self.last.__dict__)])
        values = {"seq": self.last.seq, "hash": self.last.hash, "day": self.day, "caps": self.terms}
        self.connection.execute(update(schema.head).values(values))
        self.totals.write(self.connection, after)
        return self.last


def _require_linked(store: Store, connection: Connection, since: int) -> None:
    """LedgerError unless each entry from `TAIL` before `since` follows the one before it."""
    entries = schema.entries.c
    rows = connection.execute(
        select(entries.seq, entries.previous, entries.hash)
        .where(entries.seq >= since - TAIL)
        .order_by(entries.seq)
    )
    before = None
    for row in rows:
        if before is not None and (row.seq, row.previous) != (before.seq + 1, before.hash):
            raise broken_chain(store, row.seq)
        before = row


def broken_chain(store: Store, seq: int) -> LedgerError:
    """What is said where an entry does not follow the one before it."""
    return LedgerError(
        f"The ledger {store.name} lacks entries: its entry {seq} does not follow the one before it, so "
        f"nothing can be asked; {MEND}."
    )


def read_head(store: Store, connection: Connection, *, lock: bool = False) -> Row[Any]:
    """The head's row; locked until the transaction ends if `lock`."""
    query = select(*schema.head.c)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise LedgerError(f"The ledger {store.name} has lost its head; {MEND}.")
    return row


def entry_at(connection: Connection, seq: int | None) -> Entry | None:
    """The entry with a number; the last one for None."""
    entries = schema.entries
    query = select(*entries.c)
    query = (
        query.order_by(entries.c.seq.desc()).limit(1) if seq is None else query.where(entries.c.seq == seq)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Entry(**row._mapping)


def require_in_chain(store: Store, connection: Connection, known: Head, said: str) -> None:
    """LedgerError unless the entry that `known` names is in the chain."""
    value = connection.scalar(select(schema.entries.c.hash).where(schema.entries.c.seq == known.seq))
    if value != known.hash:
        raise LedgerError(
            f"The ledger {store.name} was rolled back or replaced: its entry {known.seq}, which {said}, is "
            f"not there any more, so nothing can be asked; {MEND}."
        )
