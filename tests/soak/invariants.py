"""What must hold of a ledger and the journals of all who asked, seen from outside while nobody writes.

Each function yields a sentence for each violation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.soak import outside
from tests.soak.arena import CAPS, Arena
from tests.soak.journal import asks_of
from tests.soak.outside import Entry, Glance

GENESIS = "0" * 64
_NEARLY = Fraction(1, 10**6)
_REFUSALS = ("BudgetExceeded", "NotPermitted", "InvalidInput", "QueryError")


@dataclass
class Watch:
    """Looks at a ledger in use, again and again: its chain only grows, and spend never falls."""

    heads: dict[int, str] = field(default_factory=dict)
    last: Glance | None = None

    def look(self, now: Glance) -> Iterator[str]:
        """Compare with the last look."""
        before, self.last = self.last, now
        self.heads[now.seq] = now.hash
        if before is None:
            return
        if now.seq < before.seq:
            yield f"the ledger fell back from entry {before.seq} to {now.seq}"
        for cap, spent in before.spent.items():
            if now.spent.get(cap, Fraction(0)) < spent:
                yield f"the spend of {cap} fell at entry {now.seq}"


@dataclass(frozen=True)
class Ask:
    """One ask, as its process wrote it down. `cut` says that the process was killed before it ended."""

    journal: str
    lines: list[dict[str, Any]]
    cut: bool

    @property
    def end(self) -> dict[str, Any]:
        """The last line."""
        return self.lines[-1]

    @property
    def answered(self) -> bool:
        """Whether the analyst saw an answer."""
        return bool(self.end["event"] == "answered")

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines about one kind of event."""
        return [line for line in self.lines if line["event"] == name]

    def __str__(self) -> str:
        return f"ask {self.end['ask']} of {self.journal}"


def asks_in(arena: Arena) -> list[Ask]:
    """All asks of all processes."""
    asks = []
    for file in sorted(arena.journals.glob("*.jsonl")):
        for lines in asks_of(file):
            asks.append(Ask(file.name, lines, lines[-1]["event"] not in ("answered", "failed", "alien")))
    return asks


def violations(arena: Arena, watch: Watch) -> Iterator[str]:
    """All that is wrong with an arena."""
    chain, asks = outside.entries(arena), asks_in(arena)
    yield from broken_links(chain, watch.heads)
    yield from overspent(chain, arena.limits)
    yield from wrong_sums(chain, outside.glance(arena))
    yield from lost_answers(chain, outside.payloads(arena), asks)
    yield from lost_payments(chain, asks)
    yield from paid_twice(chain, asks)
    yield from other_bits(asks)
    yield from other_errors(asks)


def broken_links(chain: list[Entry], heads: Mapping[int, str]) -> Iterator[str]:
    """Entries follow each other, and all heads that were seen are among them."""
    previous = GENESIS
    for number, entry in enumerate(chain, 1):
        if (entry.seq, entry.previous, entry.hash) != (number, previous, entry.seal()):
            yield f"entry {entry.seq} does not follow the one before it"
        previous = entry.hash
    hashes = {entry.seq: entry.hash for entry in chain}
    for seq, value in heads.items():
        if hashes.get(seq) != value:
            yield f"entry {seq} was seen and is gone"


def overspent(chain: list[Entry], granted: Mapping[str, Fraction]) -> Iterator[str]:
    """No budget was exceeded at any entry, those of single days included."""
    limits, spent, days = dict(granted), Counter[str](), Counter[str]()
    today = chain[0].at[:10]
    for entry in chain:
        content = entry.content
        if entry.kind == "change" and "limit" in content:
            limits[content["limit"]] += Fraction(content["by"]["epsilon"])
        elif entry.kind == "clock":
            today = content["day"]
            later = [day for day in days if day >= today]
            days[today] = sum((days.pop(day) for day in later), Fraction(0))  # type: ignore[assignment]
        elif entry.kind == "reserve":
            if tuple(content["caps"]) != CAPS[entry.analyst]:
                yield f"entry {entry.seq} was not charged to the budgets of {entry.analyst}"
            if content["day"] < today:
                yield f"entry {entry.seq} was counted on a day that was over"
            today = content["day"]
            for cap in content["caps"]:
                sums, key = (days, today) if cap.startswith("day:") else (spent, cap)
                sums[key] += entry.charge  # type: ignore[assignment]
                if sums[key] > limits[cap]:
                    yield f"entry {entry.seq} exceeds the budget {cap}"


