"""The probability of every output of a mechanism, from its own code, for exact checks.

Each function returns a law of the data: a mapping of outputs to probabilities. Numbers that decide
(distances, bounds, questions) are those that the mechanism's `release` works with, not recomputed here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.proofs import NEGLIGIBLE, Law, Pairs, Proof, proven
from incrowd.adversary.audit.replays import first_hit
from incrowd.mechanisms import (
    Maximum,
    PartitionSelection,
    ProposeTestRelease,
    Quantile,
    SmoothSensitivity,
    SparseVector,
    StableHistogram,
    UnboundedQuantile,
    order_statistic,
)

Floats = NDArray[np.float64]


def points(mechanism: Quantile | Maximum) -> Callable[[Any], Law]:
    """Every lattice point of a choice by rank."""
    low = mechanism.interval.low
    return lambda data: {
        low + place: mass for place, mass in enumerate(mechanism.probabilities(data).tolist())
    }


def unbounded(mechanism: UnboundedQuantile) -> Callable[[Any], Law]:
    """Every value, summed over all intervals that the search may return; for few doublings."""

    def law(data: Any) -> Law:
        hits = first_hit(mechanism.search, mechanism.questions(data))
        masses: dict[Any, float] = {}
        for doublings, chance in enumerate(hits.tolist()):
            for point, mass in points(mechanism.within(doublings))(data).items():
                masses[point] = masses.get(point, 0.0) + chance * mass
        return masses

    return law


def candidates(mechanism: Any) -> Callable[[Any], Law]:
    """Every candidate of a choice by utility."""
    return lambda data: dict(enumerate(mechanism.probabilities(data).tolist()))


def counted(mechanism: StableHistogram) -> Callable[[Mapping[str, int]], Law]:
    """Every list of keys with their noisy counts; counts in the far tail are left out."""
    reach = int(8 * mechanism.noise_scale) + 1

    def one(count: int) -> dict[int | None, float]:
        least = mechanism.threshold
        if not count:
            return {None: 1.0}
        shown = np.arange(least, max(least, count) + reach)
        masses = np.asarray(mechanism.mechanism.pmf(shown, count), dtype=np.float64)
        below = np.asarray(mechanism.mechanism.pmf(np.arange(count - 20 * reach, least), count)).sum()
        return {None: float(below), **dict(zip(shown.tolist(), masses.tolist(), strict=True))}

    def law(data: Mapping[str, int]) -> Law:
        parts = [(key, one(count)) for key, count in sorted(data.items())]
        masses: dict[Any, float] = {}
        for chosen in itertools.product(*(part.items() for _, part in parts)):
            shown = tuple(
                (key, count) for (key, _), (count, _) in zip(parts, chosen, strict=True) if count is not None
            )
            masses[shown] = masses.get(shown, 0.0) + math.prod(mass for _, mass in chosen)
        return masses

    return law


def answers(mechanism: SparseVector) -> Callable[[Sequence[int]], Law]:
    """Every list of answers of a sparse vector, values left out."""

    def law(questions: Sequence[int]) -> Law:
        return {
            listed: mechanism.probability(questions[: len(listed)], listed)
            for listed in _ends(mechanism, questions)
        }

    return law


def _ends(mechanism: SparseVector, questions: Sequence[int]) -> list[tuple[bool, ...]]:
    """All lists of answers with which a sparse vector may end."""
    ends: list[tuple[bool, ...]] = []
    for listed in itertools.product((False, True), repeat=len(questions)):
        hits = itertools.accumulate(listed)
        last = next((place for place, seen in enumerate(hits) if seen == mechanism.hits), len(listed) - 1)
        if listed[: last + 1] not in ends:
            ends.append(listed[: last + 1])
    return ends


def answered(mechanism: SparseVector, epsilon: float, pairs: Pairs) -> Proof:
    """The check of a sparse vector: its answers, and the fresh Laplace noise on the value of every hit."""
    law = answers(mechanism)

    def loss(x: Sequence[int], x_prime: Sequence[int]) -> float:
        first, second = law(x), law(x_prime)
        worst = 0.0
        for listed in first:
            if first[listed] > NEGLIGIBLE:
                moved = sum(abs(a - b) for a, b, hit in zip(x, x_prime, listed, strict=False) if hit)
                values = moved / float(mechanism.value_scale) if mechanism.value_scale else 0.0
                worst = max(worst, abs(math.log(first[listed] / second[listed])) + values)
        return worst / epsilon

    return proven("exact", loss, pairs)


def proposed(mechanism: ProposeTestRelease) -> Callable[[tuple[Any, int]], Law]:
    """The value (with its noise, where the bound is above 0) or None."""

    def law(data: tuple[Any, int]) -> Law:
        chance = mechanism.chance(data[1])
        if mechanism.noise is None:
            return {data[0]: chance, None: 1 - chance}
        reach = int(30 * mechanism.noise.noise_scale)
        shown = np.arange(data[0] - reach, data[0] + reach + 1)
        masses = chance * np.asarray(mechanism.noise.pmf(shown, data[0]))
        return {None: 1 - chance, **dict(zip(shown.tolist(), masses.tolist(), strict=True))}

    return law


def named(mechanism: PartitionSelection) -> Callable[[int], Law]:
    """Whether a key with so many units is named."""

    def law(units: int) -> Law:
        chance = float(mechanism.probability(units))
        return {True: chance, False: float(1 - mechanism.probability(units))}

    return law


@contextmanager
def refusing() -> Iterator[list[tuple[ProposeTestRelease, Any, int]]]:
    """Collect the tests run inside the block, each with its value and distance; all of them refuse."""
    tests: list[tuple[ProposeTestRelease, Any, int]] = []
    original = ProposeTestRelease.release

    def release(self: ProposeTestRelease, value: Any, source: Any = None) -> Any:
        tests.append((self, *value))

    ProposeTestRelease.release = release  # type: ignore[method-assign]
    try:
        yield tests
    finally:
        ProposeTestRelease.release = original  # type: ignore[method-assign]


def proposals(release: Callable[[Any], Any]) -> Callable[[Any], Law]:
    """The value of the first of several tests that passes, or None: propose, test, release with bound 0."""

    def law(data: Any) -> Law:
        with refusing() as tests:
            release(data)
        masses: dict[Any, float] = {}
        refused = 1.0
        for test, value, distance in tests:
            chance = test.chance(distance)
            masses[value] = masses.get(value, 0.0) + refused * chance
            refused *= 1 - chance
        masses[None] = masses.get(None, 0.0) + refused
        return masses

    return law


def smooth(mechanism: SmoothSensitivity, rank: int, low: float, high: float) -> Callable[[Any], Law]:
    """An order statistic with smooth noise, in cells of the released numbers that grow with their size."""
    step = float(mechanism.lattice.step)
    near = np.arange(low - 2 * (high - low), high + 2 * (high - low), (high - low) / 200)
    far = (high - low) * 2.0 ** np.arange(1, 30, 0.25)
    edges = np.unique(np.rint(np.concatenate([low - far, near, high + far]) / step)) * step

    def law(data: Any) -> Law:
        centre, bound = order_statistic(data, rank, low=low, high=high, beta=mechanism.beta)
        # Each side from its own tail, where differences do not cancel: at most an edge, and beyond it.
        upto = mechanism.distribution(edges, (centre, bound))
        beyond = mechanism.distribution(-edges - step, (-centre, bound))
        left = np.diff(upto, prepend=0.0)
        right = -np.diff(beyond, prepend=1.0)
        cells = np.where(edges <= centre, left, right)
        return dict(enumerate([*cells.tolist(), float(beyond[-1])]))

    return law
