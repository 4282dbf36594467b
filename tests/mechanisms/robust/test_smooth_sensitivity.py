"""Smooth sensitivity: exact cell masses on neighbours, the bound against its definition, mutants."""

from __future__ import annotations

import itertools
import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from incrowd.errors import InvalidInput
from incrowd.mechanisms import SmoothSensitivity, order_statistic
from incrowd.mechanisms.robust.rounded_laplace import rounded_laplace
from incrowd.mechanisms.robust.smooth_sensitivity import student_loss
from incrowd.mechanisms.robust.student import rounded_student
from incrowd.noise import SeededSource
from tests.mechanisms.checks import FAILURE, smallest_delta, smallest_epsilon, surprise

DEGREES = (1, 3, 5)
LARGEST = sys.float_info.max


def cells(m, value, edges):
    """The masses of the cells between edges, tails included, each computed on its own side of the centre."""
    step = float(m.lattice.step)
    edges = np.unique(np.round(edges / step) * step)
    low = np.asarray(m.distribution(edges, value))
    mirrored = np.asarray(m.distribution(-edges - step, (-value[0], value[1])))  # P(> edge)
    below = np.append(np.append(0.0, low), 1.0)
    above = np.append(np.append(1.0, mirrored), 0.0)
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))


@pytest.mark.parametrize("degrees", DEGREES)
@given(st.floats(0.1, 4), st.floats(0.1, 10), st.floats(-1, 1), st.floats(-1, 1))
def test_masses_of_neighbours_differ_by_at_most_epsilon(degrees, epsilon, bound, moved, scaled):
    m = SmoothSensitivity(epsilon, degrees=degrees, grid=0.25)
    other = bound * math.exp(scaled * m.beta)
    one, two = (0.0, bound), (moved * min(bound, other), other)
    edges = np.concatenate((-np.geomspace(1, 1e4, 40)[::-1], np.geomspace(1, 1e4, 40)))
    p, q = cells(m, one, edges), cells(m, two, edges)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert smallest_epsilon(p, q) <= epsilon * (1 + 1e-6) + 1e-6


def losses(a, beta, v, count=25):
    """The log ratios of neighbours' densities over widths, shifts and points, from their definition."""
    z = np.concatenate((np.linspace(-6, 6, 601), np.geomspace(6, 1e8, 200), -np.geomspace(6, 1e8, 200)))
    for wider in np.linspace(-beta, beta, count):
        for part in (-1.0, -0.5, 0.0, 1.0):
            s = part * a * min(1.0, math.exp(wider))
            yield wider + (v + 1) / 2 * (np.log(v + (math.exp(-wider) * (z - s)) ** 2) - np.log(v + z**2))


@pytest.mark.parametrize("degrees", [1, 3, 5, 99])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
@pytest.mark.parametrize("share", [None, 0.1, 0.5, 0.97])
def test_student_noise_uses_its_epsilon_and_no_more(degrees, epsilon, share):
    m = SmoothSensitivity(epsilon, degrees=degrees, share=share)
    worst = max(loss.max() for loss in losses(float(m.factor), m.beta + 4e-11, degrees))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= epsilon * 0.999
    assert m.beta <= epsilon / degrees


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-4, 20), st.floats(1e-4, 3), st.sampled_from([1, 3, 7, 99]))
def test_the_closed_form_of_the_loss_is_its_supremum(a, beta, degrees):
    closed = student_loss(a, beta, degrees)
    worst = max(loss.max() for loss in losses(a, beta, degrees, 9))
    assert worst <= closed * (1 + 1e-9)
    assert worst >= closed * 0.97 - 1e-4 or a > 6  # the points are few where noise is narrow


@pytest.mark.parametrize("degrees", DEGREES)
def test_mutants_with_a_little_less_noise_or_smoothness_are_caught(degrees):
    m = SmoothSensitivity(1.0, degrees=degrees)
    for a, beta in ((1.02 * float(m.factor), m.beta), (float(m.factor), 1 / degrees + 0.01)):
        assert max(loss.max() for loss in losses(a, beta, degrees)) > 1.001


