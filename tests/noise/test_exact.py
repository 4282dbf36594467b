from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.noise.exact import LazyUniform, exp_bounds, exp_powers, rational_bounds

from .fit import Script

rationals = st.builds(
    lambda n, d, e: Fraction(n, d) * Fraction(2) ** e,
    st.integers(0, 2**64),
    st.integers(1, 2**64),
    st.integers(-80, 10),
)


def scaled_exp(x: Fraction, bits: int) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits


@given(rationals, st.sampled_from([1, 8, 64, 96, 128, 333, 1000]))
def test_exp_bounds_hold_and_are_tight(x, bits):
    lo, hi = exp_bounds(x, bits)
    with mpmath.workprec(1300):
        assert lo <= scaled_exp(x, bits) <= hi
    assert hi - lo <= 2


@given(rationals.filter(lambda x: x > 0), st.integers(1, 300))
def test_powers_hold_and_are_tight(x, count):
    powers = exp_powers(x, count, 128)
    assert len(powers) == count + 1 and powers[0] == (2**128, 2**128)
    with mpmath.workprec(400):
        for k in {1, count // 2, count}:
            assert powers[k][0] <= scaled_exp(k * x, 128) <= powers[k][1]
            assert powers[k][1] - powers[k][0] <= 2


def test_exp_of_something_enormous_is_bounded_without_effort():
    assert exp_bounds(Fraction(10**400), 128) == (0, 1)
    assert exp_bounds(Fraction(1, 10**400), 128) == (2**128 - 1, 2**128)


@given(st.fractions(0, 1), st.integers(0, 2**16 - 1))
def test_an_undecided_word_is_continued_until_it_is_decided(p, low):
    # the first 64 bits of p itself: only what follows can tell
    word = min(p.numerator * 2**64 // p.denominator, 2**64 - 1)
    uniform = LazyUniform(word, 64, Script(low << 48, *[0x123456789ABCDEF] * 8))
    decided = uniform.below(rational_bounds(p))
    true = Fraction((((word << 64) | (low << 48)) << 64) | 0x123456789ABCDEF, 2**192)
    if abs(true - p) > Fraction(1, 2**128):
        assert decided == (true < p)


@pytest.mark.parametrize(("p", "answer"), [(Fraction(0), False), (Fraction(1), True)])
@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_impossible_and_certain_need_no_further_bits(p, answer, word):
    assert LazyUniform(word, 64, Script()).below(rational_bounds(p)) is answer
