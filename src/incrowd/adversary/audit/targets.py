"""Measures the auditor itself: how much of a known epsilon it recovers, and its false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from incrowd.adversary.audit.auditor import audit
from incrowd.adversary.audit.checks import DELTA, LOW, TALL
from incrowd.adversary.audit.real import REAL
from incrowd.adversary.audit.runs import Batch
from incrowd.adversary.audit.suite import Kind, run
from incrowd.mechanisms import Exponential, Gaussian, Laplace, RandomizedResponse
from incrowd.noise import categorical

SAMPLES = 10**6
RUNS = 200
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Target:
    """One thing measured, and whether it is good enough."""

    name: str
    found: str
    reached: bool


def recovered() -> Iterator[Target]:
    """The share of a known epsilon that 10^6 runs on either neighbour prove; the target is 90%."""
    tall = Exponential(1.0)
    chances = [tall.probabilities(utilities)[0] for utilities in (TALL, LOW)]
    known = {
        "Laplace(epsilon=1)": (_tiled(Laplace(1.0)), 0, 1, 1.0),
        "RandomizedResponse(epsilon=1)": (_tiled(RandomizedResponse(1.0)), 0, 1, 1.0),
        "Exponential(epsilon=1), 36 candidates": (
            # The very call that `release` makes, for all runs at once.
            Batch(lambda data, runs: categorical(data, rate=tall.rate, size=runs)),
            TALL,
            LOW,
            math.log(chances[0] / chances[1]),
        ),
    }
    for name, (mechanism, x, x_prime, truth) in known.items():
        result = audit(mechanism, x, x_prime, epsilon=1.0, samples=SAMPLES, confidence=CONFIDENCE)
        share = result.bound / truth
        text = f"bound {result.bound:.4f} of {truth:.4f} between these neighbours: {share:.1%}"
        yield Target(name, text, share >= 0.9 and result.bound <= 1.0)


def _tiled(mechanism: Laplace | RandomizedResponse | Gaussian) -> Batch:
    return Batch(lambda data, runs: mechanism.release(np.full(runs, data)))


def gaussian_delta() -> Target:
    """Whether the true delta of Gaussian noise at a fixed epsilon lies in the audit's interval."""
    noise = Gaussian(1.0, DELTA, sensitivity=1000)  # so many steps that rounding to them hides nothing
    result = audit(_tiled(noise), 0, 1000, epsilon=1.0, delta=DELTA, samples=SAMPLES, confidence=CONFIDENCE)
    low, high = result.delta_interval
    true = noise.privacy.delta(1.0)
    return Target(
        "Gaussian's delta at epsilon 1", f"{true:.5f} in [{low:.5f}, {high:.5f}]", low <= true <= high
    )


def false_alarms(runs: int = RUNS, share: float = 0.1) -> Target:
    """How often correct mechanisms are accused at 99.9% confidence."""
    kind: Kind = "mechanism"
    quick = [place for place, case in enumerate(REAL) if "whole" not in case.name]
    wanted = [(kind, quick[turn % len(quick)], share) for turn in range(runs)]
    lines = list(run(wanted, confidence=CONFIDENCE))
    accused = [line.name for line in lines if not line.right]
    closest = max(lines, key=lambda line: line.audit.closeness)
    near = f"closest: {closest.name}, {closest.audit.closeness:.0%} of its claim"
    text = f"{len(accused)} in {runs} audits ({near})"
    return Target("false alarms at 99.9%", text, not accused)
