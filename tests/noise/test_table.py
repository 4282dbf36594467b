from fractions import Fraction

import mpmath
import numpy as np
import pytest

from incrowd.noise.digits import Digit, SignedTop
from incrowd.noise.gaussian_table import GaussianLaw
from incrowd.noise.table import Table

from .fit import Script


def num(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def digit(x):
    return Digit(x), lambda d: (1 - mpmath.exp(-d * num(x))) / (1 - mpmath.exp(-256 * num(x)))


def signed(x, y):
    q = mpmath.exp(-num(x))

    def cdf(k):
        return q / (1 + q) * mpmath.exp(k * num(y)) if k <= 0 else 1 - mpmath.exp(-k * num(y)) / (1 + q)

    return SignedTop(x, y), cdf


def gaussian(sigma, halves):
    x = 1 / (2 * sigma * sigma)
    terms = {}

    def mass(v):
        q = (v if v >= 0 else -1 - v) if halves else abs(v)
        return mpmath.exp(-q * q * num(x))

    reach = int(16 * sigma) + 3
    total = mpmath.mpf(0)
    for v in range(-reach - 1, reach + 1):
        terms[v] = total
        total += mass(v)
    return GaussianLaw(x, halves), lambda k: terms[k] / total


LAWS = {
    "low digit of 1e12": lambda: digit(Fraction(1, 10**12)),
    "low digit of 12345.678": lambda: digit(1 / Fraction(12345.678)),
    "high digit": lambda: digit(Fraction(256, 12345)),
    "steep digit": lambda: digit(Fraction(5, 3)),
    "top, scale 1": lambda: signed(Fraction(1), Fraction(1)),
    "top, scale 2^-20": lambda: signed(Fraction(2**20), Fraction(2**20)),
    "top, scale 32": lambda: signed(Fraction(1, 8192), Fraction(1, 32)),
    "top, scale 1/3": lambda: signed(Fraction(3), Fraction(3)),
    "gaussian 1/3": lambda: gaussian(Fraction(1, 3), False),
    "gaussian 2.7": lambda: gaussian(Fraction(27, 10), False),
    "gaussian halves 33.3": lambda: gaussian(Fraction(333, 10), True),
}


@pytest.mark.parametrize("name", LAWS)
def test_every_step_and_every_cell_is_certified_right(name):
    with mpmath.workprec(300):
        law, cdf = LAWS[name]()
        table = Table(law)
        steps = [int(t) for t in table._steps]
        true = [cdf(law.first + 1 + i) * mpmath.mpf(2) ** 64 for i in range(len(steps))]
        assert all(t <= c + mpmath.mpf(1e-20) and c <= t + 1 for t, c in zip(steps, true, strict=True))
        assert steps[0] == 0 or isinstance(law, Digit)
        assert steps[-1] == 2**64 - 1 or isinstance(law, Digit)
        # a cell gives a value away only if both of its ends lie strictly between the same two true steps
        cells = np.arange(2**16)
        exact = np.array([min(int(mpmath.floor(c / 2**48)), 2**16 - 1) for c in true])
        unsure = np.isin(cells, exact)
        assert (table._guide[unsure] == np.iinfo(np.int16).min).all()
        expected = law.first + np.searchsorted(exact, cells, side="left")
        assert (table._guide[~unsure] == expected[~unsure]).all()
        assert unsure.mean() < 0.02


@pytest.mark.parametrize("name", LAWS)
def test_a_tie_of_64_bits_is_broken_by_the_following_ones(name):
    with mpmath.workprec(400):
        law, cdf = LAWS[name]()
        table = Table(law)
        middle = len(table._steps) // 2
        for i in {max(middle - 1, 0), middle, min(middle + 2, len(table._steps) - 1)}:
            k = law.first + 1 + i
            bits = int(mpmath.floor(cdf(k) * mpmath.mpf(2) ** 128))
            if not 2**64 < bits < 2**128 - 2**64 or law.cumulative(k, 128)[0] == law.cumulative(k, 128)[1]:
                continue
            word, rest = bits >> 64, bits & (2**64 - 1)
            for following, value in [(rest - 9, k - 1), (rest + 9, k)]:
                got = table.read(np.array([word], dtype=np.uint64), Script(following))
                if np.count_nonzero(table._steps == np.uint64(word)) == 1:
                    assert got.tolist() == [value]


def test_the_path_from_sixteen_bits_to_a_broken_tie_is_walked_in_draw():
    law = SignedTop(Fraction(1), Fraction(1))
    lo, _ = law.cumulative(1, 192)
    cell, rest, more = lo >> 176, (lo >> 128) & (2**48 - 1), (lo >> 64) & (2**64 - 1)
    for nudge, value in [(-3, 0), (3, 1)]:
        script = Script(cell, rest << 16, more + nudge)
        assert Table(law).draw(1, script).tolist() == [value]
        assert script.left == []


def test_the_outermost_words_reach_beyond_the_ladder():
    table = Table(SignedTop(Fraction(1), Fraction(1)))
    # U is about 2^-128 (1 + 1/2): P(V < k) = q/(1 + q) exp(k), so V = floor(ln(U (1 + e)))
    value = int(mpmath.floor(mpmath.log(mpmath.mpf(1.5) * mpmath.mpf(2) ** -128 * (1 + mpmath.e))))
    assert table.read(np.array([0], dtype=np.uint64), Script(1, 2**63, 0, 0)).tolist() == [value]
    top = 2**64 - 1
    mirrored = table.read(np.array([top], dtype=np.uint64), Script(top - 1, 2**63 - 1, top, top))
    assert 85 <= mirrored[0] <= 90 and -90 <= value <= -85


def test_digit_tables_multiply_to_the_discrete_laplace_law():
    with mpmath.workprec(200):
        b = Fraction(40)
        low, top = Digit(1 / b), SignedTop(1 / b, 256 / b)

        def mass(law, k):
            (a, _), (c, _) = law.cumulative(k, 160), law.cumulative(k + 1, 160)
            return mpmath.mpf(c - a) / mpmath.mpf(2) ** 160

        for x in [0, 1, -1, 255, 256, -256, -257, 700, -700]:
            g = x if x >= 0 else -1 - x
            v = g >> 8 if x >= 0 else -1 - (g >> 8)
            true = mpmath.tanh(1 / num(2 * b)) * mpmath.exp(-abs(x) / num(b))
            assert abs(mass(top, v) * mass(low, g & 255) / true - 1) < 1e-30


def test_steps_that_128_bits_cannot_place_are_computed_with_more():
    class Vague(SignedTop):
        asked = ()

        def ladder(self, bits):
            Vague.asked = (*Vague.asked, bits)
            blur = 2**70 if bits == 128 else 0
            return [(max(lo - blur, 0), min(hi + blur, 1 << bits)) for lo, hi in super().ladder(bits)]

    x = Fraction(1, 3)
    assert (Table(Vague(x, x))._steps == Table(SignedTop(x, x))._steps).all()
    assert Vague.asked == (128, 256)
