"""Mutants of the account: they release more than was paid for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch, Single
from incrowd.noise import discrete_laplace

Integers = NDArray[np.int64]


def spent_once_for_two(data: list[int], runs: int) -> Integers:
    """Two answers, each with all of epsilon; composition is ignored."""
    return len(data) + discrete_laplace(1, size=(runs, 2))


def parallel_over_overlaps(data: list[int], runs: int) -> Integers:
    """Counts of overlapping ranges, each with all of epsilon as if they were disjoint."""
    counts = np.array([sum(value <= end for value in data) for end in (2, 4, 6, 8)])
    return counts + discrete_laplace(1, size=(runs, 4))


def refunded_on_error(data: list[int]) -> dict[str, Any]:
    """An answer below zero is an error, the price is paid back, and the question is asked again."""
    errors = 0
    while (answer := len(data) + int(discrete_laplace(1))) < 0 and errors < 20:
        errors += 1
    return {"errors": errors, "answer": answer}


def best_of_three(data: list[int], runs: int) -> Integers:
    """Three draws, of which the least is published and paid for."""
    return np.asarray((len(data) + discrete_laplace(1, size=(runs, 3))).min(axis=1))


def averaged_while_cheap(data: list[int], runs: int) -> NDArray[np.float64]:
    """The question is repeated ten times under ten names, and each analyst pays for one."""
    return np.asarray((len(data) + discrete_laplace(1, size=(runs, 10))).mean(axis=1))


MUTANTS = (
    Case(
        "spent once for two",
        "Two answers are given for the price of one.",
        Batch(spent_once_for_two),
        [1],
        [1, 1],
        1.0,
    ),
    Case(
        "parallel over overlaps",
        "Overlapping ranges are priced as if they were disjoint.",
        Batch(parallel_over_overlaps),
        [5],
        [5, 1],
        1.0,
    ),
    Case(
        "a refund on error",
        "A question that failed is paid back, though its failure told something.",
        Single(refunded_on_error),
        [],
        [1],
        1.0,
    ),
    Case(
        "the best of three",
        "Several draws are made and one is paid for.",
        Batch(best_of_three),
        [1],
        [1, 1],
        1.0,
        samples=60_000,
    ),
    Case(
        "ten names",
        "A question is repeated under ten names, and their mean has a tenth of the variance.",
        Batch(averaged_while_cheap),
        [1],
        [1, 1],
        1.0,
    ),
)
