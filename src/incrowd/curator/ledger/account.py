"""The ledger: the durable account of what was spent, by whom, on which question.

An ask is reserved in one transaction before any data is read: the charge is checked against every cap and, if
it fits all of them, added to their sums and appended to the chain. No reservation can be given back.
The answer, once released, is recorded beside it, so that the same question on the same data is answered again
for nothing. Sums make an ask cost the same after ten entries and after ten million; `verify` recomputes them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from incrowd.catalog import Catalog
from incrowd.curator.ledger import schema
from incrowd.curator.ledger.chain import GENESIS, Entry, Head, canonical, digest, seal
from incrowd.curator.ledger.charges import charge_from_json, charge_to_text
from incrowd.curator.ledger.limits import Cap, Caps
from incrowd.curator.ledger.store import Store, connect
from incrowd.curator.ledger.verify import Verification, verify
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import Capacity, Charge, Guarantee, Remaining, fits
from incrowd.privacy.filters import affordable, price, refusal, remaining

_PAGE = 1000


@dataclass(frozen=True)
class Reservation:
    """A price that is paid: the entry that says so."""

    ledger: str
    seq: int
    hash: str
    analyst: str
    question: str
    data_version: str


@dataclass(frozen=True, repr=False)
class Balance:
    """A cap, what was spent of it (today, for a daily one), and what is left."""

    cap: Cap
    spent: Charge

    def __str__(self) -> str:
        whole = f"epsilon {self.cap.epsilon:g}" + (f", delta {self.cap.delta:g}" if self.cap.delta else "")
        return f"{self.cap.whose}: {self.left} left of {whole}"

    def __repr__(self) -> str:
        return f"<Balance {self}>"

    @property
    def left(self) -> Remaining:
        """What is left, rounded down."""
        return remaining(self.cap.limit, self.spent)

    @property
    def share(self) -> float:
        """What is left as a part of the whole, from 0 to 1, for a picture; decisions use whole units."""
        limit = self.cap.limit
        spent = ((price(limit.kind, self.spent), limit.main), (self.spent.epsilon, limit.epsilon))
        return max(
            (max(0, most - used) / most for used, most in spent if used is not None and most), default=0.0
        )

    @property
    def affordable(self) -> float:
        """The largest epsilon of one pure release that fits this cap."""
        if not fits(self.cap.limit, self.spent, Charge.nothing()):
            return 0.0  # spent beyond a lowered budget, or in a currency that this one cannot hold
        return affordable(self.cap.limit, self.spent)


class Ledger:
    """An open ledger under the caps of a catalog. Safe to use from several threads and processes at once."""

    def __init__(self, store: Store, caps: Caps, identity: str) -> None:
        self._store = store
        self.caps = caps
        self.identity = identity

    @classmethod
    def open(cls, where: str | Path | None, caps: Caps | Catalog, *, create: bool = True) -> Ledger:
        """The ledger at a path or URL (None: in memory), made if it is not there and `create` allows it."""
        held = caps if isinstance(caps, Caps) else Caps.of(caps)
        store = connect(where, _found if create else None)
        with store.reading() as connection:
            identity = _read_head(store, connection).ledger
        return cls(store, held, identity)

    def reserve(
        self,
        analyst: str,
        guarantee: Guarantee,
        question: str,
        data_version: str,
        *,
        delta: float = 0.0,
        now: datetime | None = None,
    ) -> Reservation:
        """Spend `guarantee` on every cap of `analyst`, durably; or raise BudgetExceeded and change nothing.

        With `delta`, the guarantee is charged as one plan (`Guarantee.charge`).

        When this returns, the entry has reached the disk. When it raises LedgerError after a failed commit,
        the price may be spent or not; the caller must not read the data either way.
        """
        caps = self.caps.held(analyst)
        self.caps.check_query(analyst, guarantee)
        _refuse_odd_text(question, "question")
        _refuse_odd_text(data_version, "data version")
        asked, moment = guarantee.charge(delta), _moment(now)
        with self._store.writing() as connection:
            head = self._locked_head(connection)
            day = max(_day(moment), head.day)
            sums = _sums(connection, caps, day)
            _refuse_unless_all_fit(caps, sums, asked)
            entries, last = [], Head(head.seq, head.hash)
            if head.caps != self.caps.terms_hash:
                entries.append(seal(last, at=moment, kind="budget", body=self.caps.terms))
                last = Head(entries[-1].seq, entries[-1].hash)
            body = {
                "guarantee": guarantee.to_json(),
                "charge": charge_to_text(asked),
                "delta": repr(delta),
                "caps": [cap.key for cap in caps],
                "day": day,
            }
            entry = seal(
                last,
                at=moment,
                kind="reserve",
                body=body,
                analyst=analyst,
                question=question,
                data_version=data_version,
            )
            _append(connection, [*entries, entry], day=day, caps=self.caps.terms_hash)
            _add(connection, caps, sums, asked, day)
        return Reservation(self.identity, entry.seq, entry.hash, analyst, question, data_version)

    def record(self, reservation: Reservation, answer: bytes, *, now: datetime | None = None) -> Entry:
        """Keep the released answer of a reservation, once."""
        if reservation.ledger != self.identity:
            raise LedgerError("The reservation belongs to another ledger; record the answer there.")
        with self._store.writing() as connection:
            head = self._locked_head(connection)
            paid = connection.scalar(
                select(schema.entries.c.hash).where(schema.entries.c.seq == reservation.seq)
            )
            if paid != reservation.hash:
                raise LedgerError(
                    f"The ledger {self._store.name} no longer holds entry {reservation.seq} as paid."
                )
            taken = select(schema.answers.c.seq).where(schema.answers.c.reservation == reservation.seq)
            if connection.scalar(taken) is not None:
                raise LedgerError(
                    f"Entry {reservation.seq} has its answer already; an answer is recorded once."
                )
            who = {
                "analyst": reservation.analyst,
                "question": reservation.question,
                "data_version": reservation.data_version,
            }
            body = {"reservation": reservation.seq, "payload": digest(answer)}
            entry = seal(Head(head.seq, head.hash), at=_moment(now), kind="answer", body=body, **who)
            _append(connection, [entry], day=head.day, caps=head.caps)
            row = {"seq": entry.seq, "reservation": reservation.seq, "payload": answer, **who}
            connection.execute(insert(schema.answers), [row])
        return entry

    def recall(self, question: str, data_version: str, analyst: str) -> bytes | None:
        """The recorded answer to the same question on the same data that `analyst` may see, her own first."""
        self.caps.held(analyst)
        answers, entries = schema.answers.c, schema.entries.c
        which = (answers.question == question) & (answers.data_version == data_version)
        with self._store.reading() as connection:
            recorded = connection.execute(
                select(answers.seq, answers.analyst).where(which).order_by(answers.seq)
            )
            seen = [row for row in recorded if self.caps.may_see(analyst, row.analyst)]
            if not seen:
                return None
            seq = min(seen, key=lambda row: (row.analyst != analyst, row.seq)).seq
            payload = connection.scalar(select(answers.payload).where(answers.seq == seq))
            body = connection.scalar(select(entries.body).where(entries.seq == seq))
        if body is None or payload is None or json.loads(body).get("payload") != digest(payload):
            raise LedgerError(f"The answer of entry {seq} was altered; run incrowd ledger verify.")
        return bytes(payload)

    def remaining(self, analyst: str, *, now: datetime | None = None) -> tuple[Balance, ...]:
        """What is left of each cap of `analyst`, the dataset's first."""
        caps = self.caps.held(analyst)
        with self._store.reading() as connection:
            day = max(_day(_moment(now)), _read_head(self._store, connection).day)
            sums = _sums(connection, caps, day)
        return tuple(Balance(cap, sums[cap.key].spent) for cap in caps)

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """The entries in order, from the one that follows number `after`."""
        while True:
            page = (
                select(*schema.entries.c).where(schema.entries.c.seq > after).order_by(schema.entries.c.seq)
            )
            with self._store.reading() as connection:
                rows = connection.execute(page.limit(_PAGE)).all()
            yield from (Entry(**row._mapping) for row in rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1].seq

    def head(self) -> Head:
        """The number and hash of the last entry. Kept elsewhere, it lets `verify` notice a rewritten past."""
        with self._store.reading() as connection:
            row = _read_head(self._store, connection)
        return Head(row.seq, row.hash)

    def verify(self, known: Head | None = None) -> Verification:
        """Recompute everything from the entries; `known` is a head that was noted earlier, elsewhere."""
        with self._store.reading() as connection:
            return verify(connection, known)

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def _locked_head(self, connection: Connection) -> Row[Any]:
        """The head, held until the transaction ends; LedgerError if the chain's end is not what it says."""
        head = _read_head(self._store, connection, lock=True)
        last = (
            select(schema.entries.c.seq, schema.entries.c.hash).order_by(schema.entries.c.seq.desc()).limit(1)
        )
        end = connection.execute(last).one_or_none()
        if end is None or (end.seq, end.hash) != (head.seq, head.hash):
            raise LedgerError(
                f"The ledger {self._store.name} does not end where it should, so nothing can be asked; "
                "run incrowd ledger verify and restore it from a copy."
            )
        return head