def test_a_mutant_that_pays_nothing_for_the_width_is_caught():
    """The bug: all of epsilon goes to the shift although the width depends on the data."""
    honest = SmoothSensitivity(1.0, grid=0.25)
    mutant = SmoothSensitivity(1.0, grid=0.25)
    object.__setattr__(mutant, "factor", honest.factor * 2)
    values = (0.0, 1.0), (-1.0, math.exp(honest.beta))
    edges = np.concatenate((-np.geomspace(0.25, 1e7, 300)[::-1], np.geomspace(0.25, 1e7, 300)))
    shifted = (0.0, 1.0), (-math.exp(-honest.beta), math.exp(-honest.beta))
    for one, two in (values, shifted):
        assert smallest_epsilon(cells(honest, one, edges), cells(honest, two, edges)) <= 1 + 1e-6
    worst = max(
        smallest_epsilon(cells(mutant, one, edges), cells(mutant, two, edges))
        for one, two in (values, shifted)
    )
    assert worst > 1.02


def test_a_mutant_with_unsmoothed_local_sensitivity_is_caught():
    """The bug: noise as wide as the local sensitivity, which jumps from nothing to half the range."""
    m = SmoothSensitivity(1.0, grid=1.0)
    calm, jumpy = [5.0] * 9, [5.0] * 5 + [50.0] * 4
    nearly = [5.0] * 4 + [50.0] * 5
    edges = np.arange(-100.0, 200.0, 5.0)
    local = ((5.0, 1e-6), (5.0, 45.0))  # what calm data, and data one step away from jumping, would get
    assert smallest_epsilon(cells(m, local[0], edges)[20:24], cells(m, local[1], edges)[20:24]) > 1
    smooth = [order_statistic(x, 5, low=0, high=100, beta=m.beta) for x in (calm, jumpy, nearly)]
    for one, two in itertools.pairwise(smooth[1:]):
        assert smallest_epsilon(cells(m, one, edges), cells(m, two, edges)) <= 1


@pytest.mark.statistical
@pytest.mark.parametrize("degrees", [1, 3, 7])
def test_rounded_student_noise_follows_its_law(degrees):
    """Fails by chance below 1e-7."""
    centre, width, step = Fraction(1, 3), Fraction(17, 5), Fraction(1, 2)
    seen = np.array([rounded_student(centre, width, step, degrees) for _ in range(6_000)])
    edges = (np.arange(-60, 60) + 0.5) * 0.5
    stated = np.diff(np.append(0.0, student.cdf((edges - 1 / 3) / 3.4, degrees)))
    places = np.clip(seen + 60, 0, 120)
    assert surprise(places, stated) > FAILURE
    wrong = np.diff(np.append(0.0, student.cdf((edges - 1 / 3) / 2.4, degrees)))
    assert surprise(places, wrong) < 1e-9


def test_close_decisions_take_more_bits():
    """A source that starts on the edge of the disc and of a grid cell makes every decision ask again."""

    class Edge:
        def __init__(self):
            self.first = [[2**63, 2**63, 0], [2**63, 2**63, 0]]
            self.rest = SeededSource(8)

        def words(self, count, dtype):
            if self.first and dtype is np.uint64:
                return np.array(self.first.pop()[:count], dtype=np.uint64)
            return self.rest.words(count, dtype)

    # X = Y = 1/2 to 128 bits: X / Y is within 2^-126 of 1, and 0 + 1.5 rounds to 1 or 2
    for degrees in (1, 3):
        assert abs(rounded_student(Fraction(0), Fraction(3, 2), Fraction(1), degrees, Edge())) in (1, 2)


def brute(values, m, low, high, beta):
    """max over k of e^(-beta k) A_k, A_k from its definition."""
    n = len(values)
    padded = [low] * (n + 2) + sorted(min(max(v, low), high) for v in values) + [high] * (n + 2)
    at = m + n + 1
    best = 0.0
    for k in range(n + 1):
        a = max(padded[at + t] - padded[at + t - k - 1] for t in range(k + 2))
        best = max(best, math.exp(-beta * k) * a)
    return best


lists = st.lists(st.integers(-3, 12) | st.sampled_from([4, 4, 4]), min_size=1, max_size=9)


