from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import InvalidInput
from incrowd.noise import uniform

from .fit import LEVEL, Script, chi_square


@pytest.mark.statistical
@pytest.mark.parametrize("high", [1, 2, 3, 10, 255, 1000])
def test_every_integer_is_equally_likely(high):
    draws = uniform(high, 300_000)
    counts = np.bincount(draws, minlength=high)
    assert counts.size == high and chi_square(counts, np.full(high, draws.size / high)) > LEVEL


@pytest.mark.statistical
def test_large_bounds_are_uniform_in_their_leading_and_trailing_parts():
    for high in (3 * 2**61, 2**63, 2**63 - 25):
        draws = uniform(high, 200_000)
        assert draws.min() >= 0 and int(draws.max()) < high
        assert (
            chi_square(np.bincount(draws // (high // 48 + 1), minlength=48)[:47], np.full(47, 200_000 / 48))
            > LEVEL
        )
        assert chi_square(np.bincount(draws % 16, minlength=16), np.full(16, 200_000 / 16)) > LEVEL


def test_words_past_the_last_whole_multiple_are_redrawn():
    # 2^64 = 6 q + 4: the last four words are refused
    last = 2**64 - 5
    assert uniform(6, source=Script(last)) == last % 6
    for word in range(2**64 - 4, 2**64):
        assert uniform(6, source=Script(word, word, 9)) == 3
    assert uniform([6, 8], source=Script(2**64 - 1, 2**64 - 1, 7)).tolist() == [1, 7]


def test_shapes_types_and_empties():
    assert (
        type(uniform(5)) is int
        and uniform(5, (2, 2)).shape == (2, 2)
        and uniform([1, 1, 1]).tolist() == [0, 0, 0]
    )
    assert (
        uniform(5, 0).shape == (0,)
        and uniform([]).shape == (0,)
        and uniform(np.array([[2], [3]])).shape == (2, 1)
    )


@pytest.mark.parametrize(
    "high", [0, -1, 2.5, 2**63 + 1, float("nan"), "3", True, None, [1, 0], Fraction(10**400)]
)
def test_wrong_bounds_get_a_sentence(high):
    with pytest.raises(InvalidInput, match="bound"):
        uniform(high)
