"""Samplers with a bug put in: the tests of fit must catch each, so that passing them means something."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from incrowd.noise import SystemSource, discrete_gaussian_sf, discrete_laplace_sf, inversion
from incrowd.noise.arguments import parameter
from incrowd.noise.digits import Digit, DigitTables, SignedTop
from incrowd.noise.gaussian_table import GaussianTable, gaussian_table
from incrowd.noise.table import Table

from .fit import LEVEL, p_value, spread

SYSTEM = SystemSource()
pytestmark = pytest.mark.statistical


def caught(draws, scale, survival=discrete_laplace_sf, reach=8):
    return p_value(draws, partial(survival, **{_name(survival): scale}), spread(float(scale), reach)) < LEVEL


def _name(survival):
    return "scale" if survival is discrete_laplace_sf else "sigma"


def test_a_table_off_by_one_value_in_one_part_is_caught():
    table = Table(SignedTop(Fraction(1, 10), Fraction(1, 10)))
    table._guide = np.roll(table._guide, 200)  # a 300th of the cells in the wrong place
    assert caught(DigitTables(table, ()).laplace(400_000, SYSTEM), 10)


def test_minus_zero_kept_is_caught():
    magnitude = inversion.geometric(parameter(10, "scale"), 400_000, SYSTEM)
    sign = SYSTEM.words(400_000, np.uint8) & np.uint8(1)
    assert caught(np.where(sign == 1, -magnitude, magnitude), 10)


def test_a_fair_sign_on_the_complement_is_caught():
    magnitude = inversion.geometric(parameter(10, "scale"), 400_000, SYSTEM)
    sign = (SYSTEM.words(400_000, np.uint8) & np.uint8(1)).astype(np.int64)
    assert caught(magnitude ^ -sign, 10)


def test_a_uniform_digit_is_caught():
    b = Fraction(1000)
    mutant = DigitTables(Table(SignedTop(1 / b, 256 / b)), (Table(Digit(1 / (1000 * b))),))
    assert caught(mutant.laplace(400_000, SYSTEM), 1000)


def test_a_rounded_logarithm_is_caught():
    words = SYSTEM.words(400_000, np.uint64).astype(np.float64)
    rounded = np.round(-np.log((words + 0.5) * 2.0**-64)).astype(np.int64)
    sign = SYSTEM.words(400_000, np.uint8) & np.uint8(1)
    assert caught(np.where(sign == 1, -rounded, rounded), 1)


def test_a_gaussian_that_keeps_every_candidate_is_caught():
    right = gaussian_table(Fraction(65))

    class Careless(GaussianTable):
        def _candidates(self, count, source):
            value = self.top.draw(count, source)
            return (value << self.shift) + (source.words(count, np.uint64) & np.uint64(1)).astype(np.int64)

    draws = Careless(right.sigma, right.shift, right.top).draw(4_000_000, SYSTEM)
    assert caught(draws, 65, discrete_gaussian_sf, 4)


def test_the_right_samplers_are_not_caught():
    assert not caught(
        DigitTables(Table(SignedTop(Fraction(1, 10), Fraction(1, 10))), ()).laplace(400_000, SYSTEM), 10
    )
    assert not caught(gaussian_table(Fraction(65)).draw(4_000_000, SYSTEM), 65, discrete_gaussian_sf, 4)