@settings(max_examples=150)
@given(lists, st.floats(0.01, 3), st.data())
def test_the_smooth_bound_is_that_of_the_definition(values, beta, data):
    rank = data.draw(st.integers(1, len(values)))
    centre, bound = order_statistic(values, rank, low=0, high=10, beta=beta)
    assert centre == sorted(min(max(v, 0), 10) for v in values)[rank - 1]
    assert bound == pytest.approx(brute(values, rank, 0, 10, beta), rel=1e-9)


@settings(max_examples=150)
@given(lists, st.integers(-3, 12), st.floats(0.01, 3), st.data())
def test_the_bound_is_smooth_and_above_the_local_sensitivity(values, new, beta, data):
    rank, place = data.draw(st.integers(1, len(values))), data.draw(st.integers(0, len(values) - 1))
    other = [*values[:place], new, *values[place + 1 :]]
    one = order_statistic(values, rank, low=0, high=10, beta=beta)
    two = order_statistic(other, rank, low=0, high=10, beta=beta)
    assert abs(one[0] - two[0]) <= min(one[1], two[1])
    assert abs(math.log(one[1] / two[1])) <= beta + 4e-11


def test_long_data_are_searched_in_windows_and_by_halves():
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(50, 10, 4_001), 3)
    values[:50] = 50.0
    for beta in (0.002, 0.05, 1.0):
        bound = order_statistic(values, 2_001, low=0, high=100, beta=beta)[1]
        x = np.concatenate(([0.0], np.sort(values), [100.0]))
        i, j = np.arange(2_002)[:, None], np.arange(2_001, 4_003)[None, :]
        gaps = np.where(j > i, (x[j] - x[i]) * np.exp(-beta * (j - i - 1.0)), 0.0)
        assert bound == pytest.approx(gaps.max(), rel=1e-9)


def test_a_median_is_close_where_the_worst_case_is_not():
    rng = np.random.default_rng(4)
    values = rng.normal(50, 10, 20_001)
    m = SmoothSensitivity(1.0)
    pair = order_statistic(values, 10_001, low=0, high=10_000, beta=m.beta)
    assert pair[1] < 1.0
    errors = [abs(m.release_rank(values, 10_001, low=0, high=10_000) - pair[0]) for _ in range(50)]
    assert float(np.median(errors)) < m.halfwidth(0.999, pair[1])


def test_kinds_and_extremes():
    m = SmoothSensitivity(1.0)
    assert type(m.release((3.0, 1.0))) is float
    whole = SmoothSensitivity(1.0, grid=1.0)
    assert whole.release((10**6, Fraction(1, 10**30))) == 10**6
    assert order_statistic([7] * 50, 25, low=0, high=10, beta=50.0)[1] > 0
    assert order_statistic([math.inf, -math.inf], 1, low=0, high=10, beta=1.0)[0] == 0.0


FAILURES = [Fraction(1, 2), Fraction(1, 20)]
FAILURES += [Fraction(3, 10**k) for k in (3, 9, 12, 16, 17, 30, 99, 101, 150, 200, 299)]


@pytest.mark.parametrize("failure", FAILURES, ids=float)
@pytest.mark.parametrize("kind", [1, 3, 5, 99, "laplace"])
def test_half_widths_hold_at_every_confidence_and_are_not_wide(kind, failure):
    """The chance to err by more is the failure that was asked for: never above, and hardly below."""
    delta = 1e-6 if kind == "laplace" else None
    m = SmoothSensitivity(1.0, degrees=3 if delta else kind, grid=Fraction(1, 2**60), delta=delta)
    with mpmath.workdps(50):
        reach = (mpmath.mpf(m.halfwidth(1 - failure)) - mpmath.mpf(2) ** -60) * m.factor.numerator
        reach /= m.factor.denominator
        missed = mpmath.exp(-reach)
        if not delta:
            v = mpmath.mpf(kind)
            missed = mpmath.betainc(v / 2, 0.5, 0, v / (v + reach**2), regularized=True)
        share = missed * failure.denominator / failure.numerator
        assert share <= 1
        assert share >= 1 - 1e-5 or (kind == 99 and failure < 1e-100)


