"""The Laplace mechanism: the claimed epsilon is that of its exact mass functions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Laplace
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.additive.laplace import unclamped
from incrowd.noise import SeededSource
from tests.mechanisms.checks import FAILURE, smallest_delta, smallest_epsilon, surprise

epsilons = st.fractions(Fraction(1, 100), 8) | st.floats(0.01, 8)


def window(mechanism, centre, reach=400):
    return centre + np.arange(-reach, reach + 1)


@given(epsilons, st.integers(1, 9), st.integers(-50, 50), st.data())
def test_the_ratio_of_masses_is_never_above_epsilon_and_reaches_it(epsilon, sensitivity, value, data):
    m = Laplace(epsilon=epsilon, sensitivity=sensitivity)
    shift = data.draw(st.integers(-sensitivity, sensitivity))
    y = window(m, value, 60)
    ratio = smallest_epsilon(m.pmf(y, value), m.pmf(y, value + shift))
    claimed = m.privacy.epsilon()
    assert ratio <= claimed * (1 + 1e-12) + 1e-12
    worst = smallest_epsilon(m.pmf(y, value), m.pmf(y, value + sensitivity))
    assert math.isclose(worst, claimed, rel_tol=1e-9)
    assert math.isclose(claimed, float(epsilon), rel_tol=1e-12)


@given(epsilons, st.floats(0.01, 100), st.sampled_from([None, 2.0**-6, 0.25, 1.0, 8.0]), st.data())
def test_reals_on_a_grid_keep_the_claim_after_flooring(epsilon, sensitivity, grid, data):
    size = data.draw(st.integers(1, 4))
    m = Laplace(epsilon=epsilon, sensitivity=sensitivity, grid=grid, size=size)
    one = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=size, max_size=size))
    shares = data.draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size))
    total = sum(map(abs, shares)) or 1.0
    other = [x + 0.999999 * sensitivity * s / total for x, s in zip(one, shares, strict=True)]
    apart = np.abs(m.lattice.steps(one, "Laplace") - m.lattice.steps(other, "Laplace")).sum()
    # The exact log-ratio of the joint masses is at most (L1 distance in steps) / (scale in steps).
    assert int(apart) / m.scale_in_steps <= Fraction(repr(m.privacy.epsilon()))


@given(epsilons, st.floats(0.01, 100), st.integers(1, 1000))
def test_the_default_grid_costs_under_a_millionth(epsilon, sensitivity, size):
    m = Laplace(epsilon=epsilon, sensitivity=sensitivity, size=size)
    assert m.privacy.epsilon() <= float(epsilon) * (1 + 1e-12)
    assert m.noise_scale <= sensitivity / float(epsilon) * (1 + 2.0**-19)


@given(st.floats(1e-3, 1e6), st.integers(1, 50))
def test_a_scale_states_the_epsilon_it_buys(scale, sensitivity):
    m = Laplace(scale=scale, sensitivity=sensitivity)
    assert Fraction(repr(m.privacy.epsilon())) >= sensitivity / Fraction(scale) * (1 - Fraction(1, 10**15))
    assert math.isclose(m.privacy.epsilon(), sensitivity / scale, rel_tol=1e-14)
    assert m.noise_scale == scale


def mutant_without_flooring(epsilon, sensitivity, grid, size):
    """The bug: calibrate to the real sensitivity and forget what flooring adds."""
    m = Laplace(epsilon=epsilon, sensitivity=sensitivity, grid=grid, size=size)
    object.__setattr__(m, "scale_in_steps", Fraction(sensitivity) / m.lattice.step / Fraction(epsilon))
    return m


def test_a_mutant_that_forgets_flooring_is_caught():
    for build, honest in ((mutant_without_flooring, False), (Laplace, True)):
        m = build(epsilon=1.0, sensitivity=0.5, grid=1.0, size=3) if honest else build(1.0, 0.5, 1.0, 3)
        one, other = [0.9, 0.9, 0.9], [1.05, 1.05, 1.05]
        apart = np.abs(m.lattice.steps(one, "Laplace") - m.lattice.steps(other, "Laplace")).sum()
        assert (int(apart) / m.scale_in_steps <= 1) is honest


def test_a_mutant_with_scale_per_coordinate_is_caught():
    """The bug: calibrate each coordinate to its own change of 1 where the whole vector moves by 3."""
    m = Laplace(epsilon=1.0, sensitivity=1)
    y = window(m, 0, 40)
    joint = 3 * smallest_epsilon(m.pmf(y, 0), m.pmf(y, 1))
    assert joint > m.privacy.epsilon() * 2
    assert joint <= Laplace(scale=1, sensitivity=3).privacy.epsilon() * (1 + 1e-9)


@pytest.mark.parametrize(
    ("scale", "shifts"), [(1.0, (1, 1, 1)), (1.7, (2, 1)), (3.0, (1, 2, 2)), (0.4, (1, 1)), (2.0, (5,))]
)
def test_every_way_to_spread_the_change_stays_below_the_claimed_curve(scale, shifts):
    """The joint law over coordinates, exactly: its delta at any epsilon is at most what is claimed."""
    m = Laplace(scale=scale, sensitivity=sum(shifts))
    reach = int(45 * scale) + 10
    losses, masses = np.zeros(1), np.ones(1)
    for shift in shifts:
        y = np.arange(-reach, reach + 1)
        p = m.pmf(y, 0)
        loss = np.round((np.abs(y - shift) - np.abs(y)), 9)
        keys, where = np.unique(loss, return_inverse=True)
        grouped = np.bincount(where, weights=p)
        losses, masses = (losses[:, None] + keys).ravel(), (masses[:, None] * grouped).ravel()
    for epsilon in (0.0, 0.1, 0.5, 1.0, sum(shifts) / scale * 0.9):
        delta = (masses * np.maximum(0, -np.expm1(epsilon - losses / scale))).sum()
        assert delta <= m.privacy.delta(epsilon) + 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 1.0, Fraction(10, 3), 40.5])
def test_released_integers_follow_the_stated_masses(scale):
    """Fails by chance below 1e-7."""
    m = Laplace(scale=scale, sensitivity=1)
    reach = int(20 * scale) + 5
    released = m.release(np.full(40_000, 7))
    inside = np.clip(released - 7, -reach, reach + 1) + reach
    y = 7 + np.arange(-reach, reach + 1)
    assert surprise(inside, m.pmf(y, 7)) > FAILURE


@pytest.mark.statistical
def test_released_reals_follow_the_stated_masses_and_a_mutant_does_not():
    """Fails by chance below 1e-7."""
    m = Laplace(scale=2.0, sensitivity=1.0, grid=0.5, size=40_000)
    released = m.release(np.full(40_000, 1.3))
    steps = np.clip(np.round((released - 1.0) / 0.5).astype(int), -80, 81) + 80
    stated = m.pmf(1.0 + 0.5 * np.arange(-80, 81), 1.3)
    assert surprise(steps, stated) > FAILURE
    mutant = Laplace(scale=2.2, sensitivity=1.0, grid=0.5)
    assert surprise(steps, mutant.pmf(1.0 + 0.5 * np.arange(-80, 81), 1.3)) < 1e-12


@given(st.floats(0.05, 50), st.sampled_from([0.5, 0.9, 0.95, 0.999, 1 - 1e-9]))
def test_the_halfwidth_is_the_least_that_covers(scale, confidence):
    m = Laplace(scale=scale, sensitivity=1)
    h = m.halfwidth(confidence)
    y = np.arange(-h, h + 1)
    assert m.pmf(y).sum() >= confidence - 1e-12
    assert h == 0 or m.pmf(y[1:-1]).sum() < confidence + 1e-9


def test_the_halfwidth_of_reals_counts_flooring_and_of_many_counts_them_all():
    m = Laplace(scale=1.0, sensitivity=1.0, grid=0.5)
    assert m.halfwidth(0.95) == 0.5 * (Laplace(scale=2).halfwidth(0.95) + 1)
    assert Laplace(scale=10).halfwidth(0.95, count=1000) > Laplace(scale=10).halfwidth(0.95) + 60


def test_integers_in_integers_out_reals_in_reals_out():
    m = Laplace(epsilon=1.0, sensitivity=1)
    assert type(m.release(42)) is int
    out = m.release(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert out.dtype == np.int64 and out.shape == (2, 3)
    assert m.release([]).shape == (0,)
    for kind in (np.int8, np.uint8, np.uint64, np.int64):
        assert m.release(np.ones(3, dtype=kind)).shape == (3,)
    r = Laplace(epsilon=1.0, sensitivity=0.1, size=2)
    assert type(r.release(0.3)) is float
    assert r.release([0.3, 4]).dtype == np.float64


def test_a_seeded_source_repeats_and_the_system_does_not():
    m = Laplace(scale=1000)
    assert m.release(np.zeros(9, int), SeededSource(3)).tolist() == (
        m.release(np.zeros(9, int), SeededSource(3)).tolist()
    )
    assert m.release(np.zeros(9, int)).tolist() != m.release(np.zeros(9, int)).tolist()


def test_extreme_values_saturate():
    top = 2**61
    assert abs(Laplace(scale=2**45).release(top)) <= top
    assert (np.abs(Laplace(scale=2**45).release(np.full(100, -top))) <= top).all()


def test_post_processing_keeps_the_guarantee():
    m = Laplace(epsilon=1.0)
    rounded = m.then(lambda x: max(0, x)).then(str)
    assert rounded.privacy == m.privacy
    assert rounded.release(10**9).isdigit()


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 6))
def test_the_delta_curve_is_that_of_the_exact_masses(tenths, sensitivity):
    m = Laplace(epsilon=Fraction(tenths, 10), sensitivity=sensitivity)
    y = np.arange(-600, 600)
    for epsilon in (0.0, 0.05, tenths / 20):
        exact = smallest_delta(m.pmf(y, 0), m.pmf(y, sensitivity), epsilon)
        assert exact <= m.privacy.delta(epsilon) + 1e-12


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1, "scale": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": [1.0]},
        {"epsilon": 1j},
        {"scale": 0},
        {"scale": -2.0},
        {"epsilon": 1, "sensitivity": 0},
        {"epsilon": 1, "sensitivity": -1},
        {"epsilon": 1, "sensitivity": float("inf")},
        {"epsilon": 1, "sensitivity": "1"},
        {"epsilon": 1, "sensitivity": None},
        {"epsilon": 1, "grid": 0.3},
        {"epsilon": 1, "grid": 0},
        {"epsilon": 1, "size": 0},
        {"epsilon": 1, "size": 2.5},
        {"epsilon": 1e-18},
        {"epsilon": 1, "sensitivity": 1.0, "grid": 2.0**-60},
    ],
)
def test_bad_parameters_get_one_sentence(given):
    with pytest.raises(InvalidInput) as caught:
        Laplace(**given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (Laplace(epsilon=1), 1.5),
        (Laplace(epsilon=1), "1"),
        (Laplace(epsilon=1), None),
        (Laplace(epsilon=1), float("nan")),
        (Laplace(epsilon=1, sensitivity=1.0), [1.0, 2.0]),
    ],
)
def test_bad_values_get_one_sentence_and_no_random_bit_is_drawn(mechanism, value):
    class Untouched:
        def words(self, count, dtype):
            raise AssertionError("random bits were drawn for a value that is refused")

    with pytest.raises(InvalidInput) as caught:
        mechanism.release(value, source=Untouched())
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_integers_with_a_fractional_sensitivity_can_be_asked_for():
    m = Laplace(epsilon=1, sensitivity=2.5, grid=INTEGERS)
    assert m.sensitivity_in_steps == 2 and type(m.release(3)) is int


@pytest.mark.statistical
def test_noise_beyond_the_clamp_is_continued_by_its_own_law():
    """Given |Z| >= 2^62 the rest is geometric: its mean is that of the law. Fails by chance below 1e-7."""
    scale = Fraction(5, 2)
    assert unclamped(7, scale) == 7 and unclamped(-(2**62), scale) == -(2**62)
    for draw, sign in ((2**62, 1), (-(2**62) - 1, -1)):
        rest = np.array([abs(unclamped(draw, scale)) - 2**62 - (sign < 0) for _ in range(3_000)])
        q = math.exp(-1 / 2.5)
        assert surprise(np.minimum(rest, 40), (1 - q) * q ** np.arange(40)) > FAILURE
