"""The pieces of the contour: aliases are positive, lattices dominate, every line is sound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import (
    atoms,
    contour,
    events,
    gaussian,
    laplace,
    lattice,
    poisson,
    pure,
    renyi,
    sampling,
    transforms,
)
from tests.privacy import truth


@settings(deadline=None, max_examples=60)
@given(
    st.floats(0.001, 10),
    st.sampled_from(["chain", "laplace", "categories"]),
    st.integers(2, 9),
    st.floats(0.1, 50),
    st.floats(0, 500),
)
def test_moments_are_those_of_the_mass_functions(
    e: float, family: str, size: int, c: float, y: float
) -> None:
    z = np.array([c + 1j * y])
    moment = transforms.reduced_moment(e, family, size, z)[0]
    values = (e,) if family == "laplace" else (e, float(size))
    exact = truth.moment(family, values, truth.mp.mpc(c, y)) / truth.mp.exp(
        truth.mp.mpc(c, y) * truth.exact(e)
    )
    assert abs(complex(exact) - moment) <= 2**-53 * (32 + 8 * (abs(z[0]) + 1) * e + 8 * y / (c + 0.5))


def plan_of(guarantee: object) -> contour.Plan:
    plan = contour.make_plan(dict(guarantee.events), "remove")  # type: ignore[attr-defined]
    assert plan is not None
    return plan


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 6), st.floats(-0.5, 0.5))
def test_a_line_made_for_another_epsilon_is_looser_but_sound(made_for: float, shift: float) -> None:
    plan = laplace(0.3) * 5 + gaussian(0.5)
    parts: truth.Plan = [("laplace", (0.3,), 5), ("gaussian", (0.5,), 1)]
    line = contour.Contour(plan_of(plan), made_for)
    epsilon = max(0.01, made_for + shift)
    assert line.delta(epsilon) >= truth.GaussianTruth(parts, epsilon).delta(epsilon)


def test_a_mutant_with_nodes_between_ours_understates() -> None:
    # Half-way nodes change the sign of every other alias: the sum then falls below the truth when T is short.
    parts: truth.Plan = [("gaussian", (1.0,), 1)]
    exact = float(truth.GaussianTruth(parts, 1.0).delta(1.0))
    period, c = 3.0, 2.0

    def total(offset: float) -> float:
        y = 2 * math.pi / period * (np.arange(-200, 200) + offset)
        z = c + 1j * y
        return float((np.exp(z * (z + 1) / 2 - z) / (z * (z + 1))).real.sum() / period)

    assert total(0.0) > exact
    assert total(0.5) < exact


def test_smoothing_and_lattices_only_add() -> None:
    exact = pure(0.5) * 4
    line = contour.Contour(plan_of(exact), 1.2)
    assert line.smoothing > 0
    assert line.delta(1.2) >= float(truth.discrete_delta([("pure", (0.5,), 4)], 1.2))


@pytest.mark.parametrize("spacing", [0.3, 0.01])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_coarse_lattice_dominates_a_fine_one(spacing: float, direction: sampling.Direction) -> None:
    event = events.PoissonSubsampled(events.Gaussian(Fraction(3, 2)), Fraction(1, 5))

    def delta(grid: lattice.Lattice, epsilon: float) -> float:
        loss = grid.spacing * (grid.first + np.arange(len(grid.mass)))
        return float(grid.mass @ np.maximum(0.0, -np.expm1(epsilon - loss)))

    coarse, fine = (lattice.sampled(event, direction, s) for s in (spacing, 0.001))
    for epsilon in (0.0, 0.05, 0.4, 1.5):
        truly = float(truth.sampled_delta(1.5, 0.2, 0.0, epsilon, direction))
        assert delta(coarse, epsilon) >= delta(fine, epsilon) * (1 - 1e-11) >= truly * (1 - 1e-10)
    assert coarse.mass.sum() == pytest.approx(1, abs=1e-10)


def test_sampled_moments_bound_the_lattice_moments_from_below() -> None:
    c = np.array([0.5, 2.0, 3.0])  # beyond, what the lattice puts at infinity begins to matter
    for base in (
        events.Gaussian(Fraction(1)),
        events.Laplace(Fraction(1)),
        events.DiscreteLaplace(Fraction(2), 3),
    ):
        for direction in ("remove", "add"):
            event = events.PoissonSubsampled(base, Fraction(1, 10))
            grid = lattice.sampled(event, direction, 2.0**-9)
            loss = grid.spacing * (grid.first + np.arange(len(grid.mass)))
            coarse = np.log(np.exp(np.outer(c, loss)) @ grid.mass)
            fine = sampling.cumulant(event, c, direction)
            assert np.all(coarse >= fine - 1e-9)
            assert np.all(coarse <= fine * 1.01 + 1e-6)


def test_enumeration_and_contour_agree() -> None:
    plan = plan_of(pure(0.3) * 40)
    exact = atoms.enumerate_atoms([(f.epsilon, f.family, f.size, f.count) for f in plan.factors])
    assert exact is not None
    line = contour.Contour(plan, 5.0)
    assert line.delta(5.0) == pytest.approx(exact.delta(5.0), rel=1e-5)
    assert line.delta(5.0) >= exact.delta(5.0) * (1 - 1e-11)
    assert atoms.enumerate_atoms([(0.1, "chain", 1, 10**6)]) is None
    assert atoms.enumerate_atoms([(0.1, "laplace", 0, 1)]) is None


def test_moment_bounds_are_above_the_exact_curve() -> None:
    plan = laplace(0.1) * 30
    counts = dict(plan.events)
    for epsilon in (0.5, 1.0, 2.0):
        assert renyi.delta_bound(lambda c: renyi.cumulant(counts, c), epsilon) >= plan.delta(epsilon)


def test_losses_too_wide_for_a_lattice_fall_back() -> None:
    wide = poisson(gaussian(200.0), 0.5) * 2
    assert 0 < wide.delta(10.0) <= 1
    assert wide.epsilon(1e-6) > 1000


@settings(deadline=None, max_examples=100)
@given(st.floats(-800, 800), st.one_of(st.floats(1e-9, 1), st.floats(0, 1e-14).map(lambda x: 1 - x)))
def test_sampled_losses_are_right_at_every_rate(base: float, rate: float) -> None:
    loss = float(sampling.sampled_loss(np.array([base]), rate)[0])
    with truth.mp.workdps(700):
        exact = truth.mp.log1p(truth.mp.mpf(rate) * truth.mp.expm1(truth.mp.mpf(base)))
        room = 1e-15 * abs(exact) + (4e-16 if rate > 0.5 and base < 0 else 1e-320)
        assert abs(loss - exact) <= room


F = Fraction


def plan_for(counts: dict[events.Event, int]) -> contour.Plan:
    plan = contour.make_plan(counts, "remove")
    assert plan is not None
    return plan


def test_a_plan_is_sorted_by_how_its_events_enter() -> None:
    rare = events.PoissonSubsampled(events.Gaussian(F(1)), F(1, 10))
    plan = plan_for(
        {
            events.Pure(F(1, 2)): 2,
            events.Approximate(F(1, 2), F(1, 10)): 1,
            events.Laplace(F(1, 3)): 4,
            events.Gaussian(F(3)): 1,
            events.Gaussian(F(2)): 4,
            rare: 5,
        }
    )
    assert (plan.mu, plan.mu2, plan.reach) == (5.0, 25.0, F(3, 2) + F(4, 3))
    third = math.nextafter(1 / 3, 1)
    assert plan.factors == (contour.Factor(0.5, "chain", 1, 3), contour.Factor(third, "laplace", 0, 4))
    assert (plan.sampled, plan.ranged) == (((rare, 5),), ())
    assert contour.make_plan({events.ZeroConcentrated(F(1)): 1}, "remove") is None
    replaced = events.WithoutReplacement(events.Pure(F(1)), F(1, 10), 2)
    assert contour.make_plan({replaced: 1}, "remove") is None
    once = events.WithoutReplacement(events.Pure(F(1)), F(1, 10), 1)
    assert plan_for({once: 1}).sampled == ((once, 1),)


def test_ranges_that_are_too_small_or_too_many_count_as_pure() -> None:
    assert plan_for({events.BoundedRange(F(1, 2)): 1}).ranged == ((F(1, 2), 1),)
    # Alone it has its formula whatever its size; with others it is too small for rounding.
    tiny = events.BoundedRange(F(1, 10**10))
    assert plan_for({tiny: 1}).ranged == ((F(1, 10**10), 1),)
    small = plan_for({tiny: 3, events.Gaussian(F(1)): 1})
    assert (small.ranged, small.factors) == ((), (contour.Factor(1e-10, "chain", 1, 3),))
    assert small.reach == F(3, 10**10)
    many = plan_for({events.BoundedRange(F(1, 1000)): 100_000, events.Pure(F(1, 1000)): 2})
    assert (many.ranged, many.factors) == ((), (contour.Factor(0.001, "chain", 1, 100_002),))
    assert many.reach == F(100_002, 1000)


def test_what_floats_cannot_hold_has_no_curve() -> None:
    most = 10**15
    assert contour.make_plan({events.Pure(F(1)): most}, "remove") is not None
    assert contour.make_plan({events.Pure(F(1)): most + 1}, "remove") is None
    assert contour.make_plan({events.Pure(F(most)): 1}, "remove") is not None
    assert contour.make_plan({events.Pure(F(most + 1)): 1}, "remove") is None
    assert contour.make_plan({events.DiscreteLaplace(F(1), most): 1}, "remove") is None
    assert contour.make_plan({events.RandomizedResponse(F(1), most): 1}, "remove") is None
    # Gaussians alone have a formula for any size.
    assert contour.make_plan({events.Gaussian(F(10 * most)): 1}, "remove") is not None
    rate = F(1, 10**12)
    noise = events.Gaussian(F(1))
    assert contour.make_plan({events.PoissonSubsampled(noise, rate): 1}, "remove") is None
    assert contour.make_plan({events.PoissonSubsampled(noise, 2 * rate): 1}, "remove") is not None
    still = events.PoissonSubsampled(events.Pure(rate / 2), F(1, 2))
    assert contour.make_plan({still: 1}, "remove") is None


def test_moments_to_choose_a_line_by_add_up() -> None:
    c = np.array([2.0])
    pure_one = math.log((math.exp(1) ** 3 + math.exp(-2)) / (1 + math.e))
    plan = plan_for({events.Gaussian(F(2)): 1, events.Pure(F(1)): 3})
    assert plan.cumulant(c)[0] == pytest.approx(4 / 2 * 2 * 3 + 3 * pure_one, rel=1e-12)
    # E_Q (1 - q + q e^l)^3 for Gaussian noise of mu 1.
    cube = sum(math.comb(3, j) * 0.1**j * 0.9 ** (3 - j) * math.exp(j * (j - 1) / 2) for j in range(4))
    rare = events.PoissonSubsampled(events.Gaussian(F(1)), F(1, 10))
    assert plan_for({rare: 5}).cumulant(c)[0] == pytest.approx(5 * math.log(cube), rel=1e-9)
    group = events.PoissonGroup(events.Gaussian(F(1)), F(1, 10))
    assert plan_for({group: 5}).cumulant(c)[0] == pytest.approx(5 * math.log(cube), rel=1e-9)
    assert plan_for({events.BoundedRange(F(1, 2)): 1}).cumulant(c)[0] == pytest.approx(1 / 32 * 6)


def line_of(mu: float = 1.0) -> contour.Contour:
    """A line that needs no smoothing, so that nothing but the slack is added to the sum."""
    line = contour.Contour(plan_of(gaussian(mu) + pure(0.5)), 1.5)
    assert line.smoothing == 0
    return line


def exact_delta(epsilon: float) -> float:
    """Gaussian noise of mu 1 beside a pure release of a half."""
    keep = math.exp(0.5) / (1 + math.exp(0.5))
    parts = (
        keep * truth.gaussian_delta(truth.mp.mpf(1), truth.mp.mpf(epsilon) - 0.5),
        (1 - keep) * truth.gaussian_delta(truth.mp.mpf(1), truth.mp.mpf(epsilon) + 0.5),
    )
    return float(sum(parts))


@pytest.mark.parametrize("epsilon", [1.49, 1.5])
def test_without_smoothing_the_line_is_the_truth_and_its_slack(epsilon: float) -> None:
    line, exact = line_of(), exact_delta(epsilon)
    assert exact <= line.delta(epsilon) <= exact * (1 + 1e-8)


@pytest.mark.parametrize("field", ["rounding", "truncated"])
def test_every_slack_is_added_at_the_scale_of_the_sum(field: str) -> None:
    line = line_of()
    before, scale = line.delta(1.5), math.exp(line.level + line.c * float(line.reach - F(3, 2)))
    setattr(line, field, getattr(line, field) + 1e-3)
    assert line.delta(1.5) - before == pytest.approx(1e-3 * scale, rel=1e-6)


def test_the_slack_of_turning_grows_with_epsilon_and_the_mass_at_infinity_is_added() -> None:
    line = line_of()
    before, scale = line.delta(1.5), math.exp(line.level + line.c * float(line.reach - F(3, 2)))
    line.turn += 1e-3
    # The gap to the reach is 0.5 - 1.5.
    assert line.delta(1.5) - before == pytest.approx(1e-3 * (1 + 1.5) * scale, rel=1e-6)
    line = line_of()
    line.lost = 0.125
    assert line.delta(1.5) == pytest.approx(before + 0.125, rel=1e-12)
    line.lost = 2.0
    assert line.delta(1.5) == 1.0
    assert line.delta(-2000.0) == 1.0


def test_what_is_cut_off_is_bounded_by_its_integral() -> None:
    line = line_of()
    line.y = np.array([0.0, 1.0, 2.0])
    line.c = 1.0
    line._start(3.0)
    # The integral of exp(-3 y^2 / 2) / y^2 over both sides of 2 is below exp(-6) / 2 * 2, over 2 pi.
    assert line.truncated == pytest.approx(math.exp(-6) / (2 * math.pi), rel=1e-12)
    # M(z) = exp(mu^2 z (z + 1) / 2) against its value at c.
    assert line.level == pytest.approx(3.0)
    z = 1 + 2j
    assert np.exp(line.log_value[2]) == pytest.approx(np.exp(1.5 * z * (z + 1) - 3.0), rel=1e-12)
    assert np.all(line.error >= 2.0**-53 * 2 * 3.0 * np.abs(line.z) * (np.abs(line.z) + 1) * (1 - 1e-12))


def test_moments_below_their_own_error_are_raised_to_it() -> None:
    line = line_of()
    line.y = np.array([0.0, 1.0, 2.0])
    line._start(0.0)
    line._times(np.array([2.0 + 0j, 1.0 + 0j, 1e-20 + 0j]), np.array([1e-15, 1e-3, 1e-3]), 2)
    assert np.exp(line.log_value) == pytest.approx([1.0, 0.25, 1e-6], rel=1e-12)
    # Relative to its size a moment is off by bound / size; what was raised by three times its bound.
    assert line.error == pytest.approx([2e-15, 2 * math.log1p(2e-3), 2 * math.log1p(3)], rel=1e-2)
    assert line.level == pytest.approx(2 * math.log(2))
    assert line.level_size == pytest.approx(2 * math.log(2))


def test_dropped_nodes_are_bounded_by_their_sum() -> None:
    line = line_of()
    line.y = np.linspace(0.0, 40.0, 401)
    line.period = 2 * math.pi / 0.1
    line._start(1.0)
    before = line.truncated
    sizes = np.exp(line.log_value.real) * 2 / line.period / np.abs(line.z * (line.z + 1))
    line._drop_small()
    dropped = np.sort(sizes)[: 401 - len(line.y)]
    assert 0 < len(dropped) < 401
    assert dropped.sum() <= contour._NEGLIGIBLE * sizes.sum() * 1.0000001
    assert line.truncated - before == pytest.approx(dropped.sum(), rel=1e-3)
    assert line.truncated - before >= dropped.sum() * (1 - 1e-9)


def test_a_line_is_extended_as_if_made_for_both() -> None:
    line = line_of()
    line.extend(plan_of(gaussian(0.5) + laplace(0.25)))
    both = gaussian(1) + pure(0.5) + gaussian(0.5) + laplace(0.25)
    assert line.reach == F(3, 4)
    assert line.delta(1.5) == pytest.approx(both.delta(1.5), rel=1e-6)
    assert line.delta(1.5) >= both.delta(1.5) * (1 - 1e-6)
