"""The ledger: the durable account of what was spent, by whom, on which question.

An ask is reserved in one transaction before any data is read: the charge is checked against every cap and, if
it fits all of them, added to their totals and appended to the chain. No reservation can be given back.
The answer, once released, is recorded beside it, so that the same question on the same data is answered again
for nothing. Totals make an ask cost the same after ten entries and after ten million; every ask checks them
against the last entry, and `verify` recomputes them.

A ledger is founded once, on purpose (`Ledger.found`). Opening one never makes one.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from sqlalchemy import Connection, insert, select

from incrowd.catalog import Catalog
from incrowd.curator.ledger import claims, schema, steering
from incrowd.curator.ledger.anchors import Anchor, Note, open_anchor
from incrowd.curator.ledger.balances import Balance, refuse_unless_all_fit
from incrowd.curator.ledger.chain import GENESIS, Entry, Head, digest, seal
from incrowd.curator.ledger.charges import charge_from_json, charge_to_text
from incrowd.curator.ledger.clock import counted_day, day_of, moment_of, shown_day
from incrowd.curator.ledger.limits import DATASET, Caps
from incrowd.curator.ledger.owners import same_owner, stranger
from incrowd.curator.ledger.pages import Page, entry_at, read_head, require_in_chain
from incrowd.curator.ledger.store import Store, connect, found
from incrowd.curator.ledger.totals import Totals
from incrowd.curator.ledger.verify import Verification, verify
from incrowd.curator.ledger.wholeness import lacking_guards, put_back, require_whole
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import Charge, Guarantee

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
    holder: str = ""
    """Who holds the claim on the question (`claims`); empty without a claim."""

    @property
    def who(self) -> dict[str, str]:
        """Whose it is, and for which question on which data."""
        return {"analyst": self.analyst, "question": self.question, "data_version": self.data_version}


class Ledger:
    """An open ledger under the caps of a catalog. Safe to use from several threads and processes at once."""

    def __init__(
        self,
        store: Store,
        caps: Caps,
        identity: str,
        anchor: Anchor | None = None,
        policy: str | None = None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._anchor = anchor
        self._seen: Head | None = None
        self._seeing = threading.Lock()
        self.caps = caps
        self.identity = identity

    @classmethod
    def found(
        cls,
        where: str | Path | None,
        caps: Caps | Catalog,
        *,
        gave_up: str = "",
        now: datetime | None = None,
    ) -> Ledger:
        """A new ledger at a path or URL, in memory for None; LedgerError if anything of one is there.

        `gave_up` is the id of the owner's file under an account that was given up for this one.
        """
        anchor = _anchor_of(caps)
        require_blank(anchor)
        store = found(where, _founding(_policy_of(caps) or "", gave_up, moment_of(now)))
        ledger = cls._over(store, caps, anchor)
        ledger.note_head()
        return ledger

    @classmethod
    def open(cls, where: str | Path | None, caps: Caps | Catalog) -> Ledger:
        """The ledger at a path or URL, which must be there, whole and of this catalog; in memory for None."""
        if where is None:
            return cls.found(None, caps)
        ledger = cls._over(connect(where), caps, _anchor_of(caps))
        try:
            with ledger._store.reading() as connection:
                ledger._recognise(connection)
                require_whole(ledger._store, connection)
            with ledger._reading(ledger._anchored()) as page:
                lacking = lacking_guards(ledger._store, page.connection)
            if lacking:
                put_back(ledger._store, lacking)
        except LedgerError:
            ledger.close()
            raise
        return ledger

    @classmethod
    def inspect(cls, where: str | Path, caps: Caps | Catalog | None = None) -> Ledger:
        """The ledger at a path or URL as it is, to look at or verify; nothing in it is checked yet."""
        held = Caps({}, {}, {}, {}) if caps is None else caps
        return cls._over(connect(where), held, _anchor_of(held))

    @classmethod
    def _over(cls, store: Store, caps: Caps | Catalog, anchor: Anchor | None) -> Ledger:
        held = caps if isinstance(caps, Caps) else Caps.of(caps)
        with store.reading() as connection:
            identity = read_head(store, connection).ledger
        return cls(store, held, identity, anchor, _policy_of(caps))

    def reserve(
        self,
        analyst: str,
        guarantee: Guarantee,
        question: str,
        data_version: str,
        *,
        delta: float = 0.0,
        words: str | None = None,
        now: datetime | None = None,
    ) -> Reservation:
        """Spend `guarantee` on every cap of `analyst`, durably; or raise BudgetExceeded and change nothing.

        With `delta`, the guarantee is charged as one plan (`Guarantee.charge`). `words` is the question as it
        was asked, for the owner.

        When this returns, the entry has reached the disk, and the anchor if there is one. When it raises
        LedgerError after a failed commit, the price may be spent or not; the caller must not read the data
        either way.
        """
        paid = self._spend(analyst, guarantee, question, data_version, delta, words, now, holder="")
        assert paid is not None
        return paid

    def claim(
        self,
        analyst: str,
        guarantee: Guarantee,
        question: str,
        data_version: str,
        *,
        delta: float = 0.0,
        words: str | None = None,
        now: datetime | None = None,
    ) -> Reservation | None:
        """Like `reserve`, with a claim on the question; None if it is claimed or on record already.

        What a crashed process paid for the same question, and drew no noise for, is not paid again.
        """
        holder = claims.new_holder()
        try:
            return self._spend(analyst, guarantee, question, data_version, delta, words, now, holder=holder)
        except BaseException:
            # The payment may be on disk with its claim, for which nobody must wait.
            with contextlib.suppress(LedgerError):
                self._end_claim(holder)
            raise

    def claimed(self, analyst: str, question: str, data_version: str) -> bool:
        """Whether a question is on record, or paid and somebody is at work on it."""
        who = {"analyst": analyst, "question": question, "data_version": data_version}
        with self._reading() as page:
            return claims.at_work(page.connection, who, moment_of(None))

    def draw(self, reservation: Reservation) -> bool:
        """Say durably that noise is about to be drawn; False if somebody took over the claim."""
        with self.writing() as page:
            return claims.draw(page.connection, reservation.holder)

    def let_go(self, reservation: Reservation) -> None:
        """End a claim without an answer. The price stays spent, and the same question costs again."""
        self._end_claim(reservation.holder)

    def _end_claim(self, holder: str) -> None:
        if claims.let_go(holder):
            with self.writing() as page:
                claims.drop(page.connection, holder=holder)

    def _spend(
        self,
        analyst: str,
        guarantee: Guarantee,
        question: str,
        data_version: str,
        delta: float,
        words: str | None,
        now: datetime | None,
        *,
        holder: str,
    ) -> Reservation | None:
        self.caps.held(analyst)
        self.caps.check_query(analyst, guarantee)
        _refuse_odd_text(question, "question")
        _refuse_odd_text(data_version, "data version")
        who = {"analyst": analyst, "question": question, "data_version": data_version}
        asked, moment = guarantee.charge(delta), moment_of(now)
        with self.writing(self._anchored()) as page:
            in_force = steering.in_force(self.caps, page.totals)
            caps = in_force.held(analyst)
            if holder and claims.at_work(page.connection, who, moment):
                return None
            entry = claims.left_behind(page.connection, who, guarantee, delta) if holder else None
            if entry is None:
                day = counted_day(moment, page.day, self._store.name)
                refuse_unless_all_fit(caps, page.totals, day, asked)
                if page.terms != in_force.terms_hash:
                    page.append("budget", in_force.terms, at=moment, terms=in_force.terms_hash)
                totals = page.totals.charged(caps, asked, day)
                body = {
                    "guarantee": guarantee.to_json(),
                    "charge": charge_to_text(asked),
                    "delta": repr(delta),
                    "caps": [cap.key for cap in caps],
                    "day": day,
                    "spent": {cap.key: charge_to_text(totals.spent(cap, day)) for cap in caps},
                }
                told = {} if words is None else {"words": words}
                entry = page.append("reserve", {**body, **told}, at=moment, totals=totals, day=day, who=who)
            if holder:
                claims.stake(page.connection, who, entry.seq, moment, holder)
        self.note(page)
        return Reservation(self.identity, entry.seq, entry.hash, **who, holder=holder)

    def record(self, reservation: Reservation, answer: bytes, *, now: datetime | None = None) -> Entry:
        """Keep the released answer of a reservation, once."""
        if reservation.ledger != self.identity:
            raise LedgerError("The reservation belongs to another ledger; record the answer there.")
        with self.writing() as page:
            paid = entry_at(page.connection, reservation.seq)
            if paid is None or paid.hash != reservation.hash:
                raise LedgerError(
                    f"The ledger {self._store.name} no longer holds entry {reservation.seq} as paid."
                )
            taken = select(schema.answers.c.seq).where(schema.answers.c.reservation == reservation.seq)
            if page.connection.scalar(taken) is not None:
                raise LedgerError(
                    f"Entry {reservation.seq} has its answer already; an answer is recorded once."
                )
            who = reservation.who
            body = {"reservation": reservation.seq, "payload": digest(answer)}
            entry = page.append("answer", body, at=moment_of(now), who=who)
            row = {"seq": entry.seq, "reservation": reservation.seq, "payload": answer, **who}
            page.connection.execute(insert(schema.answers), [row])
            if reservation.holder:
                claims.drop(page.connection, **who)
        claims.let_go(reservation.holder)
        return entry

    def recall(self, question: str, data_version: str, analyst: str) -> bytes | None:
        """The recorded answer to the same question on the same data that `analyst` may see, her own first."""
        self.caps.held(analyst)
        answers = schema.answers.c
        which = (answers.question == question) & (answers.data_version == data_version)
        with self._reading() as page:
            steering.in_force(self.caps, page.totals).held(analyst)
            recorded = page.connection.execute(
                select(answers.seq, answers.analyst).where(which).order_by(answers.seq)
            )
            seen = [row for row in recorded if self.caps.may_see(analyst, row.analyst)]
            if not seen:
                return None
            seq, whose = min(seen, key=lambda row: (row.analyst != analyst, row.seq))
            payload = page.connection.scalar(select(answers.payload).where(answers.seq == seq))
            entry = entry_at(page.connection, seq)
        # The entry, and not the table of answers, says whose answer to which question it is.
        who = (whose, question, data_version)
        if (
            payload is None
            or entry is None
            or (entry.analyst, entry.question, entry.data_version) != who
            or entry.hash != entry.sealed_hash()
            or entry.content().get("payload") != digest(payload)
        ):
            raise LedgerError(f"The answer of entry {seq} was altered; run incrowd ledger verify.")
        return bytes(payload)

    def check(
        self, analyst: str, guarantee: Guarantee, asked: Charge, *, now: datetime | None = None
    ) -> None:
        """Raise BudgetExceeded if a reservation would be refused now. Spends nothing and holds nothing."""
        self.caps.held(analyst)
        self.caps.check_query(analyst, guarantee)
        with self._reading() as page:
            caps = steering.in_force(self.caps, page.totals).held(analyst)
            refuse_unless_all_fit(caps, page.totals, shown_day(moment_of(now), page.day), asked)

    def recorded_from(self, beginning: str, data_version: str, analyst: str) -> list[str]:
        """The questions on record for `analyst` that begin alike up to the first dot, and sort no lower."""
        answers, alike = schema.answers.c, beginning.split(".")[0] + "."
        same = (answers.analyst == analyst) & (answers.data_version == data_version)
        query = select(answers.question).where(same, answers.question.between(beginning, f"{alike}g"))
        with self._reading() as page:
            questions = set(page.connection.scalars(query))
        return sorted(text for text in questions if text.startswith(alike) and text >= beginning)

    def remaining(self, analyst: str, *, now: datetime | None = None) -> tuple[Balance, ...]:
        """What is left of each cap of `analyst`, the dataset's first."""
        self.caps.held(analyst)
        with self._reading() as page:
            caps = steering.in_force(self.caps, page.totals).held(analyst)
            day = shown_day(moment_of(now), page.day)
            return tuple(Balance(cap, page.totals.spent(cap, day)) for cap in caps)

    def today(self, *, now: datetime | None = None) -> date:
        """The day, in UTC, by the ledger's clock: it never goes back, and a leap is not believed."""
        with self._reading() as page:
            return date.fromisoformat(shown_day(moment_of(now), page.day))

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
            row = read_head(self._store, connection)
        return Head(row.seq, row.hash)

    def verify(self, *known: Head | None) -> Verification:
        """Recompute everything from the entries; `known` are heads that were noted earlier, elsewhere.

        What the anchor keeps is one of them.
        """
        kept = None if self._anchor is None else self._anchored()
        with self._store.reading() as connection:
            heads = (head for head in (*known, kept) if head is not None)
            return verify(connection, *heads, policy=self._policy)

    def note_head(self, *, force: bool = False) -> None:
        """Write the head to the anchor, if there is one; LedgerError if that keeps another ledger's.

        With `force`, after a backup was brought back, whatever it keeps.
        """
        if self._anchor is None:
            return
        kept = None if force else self._anchor.kept()
        with self._reading(None if kept is None else kept.head) as page:
            pass
        self.note(page, force=force)

    @property
    def store(self) -> Store:
        """The database that holds it."""
        return self._store

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    @contextlib.contextmanager
    def writing(self, known: Head | None = None) -> Iterator[Page]:
        """The end of the ledger, locked; `known` must be in the chain, as must what was seen last."""
        seen = self._seen
        with self._store.writing() as connection:
            page = Page.read(self._store, connection, seen, lock=True)
            if known is not None:
                require_in_chain(self._store, connection, known, "its anchor keeps")
            yield page
        self._see(page.head)

    @contextlib.contextmanager
    def _reading(self, known: Head | None = None) -> Iterator[Page]:
        seen = self._seen  # before the snapshot, which therefore cannot be behind it
        with self._store.reading() as connection:
            page = Page.read(self._store, connection, seen)
            if known is not None:
                require_in_chain(self._store, connection, known, "its anchor keeps")
            yield page
        self._see(page.head)

    def _see(self, head: Head) -> None:
        with self._seeing:
            if self._seen is None or self._seen.seq < head.seq:
                self._seen = head

    def _anchored(self) -> Head | None:
        """The head that the anchor keeps, which must be in the chain."""
        if self._anchor is None:
            return None
        kept = self._anchor.kept()
        if kept is None:
            raise LedgerError(
                f"The anchor {self._anchor.name} keeps nothing; if this is the right ledger, note its head "
                "there with incrowd ledger anchor."
            )
        return kept.head

    def note(self, page: Page, *, force: bool = False) -> None:
        """Give the end of the ledger to the anchor, if there is one."""
        if self._anchor is not None:
            _, content = page.totals.rows.get(DATASET, ("", ""))
            spent = charge_from_json(content) if content else Charge.nothing()
            self._anchor.keep(Note(self.identity, page.head, spent), force=force)

    def _recognise(self, connection: Connection) -> None:
        """LedgerError unless the first entry is that of this ledger and of the owner's file."""
        first, name = entry_at(connection, 1), self._store.name
        content = {} if first is None or first.sealed_hash() != first.hash else first.content()
        if content.get("ledger") != self.identity:
            raise LedgerError(
                f"The ledger {name} has lost its beginning; bring it back with incrowd ledger restore."
            )
        recorded = content.get("policy", "")
        if self._policy is not None and not same_owner(recorded, self._policy):
            raise LedgerError(stranger(name, recorded, self._policy))