def _found(connection: Connection) -> None:
    """The first entry and the head of a new ledger."""
    identity, moment = secrets.token_hex(16), _moment(None)
    body = {"ledger": identity, "version": schema.VERSION}
    entry = seal(Head(0, GENESIS), at=moment, kind="open", body=body)
    first = {"id": 1, "version": schema.VERSION, "ledger": identity, "seq": 0, "hash": GENESIS}
    connection.execute(insert(schema.head), [{**first, "day": _day(moment), "caps": ""}])
    _append(connection, [entry], day=_day(moment), caps="")


def _refuse_odd_text(text: str, what: str) -> None:
    # Some databases cannot hold every text; what was hashed must be what is stored.
    if not text or "\x00" in text or any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise InvalidInput(f"The {what} must be text without null characters or halves of surrogate pairs.")


def _moment(now: datetime | None) -> datetime:
    moment = datetime.now(UTC) if now is None else now
    if moment.tzinfo is None:
        raise InvalidInput("now must have a time zone; days are counted in UTC.")
    return moment.astimezone(UTC)


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _read_head(store: Store, connection: Connection, *, lock: bool = False) -> Row[Any]:
    query = select(*schema.head.c)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise LedgerError(f"The ledger {store.name} has lost its head; restore it from a copy.")
    return row


