import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from incrowd.errors import InvalidInput
from incrowd.noise import categorical
from incrowd.noise.arguments import parameter
from incrowd.noise.categorical import _draw_one, _plain_gaps, _Weights

from .fit import LEVEL, Script, chi_square

CASES = [
    ([0, 1, 2, 3], Fraction(1, 2)),
    ([0.1, 0.2, 0.30000000000000004], 3),
    ([2**62, 2**62 + 1, -(2**63)], 1),
    ([5, 1, 4], Fraction(-1, 3)),
    ([Fraction(1, 3), Fraction(1, 7), 0], 2),
    ([10**30, 10**30 + 1], 1),
    ([1e300, -1e300], 1e-300),
    ([0, 10**400], Fraction(1, 10**400)),
    ([3, 1, 4, 1, 5], 0),
    (list(range(100)), Fraction(1, 20)),
]


def law(utilities, rate):
    best = max(Fraction(rate) * Fraction(u) for u in utilities)
    weights = np.array([np.exp(float(max(Fraction(rate) * Fraction(u) - best, -800))) for u in utilities])
    return weights / weights.sum()


@pytest.mark.statistical
@pytest.mark.parametrize(("utilities", "rate"), CASES)
def test_indices_come_with_weights_exp_rate_utility(utilities, rate):
    p = law(utilities, rate)
    many = categorical(utilities, rate, size=100_000)
    rows = categorical([utilities] * 4_000, rate)
    single = np.array([categorical(utilities, rate) for _ in range(4_000)])
    for draws in (many, rows, single):
        assert chi_square(np.bincount(draws, minlength=p.size), p * draws.size) > LEVEL / 3


@pytest.mark.parametrize("utilities", [[0, 1, 2], [0.0, 0.25, 1.0]])
def test_an_undecided_proposal_is_settled_by_the_following_bits(utilities):
    rate = Fraction(3, 2)
    weights = _Weights(parameter(utilities, "utility"), rate, 1)
    index, above = 0, int(weights._above[0, 0])
    with mpmath.workprec(400):
        p = mpmath.exp(-mpmath.mpf(3) / 2 * (utilities[-1] - utilities[0])) * 2**weights._k / above
        bits = int(mpmath.floor(p * mpmath.mpf(2) ** 96))
    word, rest = bits >> 64, bits & (2**64 - 1)
    # word 0 proposes index 0; if that is refused, the largest step proposes the best, which is kept
    last = int(weights._cumulative[0, -1]) - 1
    for following, answer in [(rest - 5, [0]), (rest + 5, [len(utilities) - 1])]:
        script = [index, word, following, last, 0]
        assert weights.many(1, Script(*script)).tolist() == answer
        assert weights.one_each(Script(*script)).tolist() == answer


@pytest.mark.parametrize("utilities", [[0, 1, 2], [0.0, 0.25, 1.0]])
def test_a_single_undecided_proposal_is_settled_by_the_following_bits(utilities):
    rate = Fraction(3, 2)
    gaps = _plain_gaps(utilities, rate)
    above = [math.floor(math.exp(-gap) * 2.0**59 * (1 + 2.0**-39)) + 1 for gap in gaps]
    with mpmath.workprec(400):
        p = mpmath.exp(-mpmath.mpf(3) / 2 * (utilities[-1] - utilities[0])) * 2**59 / above[0]
        bits = int(mpmath.floor(p * mpmath.mpf(2) ** 96))
    for nudge, answer in [(-5, 0), (5, 2)]:
        script = Script(0, bits >> 64, (bits & (2**64 - 1)) + nudge, sum(above) - 1, 0)
        assert _draw_one(utilities, rate, gaps, script) == answer


@pytest.mark.parametrize(("utilities", "rate"), CASES)
def test_the_integers_proposed_with_are_above_the_true_weights(utilities, rate):
    weights = _Weights(parameter(utilities, "utility"), Fraction(rate), 1)
    best = max(Fraction(rate) * Fraction(u) for u in utilities)
    with mpmath.workprec(400):
        for utility, above in zip(utilities, weights._above[0].tolist(), strict=True):
            x = best - Fraction(rate) * Fraction(utility)
            true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * 2**weights._k
            assert true <= above <= true * (1 + mpmath.mpf(2) ** -37) + 1


def test_a_thousand_alike_and_one_far_ahead():
    utilities = np.zeros(1000)
    utilities[17] = 1e6
    assert (categorical(utilities, size=1000) == 17).all() and categorical(utilities) == 17


def test_shapes_types_and_empties():
    assert type(categorical([1, 2])) is int and type(categorical(np.array([1.0, 2.0]))) is int
    assert categorical([1, 2], size=(2, 3)).shape == (2, 3) and categorical([7], size=0).shape == (0,)
    assert categorical(np.zeros((0, 3))).shape == (0,) and categorical(np.zeros((5, 3))).shape == (5,)
    assert categorical(np.array([3, 200], dtype=np.uint8), rate=10) == 1


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "utilities",
    [
        *([], [[]], np.zeros((3, 0)), np.zeros((2, 2, 2)), [NAN, 1], [-INF, 0], [1.0, INF], ["a"], [True, 1]),
        *(3, None, [[1, 2], [3]], [1j], "abc", {1: 2}),
    ],
)
def test_wrong_utilities_get_a_sentence(utilities):
    with pytest.raises(InvalidInput, match=r"utilit"):
        categorical(utilities)
    with pytest.raises(InvalidInput, match=r"utilit"):
        categorical(utilities, size=3)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), "1", True, [1, 2], None])
def test_wrong_rates_get_a_sentence(rate):
    with pytest.raises(InvalidInput, match="rate"):
        categorical([1, 2], rate)
    with pytest.raises(InvalidInput, match="size"):
        categorical([[1, 2], [3, 4]], size=2)
