"""Reconstruction: accurate answers about random subsets give everybody away, the curator's do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.adversary.attacks.reconstruction import (
    Method,
    curated_sums,
    random_subsets,
    reconstruct,
    reconstruction,
)
from incrowd.adversary.data.crowd import gather
from incrowd.errors import InvalidInput

METHODS: tuple[Method, ...] = ("least squares", "linear programming")


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(2, 30))
def test_exact_answers_about_enough_subsets_give_every_secret(method: Method, seed: int, n: int) -> None:
    """Single people among the subsets make the secrets the only solution."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, n)
    subsets = np.vstack([random_subsets(n, n, generator), np.eye(n, dtype=bool)])
    assert (reconstruct(subsets, subsets @ bits, method) == (bits == 1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_errors_well_under_the_root_of_n_do_not_protect(method: Method) -> None:
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2, 100)
    subsets = random_subsets(100, 400, generator)
    errors = generator.uniform(-2, 2, 400)
    assert (reconstruct(subsets, subsets @ bits + errors, method) == bits).mean() > 0.99


def test_two_thousand_people_are_decoded_and_less_so_as_errors_grow() -> None:
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2, 2_000)
    subsets = random_subsets(2_000, 3_000, generator)
    exact = subsets.astype(np.float32) @ bits.astype(np.float32)
    shares = []
    for alpha in (0.1 * math.sqrt(2_000), 2 * math.sqrt(2_000)):
        noisy = exact + generator.uniform(-alpha, alpha, len(exact))
        shares.append((reconstruct(subsets, noisy, error=alpha / math.sqrt(3)) == bits).mean())
    assert shares[0] > 0.99 and 0.5 < shares[1] < 0.7


def test_everybody_is_in_half_of_the_subsets() -> None:
    subsets = random_subsets(50, 21, np.random.default_rng(1))
    assert (subsets.sum(axis=0) == 11).all() and len({tuple(column) for column in subsets.T}) > 40


@pytest.mark.statistical
def test_the_curators_sums_are_those_of_the_subsets_with_the_noise_that_was_stated() -> None:
    """40 Laplace errors: the mean is off by 8 standard deviations with probability below 1e-9, and the
    largest above 30 scales with probability 40 exp(-30) < 1e-11."""
    crowd = gather(people=60, seed=1)
    subsets = random_subsets(60, 40, np.random.default_rng(1))
    answers, width, deviation = curated_sums(crowd, subsets, epsilon=1000.0)
    errors = answers - subsets @ crowd.table["secret"].to_numpy()
    assert deviation == pytest.approx(math.sqrt(2) * 20 / 1000)
    assert abs(errors.mean()) < 1 and abs(errors).max() <= 30 * 20 / 1000 + 1
    assert width < 1


@pytest.mark.statistical
def test_bounded_errors_fall_and_the_curator_stays_under_its_bound() -> None:
    """`holds` accuses by chance below 1e-6 for each of 2 attempts; the seed fixes the rest."""
    report = reconstruction(people=200, queries=(1, 4), errors=(0.1, 3.0), epsilons=(0.5, 8.0), seed=2)
    shares = {(attempt.against, attempt.x): attempt.success.value for attempt in report.attempts}
    assert all(share > 0.9 for (_, x), share in shares.items() if x == 0.1)
    assert shares["least squares, n answers", 3.0] < 0.75
    curated = [attempt for attempt in report.attempts if "curator" in attempt.against]
    assert [attempt.allowed is not None and attempt.holds for attempt in curated] == [True, True]
    assert report.holds and report.axis


@pytest.mark.parametrize(
    "subsets, answers, said",
    [
        ([[1, 0]], [1, 2], "row for each answer"),
        ([1, 0], [1, 2], "row for each answer"),
        (np.zeros((0, 3)), [], "row for each answer"),
        ([[1, 2]], [1], "0 and 1"),
        ([[1, math.nan]], [1], "0 and 1"),
        ([[1, 0]], [math.nan], "finite"),
    ],
)
def test_what_cannot_be_decoded_is_named(subsets: object, answers: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        reconstruct(subsets, answers)  # type: ignore[arg-type]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InvalidInput, match="least squares or linear programming"):
        reconstruct([[1, 0]], [1], "magic")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least 0"):
        reconstruct([[1, 0]], [1], error=-1.0)
    with pytest.raises(InvalidInput, match="positive numbers"):
        reconstruction(epsilons=(0.0,))
