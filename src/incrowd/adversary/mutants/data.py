"""Mutants in which something besides the answer depends on the data: bounds, widths, candidates, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch, Single
from incrowd.noise import categorical, discrete_laplace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def clipped_after(data: list[int], runs: int) -> Integers:
    """The noisy sum is clipped, where every value should have been."""
    return np.clip(sum(data) + discrete_laplace(10, size=runs), 0, 10 * 100)


def bounds_from_the_data(data: list[int], runs: int) -> Integers:
    """Values are clamped to the least and largest of them, and the noise is for that range."""
    return sum(data) + discrete_laplace(max(data) - min(data), size=runs)


def wraps_around(data: list[int], runs: int) -> Any:
    """A sum of values up to 2^20 in 32 bits, which wraps."""
    total = int(np.array(data, dtype=np.int32).sum(dtype=np.int32))
    return total + discrete_laplace(2**20, size=runs)


def not_a_number(data: list[float], runs: int) -> Floats:
    """Values are clamped, but NaN passes every comparison."""
    return np.asarray(float(np.clip(data, 0, 1).sum()) + discrete_laplace(1, size=runs))


def fails_on_a_key(data: list[str]) -> int:
    """A value outside the list raises an error."""
    codes = {"flu": 1, "cold": 2}
    return sum(1 for value in data if codes[value]) + int(discrete_laplace(1))


def refuses_small_groups(data: list[int]) -> float:
    """A mean is refused where there are fewer than three values."""
    if len(data) < 3:
        raise ValueError("too few")
    return sum(data) / len(data) + int(discrete_laplace(100))


def exact_denominator(data: list[int], runs: int) -> Floats:
    """A noisy sum over the exact count."""
    return (sum(data) + discrete_laplace(10, size=runs)) / len(data)


def candidates_from_the_data(data: list[int], runs: int) -> Any:
    """A private median that only ever returns values of the data."""
    points = sorted(data)
    utilities = [-abs(2 * place + 1 - len(points)) for place in range(len(points))]
    return np.asarray(points)[np.asarray(categorical(utilities, rate=1 / 4, size=runs))]


def local_sensitivity(data: list[int], runs: int) -> Floats:
    """A median with noise for its local sensitivity, which itself tells about the data."""
    ordered = sorted(data)
    middle = len(ordered) // 2
    reach = max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1])
    noise = discrete_laplace(reach * 1024, size=runs) / 1024 if reach else np.zeros(runs)
    return ordered[middle] + noise


def width_in_the_open(data: list[int], runs: int) -> Any:
    """A noisy sum with a margin of error that was computed from the data."""
    margin = float(np.std(data))
    return np.column_stack([sum(data) + discrete_laplace(10, size=runs), np.full(runs, margin)])


def sample_in_the_open(data: list[int], runs: int) -> Integers:
    """The first record is the sample; epsilon 1 is claimed to be amplified to that of one in ten."""
    return data[0] + discrete_laplace(1, size=runs)


MUTANTS = (
    Case(
        "clipped after the noise",
        "The answer is clipped and the values are not.",
        Batch(clipped_after),
        [5, 5],
        [5, 5, 500],
        1.0,
    ),
    Case(
        "bounds from the data",
        "The range for clamping and noise is that of the data.",
        Batch(bounds_from_the_data),
        [4, 5, 6],
        [4, 5, 6, 100],
        1.0,
    ),
    Case(
        "a sum that wraps",
        "A sum overflows its integers and comes out on the other side.",
        Batch(wraps_around),
        [2**20] * 2047,
        [2**20] * 2048,
        1.0,
    ),
    Case(
        "NaN passes the clamp",
        "A value that is no number makes the whole sum none.",
        Batch(not_a_number),
        [0.5, 0.5],
        [0.5, 0.5, math.nan],
        1.0,
    ),
    Case(
        "an error on a key",
        "A value that is not expected raises, for the one who has it.",
        Single(fails_on_a_key),
        ["flu", "cold"],
        ["flu", "cold", "rare"],
        1.0,
        samples=5_000,
    ),
    Case(
        "a refusal of small groups",
        "Whether there are enough records is answered exactly.",
        Single(refuses_small_groups),
        [4, 5],
        [4, 5, 6],
        1.0,
        samples=5_000,
    ),
    Case(
        "an exact denominator",
        "A noisy sum is divided by the exact count.",
        Batch(exact_denominator),
        [4, 4, 4],
        [4, 4, 4, 4],
        1.0,
    ),
    Case(
        "candidates from the data",
        "A private quantile returns only what somebody has.",
        Batch(candidates_from_the_data),
        [1, 2, 3],
        [1, 2, 3, 7],
        1.0,
    ),
    Case(
        "local sensitivity",
        "The width of the noise is a function of the data and not a smooth one.",
        Batch(local_sensitivity),
        [0, 0, 0, 100, 100],
        [0, 0, 0, 0, 100],
        1.0,
    ),
    Case(
        "an exact margin",
        "The stated margin of error is computed from the data.",
        Batch(width_in_the_open),
        [1, 2, 3],
        [1, 2, 3, 9],
        1.0,
    ),
    Case(
        "a sample in the open",
        "Amplification by sampling is claimed for a sample that everybody knows.",
        Batch(sample_in_the_open),
        [0] * 10,
        [1] + [0] * 9,
        math.log1p(0.1 * (math.e - 1)),
    ),
)
