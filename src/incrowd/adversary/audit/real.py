"""Every mechanism of `incrowd.mechanisms` as a case: what it claims, and neighbours that come close to it.

The claim that is tested is the epsilon that `privacy` states at the delta of the case.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.sampling import Batch, Single
from incrowd.mechanisms import (
    Covariance,
    DistanceToProperty,
    Exponential,
    Gaussian,
    Histogram,
    InterquartileRange,
    Laplace,
    Maximum,
    Mean,
    Mechanism,
    Minimum,
    PartitionSelection,
    PermuteAndFlip,
    PrivateRange,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothSensitivity,
    SparseVector,
    StableHistogram,
    StableMode,
    SubsampleAndAggregate,
    UnboundedQuantile,
    Variance,
)

DELTA = 0.01
TALL: list[int] = [1] + [0] * 35
"""Utilities of which one falls and all others rise: what the exponential mechanism protects least."""
LOW: list[int] = [0] + [1] * 35


def _single(
    name: str, mechanism: Mechanism, x: Any, x_prime: Any, samples: int = 20_000, delta: float = 0.0
) -> Case:
    """A mechanism that releases one output at a time."""
    claim = mechanism.privacy.epsilon(delta)
    about = f"{type(mechanism).__name__}.release"
    return Case(name, about, Single(mechanism.release), x, x_prime, claim, delta, samples)


def _many(
    name: str, mechanism: Mechanism, x: Any, x_prime: Any, samples: int = 200_000, delta: float = 0.0
) -> Case:
    """A mechanism whose noise is independent over the places of an array, so that one release is many."""

    def release(data: Any, runs: int) -> Any:
        given = np.asarray(data)
        return mechanism.release(np.tile(given, (runs, 1)) if given.ndim else np.full(runs, given))

    claim = mechanism.privacy.epsilon(delta)
    about = f"{type(mechanism).__name__}.release of arrays"
    return Case(name, about, Batch(release), x, x_prime, claim, delta, samples)


def _rank(mechanism: SmoothSensitivity, delta: float) -> Case:
    """The median of five numbers, where one is replaced that shields it."""

    def release(data: list[float]) -> Any:
        return mechanism.release_rank(data, 3, low=0, high=100)

    kind = "Laplace" if delta else "Student"
    x, x_prime = [0.0, 10.0, 20.0, 30.0, 100.0], [0.0, 10.0, 30.0, 30.0, 100.0]
    claim = mechanism.privacy.epsilon(delta)
    return Case(
        f"SmoothSensitivity, {kind}", "release_rank", Single(release), x, x_prime, claim, delta, 20_000
    )


def _blocks(aggregate: Any) -> Case:
    """The aggregation of a function's answers on two blocks; the blocks run in this process."""
    sampled = SubsampleAndAggregate(_first, 1.0, blocks=2, low=0, high=10, aggregate=aggregate)

    def release(data: list[int]) -> Any:
        parts = sampled.partition(data)
        return sampled.combine([_first([data[place] for place in part.tolist()]) for part in parts])

    return Case(
        f"SubsampleAndAggregate, {aggregate}",
        "partition and combine",
        Single(release),
        [0, 0],
        [0, 10],
        sampled.privacy.epsilon(),
    )


def _first(block: Any) -> float:
    return float(max(block)) if len(block) else 0.0


def _processes() -> Case:
    """The same in processes of their own, as users run it; a run takes a tenth of a second."""
    sampled = SubsampleAndAggregate(_first, 1.0, blocks=2, low=0, high=10)
    return _single("SubsampleAndAggregate, whole", sampled, [0, 0], [0, 10], 200)


