"""Rounds: some seconds in which processes ask and are killed while things go wrong, then a look at it all.

In a round, two or three processes ask. At random moments one of them is killed with SIGKILL and replaced, a
fault begins or ends, the owner does something (and is perhaps killed too), and the ledger is looked at from
outside. Then faults are mended, everybody is told to end, and what must hold is checked.

How often things happen is counted in what was written to journals, not in seconds, so that a slow machine
gets as much done between two kills as a quick one.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.soak import flaws, outside
from tests.soak.analysts import ask_until_told, recall_all
from tests.soak.arena import Arena
from tests.soak.faults import faults_of
from tests.soak.invariants import Watch, asks_in, violations
from tests.soak.journal import Journal
from tests.soak.own_server import OwnServer
from tests.soak.owner import UNEXPECTED, Owner
from tests.soak.processes import Process, fork

TICK = 0.02
OFTEN = 0.2
"""Seconds between two looks at the ledger."""
PATIENCE = 120.0
"""Seconds that a process has to end once nothing is wrong any more."""
ASK = 900
"""About how many bytes a journal grows by with an ask."""

Life = Callable[[Arena, Journal, int], int]


@dataclass
class Tally:
    """What happened so far, by kind."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def count(self, heading: str, kind: str) -> None:
        self.counts.setdefault(heading, Counter())[kind] += 1


class Due:
    """Says when something is due that happens by chance, once in so many asks."""

    def __init__(self, asks: float, chance: random.Random) -> None:
        self._asks, self._chance = asks, chance
        self._next = chance.expovariate(1 / asks) * ASK

    def __call__(self, written: int) -> bool:
        if written < self._next:
            return False
        self._next = written + self._chance.expovariate(1 / self._asks) * ASK
        return True


