from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.noise import inversion
from incrowd.noise.arguments import as_float, parameter

from .fit import Script

SCALES = [
    Fraction(1, 3),
    Fraction(2**-20),
    Fraction(1),
    Fraction(12345.678),
    Fraction(10**6),
    Fraction(1, 10**400),
]


def both(scale: Fraction, *words: int) -> int:
    """The array and the single route must agree to the bit and use the same words."""
    one, many = Script(*words), Script(*words)
    result = inversion.geometric_one(scale, as_float(scale), one)
    assert inversion.geometric(parameter(scale, "scale"), 1, many).tolist() == [result]
    assert one.left == many.left
    return result


@given(
    st.one_of(st.sampled_from(SCALES), st.fractions(Fraction(1, 10**6), 2**20, max_denominator=10**9)),
    st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2**20), st.integers(2**64 - 2**20, 2**64 - 1)),
)
def test_every_word_gives_the_floor_of_the_true_logarithm(scale, word):
    following = 2**63
    result = both(scale, word, *[following] * 3)
    with mpmath.workprec(2000):
        u = (mpmath.mpf(word) + mpmath.mpf(0.5)) / mpmath.mpf(2) ** 64
        b = mpmath.mpf(scale.numerator) / scale.denominator
        wide = mpmath.mpf(2) ** -100
        low, high = mpmath.floor(-b * mpmath.log(u + wide)), mpmath.floor(-b * mpmath.log(u))
    if low == high:  # where the bits given do not settle it, nothing is claimed here
        # the fast path may have decided on 64 bits alone: then the whole cell shares the floor
        assert result == low


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(12345.678), Fraction(10**6)])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_an_ambiguous_word_is_settled_by_the_following_bits(scale, k):
    with mpmath.workprec(600):
        b = mpmath.mpf(scale.numerator) / scale.denominator
        bits = int(mpmath.floor(mpmath.exp(-k / b) * mpmath.mpf(2) ** 128))
    word, rest = bits >> 64, bits & (2**64 - 1)
    assert both(scale, word, rest - 7) == k, "U just below exp(-k/b) means G >= k"
    assert both(scale, word, rest + 7) == k - 1


def test_the_smallest_word_opens_the_far_tail():
    # U is about 2^-64 times 2^-64 1.5
    value = both(Fraction(10), 0, 1, 2**63, 2**63)
    assert value == int(mpmath.floor(-10 * mpmath.log(mpmath.mpf(1.5) * mpmath.mpf(2) ** -128)))


def test_saturation_clamps_at_two_to_the_62():
    # 8,192 zero bits and more: -b ln U passes 2^62 at b = 2^50
    words = [0] * 100 + [12345]
    assert both(Fraction(2**50), *words, 7, 0, 0) == 2**62


def test_the_sign_is_a_coin_with_probability_q_over_one_plus_q():
    with mpmath.workprec(300):
        q = mpmath.exp(-mpmath.mpf(1) / 3)
        bits = int(mpmath.floor(q / (1 + q) * mpmath.mpf(2) ** 96))
    word, rest = bits >> 64, bits & (2**64 - 1)
    half = 2**63  # -3 ln(1/2) = 2.07
    for following, value in [(rest - 5, -3), (rest + 5, 2)]:
        assert inversion.laplace_one(Fraction(3), 3.0, Script(word, following, half)) == value
        array = inversion.laplace(parameter(3, "scale"), 1, Script(word, following, half))
        assert array.tolist() == [value]


def test_low_bits_of_a_large_scale_are_rejected_as_they_must():
    # b = 2^40: 20 bits are split off; low = 2^20 - 1 is kept with probability exp(-low/b)
    scale, low = Fraction(2**40), 2**20 - 1
    with mpmath.workprec(300):
        bits = int(mpmath.floor(mpmath.exp(-mpmath.mpf(low) / 2**40) * mpmath.mpf(2) ** 96))
    word, rest = bits >> 64, bits & (2**64 - 1)
    high = 2**63
    kept = inversion.geometric_one(scale, float(scale), Script(high, low, word, rest - 5))
    again = inversion.geometric_one(scale, float(scale), Script(high, low, word, rest + 5, 3, 0))
    assert kept & low == low and again & low == 3 and kept >> 20 == again >> 20
    array = inversion.geometric(parameter(scale, "scale"), 1, Script(high, low, word, rest + 5, 3, 0))
    assert array.tolist() == [again]
