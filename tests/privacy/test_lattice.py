"""Pairs on a lattice keep both distributions, and their moments are the sums that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.privacy import events, lattice, mixtures, ranges

F = Fraction


def losses(grid: lattice.Lattice) -> np.ndarray:
    return grid.spacing * (grid.first + np.arange(len(grid.mass)))


def delta(grid: lattice.Lattice, epsilon: float) -> float:
    return float(grid.mass @ np.maximum(0.0, -np.expm1(epsilon - losses(grid)))) + grid.infinite


def test_masses_move_to_both_neighbours_and_keep_both_distributions() -> None:
    loss, mass = np.array([-0.73, 0.1, 0.5, 1.24]), np.array([0.1, 0.2, 0.3, 0.4])
    grid = lattice._settle(loss, mass, 0.25, 0.125)
    assert grid.infinite == 0.125
    assert grid.first == -3
    assert len(grid.mass) == 9
    assert grid.mass.sum() == pytest.approx(1, abs=2e-12)
    assert grid.mass.sum() >= 1
    assert grid.mass @ np.exp(-losses(grid)) == pytest.approx(mass @ np.exp(-loss), rel=2e-12)
    assert np.all(grid.mass[[2, 6]] == 0)
    assert grid.mass[5] == pytest.approx(0.3, rel=2e-12)
    # Alone, 0.1 goes to 0 and 0.25 so that Q keeps 0.2 exp(-0.1).
    above = (1 - math.exp(-0.1)) / (1 - math.exp(-0.25))
    assert grid.mass[3:5] == pytest.approx([0.2 * (1 - above), 0.2 * above], rel=1e-11)


@pytest.mark.parametrize("size", [4, 5, 16])
@pytest.mark.parametrize("first", [-7, 3])
def test_moments_are_the_sums_even_where_masses_are_folded(size: int, first: int) -> None:
    mass = np.array([0.1, 0.2, 0.0, 0.3, 0.15, 0.25])
    grid = lattice.Lattice(0.5, first, mass)
    values, shift = grid.moments(0.7, size, 9)
    y = 2 * math.pi * np.arange(9) / (size * 0.5)
    exact = np.exp(np.outer(0.7 + 1j * y, losses(grid))) @ mass
    assert values * math.exp(shift) == pytest.approx(exact, rel=1e-12)
    # The largest term is taken out, so that nothing overflows.
    assert shift == pytest.approx(
        max(math.log(m) + 0.7 * x for m, x in zip(mass, losses(grid), strict=True) if m)
    )


@pytest.mark.parametrize("kind", [events.PoissonGroup, events.WithoutReplacement])
@pytest.mark.parametrize("base", [events.Pure(F(1)), events.Gaussian(F(1))])
def test_groups_and_fixed_samples_have_the_curve_of_removing_both_ways(
    kind: type[events.PoissonGroup] | type[events.WithoutReplacement], base: events.Sampled
) -> None:
    grid = lattice.sampled(kind(base, F(1, 10)), "remove", 2.0**-9)
    removing = lattice.sampled(events.PoissonSubsampled(base, F(1, 10)), "remove", 2.0**-9)
    for epsilon in (0.0, 0.05, 0.1):
        assert delta(removing, epsilon) * (1 - 1e-9) <= delta(grid, epsilon)
        assert delta(grid, epsilon) <= delta(removing, epsilon) * (1 + 1e-4)
    # Q has the mass of P at the opposite loss: both directions are alike.
    assert grid.mass.sum() == pytest.approx(1, abs=1e-10)
    other = grid.mass * np.exp(-losses(grid))
    assert other.sum() == pytest.approx(1, abs=1e-10)
    swapped = float(other @ np.maximum(0.0, -np.expm1(0.05 + losses(grid))))
    assert swapped == pytest.approx(delta(grid, 0.05), rel=1e-4)
    assert grid.infinite == 2 * removing.infinite


def test_one_pure_release_on_a_sample_by_hand() -> None:
    # Removing: loss log(1 + (e - 1) / 10) with P-mass (9/10 + e/10) / (1 + e).
    event = events.PoissonSubsampled(events.Pure(F(1)), F(1, 10))
    exact = 0.1 * (math.e - 1) / (math.e + 1)
    assert exact <= delta(lattice.sampled(event, "remove", 2.0**-9), 0.0) <= exact * (1 + 1e-9)
    assert exact <= delta(lattice.sampled(event, "add", 2.0**-9), 0.0) <= exact * (1 + 1e-9)
    high = math.log1p(0.1 * math.expm1(1))
    inside = (0.9 + 0.1 * math.e) / (1 + math.e) * (1 - math.exp(0.1 - high))
    assert inside <= delta(lattice.sampled(event, "remove", 2.0**-9), 0.1) <= inside * 1.01


def test_several_units_are_laid_with_their_infinite_mass() -> None:
    units = events.PoissonUnits(events.Gaussian(F(1)), F(1, 4), 2)
    grid = lattice.sampled(mixtures.Mixture(units, 1, 1), "remove", 2.0**-5)
    assert grid.infinite == 1e-27
    assert grid.mass.sum() == pytest.approx(1, abs=1e-11)
    assert grid.mass @ np.exp(-losses(grid)) == pytest.approx(1, abs=1e-11)


def test_bounded_ranges_put_their_rounding_at_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = np.array([-0.5, 0.75]), np.array([0.25, 0.75])
    monkeypatch.setattr(ranges, "worst_pair", lambda sizes: pair)
    grid = lattice.ranged.__wrapped__(((F(1, 2), 2), (F(1, 4), 1)), 0.25)
    assert grid.infinite == 3 * ranges.ROUNDING
    assert losses(grid)[grid.mass > 1e-9] == pytest.approx(pair[0])
    assert grid.mass[grid.mass > 1e-9] == pytest.approx(pair[1], rel=1e-11)


def test_a_fast_size_is_not_smaller() -> None:
    assert lattice.fast_size(1000.0) == 1000
    assert lattice.fast_size(1000.5) >= 1001
    assert lattice.fast_size(1021.0) >= 1021
    assert lattice.fast_size(1021.0) < 1100
