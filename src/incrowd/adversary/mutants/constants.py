"""Mutants that are real mechanisms with one wrong constant or line: past bugs, and likely ones.

Most are revealed by few outputs, or only by an exact check; each has the check of its real sibling.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit import laws
from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.checks import DELTA, REPLACED, SPREADS, TABLES, TINY, TURNED
from incrowd.adversary.audit.neighbours import every_pair
from incrowd.adversary.audit.proofs import exactly
from incrowd.adversary.audit.replays import replayed
from incrowd.adversary.audit.runs import Single
from incrowd.mechanisms import (
    Covariance,
    InterquartileRange,
    Laplace,
    Quantile,
    SmoothSensitivity,
    StableHistogram,
    StableMode,
)
from incrowd.mechanisms.robust import propose_test_release, smooth_sensitivity

Floats = NDArray[np.float64]
REACHED = 0.0323  # twice what noise of scale 1/2 reaches exactly


def _with(mechanism: Any, **changed: Any) -> Any:
    """A mechanism with some of its constants changed."""
    mutant = copy.copy(mechanism)
    for name, value in changed.items():
        object.__setattr__(mutant, name, value)
    return mutant


def _beside(module: Any, name: str, other: Any, release: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A release during which a function of a module is replaced by `other`."""

    def mutant(data: Any) -> Any:
        original = getattr(module, name)
        setattr(module, name, other)
        try:
            return release(data)
        finally:
            setattr(module, name, original)

    return mutant


sound_bin = propose_test_release._bin


def overlapping_bin(spread: float, shifted: bool) -> tuple[float, float]:
    """The least bin of both families ends at 2^-1000, inside a bin of the shifted one."""
    return (0.0, 2.0**-1000) if spread < 2.0**-1000 else sound_bin(spread, shifted)


sound_smooth = smooth_sensitivity._log_smooth


def overflowing_smooth(x: Floats, m: int, beta: float) -> float:
    """The quotient of a range and a distance, which for a denormal distance has no logarithm to round."""
    near = max(x[m] - x[m - 1], x[m + 1] - x[m])
    with np.errstate(over="ignore"):
        math.ceil(math.log((x[-1] - x[0]) / near) / beta if near > 0 else 0.0)
    return sound_smooth(x, m, beta)


SPREAD = _beside(propose_test_release, "_bin", overlapping_bin, InterquartileRange(2.0, DELTA).release)
HALVES = StableMode(2.0, REACHED / 2)
WHOLE = StableMode(4.0, REACHED)
MEDIAN = Quantile(1.0, low=0, high=20)
SMOOTH = SmoothSensitivity(1.0)
ROUGH = _with(SMOOTH, exact_beta=3 * SMOOTH.exact_beta)
SHORT = _with(Covariance(1.0, columns=2, bounds=[(0, 1)] * 2), noise=Laplace(1.0, sensitivity=5 * 2**20))
NAMED = StableHistogram(1.0, DELTA, groups=16, noise="gaussian")
LAX = _with(NAMED, key_delta=16 * NAMED.key_delta)
VALUES = [0.0, 1.0, 50.0, 100.0]


def _median(data: list[float]) -> Any:
    return SMOOTH.release_rank(data, 1, low=0.0, high=1.0)


def _rough(data: list[float]) -> Any:
    return ROUGH.release_rank(data, 3, low=0.0, high=100.0)


MUTANTS = (
    Case(
        "bins that overlap",
        "The least bins of an interquartile range reach into the bins above them.",
        Single(SPREAD),
        *TINY,
        2.0,
        DELTA,
        400,
        lambda: exactly(laws.proposals(SPREAD), SPREADS, 2.0, DELTA),
    ),
    Case(
        "halves for a replaced unit",
        "A stable mode is claimed for replaced units at half of epsilon and delta for an added one.",
        Single(HALVES.release),
        {"a": 4, "b": 6},
        {"a": 5, "b": 5},
        4.0,
        REACHED,
        10_000,
        lambda: exactly(laws.proposals(HALVES.release), TURNED, 4.0, REACHED),
    ),
    Case(
        "a lead that moves by two",
        "The lead of a stable mode moves by two where a unit is replaced, and is counted as one.",
        Single(WHOLE.release),
        {"a": 4, "b": 6},
        {"a": 5, "b": 5},
        4.0,
        REACHED,
        10_000,
        lambda: exactly(laws.proposals(WHOLE.release), TURNED, 4.0, REACHED),
    ),
    Case(
        "a denormal that raises",
        "An order statistic divides by a distance so small that the quotient overflows.",
        Single(_beside(smooth_sensitivity, "_log_smooth", overflowing_smooth, _median)),
        [0.0, 1.0, 1.0],
        [0.0, 5e-324, 1.0],
        1.0,
        samples=400,
    ),
    Case(
        "a median as if added",
        "A replaced record moves ranks by one and not by a half, which the rate of a median counts on.",
        Single(MEDIAN.release),
        [0, 1],
        [1, 20],
        1.0,
        samples=4_000,
        proof=lambda: exactly(laws.points(MEDIAN), REPLACED, 1.0),
    ),
    Case(
        "too rough a bound",
        "The bound of smooth sensitivity is three times as rough as Student noise hides.",
        Single(_rough),
        [0.0, 0.0, 1.0, 50.0, 50.0],
        [0.0, 1.0, 50.0, 50.0, 50.0],
        1.0,
        samples=400,
        proof=lambda: exactly(laws.smooth(ROUGH, 3, 0.0, 100.0), every_pair(VALUES, [5], "replace"), 1.0),
    ),
    Case(
        "a count that is not counted",
        "The noise of a covariance is for its sums and products, and not for the number of records.",
        Single(SHORT.release),
        [[0, 0]],
        [[0, 0], [1, 1]],
        1.0,
        samples=400,
        proof=lambda: replayed(lambda data: SHORT.release(data), TABLES, 1.0),
    ),
    Case(
        "a threshold for one key",
        "A unit alone in sixteen keys may show each of them with the probability that was meant for all.",
        Single(LAX.release),
        {},
        dict.fromkeys("abcdefghijklmnop", 1),
        NAMED.privacy.epsilon(DELTA),
        DELTA,
        12_000,
    ),
)