def require_blank(anchor: Anchor | None) -> None:
    """LedgerError if an anchor keeps the head of a ledger: none is founded then."""
    if anchor is not None and anchor.kept() is not None:
        raise LedgerError(
            f"The anchor {anchor.name} keeps the head of a ledger already, so none is founded; bring "
            "that ledger back with incrowd ledger restore, or name another anchor."
        )


def _policy_of(caps: Caps | Catalog) -> str | None:
    return (caps.id or "") if isinstance(caps, Catalog) else None


def _anchor_of(caps: Caps | Catalog) -> Anchor | None:
    return open_anchor(caps.anchor_place, caps.id or "") if isinstance(caps, Catalog) else None


def _founding(policy: str, gave_up: str, moment: datetime) -> Callable[[Connection], None]:
    """Writes the first entry and the head of a new ledger."""

    def write(connection: Connection) -> None:
        identity = secrets.token_hex(16)
        instead = {"gave_up": gave_up} if gave_up else {}
        body = {
            **instead,
            "ledger": identity,
            "policy": policy,
            "version": schema.VERSION,
            "sums": Totals({}).stated(day_of(moment), ""),
        }
        entry = seal(Head(0, GENESIS), at=moment, kind="open", body=body)
        connection.execute(insert(schema.entries), [dict(entry.__dict__)])
        first = {"id": 1, "version": schema.VERSION, "ledger": identity, "seq": 1, "hash": entry.hash}
        connection.execute(insert(schema.head), [{**first, "day": day_of(moment), "caps": ""}])

    return write


def _refuse_odd_text(text: str, what: str) -> None:
    # Some databases cannot hold every text; what was hashed must be what is stored.
    if not text or "\x00" in text or any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise InvalidInput(f"The {what} must be text without null characters or halves of surrogate pairs.")
