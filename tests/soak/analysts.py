"""A process that asks until it is told to end: real questions to a real curator, with a journal of it all.

Questions come from a small stock, so that many were asked before; some are asked by all processes at the same
moment. Each has an epsilon of its own, so that what is on record for it never changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from incrowd import Curator, IncrowdError
from incrowd.curator.ledger import Ledger, Reservation, clock
from incrowd.curator.paying import Payment
from tests.soak.arena import ROWS, Arena
from tests.soak.journal import Journal, asks_of

ALIEN = 3
"""The exit status of a process out of which something else than an IncrowdError came."""

STOCK = 300
RECALLED = 40
"""How many answers are asked for again after each round."""
_MOMENT = 0.7
_SHAPES = (
    "SELECT COUNT(*) AS n FROM people WHERE id <> {}",
    "SELECT SUM(age) AS n FROM people WHERE id <> {}",
    "SELECT AVG(age) AS n FROM people WHERE id <> {}",
    "SELECT region, COUNT(*) AS n FROM people WHERE id <> {} GROUP BY region",
)


def ask_until_told(arena: Arena, journal: Journal, seed: int) -> int:
    """Ask, write down what was seen, and go on; the exit status."""
    warnings.simplefilter("ignore")
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    chance, seen = random.Random(seed), _Seen(journal)
    set_clock_by(arena.skew)
    with seen.watching():
        while not told:
            try:
                with _asking(journal, opening=True):
                    _life(arena.policy, journal, seen, chance, told)
            except Exception:
                journal.note("alien", said=traceback.format_exc())
                return ALIEN
    return 0


def recall_all(arena: Arena, journal: Journal, seed: int) -> int:
    """Ask again for answers that were seen: all of them must be on record."""
    warnings.simplefilter("ignore")
    answered = {}
    for file in sorted(arena.journals.glob("*.jsonl")):
        for first, *rest in asks_of(file):
            if rest and rest[-1]["event"] == "answered" and first.get("kind") in ("stock", "at once"):
                answered[first["analyst"], first["sql"]] = first
    chosen = random.Random(seed).sample(sorted(answered), min(RECALLED, len(answered)))
    seen = _Seen(journal)
    with seen.watching(), Curator.open(arena.policy) as curator:
        for key in chosen:
            question = {name: answered[key][name] for name in ("sql", "options", "analyst")}
            _ask(curator, journal, seen, {"kind": "recall", **question})
    return 0


def _life(policy: Path, journal: Journal, seen: _Seen, chance: random.Random, told: list[int]) -> None:
    """One curator: opened, asked a few dozen times, closed."""
    with Curator.open(policy) as curator:
        for _ in range(chance.randrange(10, 60)):
            if told:
                return
            with _asking(journal):
                if chance.random() < 0.1:
                    _grant(curator, journal, seen, chance)
                else:
                    _ask(curator, journal, seen, _choose(chance))


@contextlib.contextmanager
def _asking(journal: Journal, *, opening: bool = False) -> Iterator[None]:
    """Write down errors, which an analyst would read, and wait a little as she would."""
    try:
        yield
    except IncrowdError as error:
        if opening:
            journal.ask(kind="open")
        journal.note("failed", error=type(error).__name__, said=str(error))
        time.sleep(0.05)


def _choose(chance: random.Random) -> dict[str, Any]:
    """A question, with who asks it."""
    analyst = "ana" if chance.random() < 0.7 else "bob"
    draw = chance.random()
    if draw < 0.25:
        moment = int(time.monotonic() / _MOMENT)
        sql = _SHAPES[moment % len(_SHAPES)].format(ROWS + moment)
        return {"kind": "at once", "analyst": "ana", "sql": sql, "options": {"epsilon": 0.003}}
    number = chance.randrange(STOCK)
    sql = _SHAPES[number % len(_SHAPES)].format(number)
    if draw < 0.32:
        return {"kind": "cheaper", "analyst": analyst, "sql": sql, "options": {"epsilon": 0.001}}
    if draw < 0.4:
        shape, options = chance.choice([(0, {"within": 400}), (2, {"epsilon": 0.04, "within": 30})])
        sql = _SHAPES[shape].format(number).replace("<>", ">")  # apart, since it may pay more for a question
        return {"kind": "within", "analyst": analyst, "sql": sql, "options": options}
    return {"kind": "stock", "analyst": analyst, "sql": sql, "options": {"epsilon": 0.002 + number / 100_000}}


def _ask(curator: Curator, journal: Journal, seen: _Seen, question: dict[str, Any]) -> None:
    journal.ask(**question)
    seen.payloads.clear()
    answer = curator.ask(question["sql"], analyst=question["analyst"], **question["options"])
    journal.note(
        "answered",
        table=_digest(json.dumps(answer.to_arrow().to_pylist())),
        payloads=list(seen.payloads),
        paid=repr(answer.paid[0]),
        recalled=answer.recalled and (answer.pilot is None or answer.pilot.recalled),
    )


def _grant(curator: Curator, journal: Journal, seen: _Seen, chance: random.Random) -> None:
    purpose = f"counts {chance.randrange(10 * STOCK)}"
    journal.ask(kind="grant", analyst="bob", sql=purpose)
    with curator.grant(0.004, purpose=purpose, schedule={"sums": 2}, analyst="bob") as grant:
        if grant.recorded is None:
            parts = [grant.sums(_SHAPES[shape].format(chance.randrange(STOCK))) for shape in (0, 3)]
            grant.record(json.dumps([part.to_arrow().to_pylist() for part in parts]).encode())
        assert grant.recorded is not None
        table = _digest(grant.recorded)
        paid = "0.0" if grant.recalled else "0.004"
        journal.note("answered", table=table, payloads=[table], paid=paid, recalled=grant.recalled)


class _Seen:
    """Writes down each payment as it is made, and the hash of what was released for it."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.payloads: list[str] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        claim, reserve, draw, answer = Payment.claim, Payment.reserve, Ledger.draw, Curator.answer

        def paid(kind: str, pay: Callable[..., Payment]) -> Callable[..., Payment]:
            def watched(payment: Payment, *words: Any, **named: Any) -> Payment:
                self.journal.note("paying", kind=kind, question=payment.question, analyst=payment.analyst)
                after = pay(payment, *words, **named)
                if after.reservation is not None:
                    self.journal.note("paid", seq=after.reservation.seq, hash=after.reservation.hash)
                return after

            return watched

        def drawn(ledger: Ledger, reservation: Reservation) -> bool:
            self.journal.note("drawing", seq=reservation.seq)
            return draw(ledger, reservation)

        def answered(curator: Curator, question: Any, price: Any, payment: Payment) -> Any:
            self.payloads.append(_digest(payment.recorded or b""))
            return answer(curator, question, price, payment)

        watched = (
            (Payment, "claim", claim, paid("claim", claim)),
            (Payment, "reserve", reserve, paid("reserve", reserve)),
            (Ledger, "draw", draw, drawn),
            (Curator, "answer", answer, answered),
        )
        for place, name, _, watching in watched:
            setattr(place, name, watching)
        try:
            yield
        finally:
            for place, name, plain, _ in watched:
                setattr(place, name, plain)


def set_clock_by(file: Path) -> None:
    """Let this process's ledger read a clock that is wrong by the seconds in a file."""

    class Skewed(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=float(file.read_text() or 0))

    clock.datetime = Skewed  # type: ignore[misc]


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
