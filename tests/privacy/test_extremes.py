"""Tiny and huge parameters: no figure falls below the truth by underflow or lost digits, none fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.privacy import (
    Guarantee,
    approximate,
    bounded_range,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)

# A mantissa and an exponent, so that every magnitude is as likely.
tiny = st.builds(lambda m, k: Fraction(m, 1000) / 10**k, st.integers(100, 999), st.integers(0, 330))
repeats = st.builds(lambda m, k: m * 10**k, st.integers(1, 9), st.integers(0, 330))
levels = st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1, 2), Fraction(30)])


def mpf(value: Fraction) -> mp.mpf:
    return mp.mpf(value.numerator) / value.denominator


def assert_between(figure: float, truth: mp.mpf, factor: float = 1 + 1e-9) -> None:
    """Never below the truth (a figure too small for floats rounds up to one) and hardly above."""
    stated = mpf(Fraction(repr(figure)))
    assert stated >= truth * (1 - mp.mpf(10) ** -30)
    assert stated <= truth * factor + mp.mpf(10) ** -289


@settings(deadline=None, max_examples=300)
@given(tiny, repeats, tiny, levels)
def test_many_tiny_deltas_add_up(mass: Fraction, count: int, other: Fraction, level: Fraction) -> None:
    with mp.workdps(1500):
        keep = mp.exp(count * mp.log1p(-mpf(mass)))
        assert_between((threshold(mass) * count).delta(level), 1 - keep)
        assert_between((approximate(level, mass) * count).delta(level * count), 1 - keep)
        both = threshold(mass) * count + threshold(other)
        assert_between(both.delta(level), 1 - keep * (1 - mpf(other)))


def test_the_delta_that_was_printed_as_nothing() -> None:
    assert (threshold(1e-70) * 10**66).delta(0) == pytest.approx(9.9995e-5, rel=1e-5)
    assert (threshold(1e-70) * 10**66).epsilon(9e-5) == math.inf
    assert bounded_range(1e-15).delta(0) >= 2.5e-16
    assert (gaussian(1e-170) * 10**6).delta(0) > 3.98e-168


@settings(deadline=None, max_examples=200)
@given(tiny, repeats, st.floats(0, 8))
def test_gaussians_of_any_size(mu: Fraction, count: int, share: float) -> None:
    with mp.workdps(400):
        total = min(mpf(mu) * mp.sqrt(count), mp.mpf(10) ** 6)
        level = Fraction(float(total * share))
        e = mpf(level)
        top, low = (mp.erfc(-(s * total / 2 - e / total) / mp.sqrt(2)) / 2 for s in (1, -1))
        truth = top - mp.exp(e) * low if total < 10**6 else 1 - mp.mpf(10) ** -30
        assert_between((gaussian(mu) * count).delta(level), truth, 1 + 1e-6)


SINGLE: list[tuple[Callable[[Fraction], Guarantee], Callable[[mp.mpf, mp.mpf], mp.mpf]]] = [
    (pure, lambda e, x: mp.exp(e) * -mp.expm1(x - e) / (1 + mp.exp(e))),
    (laplace, lambda e, x: -mp.expm1((x - e) / 2)),
    (lambda e: laplace(e, 1), lambda e, x: mp.exp(e) * -mp.expm1(x - e) / (1 + mp.exp(e))),
    (lambda e: randomized_response(e, 7), lambda e, x: mp.exp(e) * -mp.expm1(x - e) / (6 + mp.exp(e))),
    (bounded_range, lambda e, x: mp.expm1((x - e) / 2) ** 2 / -mp.expm1(-e)),
]


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(SINGLE), tiny, st.floats(0, 0.99), tiny)
def test_one_release_of_any_size_sampled_or_not(
    kind: tuple[Callable[[Fraction], Guarantee], Callable[[mp.mpf, mp.mpf], mp.mpf]],
    epsilon: Fraction,
    share: float,
    rate: Fraction,
) -> None:
    make, curve = kind
    with mp.workdps(720):
        level = epsilon * Fraction(share)
        truth = curve(mpf(epsilon), mpf(level))
        assert_between(make(epsilon).delta(level), truth, 1 + 1e-6)
        if make is not bounded_range:
            whole = rate * epsilon * Fraction(share)
            inner = mp.log1p(mp.expm1(mpf(whole)) / mpf(rate))
            sampled = poisson(make(epsilon), rate).delta(whole)
            least = mpf(rate) * curve(mpf(epsilon), inner)
            assert mpf(Fraction(repr(sampled))) >= least * (1 - mp.mpf(10) ** -30)
            assert sampled <= float(mpf(rate) * curve(mpf(epsilon), mp.mpf(0))) * 2.01 + 1e-289


@settings(deadline=None, max_examples=50)
@given(tiny, repeats)
def test_rare_samples_of_a_release_that_tells_all(rate: Fraction, count: int) -> None:
    # With epsilon 40 a sampled unit is seen all but for sure: the truth is near that of a threshold.
    with mp.workdps(720):
        seen = -mp.expm1(count * mp.log1p(-mpf(rate) * mp.tanh(20)))
        delta = (poisson(pure(40), rate) * count).delta(0)
        assert delta >= float(seen) * (1 - 1e-12) - count * math.exp(-39) if count < 10**15 else True
        assert delta <= float(seen) * 1.001 + 1e-12


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([pure, laplace, gaussian, zcdp, bounded_range, lambda e: randomized_response(e, 3)]),
    st.one_of(tiny, tiny.map(lambda x: 1 / x)),
    repeats,
    st.sampled_from([0.0, 1e-300, 1e-9, 0.5]),
)
def test_nothing_fails_and_more_noise_costs_no_more(
    make: Callable[[Fraction], Guarantee], size: Fraction, count: int, delta: float
) -> None:
    plan = make(size) * count
    assert 0 <= plan.epsilon(delta) <= math.inf
    assert 0 <= plan.delta(1) <= 1
    assert (make(size / 2) * count).delta(1) <= plan.delta(1) * (1 + 1e-6) + 1e-12
    assert plan.group(10**9).delta(1) >= plan.delta(1) * (1 - 1e-9) - 1e-12
