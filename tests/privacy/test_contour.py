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
    found = transforms.reduced_moment(e, family, size, z)[0]
    values = (e,) if family == "laplace" else (e, float(size))
    exact = truth.moment(family, values, truth.mp.mpc(c, y)) / truth.mp.exp(
        truth.mp.mpc(c, y) * truth.exact(e)
    )
    assert abs(complex(exact) - found) <= 2**-53 * (32 + 8 * (abs(z[0]) + 1) * e + 8 * y / (c + 0.5))


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
    found = float(sampling.sampled_loss(np.array([base]), rate)[0])
    with truth.mp.workdps(700):
        exact = truth.mp.log1p(truth.mp.mpf(rate) * truth.mp.expm1(truth.mp.mpf(base)))
        room = 1e-15 * abs(exact) + (4e-16 if rate > 0.5 and base < 0 else 1e-320)
        assert abs(found - exact) <= room
