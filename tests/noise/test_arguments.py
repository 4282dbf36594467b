from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import InvalidInput
from incrowd.noise import discrete_gaussian, discrete_laplace, geometric
from incrowd.noise.arguments import parameter

SAMPLERS = [discrete_laplace, discrete_gaussian, geometric]
NAN, INF = float("nan"), float("inf")
WRONG = [
    *(0, 0.0, -1, -0.5, NAN, INF, -INF, "1", b"1", 1j, True, False, None, Fraction(0), {1}, object()),
    *(
        2**50 + 1,
        1e300,
        Fraction(10**400),
        -Fraction(1, 10**400),
        np.float32(NAN),
        np.bool_(True),
        np.complex64(1),
    ),
    *([1, 0], [1, -1], [1, "2"], [1, True], [None], [[1], [2, 3]], [2**60, 1], [1.0, NAN]),
    *(np.array([True]), np.array(["1"]), np.array([1, NAN]), np.array([1, INF]), np.array([1j])),
    *(np.array([0, 1]), np.array(NAN), np.array(["2020-01-01"], dtype="datetime64[D]"), np.array(True)),
]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("scale", WRONG, ids=range(len(WRONG)))
def test_a_wrong_scale_gets_one_sentence(sampler, scale):
    for size in (None, 3):
        with pytest.raises(InvalidInput, match=r"scale|sigma") as caught:
            sampler(scale, size)
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("size", [-1, 2.0, "3", True, (2, -1), (2.5,), [3], (True,)])
def test_a_wrong_size_gets_one_sentence(sampler, size):
    with pytest.raises(InvalidInput, match="size"):
        sampler(1, size)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_size_beside_many_scales_must_match(sampler):
    assert sampler([1, 2], 2).shape == (2,)
    for size in (3, (2, 1), 0, ()):
        with pytest.raises(InvalidInput, match="size"):
            sampler([1, 2], size)


@pytest.mark.parametrize(
    "value",
    [
        3,
        0.1,
        Fraction(1, 3),
        np.int64(7),
        np.float32(0.1),
        np.longdouble("0.1"),
        np.uint64(2**63),
        np.float16(0.1),
    ],
)
def test_a_number_is_taken_at_its_exact_value(value):
    exact = Fraction(int(value)) if isinstance(value, np.integer) else Fraction(*value.as_integer_ratio())
    assert parameter(value, "scale").exact(0) == exact
    assert parameter([value, value], "scale").exact(1) == exact
    assert parameter(np.array([value]), "scale").exact(0) == exact
    assert parameter(np.array([value]), "scale").approx[0] == float(exact)


def test_mixed_sequences_lose_nothing():
    mixed = parameter([2**53 + 1, 0.5, Fraction(1, 3), 2**80], "scale")
    assert [mixed.exact(i) for i in range(4)] == [2**53 + 1, Fraction(1, 2), Fraction(1, 3), 2**80]


def test_the_largest_scale_works():
    assert abs(discrete_laplace(2**50)) < 2**62 and abs(discrete_gaussian(2.0**50)) < 2**62
    assert (
        discrete_laplace(2**50, 40_000).dtype == np.int64
        and discrete_gaussian(2**50, 40_000).dtype == np.int64
    )
