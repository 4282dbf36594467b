"""The numbers behind Poisson sampling: masses, losses and moments against sums and integrals of their own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import events, sampling

F = Fraction
BASES: list[events.Sampled] = [
    events.Gaussian(F(1, 2)),
    events.Gaussian(F(3)),
    events.Laplace(F(1)),
    events.Pure(F(1)),
    events.RandomizedResponse(F(1), 2),
    events.RandomizedResponse(F(1), 5),
    events.DiscreteLaplace(F(2), 3),
]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_points_hold_both_distributions_of_the_pair(
    base: events.Sampled, direction: sampling.Direction
) -> None:
    loss, log_mass = sampling.base_points(base, direction)
    assert np.exp(log_mass).sum() == pytest.approx(1, abs=1e-12)
    assert np.exp(log_mass + loss).sum() == pytest.approx(1, abs=1e-12)


def test_atoms_are_the_mass_functions() -> None:
    e = math.e
    two = sampling.atoms(events.Pure(F(1)))
    assert two[0].tolist() == [-1, 1]
    assert two[1] == pytest.approx([e / (1 + e), 1 / (1 + e)], rel=1e-14)
    five = sampling.atoms(events.RandomizedResponse(F(1), 5))
    assert five[0].tolist() == [-1, 0, 1]
    assert five[1] == pytest.approx([e / (e + 4), 3 / (e + 4), 1 / (e + 4)], rel=1e-14)
    assert [part.tolist() for part in sampling.atoms(events.RandomizedResponse(F(1), 2))] == [
        part.tolist() for part in two
    ]
    r = math.exp(-2 / 3)
    chain = sampling.atoms(events.DiscreteLaplace(F(2), 3))
    assert chain[0] == pytest.approx([-2, -2 / 3, 2 / 3, 2], rel=1e-14)
    inner = (1 - r) / (1 + r)
    assert chain[1] == pytest.approx([1 / (1 + r), inner * r, inner * r**2, r**3 / (1 + r)], rel=1e-13)


def test_chains_that_are_too_long_become_coarser_ones_that_cover_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampling, "MOST_STEPS", 4)
    exact, _ = sampling.atoms(events.DiscreteLaplace(F(2), 4))
    assert exact == pytest.approx([-2, -1, 0, 1, 2])
    # Ten steps of 1/5 become four of three each, the last one longer than it was.
    loss, mass = sampling.atoms(events.DiscreteLaplace(F(2), 10))
    assert loss == pytest.approx([-2.4, -1.2, 0, 1.2, 2.4])
    assert mass.sum() == pytest.approx(1, abs=1e-14)
    assert mass @ np.exp(loss) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("rate", [F(1, 10), F(9, 10)])
def test_moments_of_removing_are_binomial_sums(base: events.Sampled, rate: Fraction) -> None:
    # E_P exp(2 loss) = E_Q (1 - q + q e^l)^3 = sum of binomial weights times E_Q e^(j l).
    q = float(rate)
    if isinstance(base, events.Gaussian):
        mu = float(base.mu)
        powers = [math.exp(mu * mu * j * (j - 1) / 2) for j in range(4)]
    elif isinstance(base, events.Laplace):
        # E_Q e^(j l) = (j e^((j - 1) e) + (j - 1) e^(-j e)) / (2 j - 1)
        powers = [(j * math.exp(j - 1) + (j - 1) * math.exp(-j)) / (2 * j - 1) for j in range(4)]
    else:
        loss, mass = sampling.atoms(base)
        powers = [float(mass @ np.exp(j * loss)) for j in range(4)]
    exact = math.log(sum(math.comb(3, j) * q**j * (1 - q) ** (3 - j) * powers[j] for j in range(4)))
    cumulant = float(sampling.cumulant(events.PoissonSubsampled(base, rate), np.array([2.0]), "remove")[0])
    assert exact * (1 - 1e-15) <= cumulant <= exact + 1e-11 * (1 + abs(exact))


@pytest.mark.parametrize("mu", [0.5, 3.0])
@pytest.mark.parametrize("c", [1.0, 12.0])
def test_moments_of_adding_are_integrals(mu: float, c: float) -> None:
    # The trapezoid rule with steps far finer than the module's own, exact to rounding for such an integrand.
    x = np.arange(-15.0, 15.0 + mu, 1 / 128)
    ratio = 0.9 + 0.1 * np.exp(mu * x - mu * mu / 2)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    exact = math.log(float((density * ratio**-c).sum()) / 128)
    event = events.PoissonSubsampled(events.Gaussian(F(mu)), F(1, 10))
    cumulant = float(sampling.cumulant(event, np.array([c]), "add")[0])
    assert exact - 1e-14 <= cumulant <= exact + 1e-11 * (1 + exact)


def test_adding_never_tells_more_than_a_missed_unit() -> None:
    event = events.PoissonSubsampled(events.Gaussian(F(3)), F(1, 10))
    orders = np.array([1.0, 1000.0])
    cumulants = sampling.cumulant(event, orders, "add")
    assert cumulants[1] == pytest.approx(-1000 * math.log(0.9), rel=1e-12)
    assert cumulants[0] < -math.log(0.9)
    everybody = events.PoissonSubsampled(events.Gaussian(F(3)), F(1))
    assert sampling.cumulant(everybody, orders, "add")[1] == math.inf


def test_moments_are_given_only_where_they_are_proven() -> None:
    def proven(base: events.Sampled, order: float, direction: sampling.Direction) -> bool:
        event = events.PoissonSubsampled(base, F(1, 10))
        bound = sampling.cumulant(event, np.array([order]), direction)[0]
        return bool(bound < (math.inf if direction == "remove" else -order * math.log(0.9) * (1 - 1e-12)))

    # The points reach 300 deviations; the integrand peaks (c + 1) mu to the right and needs 9 more.
    two = events.Gaussian(F(2))
    assert proven(two, 144.5, "remove") and not proven(two, 144.6, "remove")
    assert sampling._proven_order(two, "add") == 37.5
    assert sampling._proven_order(events.Gaussian(F(1, 2)), "add") == 150
    assert sampling._proven_order(events.Gaussian(F(1, 2)), "remove") == 581
    assert proven(events.Laplace(F(1)), 75.0, "remove") and not proven(events.Laplace(F(1)), 75.1, "remove")
    assert proven(events.Pure(F(1)), 1e6, "remove")
    # Nothing for losses that span more than ten thousand, or next to nothing.
    assert proven(events.Pure(F(4999)), 1.0, "remove") and not proven(events.Pure(F(5000)), 1.0, "remove")
    assert not proven(events.Pure(F(1, 10**37)), 1.0, "remove")
    assert proven(events.Pure(F(1, 10**35)), 1.0, "remove")
    # Too many points to be worth it.
    assert proven(events.DiscreteLaplace(F(1), 19_999), 1.0, "remove")
    assert not proven(events.DiscreteLaplace(F(1), 20_000), 1.0, "remove")


def test_how_wide_losses_are() -> None:
    assert sampling.widest(events.Gaussian(F(2))) == 2 * (22 + 2)
    assert sampling.widest(events.Pure(F(3))) == 6
    assert sampling.span(events.PoissonSubsampled(events.Pure(F(3)), F(1))) == 6
    grown = math.log1p(0.01 * math.expm1(3))
    assert sampling.span(events.PoissonSubsampled(events.Pure(F(3)), F(1, 100))) == pytest.approx(2 * grown)
    # At a rate of nine tenths the loss is larger downwards: 1 - q is nearly all that is left.
    fall = -math.log1p(0.9 * math.expm1(-30))
    rise = math.log1p(0.9 * math.expm1(30))
    assert sampling.span(events.PoissonGroup(events.Pure(F(30)), F(9, 10))) == pytest.approx(
        2 * max(rise, fall)
    )
    top = math.log1p(0.01 * math.expm1(2 * 13 - 2))
    assert sampling.span(events.PoissonSubsampled(events.Gaussian(F(2)), F(1, 100))) == pytest.approx(2 * top)
    assert sampling.span(events.PoissonSubsampled(events.Gaussian(F(2)), F(1))) == 2 * 24


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("rate", [F(1, 10), F(1)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_lattice_points_hold_the_sampled_pair(
    base: events.Sampled, rate: Fraction, direction: sampling.Direction
) -> None:
    loss, mass, lost = sampling.lattice_points(events.PoissonSubsampled(base, rate), direction, 0.125)
    assert mass.sum() == pytest.approx(1, abs=1e-11)
    assert mass @ np.exp(-loss) == pytest.approx(1, abs=1e-11)
    # What lies beyond eleven deviations: Phi(-11) = 1.9e-28.
    assert lost == (1e-27 if isinstance(base, events.Gaussian) else 0.0)
    assert math.erfc(11 / math.sqrt(2)) < 1e-27


def test_removing_and_adding_have_opposite_losses() -> None:
    event = events.PoissonSubsampled(events.Pure(F(1)), F(1, 10))
    up, down = math.log1p(0.1 * math.expm1(1)), -math.log1p(0.1 * math.expm1(-1))
    assert sampling.lattice_points(event, "remove", 0.1)[0] == pytest.approx([-down, up])
    assert sampling.lattice_points(event, "add", 0.1)[0] == pytest.approx([down, -up])


def test_cells_integrate_polynomials_of_degree_five() -> None:
    x, weights = sampling.cells(np.array([0.0, 0.5, 2.0]))
    assert len(x) == 6
    assert weights @ x**5 == pytest.approx(2**6 / 6, rel=1e-13)
    assert weights.sum() == pytest.approx(2, rel=1e-14)


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
def test_edges_have_sampled_losses_on_the_lattice(rate: float) -> None:
    edges = sampling._lattice_edges(-2.0, 3.0, rate, 0.125)
    places = sampling.sampled_loss(edges, rate) / 0.125
    assert places == pytest.approx(np.rint(places), abs=1e-10)
    ends = [math.log1p(rate * math.expm1(end)) / 0.125 for end in (-2.0, 3.0)]
    whole = [place for place in range(-100, 100) if ends[0] < place < ends[1]]
    assert np.rint(places).tolist() == whole
