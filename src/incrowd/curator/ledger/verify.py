"""Recompute a ledger from its entries and compare with everything it stores.

What is found: an entry that was altered, left out, doubled or moved (the chain breaks); entries cut off at
the end (the head names one that is not there); sums, answers or the head changed beside the chain (they
differ from what the entries add up to); a reservation charged less than its events cost, or beyond the caps
in force when it was made.

What cannot be found from the inside: whoever may write everything can compute a new chain, or bring back
yesterday's copy of the whole file, and both are consistent. Against that, note the head (`Ledger.head`, two
short values) where that person cannot write (a mail, a printed page, another organisation's log) and give it
to `verify`: a chain that does not run through it was rewritten or rolled back after it was noted. What was
added after the last noted head stays open to rewriting, so note it as often as matters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, select

from incrowd.curator.ledger import schema, steering
from incrowd.curator.ledger.chain import GENESIS, Entry, Head, canonical, digest
from incrowd.curator.ledger.charges import charge_from_text, covers
from incrowd.curator.ledger.clock import charged_since, moved_to
from incrowd.curator.ledger.limits import Cap
from incrowd.curator.ledger.owners import same_owner
from incrowd.curator.ledger.totals import Totals, charge_lost
from incrowd.errors import IncrowdError, LedgerError
from incrowd.privacy import Capacity, Charge, Guarantee, fits

_PAGE = 1000
_MOST_FAULTS = 50


@dataclass(frozen=True)
class Verification:
    """What a verification found. `unanswered` counts reservations without answer: crashes, or open asks."""

    head: Head
    entries: int
    reservations: int
    unanswered: int
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def require(self) -> Verification:
        """Itself if nothing is wrong; otherwise a LedgerError with the first fault."""
        if self.faults:
            more = len(self.faults) - 1
            also = f" (and {more} more)" if more else ""
            raise LedgerError(f"The ledger was altered: {self.faults[0]}{also}.")
        return self


@dataclass
class _Replay:
    """The state that the entries so far add up to."""

    head: Head = field(default_factory=lambda: Head(0, GENESIS))
    identity: str = ""
    policy: str = ""
    day: str = ""
    terms: dict[str, Any] = field(default_factory=dict)
    terms_hash: str = ""
    totals: Totals = field(default_factory=lambda: Totals({}))
    reserved: dict[int, Entry] = field(default_factory=dict)
    answered: dict[int, int] = field(default_factory=dict)
    count: int = 0
    reservations: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(text)


def verify(connection: Connection, *known: Head, policy: str | None = None) -> Verification:
    """Compare all that is stored with what the entries add up to, within one transaction.

    `known` are entries that must be there, `policy` the id of the owner's file that the ledger must be of.
    """
    replay, unmet = _Replay(), set(known)
    for row in _rows(connection):
        entry = Entry(**row._mapping)
        unmet.discard(Head(entry.seq, entry.hash))
        try:
            _link(replay, entry)
            _apply(replay, entry, connection)
        except (KeyError, TypeError, ValueError, AttributeError, IncrowdError):
            replay.fault(f"entry {entry.seq} cannot be read")
        replay.head = Head(entry.seq, entry.hash)
        replay.count += 1
    if policy is not None and not same_owner(replay.policy, policy):
        replay.fault("it belongs to another owner's file")
    for head in unmet:
        replay.fault(f"the entry {head.seq} that was noted elsewhere is not in this chain")
    _compare_head(replay, connection)
    _compare_sums(replay, connection)
    _compare_answers(replay, connection)
    return Verification(
        head=replay.head,
        entries=replay.count,
        reservations=replay.reservations,
        unanswered=replay.reservations - len(replay.answered),
        faults=tuple(replay.faults),
    )


def _rows(connection: Connection) -> Iterator[Row[Any]]:
    after = -(2**62)
    while True:
        page = select(*schema.entries.c).where(schema.entries.c.seq > after).order_by(schema.entries.c.seq)
        rows = connection.execute(page.limit(_PAGE)).all()
        yield from rows
        if len(rows) < _PAGE:
            return
        after = rows[-1].seq


def _link(replay: _Replay, entry: Entry) -> None:
    """Check the entry's own hash and its place in the chain."""
    if entry.sealed_hash() != entry.hash:
        replay.fault(f"entry {entry.seq} was altered")
    if entry.seq != replay.head.seq + 1:
        first, last = replay.head.seq + 1, entry.seq - 1
        replay.fault(
            f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"
        )
    elif entry.previous != replay.head.hash:
        replay.fault(f"entry {entry.seq} does not follow entry {replay.head.seq}: one was replaced or moved")
    if (entry.kind == "open") != (replay.count == 0):
        replay.fault(f"entry {entry.seq} opens the ledger at the wrong place")