@dataclass(frozen=True)
class _Sum:
    """What a cap has spent, and whether it has a row yet."""

    spent: Charge
    stored: bool


def _sums(connection: Connection, caps: tuple[Cap, ...], day: str) -> dict[str, _Sum]:
    """What each cap has spent; a daily one whose stored day is over has spent nothing."""
    rows = connection.execute(select(*schema.sums.c).where(schema.sums.c.cap.in_([cap.key for cap in caps])))
    stored = {row.cap: row for row in rows}
    sums = {}
    for cap in caps:
        row = stored.get(cap.key)
        if row is None or (cap.daily and row.day < day):
            sums[cap.key] = _Sum(Charge.nothing(), row is not None)
        else:
            sums[cap.key] = _Sum(charge_from_json(row.spent), True)
    return sums


def _refuse_unless_all_fit(caps: tuple[Cap, ...], sums: Mapping[str, _Sum], asked: Charge) -> None:
    short = [cap for cap in caps if not fits(cap.limit, sums[cap.key].spent, asked)]
    if short:
        tightest = min(short, key=lambda cap: _room(cap.limit, sums[cap.key].spent, asked))
        raise refusal(tightest.limit, sums[tightest.key].spent, asked, tightest.whose)


def _room(limit: Capacity, spent: Charge, asked: Charge) -> Fraction:
    """What is left as a share of what is asked, in the scarcer currency; -1 if it cannot be held."""
    routes = (
        (limit.main, price(limit.kind, spent), price(limit.kind, asked)),
        (limit.epsilon, spent.epsilon, asked.epsilon),
    )
    open_routes = [
        Fraction(max(0, most - used), need) for most, used, need in routes if used is not None and need
    ]
    if not open_routes:
        return Fraction(-1)
    if asked.delta:
        return min(max(open_routes), Fraction(max(0, limit.delta - spent.delta), asked.delta))
    return max(open_routes)


def _append(connection: Connection, entries: list[Entry], *, day: str, caps: str) -> None:
    connection.execute(insert(schema.entries), [dict(entry.__dict__) for entry in entries])
    last = entries[-1]
    connection.execute(update(schema.head).values(seq=last.seq, hash=last.hash, day=day, caps=caps))


def _add(
    connection: Connection, caps: tuple[Cap, ...], sums: Mapping[str, _Sum], asked: Charge, day: str
) -> None:
    values: dict[str, Any] = {"day": bindparam("on"), "spent": bindparam("sum")}
    change = update(schema.sums).where(schema.sums.c.cap == bindparam("key")).values(values)
    begin = insert(schema.sums).values(cap=bindparam("key"), **values)
    for statement, stored in ((change, True), (begin, False)):
        rows = [
            {
                "key": cap.key,
                "on": day if cap.daily else "",
                "sum": canonical(charge_to_text(sums[cap.key].spent + asked)),
            }
            for cap in caps
            if sums[cap.key].stored == stored
        ]
        if rows:
            connection.execute(statement, rows)
