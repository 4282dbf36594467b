"""The soak: processes ask, crash, restart, back up and verify, on ledgers in SQLite and in PostgreSQL.

    python -m tests.soak --minutes 30            two arenas in turn, a round of each after the other
    python -m tests.soak --seconds 5 --seed 7    one short round of each
    python -m tests.soak --prove                 every flaw of `flaws` must be noticed

What must hold is checked from outside, by the journals of those who asked and by the database itself; see
`invariants`. Exit status 1 if anything was violated; the folder with ledgers and journals is kept then.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from tests.soak.arena import Arena
from tests.soak.faults import own_disk
from tests.soak.flaws import FLAWS
from tests.soak.own_server import OwnServer
from tests.soak.rounds import Rounds

WARM = ("pandas", "pyarrow.parquet", "sqlalchemy.dialects.sqlite", "sqlglot.dialects.duckdb")
"""What is imported once, before processes are forked, and not by each of them."""

TRIES = 10
"""Short rounds within which a flaw must be noticed."""
SMALL, TIGHT = Fraction(1, 20), Fraction(1, 200)
"""The share of budgets with which they end all the time, and at once."""

APART = "INCROWD_SOAK_APART"
"""The variable that says that mounts made here are seen by nobody else and end with this process."""


@contextlib.contextmanager
def in_file(folder: Path, chance: random.Random, flaw: str = "", share: Fraction = SMALL) -> Iterator[Rounds]:
    """An arena with its ledger in SQLite."""
    arena = Arena(folder / "sqlite", share=share)
    arena.prepare()
    with own_disk(arena.account):
        yield _founded(arena, None, folder, chance, flaw)


@contextlib.contextmanager
def on_server(folder: Path, chance: random.Random) -> Iterator[Rounds]:
    """An arena with its ledger in PostgreSQL."""
    home = folder / "server" / "home"
    home.mkdir(parents=True)
    for above in (folder, home.parent):
        above.chmod(0o711)  # a server that runs as another user must pass through
    with own_disk(home):
        server = OwnServer(home)
        try:
            arena = Arena(folder / "postgres", server.found(), SMALL)
            arena.prepare()
            yield _founded(arena, server, folder, chance)
        finally:
            server.stop(signal.SIGINT)


def _founded(
    arena: Arena, server: OwnServer | None, folder: Path, chance: random.Random, flaw: str = ""
) -> Rounds:
    scratch = folder / f"{arena.name}-copies"
    scratch.mkdir()
    rounds = Rounds(arena, server, scratch, chance, flaw)
    done = rounds.owner.run("found")
    if done.status != 0:
        raise RuntimeError(f"No ledger was founded: {done.said}")
    return rounds


def soak(folder: Path, minutes: float, seconds: float, processes: int, seed: int) -> list[Rounds]:
    """Rounds in both arenas, in turn, until the time is up or something is wrong."""
    chance, until = random.Random(seed), time.monotonic() + 60 * minutes
    with in_file(folder, chance) as one, on_server(folder, chance) as other:
        arenas, number = [one, other], 0
        while number < len(arenas) or time.monotonic() < until:
            rounds = arenas[number % len(arenas)]
            number += 1
            rounds.play(seconds, processes)
            print(f"round {number}, {rounds.arena.name}: {_sum_of(rounds)}", flush=True)
            if any(rounds.tally.violations for rounds in arenas):
                break
        for rounds in arenas:
            print("\n".join(rounds.report()), flush=True)
            if rounds.tally.violations:
                rounds.keep(folder / f"{rounds.arena.name}-kept")
        return arenas


def prove(folder: Path, seed: int) -> int:
    """Put each flaw into a short soak; the exit status is 1 if one was not noticed."""
    missed = 0
    for name, (_, words) in FLAWS.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        share = TIGHT if name == "overspent" else SMALL
        with in_file(place, random.Random(seed), name, share) as rounds:
            for _ in range(TRIES):
                rounds.play(1.0, 2)
                noticed = [sentence for sentence in rounds.tally.violations if words in sentence]
                if noticed:
                    break
        missed += not noticed
        print(f"{name}: {noticed[0] if noticed else ['NOT NOTICED', *rounds.tally.violations]}", flush=True)
    return int(missed > 0)


def _sum_of(rounds: Rounds) -> str:
    return " ".join(f"{sum(counts.values())} {heading}" for heading, counts in rounds.tally.counts.items())


def _mounts_apart() -> None:
    """Begin again where mounts are this process's own, if root is to be had and nobody has done it yet."""
    apart = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0 or os.environ.get(APART) or not shutil.which("unshare"):
        return
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode == 0:
        os.environ[APART] = "1"
        os.execvp("unshare", [*apart, sys.executable, "-m", "tests.soak", *sys.argv[1:]])


def main() -> int:
    """Run the soak that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long; at least a round of each")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long a round asks")
    parser.add_argument("--processes", type=int, default=2, help="how many ask at a time")
    parser.add_argument("--seed", type=int, default=None, help="of what goes wrong and when")
    parser.add_argument("--prove", action="store_true", help="show that flaws are noticed")
    options = parser.parse_args()
    _mounts_apart()
    for name in WARM:
        importlib.import_module(name)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="incrowd-soak-"))
    if options.prove:
        status = prove(folder, seed)
        shutil.rmtree(folder, ignore_errors=True)
        return status
    begun = time.monotonic()
    arenas = soak(folder, options.minutes, options.seconds, options.processes, seed)
    wrong = [sentence for rounds in arenas for sentence in rounds.tally.violations]
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes, {len(wrong)} violations")
    if wrong:
        print("\n".join(wrong))
        print(f"Ledgers and journals are in {folder}; again with python -m tests.soak --seed {seed}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
