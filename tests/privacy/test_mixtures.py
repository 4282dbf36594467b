"""Several units under Poisson sampling: mixtures of noise against sums over the binomial numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import events, mixtures, sampling
from incrowd.privacy.mixtures import Mixture
from tests.privacy import truth

F = Fraction


def units(base: events.Sampled, rate: Fraction, removed: int, added: int) -> Mixture:
    return Mixture(events.PoissonUnits(base, rate, removed + added), removed, added)


def discrete_pair(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """P and Q on whole numbers from -80 to 80: noise around +a and -b units, mixed by their chances."""
    base, q = mixture.event.event, float(mixture.event.rate)
    assert isinstance(base, (events.Pure, events.DiscreteLaplace))
    width = base.steps if isinstance(base, events.DiscreteLaplace) else 1
    step = float(base.epsilon) / width
    t = np.arange(-80, 81)
    sides = []
    for count, sign in ((mixture.removed, 1), (mixture.added, -1)):
        chances = [math.comb(count, a) * q**a * (1 - q) ** (count - a) for a in range(count + 1)]
        masses = [
            math.tanh(step / 2) * np.exp(-step * np.abs(t - sign * width * a)) for a in range(count + 1)
        ]
        sides.append(np.sum([chance * mass for chance, mass in zip(chances, masses, strict=True)], axis=0))
    return sides[0], sides[1]


CHAINS = [
    units(events.Pure(F(1)), F(1, 4), 2, 1),
    units(events.Pure(F(1)), F(1, 4), 0, 2),
    units(events.Pure(F(1)), F(1), 2, 1),
    units(events.DiscreteLaplace(F(2), 3), F(9, 10), 1, 2),
    units(events.DiscreteLaplace(F(2), 3), F(1, 10), 3, 0),
]


@pytest.mark.parametrize("mixture", CHAINS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_delta_is_the_sum_over_whole_numbers(mixture: Mixture, epsilon: float) -> None:
    p, q = discrete_pair(mixture)
    exact = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
    law = mixtures.atoms(mixture)
    assert law is not None
    assert exact * (1 - 1e-12) <= law.delta(epsilon) <= exact * (1 + 1e-10) + 1e-13


@pytest.mark.parametrize("mixture", CHAINS)
def test_the_largest_loss_and_the_span(mixture: Mixture) -> None:
    p, q = discrete_pair(mixture)
    loss = np.log(p / q)
    assert loss.max() * (1 - 1e-12) <= mixtures.largest(mixture) <= loss.max() * (1 + 1e-12) + 1e-13
    assert mixtures.span(mixture) == pytest.approx(2 * np.abs(loss).max(), rel=1e-12)
    assert mixtures.lattice_points(mixture, 0.1)[2] == 0.0
    assert mixtures.lattice_points(mixture, 0.1)[1].sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mixture", CHAINS)
def test_moments_are_sums_over_whole_numbers(mixture: Mixture) -> None:
    p, q = discrete_pair(mixture)
    exact = np.log([(p * (p / q) ** c).sum() for c in (0.5, 3.0)])
    assert mixtures.cumulant(mixture, np.array([0.5, 3.0])) == pytest.approx(exact, rel=1e-9)


def test_the_largest_loss_of_gaussian_noise() -> None:
    assert mixtures.largest(units(events.Gaussian(F(1)), F(1, 4), 1, 1)) == math.inf
    assert mixtures.largest(units(events.Gaussian(F(1)), F(1), 0, 2)) == math.inf
    assert mixtures.largest(units(events.Gaussian(F(1)), F(1, 4), 0, 2)) == pytest.approx(
        -2 * math.log(0.75), rel=1e-13
    )
    # A huge epsilon is not exponentiated: the bound stays finite and is epsilon a unit.
    assert mixtures.largest(units(events.Pure(F(800)), F(1, 4), 2, 0)) == pytest.approx(1600, rel=1e-13)
    assert mixtures.largest(units(events.Pure(F(2)), F(1), 1, 2)) == pytest.approx(6, rel=1e-13)


GAUSSIANS = [(1.0, 0.25, 2, 1), (0.5, 0.1, 0, 2), (2.0, 0.9, 1, 0)]


@pytest.mark.parametrize(("mu", "rate", "removed", "added"), GAUSSIANS)
def test_gaussian_points_hold_the_pair(mu: float, rate: float, removed: int, added: int) -> None:
    mixture = units(events.Gaussian(F(str(mu))), F(str(rate)), removed, added)
    loss, mass, lost = mixtures.lattice_points(mixture, 0.125)
    assert lost == 1e-27
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    assert mass @ np.exp(-loss) == pytest.approx(1, abs=1e-12)
    exact = float(truth.mixture_delta(mu, rate, removed, added, 0.25))
    assert mass @ np.maximum(0.0, -np.expm1(0.25 - loss)) == pytest.approx(exact, rel=1e-9, abs=1e-13)
    c = np.array([0.5, 2.0])
    assert mixtures.cumulant(mixture, c) == pytest.approx(np.log(np.exp(np.outer(c, loss)) @ mass), rel=1e-6)
    reach = np.array([-11 - added * mu, 11 + removed * mu])
    assert mixtures.span(mixture) == pytest.approx(2 * np.abs(direct_loss(mixture, reach)).max(), rel=1e-9)


def direct_loss(mixture: Mixture, x: np.ndarray) -> np.ndarray:
    base, q = mixture.event.event, float(mixture.event.rate)
    assert isinstance(base, events.Gaussian)
    mu = float(base.mu)

    def density(count: int, sign: int) -> np.ndarray:
        return np.sum(
            [
                math.comb(count, a) * q**a * (1 - q) ** (count - a) * np.exp(-((x - sign * a * mu) ** 2) / 2)
                for a in range(count + 1)
            ],
            axis=0,
        )

    return np.log(density(mixture.removed, 1) / density(mixture.added, -1))


@pytest.mark.parametrize(("mu", "rate", "removed", "added"), GAUSSIANS)
def test_marks_have_losses_on_the_lattice(mu: float, rate: float, removed: int, added: int) -> None:
    mixture = units(events.Gaussian(F(str(mu))), F(str(rate)), removed, added)
    x = np.linspace(-6, 6, 2401)
    places = direct_loss(mixture, mixtures._marks(mixture, x, 0.125)) / 0.125
    ends = direct_loss(mixture, x[[0, -1]]) / 0.125
    assert np.rint(places).tolist() == list(range(math.ceil(ends[0]), math.floor(ends[1]) + 1))
    assert places == pytest.approx(np.rint(places), abs=1e-7)


def test_logs_of_binomial_chances() -> None:
    assert np.exp(mixtures._log_binomial(3, 0.25)) == pytest.approx(np.array([27, 27, 9, 1]) / 64, rel=1e-14)
    assert np.exp(mixtures._log_binomial(2, 1.0)).tolist() == [0, 0, 1]
    assert mixtures._log_binomial(0, 0.25).tolist() == [0]


def test_sums_of_shares_lose_no_digit_near_one_and_do_not_overflow_far_from_it() -> None:
    share = mixtures._log_binomial(1, 0.25)
    for exponent, exact in (
        (1e-12, 0.25e-12),
        (-1e-12, -0.25e-12),
        (0.5, math.log1p(0.25 * math.expm1(0.5))),
        (1.0, math.log1p(0.25 * math.expm1(1.0))),
        (900.0, 900 + math.log(0.25)),
        (-900.0, math.log(0.75)),
    ):
        mixed = mixtures._mixed(np.array([[0.0], [exponent]]), share)
        assert mixed == pytest.approx([exact], rel=1e-11)
    # Where nearly all is taken away the change is not 1 minus a rounded number.
    most = mixtures._log_binomial(1, 1 - 1e-9)
    assert mixtures._mixed(np.array([[0.0], [-900.0]]), most) == pytest.approx([math.log(1e-9)], rel=1e-7)
    assert mixtures._mixed(np.zeros((1, 3)), np.zeros(1)).tolist() == [0, 0, 0]


def test_how_many_steps_a_unit_moves_and_how_many_units_fit() -> None:
    assert mixtures.steps(events.Gaussian(F(1))) == 0
    assert mixtures.steps(events.Pure(F(1))) == mixtures.steps(events.RandomizedResponse(F(1), 3)) == 1
    assert mixtures.steps(events.DiscreteLaplace(F(1), 7)) == 7
    assert mixtures.steps(events.Laplace(F(1))) == 1024

    def fits(base: events.Sampled, number: int) -> bool:
        return mixtures.fits(events.PoissonUnits(base, F(1, 4), number))

    # 16,384 points: one a unit for Gaussian noise, twice its steps for others.
    assert fits(events.Gaussian(F(1)), 16_384) and not fits(events.Gaussian(F(1)), 16_385)
    assert fits(events.Pure(F(1)), 8192) and not fits(events.Pure(F(1)), 8193)
    assert fits(events.Laplace(F(1)), 8) and not fits(events.Laplace(F(1)), 9)


def test_losses_of_laplace_noise_are_not_enumerated() -> None:
    assert mixtures.atoms(units(events.Laplace(F(1)), F(1, 4), 1, 1)) is None
    assert mixtures.atoms(units(events.Gaussian(F(1)), F(1, 4), 1, 1)) is None


def test_replaced_records_are_as_many_units_at_the_larger_rate() -> None:
    base = events.Pure(F(1))
    # 10 of 100 records, 3 replaced: each is in the sample with chance 10 / 98 at most, whatever the others.
    mixture = mixtures.replaced(events.WithoutReplacement(base, F(1, 100), 3))
    assert mixture == Mixture(events.PoissonUnits(base, F(1, 98), 6), 3, 3)
    assert mixtures.replaced(events.WithoutReplacement(base, F(1, 4), 2)) == Mixture(
        events.PoissonUnits(base, F(1, 3), 4), 2, 2
    )
    assert mixtures.replaced(events.WithoutReplacement(base, F(26, 103), 2)) is None
    assert mixtures.replaced(events.WithoutReplacement(base, F(1, 100), 50)) is not None
    assert mixtures.replaced(events.WithoutReplacement(base, F(1, 100), 51)) is None
    assert mixtures.replaced(events.WithoutReplacement(events.Laplace(F(1)), F(1, 100), 5)) is None


def test_losses_round_up() -> None:
    top, bottom = np.array([1.0, -3.0]), np.array([-2.0, 1.0])
    assert np.all(mixtures._loss(top, bottom) > top - bottom)
    assert mixtures._loss(top, bottom) == pytest.approx(top - bottom, rel=1e-14)
    # A rate that is no float is rounded up, and never above 1.
    assert F(mixtures._rate(units(events.Pure(F(1)), F(1, 3), 1, 0))) > F(1, 3)
    assert mixtures._rate(units(events.Pure(F(1)), 1 - F(1, 10**30), 1, 0)) == 1.0
    assert sampling.REACH == 11