@pytest.mark.parametrize(
    "call",
    [
        lambda: SmoothSensitivity(0),
        lambda: SmoothSensitivity("1"),
        lambda: SmoothSensitivity(1, degrees=2),
        lambda: SmoothSensitivity(1, degrees=0),
        lambda: SmoothSensitivity(1, degrees=101),
        lambda: SmoothSensitivity(1, share=0),
        lambda: SmoothSensitivity(1, share=1),
        lambda: SmoothSensitivity(1e-12),
        lambda: SmoothSensitivity(1, grid=0.3),
        lambda: SmoothSensitivity(1).release(3.0),
        lambda: SmoothSensitivity(1).release((3.0,)),
        lambda: SmoothSensitivity(1).release(("1", 1)),
        lambda: SmoothSensitivity(1).release((1, float("nan"))),
        lambda: SmoothSensitivity(1).release((1, 0)),
        lambda: SmoothSensitivity(1).release((1, "2")),
        lambda: SmoothSensitivity(1).halfwidth(1),
        lambda: order_statistic([], 1, low=0, high=1, beta=1),
        lambda: order_statistic([1], 2, low=0, high=1, beta=1),
        lambda: order_statistic([1], 0, low=0, high=1, beta=1),
        lambda: order_statistic(["a"], 1, low=0, high=1, beta=1),
        lambda: order_statistic([[1]], 1, low=0, high=1, beta=1),
        lambda: order_statistic([1], 1, low=1, high=1, beta=1),
        lambda: order_statistic([1], 1, low=-1.7e308, high=1.7e308, beta=1),
        lambda: order_statistic([0.0], 1, low=-LARGEST / 2, high=LARGEST / 2, beta=1),
        lambda: order_statistic([LARGEST / 2], 1, low=-LARGEST / 2, high=LARGEST / 2, beta=1),
        lambda: order_statistic([1], 1, low=0, high=10**400, beta=1),
        lambda: order_statistic([1], 1, low=0, high=1, beta=0),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_the_laplace_variant_keeps_its_delta_on_every_pair_of_bounds():
    for epsilon, delta in ((1.0, 1e-3), (0.5, 1e-6), (3.0, 0.1)):
        m = SmoothSensitivity(epsilon, grid=2.0**-6, delta=delta)
        edges = np.concatenate((-np.geomspace(0.05, 2e3, 400)[::-1], np.geomspace(0.05, 2e3, 400)))
        worst = 0.0
        for scaled in (-1.0, -0.4, 0.0, 1.0):
            other = math.exp(scaled * m.beta)
            for moved in (-1.0, 0.0, 0.5, 1.0):
                pair = (0.0, 1.0), (moved * min(1.0, other), other)
                p, q = (cells(m, value, edges) for value in pair)
                worst = max(worst, smallest_delta(p, q, epsilon))
        assert worst <= delta * (1 + 1e-9)
        assert m.privacy.delta(epsilon) <= delta * (1 + 1e-12)


def hockey_stick(wider, s, epsilon):
    """The delta of Laplace noise around 0 and e^wider times as wide around s, by summing exact cell masses.

    Cells end where the ratio of densities crosses e^epsilon, so that no cell holds both signs.
    """
    g = math.exp(-wider)
    crossings = [0.0, s]
    for sign, other in itertools.product((1, -1), (1, -1)):
        # wider - sign z + other g (z - s) = epsilon
        slope = other * g - sign
        if slope:
            crossings.append((epsilon - wider + other * g * s) / slope)
    edges = np.unique(crossings)

    def mass(points, centre, scale):
        place = (points - centre) / scale
        upper = np.where(place > 0, np.exp(-np.abs(place)) / 2, 1 - np.exp(-np.abs(place)) / 2)
        lower = np.where(place < 0, np.exp(-np.abs(place)) / 2, 1 - np.exp(-np.abs(place)) / 2)
        inner = np.where(place[1:] <= 0, np.diff(lower), -np.diff(upper))
        return np.concatenate((lower[:1], inner, upper[-1:]))

    return float(np.maximum(mass(edges, 0.0, 1.0) - math.exp(epsilon) * mass(edges, s, 1 / g), 0).sum())


@pytest.mark.parametrize("share", [None, 0.1, 0.3, 0.9])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (1.0, 0.01), (4.0, 1e-6), (8.0, 0.2), (0.5, 1e-12)]
)
def test_laplace_noise_uses_its_delta_and_no_more(epsilon, delta, share):
    m = SmoothSensitivity(epsilon, share=share, delta=delta)
    a, beta = float(m.factor), m.beta + 4e-11
    worst = max(
        hockey_stick(wider, part * a * min(1.0, math.exp(wider)), epsilon)
        for wider in np.append(np.linspace(-beta, beta, 41), -beta)
        for part in np.linspace(-1, 1, 9)
    )
    assert worst <= delta * (1 + 1e-6)
    # It is used up, unless widening the noise is what binds.
    assert worst >= 0.999 * delta or beta + a * math.exp(-beta) == pytest.approx(epsilon)
    if worst >= 0.999 * delta:
        mutant = 1.01 * beta
        assert hockey_stick(-mutant, a * math.exp(-mutant), epsilon) > delta


