"""Mutants of keys and histograms: which groups are shown, and in what order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch, Single
from incrowd.mechanisms import StableHistogram
from incrowd.noise import bernoulli, categorical, discrete_laplace

DELTA = 0.0135  # what noise of scale 1 reaches exactly: the threshold is 5
Counts = dict[str, int]


def threshold_off_by_one(data: Counts, runs: int) -> list[list[str]]:
    """Keys are shown from one below the threshold."""
    sound = StableHistogram(1.0, DELTA)
    noisy = {key: count + discrete_laplace(1, size=runs) for key, count in data.items()}
    return [[key for key in data if noisy[key][run] >= sound.threshold - 1] for run in range(runs)]


def threshold_without_noise(data: Counts, runs: int) -> list[list[str]]:
    """Keys with five people or more are shown, as a table with small cells left out would."""
    return [[key for key, count in data.items() if count >= 5] for _ in range(runs)]


def noise_on_what_is_there(data: Counts, runs: int) -> list[Counts]:
    """Noisy counts of the keys that somebody has, however few."""
    noisy = {key: count + discrete_laplace(1, size=runs) for key, count in data.items() if count}
    return [{key: int(counts[run]) for key, counts in noisy.items()} for run in range(runs)]


def in_the_true_order(data: Counts) -> Counts:
    """Noisy counts, listed from the largest true count to the least."""
    return {key: data[key] + int(discrete_laplace(1)) for key in sorted(data, key=lambda key: -data[key])}


def keys_by_first_row(data: list[str]) -> Counts:
    """Noisy counts of a fixed list of keys, listed as the rows came."""
    keys = dict.fromkeys([*data, "flu", "cold"])
    return {key: data.count(key) + int(discrete_laplace(1)) for key in keys}


def zeros_left_alone(data: list[int], runs: int) -> Any:
    """Noise is added to the cells that are not empty."""
    counts = np.asarray(data)
    return np.where(counts > 0, counts + discrete_laplace(1, size=(runs, counts.size)), 0)


def stable_mode_without_noise(data: Counts, runs: int) -> list[str | None]:
    """Propose, test, release with an exact test: the mode where it leads by three or more."""
    first, second = sorted(data, key=lambda key: -data[key])[:2]
    return [first if data[first] - data[second] >= 3 else None] * runs


def flips_for_two_among_four(data: int, runs: int) -> Any:
    """Randomized response among four answers that keeps the truth as often as among two."""
    other = 1 + categorical([0, 0, 0], rate=1, size=runs)
    kept = categorical([1, 0], rate=1, size=runs) == 0
    return np.where(kept, data, (data + np.asarray(other)) % 4)


def every_bit_with_all_of_it(data: int, runs: int) -> Any:
    """One of four answers as four bits, each of them flipped with all of epsilon."""
    bits = np.zeros((runs, 4), dtype=np.bool_)
    bits[:, data] = True
    flips = np.asarray(bernoulli(1 / (1 + math.e), size=(runs, 4)))
    return bits ^ flips


MUTANTS = (
    Case(
        "threshold off by one",
        "Keys are shown from one below the threshold that delta pays for.",
        Batch(threshold_off_by_one),
        {},
        {"rare": 1},
        1.0,
        DELTA,
    ),
    Case(
        "keys without noise",
        "Keys are shown when their exact count is large enough.",
        Batch(threshold_without_noise),
        {"flu": 4},
        {"flu": 5},
        1.0,
        DELTA,
    ),
    Case(
        "every key that is there",
        "Noisy counts are given for the keys that somebody has, without a threshold.",
        Batch(noise_on_what_is_there),
        {"flu": 4},
        {"flu": 4, "rare": 1},
        1.0,
        DELTA,
    ),
    Case(
        "in the true order",
        "Noisy counts are listed in the order of the exact ones.",
        Single(in_the_true_order),
        {"flu": 4, "cold": 4},
        {"flu": 4, "cold": 5},
        1.0,
        samples=10_000,
    ),
    Case(
        "in the rows' order",
        "Groups are listed in the order in which their first rows came.",
        Single(keys_by_first_row),
        ["flu"],
        ["cold", "flu"],
        1.0,
        samples=10_000,
    ),
    Case("zeros left alone", "Empty cells get no noise.", Batch(zeros_left_alone), [3, 0], [3, 1], 1.0),
    Case(
        "a test without noise",
        "Propose, test, release compares the exact distance.",
        Batch(stable_mode_without_noise),
        {"flu": 6, "cold": 3},
        {"flu": 6, "cold": 4},
        1.0,
        DELTA,
    ),
    Case(
        "flips for two answers",
        "Randomized response among four answers keeps the truth as often as among two.",
        Batch(flips_for_two_among_four),
        0,
        1,
        1.0,
    ),
    Case(
        "all of epsilon for every bit",
        "Two answers differ in two bits, and each was flipped with the whole epsilon.",
        Batch(every_bit_with_all_of_it),
        0,
        1,
        1.0,
    ),
)