class Rounds:
    """The rounds of one arena."""

    def __init__(
        self, arena: Arena, server: OwnServer | None, scratch: Path, chance: random.Random, flaw: str = ""
    ) -> None:
        self.arena, self.chance, self.flaw = arena, chance, flaw
        self.server = server
        self.owner = Owner(arena, scratch, chance, flaw)
        self.faults = faults_of(arena, server, chance)
        self.tally, self.watch = Tally(), Watch()
        self._living: list[Process] = []
        self._acts: list[Process] = []
        self._coming: list[str] = []
        self._births = 0
        self._dues = [Due(asks, chance) for asks in (6, 6, 10, 30)]

    def play(self, seconds: float, processes: int) -> None:
        """One round, and the checks after it."""
        answers = self._answers()
        if answers:
            self.owner.top_up_all()
        with contextlib.ExitStack() as fault:
            self._busy(time.monotonic() + seconds, processes, fault)
            # A machine that is busy with other things may need longer for a first answer.
            late = time.monotonic() + PATIENCE
            while self._answers() == answers and time.monotonic() < late:
                self._busy(time.monotonic() + 1, processes, fault)
        self._quiet()
        self._check()
        if self._answers() == answers:
            self._violated("nobody got an answer in a whole round")
        if not self.tally.violations:
            self.owner.sweep()

    def _busy(self, until: float, processes: int, fault: ExitStack) -> None:
        killing, failing, owning, copying = self._dues
        mended, looked = time.monotonic(), 0.0
        while (now := time.monotonic()) < until:
            while len(self._living) < processes:
                self._living.append(self._born())
            self._reap()
            written = self._written()
            victims = [*self._living, *self._acts]  # none, if all that were born have ended since
            if victims and (killing(written) or self.chance.random() < TICK / 20):
                self._kill(self.chance.choice(victims))
            if mended and now > mended:
                fault.close()
                mended = 0.0
            if not mended and failing(written):
                fault.enter_context(self._fault())
                mended = time.monotonic() + self.chance.uniform(0.1, 2.0)
            if owning(written) and not self._acts:
                self._acts.append(self.owner.some_act())
            if self.server is None and copying(written):
                self._copied("main file alone, in use")
            if now > looked + OFTEN:
                self._look()
                looked = now
            time.sleep(TICK)

    def _written(self) -> int:
        """How many bytes the journals have grown by."""
        return sum(file.stat().st_size for file in self.arena.journals.glob("*.jsonl"))

    def _fault(self) -> contextlib.AbstractContextManager[None]:
        if not self._coming:  # each of them, before one comes again
            self._coming = self.chance.sample(list(self.faults), len(self.faults))
        name = self._coming.pop()
        self.tally.count("faults", name)
        return self.faults[name]()

    def _quiet(self) -> None:
        """Let everybody end."""
        for process in self._living:
            if self.chance.random() < 0.3:
                self._kill(process)
            else:
                process.tell()
        for process in [*self._living, *self._acts]:
            if not process.wait(PATIENCE):
                self._violated(f"{process.name} did not end within {PATIENCE:.0f} seconds")
                process.kill()
                process.wait(PATIENCE)
        self._reap()
        self._look()

    def _check(self) -> None:
        self._recall()
        for sentence in violations(self.arena, self.watch):
            self._violated(sentence)
        if self.tally.violations:
            return
        done = self.owner.run("verify")
        if done.status != 0:
            self._violated(f"incrowd ledger verify failed: {done.said.strip()}")
        if self.server is None:
            self._copied("main file alone, after kills")
            for name, wrong in self.owner.bad_copies():
                self.tally.count("faults", name)
                if wrong:
                    self._violated(wrong)
        self.tally.count("owner", "backup restored on a copy")
        for sentence in (*self.owner.torn_copies(), *self.owner.backup_and_restore()):
            self._violated(sentence)

    def _copied(self, name: str) -> None:
        self.tally.count("faults", name)
        if wrong := self.owner.copy_main_file():
            self._violated(wrong)

    def _recall(self) -> None:
        """Ask again for what is on record; the checks that follow read what was seen."""
        process = self._born(recall_all)
        if not process.wait(PATIENCE) or process.status != 0:
            self._violated(f"{process.name} could not ask for what is on record: {process.said.strip()}")

    def _born(self, life: Life = ask_until_told) -> Process:
        self._births += 1
        name, seed = f"{self._births:05}", self.chance.getrandbits(32)

        def work() -> int:
            flaws.apply(self.flaw)
            return life(self.arena, Journal(self.arena.journals / f"{name}.jsonl"), seed)

        self.tally.count("processes", "started")
        return fork(name, work, self.arena.journals / f"{name}.out")

    def _kill(self, process: Process) -> None:
        if not process.killed and not process.ended():
            process.kill()
            self.tally.count(
                "processes", "killed while " + ("asking" if process in self._living else "owning")
            )

    def _reap(self) -> None:
        for process in [process for process in self._living if process.ended()]:
            self._living.remove(process)
            if process.status and not process.killed:
                self._violated(f"process {process.name} ended with {process.status}: {process.said.strip()}")
        for act in [act for act in self._acts if act.ended()]:
            self._acts.remove(act)
            self.tally.count("owner", act.name + (" (killed)" if act.killed else f": {act.status}"))
            if not act.killed and (act.status not in (0, 1, 2) or UNEXPECTED in act.said):
                self._violated(f"incrowd {act.name} failed: {act.said.strip()}")

    def _look(self) -> None:
        with contextlib.suppress(sqlite3.Error, psycopg.Error):  # it may be out of reach just now
            for sentence in self.watch.look(outside.glance(self.arena)):
                self._violated(sentence)
            self.tally.count("looks", "looks")

    def _violated(self, sentence: str) -> None:
        sentence = f"{self.arena.name}: {sentence}"
        if sentence not in self.tally.violations:
            self.tally.violations.append(sentence)

    def _answers(self) -> int:
        return sum(ask.answered for ask in asks_in(self.arena))

    def keep(self, folder: Path) -> None:
        """Write down what is on disks that end with the soak."""
        folder.mkdir()
        with (folder / "chain.jsonl").open("w") as file:
            file.writelines(json.dumps(entry.__dict__) + "\n" for entry in outside.entries(self.arena))
        for part in self.arena.account.glob("*"):
            shutil.copyfile(part, folder / part.name)

    def report(self) -> Iterator[str]:
        """Lines that say what happened."""
        asks = asks_in(self.arena)
        ends = Counter(_ending(line) for ask in asks for line in [ask.end])
        kinds = Counter(ask.lines[0].get("kind", "?") for ask in asks)
        yield f"{self.arena.name}: {len(asks):,} asks ({_told(kinds)}): {_told(ends)}"
        yield f"  chain: {_told(Counter(entry.kind for entry in outside.entries(self.arena)))}"
        for heading, counts in self.tally.counts.items():
            yield f"  {heading}: {_told(counts)}"


def _ending(line: dict[str, object]) -> str:
    if line["event"] == "answered":
        return "answered from the record" if line["recalled"] else "answered and paid"
    return str(line["error"]) if line["event"] == "failed" else "cut off by a kill"


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
