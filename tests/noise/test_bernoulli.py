from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from incrowd.errors import InvalidInput
from incrowd.noise import bernoulli, bernoulli_exp

from .fit import LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("p", [0.5, 0.1, Fraction(1, 3), 1e-5, 1 - 1e-5])
def test_bernoulli_is_true_as_often_as_it_says(p):
    for draws in (
        bernoulli(p, 200_000),
        bernoulli([p] * 20_000),
        np.array([bernoulli(p) for _ in range(5_000)]),
    ):
        assert stats.binomtest(int(draws.sum()), draws.size, float(p)).pvalue > LEVEL / 3


@pytest.mark.statistical
@pytest.mark.parametrize("x", [0.1, Fraction(1, 3), 1, 12.5, 2.0**-20])
def test_bernoulli_exp_is_true_as_often_as_it_says(x):
    p = float(np.exp(-float(x)))
    for draws in (
        bernoulli_exp(x, 200_000),
        bernoulli_exp([x] * 20_000),
        np.array([bernoulli_exp(x) for _ in range(5_000)]),
    ):
        assert stats.binomtest(int(draws.sum()), draws.size, p).pvalue > LEVEL / 3


def test_certainty_is_certain():
    assert bernoulli(1, 50_000).all() and not bernoulli(0, 50_000).any()
    assert bernoulli_exp(0, 50_000).all() and not bernoulli_exp(1e300, 50_000).any()
    assert bernoulli_exp(Fraction(10**400)) is False and bernoulli_exp([0.0, 1e9]).tolist() == [True, False]
    assert bernoulli(np.array([0, 1, 0])).tolist() == [False, True, False]


def test_shapes_types_and_empties():
    assert type(bernoulli(0.5)) is bool and type(bernoulli_exp(0.5)) is bool
    assert bernoulli(0.5, (2, 3)).dtype == np.bool_ and bernoulli(np.full((2, 3), 0.5)).shape == (2, 3)
    assert bernoulli([]).shape == (0,) and bernoulli_exp(1, 0).shape == (0,) and bernoulli_exp([]).size == 0


@pytest.mark.parametrize(
    "p", [-0.1, 1.1, float("nan"), float("inf"), "0.5", True, None, 1j, [0.5, 1.5], [[0.1], [0.2, 0.3]]]
)
def test_wrong_probabilities_get_a_sentence(p):
    with pytest.raises(InvalidInput, match="probability"):
        bernoulli(p)
    with pytest.raises(InvalidInput, match="probability"):
        bernoulli(p, 3)


@pytest.mark.parametrize(
    "x", [-0.1, float("nan"), float("inf"), "1", True, None, [1, -1], Fraction(-1, 10**400)]
)
def test_wrong_exponents_get_a_sentence(x):
    with pytest.raises(InvalidInput, match="exponent"):
        bernoulli_exp(x)
    with pytest.raises(InvalidInput, match="exponent"):
        bernoulli_exp(x, 2)