def _apply(replay: _Replay, entry: Entry, connection: Connection) -> None:
    content = entry.content()
    stated = content.pop("sums")
    match entry.kind:
        case "open":
            replay.identity, replay.policy, replay.day = content["ledger"], content["policy"], entry.at[:10]
        case "budget":
            replay.terms, replay.terms_hash = content, digest(canonical(content).encode("ascii"))
        case "reserve":
            _apply_reservation(replay, entry, content)
            due = {key: json.loads(replay.totals.rows[key][1]) for key in content["caps"]}
            if content["spent"] != due:
                replay.fault(f"entry {entry.seq} states other sums than the entries add up to")
        case "answer":
            _apply_answer(replay, entry, content, connection)
        case "change":
            _apply_change(replay, content)
        case "clock":
            charges = charged_since(connection, content["day"], entry.seq)
            replay.totals = moved_to(replay.totals, content["day"], charges)
            replay.day = content["day"]
        case "restore":
            missing, day = charge_from_text(content["charge"]), content["day"]
            replay.totals = charge_lost(replay.totals, content["caps"], missing, day)
            replay.day = max(day, replay.day)
        case "backup":
            pass
        case _:
            replay.fault(f"entry {entry.seq} is of a kind that does not exist")
    if replay.totals.stated(replay.day, replay.terms_hash) != stated:
        replay.fault(f"entry {entry.seq} states other sums than the entries add up to")


def _apply_change(replay: _Replay, content: dict[str, Any]) -> None:
    if "limit" in content:
        change = steering.Change.from_content(content["by"])
        replay.totals = steering.changed(replay.totals, content["limit"], change)
    else:
        replay.totals = steering.with_retired(replay.totals, content["retired"], content["since"])


def _apply_reservation(replay: _Replay, entry: Entry, content: dict[str, Any]) -> None:
    replay.reserved[entry.seq] = entry
    replay.reservations += 1
    asked, day, keys = charge_from_text(content["charge"]), content["day"], content["caps"]
    if not covers(asked, _cost(content["guarantee"], float(content["delta"]))):
        replay.fault(f"entry {entry.seq} was charged less than its events cost")
    if day < replay.day:
        replay.fault(f"entry {entry.seq} was counted on a day that was over")
    replay.day = max(day, replay.day)
    if keys != replay.terms.get("holders", {}).get(entry.analyst):
        replay.fault(f"entry {entry.seq} was not charged to the caps of its analyst")
    for key in keys:
        terms = replay.terms.get("caps", {}).get(key)
        if terms is None:
            replay.fault(f"entry {entry.seq} was charged to {key}, which no budget declares")
            continue
        limit = Capacity(terms["kind"], int(terms["main"]), int(terms["beside"]), int(terms["pure"]))
        cap = Cap(key, key, 0.0, 0.0, limit, terms["daily"])
        if not fits(limit, replay.totals.spent(cap, day), asked):
            replay.fault(f"entry {entry.seq} overspent the cap {key}")
        replay.totals = replay.totals.charged([cap], asked, day)


@lru_cache(maxsize=4096)
def _cost(guarantee: str, delta: float) -> Charge:
    return Guarantee.from_json(guarantee).charge(delta)


def _apply_answer(replay: _Replay, entry: Entry, content: dict[str, Any], connection: Connection) -> None:
    paid = replay.reserved.get(content["reservation"])
    who = (entry.analyst, entry.question, entry.data_version)
    if paid is None or who != (paid.analyst, paid.question, paid.data_version):
        replay.fault(f"entry {entry.seq} answers a question that was not paid")
    if content["reservation"] in replay.answered:
        replay.fault(f"entry {entry.seq} answers entry {content['reservation']} a second time")
    replay.answered[content["reservation"]] = entry.seq
    row = connection.execute(select(*schema.answers.c).where(schema.answers.c.seq == entry.seq)).one_or_none()
    if row is None:
        replay.fault(f"the answer of entry {entry.seq} is missing")
    elif (row.analyst, row.question, row.data_version) != who or row.reservation != content["reservation"]:
        replay.fault(f"the answer of entry {entry.seq} was moved to another question")
    elif digest(row.payload) != content["payload"]:
        replay.fault(f"the answer of entry {entry.seq} was altered")


def _compare_head(replay: _Replay, connection: Connection) -> None:
    row = connection.execute(select(*schema.head.c)).one_or_none()
    if row is None:
        replay.fault("the head is missing")
        return
    if row.seq > replay.head.seq:
        replay.fault(f"the entries from {replay.head.seq + 1} to {row.seq} were cut off at the end")
    elif Head(row.seq, row.hash) != replay.head:
        replay.fault(
            f"the head says entry {row.seq}, but the chain ends otherwise at entry {replay.head.seq}"
        )
    if (row.ledger, row.day, row.caps) != (replay.identity, replay.day, replay.terms_hash):
        replay.fault("the head was altered")


def _compare_sums(replay: _Replay, connection: Connection) -> None:
    stored, due = Totals.read(connection).rows, replay.totals.rows
    for key in sorted(stored.keys() | due.keys(), key=str):
        if stored.get(key) != due.get(key):
            replay.fault(f"the sum of {key} is not what the entries add up to")


def _compare_answers(replay: _Replay, connection: Connection) -> None:
    known = set(replay.answered.values())
    for seq in connection.scalars(select(schema.answers.c.seq)):
        if seq not in known:
            replay.fault(f"the answer {seq} belongs to no entry")
