import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.noise import SeededSource
from incrowd.noise.compare import below, below_one
from incrowd.noise.exact import exp_bounds, rational_bounds

from .fit import Script


@pytest.mark.parametrize("name", ["exp", "log"])
def test_exp_and_log_are_within_two_units_where_eight_are_allowed_for(name):
    words = SeededSource(11).words(4000, np.uint64).astype(np.float64)
    near_one = 1 - words[:1000] * 2.0**-64 * np.logspace(-16, -1, 1000)
    x = np.concatenate([words * 2.0**-64, near_one]) if name == "log" else -words * 2.0**-64 * 700
    x = np.concatenate([x, x[:17]])  # lengths that leave a remainder after whole vectors
    got = getattr(np, name)(x)
    with mpmath.workprec(120):
        true = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x.tolist()]
        assert all(abs(g - t) <= abs(t) * 2.0**-51 for g, t in zip(got.tolist(), true, strict=True))
        plain = [getattr(math, name)(v) for v in x.tolist()]
        assert all(abs(g - t) <= abs(t) * 2.0**-51 for g, t in zip(plain, true, strict=True))


@given(st.fractions(0, 1, max_denominator=10**6), st.integers(-3, 3), st.integers(0, 2**64 - 1))
def test_words_near_the_threshold_get_the_right_answer(p, offset, more):
    word = min(max(p.numerator * 2**32 // p.denominator + offset, 0), 2**32 - 1)
    estimate = float(p)
    arrays = below(np.array([estimate]), 0.0, lambda i: rational_bounds(p), Script(word, more, more, more))
    assert arrays.tolist() == [below_one(estimate, 0.0, rational_bounds(p), Script(word, more, more, more))]
    low, high = Fraction((word << 64) + more, 2**96), Fraction((word << 64) + more + 1, 2**96)
    if high <= p or low >= p:
        assert bool(arrays[0]) == (high <= p)


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(2), Fraction(7, 10**6)])
def test_a_tie_with_exp_is_broken_by_the_following_bits(x):
    bounds = partial(exp_bounds, x)
    lo, _ = exp_bounds(x, 96)
    word, rest = lo >> 64, lo & (2**64 - 1)
    for following, answer in [(rest - 5, True), (rest + 5, False)]:
        script = Script(word, following)
        estimate = math.exp(-x)
        assert bool(below(np.array([estimate]), 2.0**-48, lambda i: bounds, script)[0]) is answer
        assert script.left == [], "the tie must have been broken by the following bits"


def test_clear_cases_use_no_further_bits():
    script = Script(0, 2**32 - 1)
    assert below(np.array([0.5, 0.5]), 2.0**-48, lambda i: pytest.fail("exact"), script).tolist() == [
        True,
        False,
    ]