def test_laplace_noise_may_change_its_width_faster_than_a_simple_bound_says():
    """The simple bound: e + beta >= (e^beta - 1) ln(1 / delta), e = epsilon / 2; it allows 0.0382."""
    m = SmoothSensitivity(1.0, delta=1e-6)
    assert math.expm1(0.0382) * math.log(1e6) == pytest.approx(0.5 + 0.0382, rel=1e-2)
    assert m.beta == pytest.approx(0.0530, abs=1e-4) and m.factor == Fraction(1, 2)


def test_a_laplace_mutant_with_the_beta_of_student_noise_is_caught():
    """The bug: the width may change as fast as under Student noise, whose tails would hide it."""
    epsilon, delta = 1.0, 1e-6
    m = SmoothSensitivity(epsilon, grid=2.0**-6, delta=delta)
    fast = SmoothSensitivity(epsilon).beta
    edges = np.concatenate((-np.geomspace(0.05, 200, 400)[::-1], np.geomspace(0.05, 200, 400)))
    honest, mutant = (
        smallest_delta(cells(m, (0.0, 1.0), edges), cells(m, (s, s), edges), epsilon)
        for s in (math.exp(-m.beta), math.exp(-fast))
    )
    assert honest <= delta < 10 * delta < mutant


@pytest.mark.statistical
def test_rounded_laplace_noise_follows_its_law():
    """Fails by chance below 1e-7."""
    centre, width, step = Fraction(1, 3), Fraction(17, 5), Fraction(1, 2)
    seen = np.array([rounded_laplace(centre, width, step) for _ in range(8_000)])
    edges = (np.arange(-60, 60) + 0.5) * 0.5

    def law(scale):
        z = (edges - 1 / 3) / scale
        return np.diff(np.append(0.0, np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)))

    places = np.clip(seen + 60, 0, 120)
    assert surprise(places, law(3.4)) > FAILURE
    assert surprise(places, law(2.8)) < 1e-9


def test_close_comparisons_of_the_laplace_variant_take_more_bits():
    class Alike:
        """The first words agree, so that every comparison must ask again."""

        def __init__(self):
            self.left = 6
            self.rest = SeededSource(8)

        def words(self, count, dtype):
            if self.left and dtype is np.uint64:
                self.left -= 1
                return np.full(count, 2**63, dtype=np.uint64)
            return self.rest.words(count, dtype)

    assert abs(rounded_laplace(Fraction(0), Fraction(1), Fraction(1), Alike())) <= 20


def test_a_median_with_laplace_noise():
    rng = np.random.default_rng(4)
    values = rng.normal(50, 10, 20_001)
    m = SmoothSensitivity(1.0, delta=1e-6)
    centre, bound = order_statistic(values, 10_001, low=0, high=10_000, beta=m.beta)
    median = m.release_rank(values, 10_001, low=0, high=10_000, source=SeededSource(1))
    assert abs(median - centre) < m.halfwidth(0.9999, bound)
    for delta in (0, 0.3, "1e-6"):
        with pytest.raises(InvalidInput):
            SmoothSensitivity(1.0, delta=delta)
