"""A short soak finds nothing wrong, and every flaw that is put into the ledger is noticed."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction

import pytest

from tests.hospital import ROOT
from tests.soak.arena import LIMITS
from tests.soak.flaws import FLAWS
from tests.soak.invariants import Watch, overspent
from tests.soak.outside import UNITS, Entry, Glance


def soaked(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.soak", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_short_soak_finds_nothing_wrong() -> None:
    done = soaked("--seconds", "4", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations" in done.stdout
    assert re.search(r"^sqlite: .* answered and paid", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^postgres: .* answered and paid", done.stdout, re.MULTILINE), done.stdout


def test_every_flaw_is_noticed() -> None:
    done = soaked("--prove", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(FLAWS)


def test_a_spend_that_falls_is_seen() -> None:
    watch = Watch()
    assert not list(watch.look(Glance(4, "a", {"dataset": Fraction(2)})))
    assert not list(watch.look(Glance(5, "b", {"dataset": Fraction(2)})))
    assert list(watch.look(Glance(5, "b", {"dataset": Fraction(1)}))) == [
        "the spend of dataset fell at entry 5"
    ]
    assert list(watch.look(Glance(4, "a", {"dataset": Fraction(1)}))) == [
        "the ledger fell back from entry 5 to 4"
    ]


def entry(seq: int, kind: str, body: str) -> Entry:
    return Entry(seq, "2026-01-01T00:00:00.000000Z", kind, "ana", "q", "v", body, "", "")


def paid(seq: int, epsilon: str, day: str) -> Entry:
    caps = '["dataset", "group:all", "analyst:ana", "day:ana"]'
    charge = int(Fraction(epsilon) * UNITS)
    return entry(seq, "reserve", f'{{"caps": {caps}, "charge": {{"epsilon": "{charge}"}}, "day": "{day}"}}')


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ("2026-01-03", []),
        ("2026-01-02", ["entry 4 exceeds the budget day:ana"]),  # all of the second day counts on it
    ],
)
def test_a_day_that_was_opened_twice_is_seen(clock: str, said: list[str]) -> None:
    chain = [
        entry(1, "open", "{}"),
        paid(2, "0.8", "2026-01-02"),
        entry(3, "clock", f'{{"day": "{clock}"}}'),
        paid(4, "0.8", clock),
    ]
    assert list(overspent(chain, LIMITS)) == said
