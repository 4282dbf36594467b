"""Mutants whose noise has the right size and is drawn, rounded or kept wrongly."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch
from incrowd.noise import discrete_laplace, uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _unit_laplace(runs: int) -> Floats:
    """Laplace noise of scale 1 as textbooks draw it: the logarithm of a uniform float."""
    chance = (uniform(2**53 - 1, size=runs) + 1) / 2.0**53
    signs = np.where(uniform(2, size=runs) == 1, 1.0, -1.0)
    return np.asarray(-signs * np.log(chance), dtype=np.float64)


def textbook_floats(data: float, runs: int) -> Floats:
    """Laplace noise in floating point (Mironov 2012)."""
    return data + _unit_laplace(runs)


def noise_rounded_before(data: float, runs: int) -> Floats:
    """Noise on a grid, added to a value that is not."""
    return data + np.rint(_unit_laplace(runs) * 4) / 4


def grid_of_the_value(data: float, runs: int) -> Floats:
    """The sum is rounded to a grid that depends on the size of the true value."""
    step = 2.0 ** (np.frexp(data)[1] - 10)
    return np.asarray(np.rint((data + _unit_laplace(runs)) / step) * step)


def truncated_to_whole(data: int, runs: int) -> Integers:
    """Laplace noise cut off after the point, which makes 0 twice as wide as every other number."""
    return data + _unit_laplace(runs).astype(np.int64)


def tails_cut(data: int, runs: int) -> Integers:
    """Noise redrawn until it lies within 4, so that far answers exist for one neighbour only."""
    noise = discrete_laplace(1, size=runs)
    while (far := np.abs(noise) > 4).any():
        noise[far] = discrete_laplace(1, size=int(far.sum()))
    return data + noise


def tails_clamped(data: int, runs: int) -> Integers:
    """Noise clamped to 4 before it is added."""
    return data + np.clip(discrete_laplace(1, size=runs), -4, 4)


def one_sided(data: int, runs: int) -> Integers:
    """Noise that only adds, so that no answer lies below the truth."""
    return data + np.abs(discrete_laplace(1, size=runs))


def seed_in_the_code(data: int, runs: int) -> Integers:
    """The same seed at every start."""
    return np.full(runs, data + int(np.random.default_rng(42).laplace() * 16))


def seed_of_few_bits(data: float, runs: int) -> Floats:
    """A seed of ten bits: a thousand different noises in all."""
    noises = np.random.default_rng(7).laplace(size=1024)
    return data + noises[uniform(1024, size=runs)]


def seeded_by_the_data(data: list[int], runs: int) -> Floats:
    """Python's generator, seeded with the data, so that equal questions get equal answers."""
    generator = random.Random(repr(data))
    return np.full(runs, sum(data) + generator.expovariate(1.0) - generator.expovariate(1.0))


def noise_from_a_digest(data: list[int], runs: int) -> Integers:
    """The noise is a digest of the data, so that it need not be stored."""
    digest = hashlib.sha256(repr(data).encode()).digest()
    return np.full(runs, sum(data) + int.from_bytes(digest[:1], "little") % 7 - 3)


def noise_used_twice(data: list[int], runs: int) -> Integers:
    """Two answers, each paid for, with one and the same noise."""
    noise = discrete_laplace(2, size=runs)
    return np.column_stack([sum(data) + noise, len(data) + noise])


def sums_in_half_precision(data: list[float], runs: int) -> Floats:
    """Values up to 2 added in 16-bit floats, whose rounding doubles what a record moves."""
    total: Any = np.float16(0)
    for value in data:
        total = total + np.float16(value)
    return float(total) + discrete_laplace(2 * 2**10, size=runs) / 2**10


STUCK = [2.0] * 1024 + [1.0] * 8
MUTANTS = (
    Case(
        "textbook floats",
        "Laplace noise is drawn in floating point, whose sums skip numbers.",
        Batch(textbook_floats),
        0.0,
        1.0,
        1.0,
    ),
    Case(
        "noise on a grid, value off it",
        "The noise is rounded and the value is not.",
        Batch(noise_rounded_before),
        0.0,
        0.3,
        1.0,
    ),
    Case(
        "grid of the value",
        "The answer is rounded to as many digits as the true value has.",
        Batch(grid_of_the_value),
        4.0,
        3.0,
        1.0,
    ),
    Case(
        "noise cut after the point",
        "Truncation gives 0 twice the mass that its neighbours' law allows.",
        Batch(truncated_to_whole),
        0,
        1,
        1.0,
    ),
    Case("tails cut", "Noise beyond a limit is redrawn.", Batch(tails_cut), 0, 1, 1.0, samples=60_000),
    Case(
        "tails clamped", "Noise beyond a limit is clamped.", Batch(tails_clamped), 0, 1, 1.0, samples=60_000
    ),
    Case("one-sided noise", "Noise is never negative.", Batch(one_sided), 0, 1, 1.0, samples=60_000),
    Case(
        "a seed in the code",
        "Every start draws the same noise.",
        Batch(seed_in_the_code),
        0,
        1,
        1.0,
        samples=60_000,
    ),
    Case(
        "a seed that repeats",
        "The seed has ten bits.",
        Batch(seed_of_few_bits),
        0.0,
        1.0,
        1.0,
        samples=60_000,
    ),
    Case(
        "seeded by the data",
        "Python's random is seeded with the data.",
        Batch(seeded_by_the_data),
        [1, 2],
        [1, 2, 1],
        1.0,
    ),
    Case(
        "noise from a digest",
        "Noise is a function of the data's digest.",
        Batch(noise_from_a_digest),
        [1, 2],
        [1, 2, 1],
        1.0,
    ),
    Case(
        "noise used twice",
        "Two answers share one noise, and their difference is exact.",
        Batch(noise_used_twice),
        [3, 3],
        [3, 3, 3],
        4.0,
    ),
    Case(
        "sums in half precision",
        "Rounding in a sum of floats moves it further than a record may.",
        Batch(sums_in_half_precision),
        STUCK,
        [2.0, *STUCK],
        1.0,
    ),
)