REAL: tuple[Case, ...] = (
    _many("Laplace", Laplace(1.0), 0, 1, 1_000_000),
    _single("Laplace, reals", Laplace(1.0, sensitivity=1.0), 0.3, 1.3, 60_000),
    _many("Laplace, a vector", Laplace(1.0, sensitivity=3), [0, 0, 0], [1, 1, 1]),
    _many("Gaussian", Gaussian(1.0, DELTA), 0, 1, 1_000_000, DELTA),
    _single("Gaussian, reals", Gaussian(1.0, DELTA, sensitivity=1.0), 0.25, 1.25, 60_000, DELTA),
    _many("Gaussian, a vector", Gaussian(1.0, DELTA, sensitivity=2), [0] * 4, [1] * 4, 100_000, DELTA),
    _many("Gaussian, zCDP", Gaussian(rho=0.5), 0, 1, 200_000, DELTA),
    _many("RandomizedResponse", RandomizedResponse(1.0), 0, 1, 1_000_000),
    _many("RandomizedResponse, coins", RandomizedResponse.with_truth(Fraction(3, 4)), False, True),
    _many("RandomizedResponse, five answers", RandomizedResponse(1.0, 5), 1, 3),
    _single("Exponential", Exponential(1.0), TALL, LOW, 40_000),
    _single("PermuteAndFlip", PermuteAndFlip(1.0), TALL, LOW, 4_000),
    _single("ReportNoisyMax", ReportNoisyMax(1.0), TALL, LOW, 40_000),
    _single("SparseVector", SparseVector(1.0), [0] * 8 + [-4], [1] * 8 + [-5], 40_000),
    _single("SparseVector, monotone", SparseVector(1.0, hits=2, monotone=True), [0] * 6, [1] * 6, 40_000),
    _single("SparseVector, values", SparseVector(1.0, hits=2, values=0.5), [0, 2, 0], [1, 3, 1], 40_000),
    _single("Quantile", Quantile(1.0, low=0, high=3), [0, 0, 3, 3], [0, 0, 3, 3, 3], 30_000),
    _single("Quantile, replaced", Quantile(1.0, low=0, high=3, relation="replace"), [0, 3], [3, 3], 30_000),
    _single("Quantile, reals", Quantile(1.0, 0.9, low=0.0, high=1.0), [0.1] * 5, [0.1] * 5 + [0.9], 20_000),
    _single(
        "Quantile, several", Quantile(2.0, [0.25, 0.5, 0.75], low=0, high=7), [0, 1, 6], [0, 1, 6, 7], 10_000
    ),
    _single("UnboundedQuantile", UnboundedQuantile(2.0), [3, 3, 3], [3, 3, 3, 1000], 4_000),
    _single("Minimum", Minimum(1.0, low=0, high=7, beyond=0), [6, 6], [6, 6, 0], 20_000),
    _single("Maximum", Maximum(1.0, low=0, high=7, beyond=0), [1, 1], [1, 1, 7], 20_000),
    _many("PartitionSelection, one alone", PartitionSelection(1.0, DELTA), 0, 1, 500_000, DELTA),
    _many("PartitionSelection, a crowd", PartitionSelection(1.0, DELTA), 3, 4, 500_000, DELTA),
    _single("StableHistogram", StableHistogram(1.0, DELTA), {"flu": 5}, {"flu": 6, "rare": 1}, 30_000, DELTA),
    _many("Histogram", Histogram(1.0), [3, 0, 2], [3, 1, 2]),
    _many("Histogram, replaced", Histogram(1.0, relation="replace"), [3, 1, 2], [3, 0, 3]),
    _many(
        "Histogram, Gaussian", Histogram(1.0, DELTA, relation="replace"), [3, 1, 2], [3, 0, 3], 100_000, DELTA
    ),
    _single("ProposeTestRelease", ProposeTestRelease(1.0, DELTA), ("a", 4), ("a", 5), 60_000, DELTA),
    _single("ProposeTestRelease, refused", ProposeTestRelease(1.0, DELTA), ("a", 0), ("b", 0), 60_000, DELTA),
    _single(
        "ProposeTestRelease, a number", ProposeTestRelease(1.0, DELTA, bound=1), (7, 6), (8, 7), 40_000, DELTA
    ),
    _single("StableMode", StableMode(1.0, DELTA), {"a": 9, "b": 4}, {"a": 9, "b": 5}, 20_000, DELTA),
    _single("StableMode, tied", StableMode(1.0, DELTA), {"a": 4, "b": 4}, {"a": 4, "b": 5}, 20_000, DELTA),
    _single("DistanceToProperty", DistanceToProperty(1.0), 2, 3, 60_000),
    _single(
        "InterquartileRange",
        InterquartileRange(2.0, DELTA),
        list(range(8, 40)),
        [*range(8, 39), 9],
        10_000,
        DELTA,
    ),
    _rank(SmoothSensitivity(1.0), 0.0),
    _rank(SmoothSensitivity(1.0, delta=DELTA), DELTA),
    _blocks("median"),
    _blocks("mean"),
    _processes(),
    _single("Mean", Mean(1.0, low=0, high=1), [0, 0, 0], [0, 0, 0, 1], 20_000),
    _single("Mean, replaced", Mean(1.0, low=0, high=1, relation="replace"), [0, 0, 0], [0, 0, 1], 20_000),
    _single("Mean, range found", Mean(1.0), [1.0, 2.0], [1.0, 2.0, 1e6], 2_000),
    _single("PrivateRange", PrivateRange(1.0), [1.0, 2.0], [1.0, 2.0, 1e6], 2_000),
    _single("Variance", Variance(1.0, low=0, high=1), [0, 0, 0], [0, 0, 0, 1], 20_000),
    _single("Variance, replaced", Variance(1.0, low=0, high=1, relation="replace"), [0, 0], [0, 1], 20_000),
    _single("Variance, range found", Variance(1.0), [1.0, 2.0], [1.0, 2.0, 1e6], 2_000),
    _single(
        "Covariance", Covariance(1.0, columns=2, bounds=[(0, 1)] * 2), [[0, 0]], [[0, 0], [1, 1]], 10_000
    ),
    _single(
        "Covariance, Gaussian",
        Covariance(1.0, DELTA, columns=2, bounds=[(0, 1)] * 2),
        [[0, 0]],
        [[0, 0], [1, 1]],
        10_000,
        DELTA,
    ),
    _single("post-processing", Laplace(1.0).then(abs), 0, 1, 60_000),
)
