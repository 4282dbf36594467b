"""Mutants: a quick choice of them is caught; `make audit` takes them all."""

from __future__ import annotations

import pytest

from incrowd.adversary.mutants import MUTANTS

SURE = 1 - 1e-7
ALL = {case.name: case for case in MUTANTS}
SLOW = {
    "a refund on error",
    "a sparse vector that never stops",
    "a threshold drawn anew",
    "classical Gaussian",
    "groups for units",
    "L2 for Laplace",
    "no noise on the threshold",
    "noise without the hits",
    "one coordinate for all",
    "the compared value",
    "the whole ranking",
    "the winner's value",
}


CLOSE = {
    "a sample in the open",
    "all of epsilon for every bit",
    "flips for two answers",
    "half the sensitivity",
    "histogram under replace",
    "noise cut after the point",
    "replace as add",
    "spent once for two",
    "sums in half precision",
    "tails clamped",
    "a threshold for one key",
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in ALL if name not in SLOW])
def test_the_mutant_is_caught(name):
    """Escapes by chance below 1e-6: each lies many deviations above its claim at these samples."""
    case = ALL[name]
    if case.proof:
        assert not case.proof().holds
        return
    assert case.audited(share=3.0 if name in CLOSE else 1.0, confidence=SURE).verdict == "violates"


def test_there_is_a_mutant_for_every_known_class_of_bug():
    assert len(ALL) == len(MUTANTS) >= 25
    assert all(case.about.endswith(".") and case.epsilon > 0 for case in MUTANTS)
    assert set(ALL) >= SLOW | CLOSE