def wrong_sums(chain: list[Entry], now: Glance) -> Iterator[str]:
    """What budgets have spent is what the entries add up to."""
    spent: dict[str, Fraction] = {}
    for entry in chain:
        if entry.kind == "reserve":
            for cap in entry.content["caps"]:
                spent[cap] = spent.get(cap, Fraction(0)) + entry.charge
    for cap, stored in now.spent.items():
        if stored != spent.get(cap, Fraction(0)):
            yield f"the ledger says another spend of {cap} than its entries"


def lost_answers(chain: list[Entry], payloads: Mapping[int, str], asks: list[Ask]) -> Iterator[str]:
    """Every answer that an analyst saw is in the chain, with its hash; each payment has one at most."""
    recorded = {(entry.analyst, entry.content["payload"]) for entry in chain if entry.kind == "answer"}
    for ask in asks:
        for payload in ask.end["payloads"] if ask.answered else ():
            if (ask.lines[0]["analyst"], payload) not in recorded:
                yield f"the answer that {ask} saw is not in the chain"
    for entry in chain:
        if entry.kind == "answer" and payloads.get(entry.seq) != entry.content["payload"]:
            yield f"the answer of entry {entry.seq} is not the one that it states"
    answers = Counter(entry.content["reservation"] for entry in chain if entry.kind == "answer")
    yield from (f"entry {seq} has {count} answers" for seq, count in answers.items() if count > 1)


def lost_payments(chain: list[Entry], asks: list[Ask]) -> Iterator[str]:
    """Every payment that a process knew of is in the chain, once, at the price that the analyst saw."""
    paid = {(entry.seq, entry.hash): entry for entry in chain if entry.kind == "reserve"}
    used: dict[int, Ask] = {}
    for ask in asks:
        found = [paid.get((line["seq"], line["hash"])) for line in ask.events("paid")]
        if None in found:
            yield f"what {ask} paid is not in the chain"
            continue
        if not ask.answered or ask.end["recalled"]:
            continue
        charges = [entry for entry in found if entry is not None]
        for entry in charges:
            if used.setdefault(entry.seq, ask) is not ask:
                yield f"entry {entry.seq} paid for {used[entry.seq]} and for {ask}"
        due = Fraction(ask.end["paid"])
        if not due - _NEARLY <= sum((entry.charge for entry in charges), Fraction(0)) <= due + _NEARLY:
            yield f"{ask} was charged another price than it was told"


def paid_twice(chain: list[Entry], asks: list[Ask]) -> Iterator[str]:
    """A question was paid again only if an ask for it failed, or was killed when noise was perhaps drawn."""
    grants: set[str] = set()
    excused = Counter[tuple[str, str]]()
    for ask in asks:
        payments = ask.events("paying")
        grants |= {line["question"] for line in payments if line["kind"] == "reserve"}
        if not payments or ask.answered:
            continue
        last = payments[-1]
        drawn = any(line["event"] == "drawing" for line in ask.lines[ask.lines.index(last) :])
        if drawn if ask.cut else ask.end.get("error") not in _REFUSALS:
            excused[last["analyst"], last["question"]] += 1
    asked = [entry for entry in chain if entry.question not in grants]
    payments_of = Counter(entry.about for entry in asked if entry.kind == "reserve")
    for about, count in payments_of.items():
        if count > 1 + excused[about[:2]]:
            yield f"question {about[1]} of {about[0]} was paid {count} times"
    answers_of = Counter(entry.about for entry in asked if entry.kind == "answer")
    for about, count in answers_of.items():
        if count > 1:
            yield f"question {about[1]} of {about[0]} was answered {count} times"


def other_bits(asks: list[Ask]) -> Iterator[str]:
    """The same question got the same bits, whenever it was asked; what was asked again was on record."""
    tables: dict[tuple[str, str], str] = {}
    for ask in asks:
        if ask.lines[0].get("kind") not in ("stock", "at once", "recall", "grant"):
            continue
        if ask.lines[0]["kind"] == "recall" and not (ask.answered and ask.end["recalled"]):
            yield f"{ask} asked for what is on record and did not get it: {ask.end}"
        if ask.answered and ask.lines[0]["kind"] != "grant":  # two grants at once both pay
            key = ask.lines[0]["analyst"], ask.lines[0]["sql"]
            if tables.setdefault(key, ask.end["table"]) != ask.end["table"]:
                yield f"{ask} got other numbers than were recorded before"


def other_errors(asks: list[Ask]) -> Iterator[str]:
    """Only errors of Incrowd came out, each as one line."""
    for ask in asks:
        for line in ask.lines:
            if line["event"] == "alien":
                last = line["said"].strip().splitlines()[-1]
                yield f"{ask} ended with an error that is not Incrowd's: {last}"
            if line["event"] == "failed" and "\n" in line["said"].strip():
                yield f"{ask} got an error of several lines: {line['said']!r}"
