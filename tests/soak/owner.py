"""What the owner does meanwhile, with the command line: top-ups, verification, backups; and copies by hand.

Copies go to arenas of their own, so that nothing there touches the account that is in use. A copy of the
ledger's file that is opened must hold the chain as it was; a ledger that lost something must be refused, and
never be founded anew.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from incrowd.cli.entry import main
from tests.soak import flaws, outside
from tests.soak.arena import LIMITS, Arena
from tests.soak.processes import Process, fork

UNEXPECTED = "as it never should"


class Owner:
    """Runs commands on an arena, and keeps what they printed."""

    def __init__(self, arena: Arena, scratch: Path, chance: random.Random, flaw: str) -> None:
        self.arena, self.scratch, self.chance, self.flaw = arena, scratch, chance, flaw
        self._count = 0
        self._opened: list[Arena] = []

    def start(self, *words: str | Path, on: Arena | None = None) -> Process:
        """A command of `incrowd ledger`, as a process."""
        told = ["ledger", *map(str, words), "--catalog", str((on or self.arena).policy), "--json"]

        def work() -> int:
            flaws.apply(self.flaw)
            return main(told)

        return fork(f"ledger {words[0]}", work, self._place("said"))

    def run(self, *words: str | Path, on: Arena | None = None) -> Process:
        """The same, waited for."""
        process = self.start(*words, on=on)
        process.wait(120)
        return process

    def some_act(self) -> Process:
        """One of the things that an owner does any day."""
        draw = self.chance.random()
        if draw < 0.45:
            return self._change(
                "top-up", self.chance.choice(list(LIMITS)), self.chance.choice([0.1, 0.5, 1.0])
            )
        if draw < 0.55:
            return self._change("lower", self.chance.choice(list(LIMITS)), 0.05)
        if draw < 0.65:
            return self.start("clock")
        if draw < 0.8:
            return self.start("verify")
        return self.start("backup", self._place("backup"))

    def top_up_all(self) -> None:
        """Leave everybody something to spend."""
        for process in [self._change("top-up", key, 0.5) for key in LIMITS]:
            process.wait(120)

    def _change(self, act: str, key: str, amount: float) -> Process:
        return self.start(act, key, "--epsilon", str(amount * float(self.arena.share)))

    def backup_and_restore(self) -> Iterator[str]:
        """Make a backup and bring it back on a copy; what is wrong with either."""
        file = self._place("backup")
        done = self.run("backup", file)
        if done.status != 0:
            yield f"a backup failed: {done.said.strip()}"
            return
        copy = self.arena.copied_to(self._place("restored"))
        kept = json.loads(copy.anchor.read_text())["spent"]["epsilon"]
        for words in (("restore", file), ("verify",)):
            done = self.run(*words, on=copy)
            if done.status != 0:
                yield f"incrowd ledger {words[0]} of a backup failed: {done.said.strip()}"
                return
        *restored, last = outside.entries(copy)
        if restored != outside.entries(self.arena):
            yield f"the backup {file} is not the chain as it was"
        if last.kind != "restore" or outside.glance(copy).spent["dataset"] * outside.UNITS < int(kept):
            yield f"the restored ledger {copy.ledger} forgot what was spent"

    def bad_copies(self) -> Iterator[tuple[str, str]]:
        """Copies of the ledger's file that lack something: the name of each, and what is wrong, or ''."""
        whole = self.arena.ledger.read_bytes()
        yield "emptied file", self._refused(b"")
        yield "file cut short", self._refused(whole[: len(whole) // 2])
        yield "no file", self._refused(None)

    def copy_main_file(self) -> str:
        """Copy the ledger's file without those beside it; what is wrong if the copy is opened, or ''.

        It must be refused, or hold what the anchor keeps, which is copied first: nothing that is later than
        the file.
        """
        copy = self.arena.copied_to(self._place("copy"))
        shutil.copyfile(self.arena.ledger, copy.ledger)
        done = self.run("verify", on=copy)
        if done.status != 0:
            return done.said if UNEXPECTED in done.said else ""
        self._opened.append(copy)
        head = json.loads(copy.anchor.read_text())["head"].partition(":")[2]
        known = any(entry.hash == head for entry in outside.entries(copy))
        return "" if known else f"{copy.ledger} was opened and lacks what was spent"

    def torn_copies(self) -> Iterator[str]:
        """Every copy that was opened, and every backup, must be the chain up to its end."""
        chain = outside.entries(self.arena)
        backups = self.scratch.glob(f"{self.arena.name}-*-backup")
        for file in (*backups, *(copy.ledger for copy in self._opened)):
            copied = outside.entries_in(file)
            if not copied or copied != chain[: len(copied)]:
                yield f"{file} is not the chain as it was"

    def _refused(self, content: bytes | None) -> str:
        copy = self.arena.copied_to(self._place("copy"))
        if content is not None:
            copy.ledger.write_bytes(content)
        if self.run("verify", on=copy).status == 0:
            return f"{copy.ledger} lost its content and was opened"
        now = copy.ledger.read_bytes() if copy.ledger.exists() else None
        return "" if now == content else f"{copy.ledger} was refused and changed"

    def _place(self, name: str) -> Path:
        self._count += 1
        return self.scratch / f"{self.arena.name}-{os.getpid()}-{self._count}-{name}"

    def sweep(self) -> None:
        """Remove copies and backups."""
        self._opened.clear()
        for place in self.scratch.iterdir():
            shutil.rmtree(place) if place.is_dir() else place.unlink()
