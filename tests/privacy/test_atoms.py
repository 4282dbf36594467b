"""Enumerated losses: the curve to twelve digits, never below the truth, and no more of them than fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.privacy import atoms
from tests.privacy import truth

PLANS: list[tuple[list[tuple[float, str, int, int]], truth.Plan]] = [
    ([(0.7, "chain", 1, 5)], [("pure", (0.7,), 5)]),
    ([(0.7, "chain", 3, 2)], [("chain", (0.7, 3.0), 2)]),
    ([(0.7, "categories", 5, 3)], [("categories", (0.7, 5.0), 3)]),
    (
        [(0.3, "chain", 1, 3), (0.5, "categories", 4, 2), (1.1, "chain", 2, 1)],
        [("pure", (0.3,), 3), ("categories", (0.5, 4.0), 2), ("chain", (1.1, 2.0), 1)],
    ),
]


def law_of(factors: list[tuple[float, str, int, int]]) -> atoms.Atoms:
    law = atoms.enumerate_atoms(factors)
    assert law is not None
    return law


@pytest.mark.parametrize(("factors", "plan"), PLANS)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.3, 2.0])
def test_delta_is_the_sum_over_outcomes(
    factors: list[tuple[float, str, int, int]], plan: truth.Plan, epsilon: float
) -> None:
    exact = truth.discrete_delta(plan, epsilon)
    assert exact <= law_of(factors).delta(epsilon) <= exact * (1 + 1e-12) + 1e-14


@pytest.mark.parametrize(("factors", "plan"), PLANS)
@pytest.mark.parametrize("delta", [0.2, 0.01, 1e-5])
def test_epsilon_is_where_the_curve_meets_delta(
    factors: list[tuple[float, str, int, int]], plan: truth.Plan, delta: float
) -> None:
    epsilon = law_of(factors).epsilon(delta)
    assert truth.discrete_delta(plan, epsilon) <= delta
    assert truth.discrete_delta(plan, epsilon * (1 - 1e-9)) > delta


def test_the_ends_of_the_curve() -> None:
    law = law_of([(0.7, "chain", 1, 5)])
    assert law.epsilon(0.9999) == 0.0
    assert 3.5 * (1 - 1e-12) <= law.epsilon(1e-200) <= 3.5 * (1 + 1e-11)
    assert law.delta(3.6) == 1e-290
    assert law.mass.sum() == pytest.approx(1, abs=1e-14)
    assert np.all(np.diff(law.loss) > 0)


def test_an_error_of_each_mass_is_added() -> None:
    certain = atoms.Atoms(np.array([2.0]), np.array([0.5]), 0.25, 1)
    assert certain.delta(1.0) == pytest.approx(0.5 * 1.25 * (1 - math.exp(-1)), rel=1e-12)
    # Each loss may be off by 8e-16 of the largest for each part.
    assert certain.blur == pytest.approx(1.6e-15)
    assert atoms.Atoms(np.array([-3.0, 2.0]), np.array([0.5, 0.5]), 0.0, 2).blur == pytest.approx(4.8e-15)


def test_a_delta_is_never_above_one() -> None:
    assert atoms.Atoms(np.array([800.0]), np.array([1.0]), 0.5, 1).delta(0.0) == 1.0


@pytest.mark.parametrize(
    ("factors", "number"),
    [
        ([(0.1, "chain", 1, 2999)], 3000),
        ([(0.1, "chain", 1, 3000)], None),
        ([(0.1, "chain", 3, 999)], 2998),
        ([(0.1, "chain", 3, 1000)], None),
        ([(0.1, "categories", 9, 1499)], 2999),
        ([(0.1, "categories", 9, 1500)], None),
        ([(0.1, "chain", 1, 255), (0.2, "chain", 1, 255)], 2**16),
        ([(0.1, "chain", 1, 255), (0.2, "chain", 1, 256)], None),
        ([(0.1, "chain", 1, 1), (0.1, "laplace", 0, 1)], None),
    ],
)
def test_how_many_outcomes_are_enumerated(
    factors: list[tuple[float, str, int, int]], number: int | None
) -> None:
    law = atoms.enumerate_atoms(factors)
    assert (None if law is None else len(law.mass)) == number
    if law is not None:
        assert float(law.mass.sum()) == pytest.approx(1, abs=1e-11)


def test_the_stated_error_covers_every_doubling() -> None:
    # 16 and 16 for the factor, twice the bits of the count for each value, and one for each term of the sum.
    assert law_of([(0.7, "chain", 1, 5)]).error == (16 + 16 + 2 * 3 * 6 + 6) * 2.0**-53
