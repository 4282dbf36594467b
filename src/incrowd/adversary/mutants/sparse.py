"""Mutants of the sparse vector and of noisy maxima: they release something that they did not pay for.

The sparse vectors are published ones (Lyu, Su, Li 2017 list them); each claims epsilon 1. A transcript is a
row of 1 (above), 0 (below) and -1 (not asked any more).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.runs import Batch
from incrowd.noise import discrete_laplace

Integers = NDArray[np.int64]


def _transcripts(
    questions: Sequence[int], runs: int, threshold_scale: int, question_scale: int, hits: int | None
) -> tuple[Integers, Integers]:
    """Transcripts for the threshold 0, and the noisy values that were compared; a scale of 0 is no noise."""
    shape = (runs, len(questions))
    threshold = discrete_laplace(threshold_scale, size=(runs, 1)) if threshold_scale else np.zeros((runs, 1))
    noise = discrete_laplace(question_scale, size=shape) if question_scale else np.zeros(shape, np.int64)
    values = np.asarray(questions) + noise
    above = (values >= threshold).astype(np.int64)
    if hits is not None:
        earlier = np.cumsum(above, axis=1) - above
        above = np.where(earlier >= hits, -1, above)
    return above, values


def no_noise_on_the_threshold(data: list[int], runs: int) -> Integers:
    """Every question has noise, the threshold has none."""
    return _transcripts(data, runs, 0, 2, 1)[0]


def no_noise_on_the_questions(data: list[int], runs: int) -> Integers:
    """The threshold has noise, the questions have none (Stoddard, Chen, Machanavajjhala 2014)."""
    return _transcripts(data, runs, 2, 0, None)[0]


def never_stops(data: list[int], runs: int) -> Integers:
    """No limit on the hits (Chen, Xiao, Zhang, Xu 2015)."""
    return _transcripts(data, runs, 2, 2, None)[0]


def noise_without_the_hits(data: list[int], runs: int) -> Integers:
    """Question noise that does not grow with the number of hits, here 12 (Lee, Clifton 2014)."""
    return _transcripts(data, runs, 4, 2, 12)[0]


def compared_value_released(data: list[int], runs: int) -> Integers:
    """The place of the first hit, and the very value that was compared there (Roth's lecture notes)."""
    above, values = _transcripts(data, runs, 2, 2, 1)
    place = np.where((above == 1).any(axis=1), (above == 1).argmax(axis=1), -1)
    value = np.where(place >= 0, values[np.arange(runs), place], 0)
    return np.column_stack([place, value])


def threshold_drawn_anew(data: list[int], runs: int) -> Integers:
    """The threshold's noise is drawn anew for each question, and paid for once."""
    noise = discrete_laplace(2, size=(runs, len(data))) + discrete_laplace(4, size=(runs, len(data)))
    return np.asarray(np.asarray(data) + noise >= 0, dtype=np.int64)


def maximum_with_its_value(data: list[int], runs: int) -> Integers:
    """The winner together with its noisy count, at the price of the winner."""
    noisy = np.asarray(data) + discrete_laplace(2, size=(runs, len(data)))
    return np.column_stack([noisy.argmax(axis=1), noisy.max(axis=1)])


def whole_ranking(data: list[int], runs: int) -> Integers:
    """All candidates in the order of their noisy counts, at the price of the winner among rising ones."""
    noisy = np.asarray(data) + discrete_laplace(1, size=(runs, len(data)))
    return np.argsort(-noisy, axis=1, kind="stable")


MUTANTS = (
    Case(
        "no noise on the threshold",
        "A sparse vector without noise on its threshold pays nothing for what falls below.",
        Batch(no_noise_on_the_threshold),
        [-1] * 10,
        [-2] * 10,
        1.0,
        samples=40_000,
    ),
    Case(
        "no noise on the questions",
        "A sparse vector without noise on its questions shows their order.",
        Batch(no_noise_on_the_questions),
        [0, 1],
        [1, 0],
        1.0,
    ),
    Case(
        "a sparse vector that never stops",
        "Hits are given without an end.",
        Batch(never_stops),
        [0] * 24,
        [1] * 12 + [-1] * 12,
        1.0,
        samples=40_000,
    ),
    Case(
        "noise without the hits",
        "The noise of a sparse vector does not grow with the hits it gives.",
        Batch(noise_without_the_hits),
        [0] * 24,
        [1] * 12 + [-1] * 12,
        1.0,
        samples=40_000,
    ),
    Case(
        "the compared value",
        "A sparse vector releases the noisy value that it compared.",
        Batch(compared_value_released),
        [-1] * 8 + [0],
        [0] * 8 + [-1],
        1.0,
        samples=200_000,
    ),
    Case(
        "a threshold drawn anew",
        "A sparse vector draws its threshold for each question and pays once.",
        Batch(threshold_drawn_anew),
        [0] * 24,
        [1] * 24,
        1.0,
        samples=40_000,
    ),
    Case(
        "the winner's value",
        "A noisy maximum returns its noisy value for free.",
        Batch(maximum_with_its_value),
        [0] * 10,
        [1] * 10,
        1.0,
        samples=60_000,
    ),
    Case(
        "the whole ranking",
        "A noisy maximum returns the order of all for the price of the first.",
        Batch(whole_ranking),
        [0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        1.0,
        samples=200_000,
    ),
)
