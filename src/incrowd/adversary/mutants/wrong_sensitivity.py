"""Mutants whose noise is right in kind and wrong in size: the sensitivity is mistaken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch
from incrowd.mechanisms import textbook_sigma
from incrowd.noise import categorical, discrete_gaussian, discrete_laplace

Integers = NDArray[np.int64]


def half_the_sensitivity(data: list[int], runs: int) -> Integers:
    """A sum of values from 0 to 10 with noise for half of that."""
    return sum(data) + discrete_laplace(5, size=runs)


def sensitivity_of_the_upper_bound(data: list[int], runs: int) -> Integers:
    """A sum of values from -100 to 10 with noise for the upper bound only."""
    return sum(data) + discrete_laplace(10, size=runs)


def mean_of_unknown_size(data: list[int], runs: int) -> NDArray[np.float64]:
    """A mean of values from 0 to 100 with noise for 100 / n, as if n could not change."""
    size = len(data)
    return sum(data) / size + discrete_laplace(100_000, size=runs) / 1000 / size


def replace_as_if_added(data: list[int], runs: int) -> Integers:
    """A sum of values from -10 to 10 where records are replaced, with noise for 10 in place of 20."""
    return sum(data) + discrete_laplace(10, size=runs)


def histogram_as_if_added(data: list[int], runs: int) -> Integers:
    """A histogram where records are replaced, with noise for one cell in place of two."""
    counts = np.bincount(data, minlength=3)
    return counts + discrete_laplace(1, size=(runs, 3))


def many_rows_of_a_unit(data: list[str], runs: int) -> Integers:
    """A count of rows with noise for one row, where a person has many."""
    return len(data) + discrete_laplace(1, size=runs)


def many_groups_of_a_unit(data: list[list[int]], runs: int) -> Integers:
    """Counts of people per group with noise for one group, where a person is in many."""
    counts = np.bincount([group for groups in data for group in groups], minlength=6)
    return counts + discrete_laplace(1, size=(runs, 6))


def exponential_without_its_two(data: list[int], runs: int) -> Any:
    """The exponential mechanism with rate epsilon for utilities that rise for one and fall for others."""
    return categorical(data, rate=1, size=runs)


def squares_like_values(data: list[int], runs: int) -> Integers:
    """Sum and sum of squares of values from 0 to 10, half of epsilon each, both with noise for 10."""
    sums = np.array([sum(data), sum(value**2 for value in data)])
    return sums + discrete_laplace(20, size=(runs, 2))


def laplace_for_l2(data: list[int], runs: int) -> Integers:
    """Nine numbers that all move by 1 under Laplace noise for their L2 distance 3 in place of L1, 9."""
    return np.array(data) + discrete_laplace(3, size=(runs, 9))


def gaussian_for_one_coordinate(data: list[int], runs: int) -> NDArray[np.float64]:
    """Many numbers that all move by 1 under Gaussian noise for one of them."""
    width = textbook_sigma(0.99, 1e-5)
    return np.array(data) + discrete_gaussian(int(width * 1024), size=(runs, len(data))) / 1024


def classical_gaussian_at_seven(data: int, runs: int) -> NDArray[np.float64]:
    """Gaussian noise by the classical formula, which holds for epsilon below 1, at epsilon 7."""
    width = math.sqrt(2 * math.log(1.25 / 0.2)) / 7
    return data + discrete_gaussian(int(width * 2**20), size=runs) / 2**20


def variance_without_bounds(data: list[float], runs: int) -> NDArray[np.float64]:
    """E[x^2] - E[x]^2 with the noise of values within 10, and no clamping to see to it."""
    return float(np.var(data)) + discrete_laplace(10_240, size=runs) / 1024


MUTANTS = (
    Case(
        "half the sensitivity",
        "Noise is scaled to half of what a record can change.",
        Batch(half_the_sensitivity),
        [3, 4],
        [3, 4, 10],
        1.0,
    ),
    Case(
        "the upper bound only",
        "The sensitivity of a sum ignores that the lower bound is larger in size.",
        Batch(sensitivity_of_the_upper_bound),
        [3, 4],
        [3, 4, -100],
        1.0,
    ),
    Case(
        "mean of unknown n",
        "A mean has noise for (high - low) / n although n is private.",
        Batch(mean_of_unknown_size),
        [0],
        [0, 100],
        1.0,
        samples=100_000,
    ),
    Case(
        "replace as add",
        "A replaced record moves a sum twice as far as an added one.",
        Batch(replace_as_if_added),
        [3, 10],
        [3, -10],
        1.0,
    ),
    Case(
        "histogram under replace",
        "A replaced record moves two cells, and each cell has noise for one.",
        Batch(histogram_as_if_added),
        [0, 1],
        [0, 2],
        1.0,
    ),
    Case(
        "rows for units",
        "Rows are protected where people are promised to be.",
        Batch(many_rows_of_a_unit),
        ["ann"],
        ["ann"] + ["bob"] * 5,
        1.0,
    ),
    Case(
        "groups for units",
        "A person counts in every group, with noise for one group.",
        Batch(many_groups_of_a_unit),
        [[0]],
        [[0], [0, 1, 2, 3, 4, 5]],
        1.0,
    ),
    Case(
        "exponential off by two",
        "Utilities that move both ways need half the rate.",
        Batch(exponential_without_its_two),
        [1] + [0] * 9,
        [0] + [1] * 9,
        1.0,
        samples=60_000,
    ),
    Case(
        "squares like values",
        "The noise on a sum of squares is that of the sum.",
        Batch(squares_like_values),
        [2, 3],
        [2, 3, 10],
        1.0,
    ),
    Case(
        "L2 for Laplace",
        "Laplace noise for a vector is scaled to its L2 distance.",
        Batch(laplace_for_l2),
        [0] * 9,
        [1] * 9,
        1.0,
        samples=60_000,
    ),
    Case(
        "one coordinate for all",
        "Gaussian noise for a vector is scaled to one coordinate.",
        Batch(gaussian_for_one_coordinate),
        [0] * 25,
        [1] * 25,
        0.99,
        1e-5,
    ),
    Case(
        "classical Gaussian",
        "The classical formula for Gaussian noise is used beyond epsilon 1.",
        Batch(classical_gaussian_at_seven),
        0,
        1,
        7.0,
        0.2,
        samples=2_000_000,
    ),
    Case(
        "variance without bounds",
        "A variance has the noise of bounded values, which nobody bounded.",
        Batch(variance_without_bounds),
        [1.0, 2.0, 3.0],
        [1.0, 2.0, 300.0],
        1.0,
    ),
)
