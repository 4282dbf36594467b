"""Moments in closed form against sums and integrals over the mass functions."""

from __future__ import annotations

import cmath
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import events, transforms

THIRD = Fraction(1, 3)
ABOVE_A_THIRD = math.nextafter(1 / 3, 1)
"""The least float whose decimal is at least a third."""


def moment(losses: list[float], masses: list[float], t: complex) -> complex:
    """E exp(t * loss) over exp(t * largest loss)."""
    return sum(mass * cmath.exp(t * (loss - losses[0])) for loss, mass in zip(losses, masses, strict=True))


@pytest.mark.parametrize("t", [0.0, 1.0, 2.5, 0.5 + 3j])
def test_a_chain_of_two_steps_has_three_losses(t: complex) -> None:
    ratio = math.exp(-0.6)
    masses = [1 / (1 + ratio), (1 - ratio) / (1 + ratio) * ratio, ratio**2 / (1 + ratio)]
    expected = moment([1.2, 0.0, -1.2], masses, t)
    assert transforms.reduced_moment(1.2, "chain", 2, np.array([t]))[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("t", [0.0, 1.0, 2.5, 0.5 + 3j])
def test_one_step_and_categories_have_their_mass_functions(t: complex) -> None:
    grown = math.exp(1.2)
    two = moment([1.2, -1.2], [grown / (1 + grown), 1 / (1 + grown)], t)
    assert transforms.reduced_moment(1.2, "chain", 1, np.array([t]))[0] == pytest.approx(two, rel=1e-13)
    five = moment([1.2, 0.0, -1.2], [grown / (grown + 4), 3 / (grown + 4), 1 / (grown + 4)], t)
    assert transforms.reduced_moment(1.2, "categories", 5, np.array([t]))[0] == pytest.approx(five, rel=1e-13)


@pytest.mark.parametrize("t", [0.0, 1.0, 2.5])
def test_laplace_noise_is_integrated(t: float) -> None:
    # Half at epsilon, half of exp(-epsilon) at -epsilon, the density exp((l - epsilon) / 2) / 4 between.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    middle = 1.2 * weights @ (np.exp((1.2 * nodes - 1.2) / 2) / 4 * np.exp(t * (1.2 * nodes - 1.2)))
    expected = 0.5 + 0.5 * math.exp(-1.2 - 2.4 * t) + middle
    assert transforms.reduced_moment(1.2, "laplace", 0, np.array([t]))[0] == pytest.approx(
        expected, rel=1e-13
    )


@pytest.mark.parametrize(
    ("event", "part"),
    [
        (events.Pure(THIRD), (ABOVE_A_THIRD, "chain", 1)),
        (events.Approximate(THIRD, Fraction(1, 10)), (ABOVE_A_THIRD, "chain", 1)),
        (events.DiscreteLaplace(THIRD, 7), (ABOVE_A_THIRD, "chain", 7)),
        (events.Laplace(THIRD), (ABOVE_A_THIRD, "laplace", 0)),
        (events.RandomizedResponse(THIRD, 7), (ABOVE_A_THIRD, "categories", 7)),
        (events.BoundedRange(THIRD), None),
        (events.Gaussian(THIRD), None),
        (events.ZeroConcentrated(THIRD), None),
    ],
)
def test_which_events_have_a_closed_form_and_their_epsilon_is_rounded_up(
    event: events.Event, part: tuple[float, str, int] | None
) -> None:
    assert transforms.bounded_part(event) == part
