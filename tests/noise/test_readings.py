"""Every room reads numbers in the same two ways and refuses the same things in the same words."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Laplace, parameters
from incrowd.noise import discrete_laplace
from incrowd.noise.arguments import single
from incrowd.noise.readings import binary, decimal, shown, whole
from incrowd.privacy import amounts, pure

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
KINDS = st.sampled_from([np.float16, np.float32, np.float64, np.longdouble])
READERS = {
    "binary": lambda value: binary(value, "x"),
    "decimal": lambda value: decimal(value, "x"),
    "noise": lambda value: single(value, "x"),
    "privacy": lambda value: amounts.read(value, "x"),
    "mechanisms, data": lambda value: binary(value, "x"),
    "mechanisms, privacy": lambda value: parameters.amount(value, "x"),
}
REFUSED = [
    *(None, True, False, np.True_, "1", b"1", 1j, np.complex64(1), {1}, {"a": 1}, object()),
    *(math.nan, math.inf, -math.inf, np.float16("nan"), np.float32("inf"), np.longdouble("nan")),
    *(
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        Decimal("1E+999999999"),
        Decimal("1E-999999999"),
    ),
]


@given(FLOATS)
@example(0.1)
@example(-0.0)
@example(5e-324)
def test_a_float_has_two_readings(x):
    assert binary(x, "x") == Fraction(x)
    assert decimal(x, "x") == Fraction(repr(x))
    assert float(decimal(x, "x")) == x


@given(st.integers() | st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=20))
@example(10**5000)
@example(Decimal("0E+999999999"))
def test_other_numbers_have_one(x):
    assert binary(x, "x") == decimal(x, "x") == Fraction(x)


@given(KINDS, st.floats(-60_000, 60_000))
def test_numpy_floats_count_in_their_own_precision(kind, x):
    value = kind(x)
    assert binary(value, "x") == Fraction(*value.as_integer_ratio())
    assert kind(str(value)) == value and decimal(value, "x") == Fraction(str(value))


@given(st.sampled_from([np.int8, np.uint8, np.int64, np.uint64]), st.integers(0, 127))
def test_numpy_integers_are_whole(kind, x):
    assert binary(kind(x), "x") == decimal(kind(x), "x") == whole(kind(x), "x", 0) == x
    assert type(whole(kind(x), "x", 0)) is int


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("value", REFUSED, ids=range(len(REFUSED)))
def test_every_reader_refuses_the_same_in_the_same_words(reader, value):
    sentences = []
    for read in (READERS[reader], READERS["binary"]):
        with pytest.raises(InvalidInput) as caught:
            read(value)
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    assert sentences[0].startswith("x must ") and sentences[0].endswith(".") and "\n" not in sentences[0]


@pytest.mark.parametrize("value", [[1], (1, 2), np.array([0.5])])
def test_lists_are_refused_where_one_number_is_due(value):
    for name, read in READERS.items():
        if name == "noise":
            assert read(value) is None
        else:
            with pytest.raises(InvalidInput, match=r"x must be a number such as 0\.5"):
                read(value)


@pytest.mark.parametrize("value", [1.0, "1", True, None, Fraction(1), Decimal(1), np.float64(1), np.True_])
def test_counts_are_of_an_integer_type(value):
    with pytest.raises(InvalidInput, match="x must be a whole number, 1 or more"):
        whole(value, "x")


def test_a_secret_is_never_shown():
    for read in (binary, whole, parameters.positive):
        for value in (-4321, math.inf, -43.21):
            try:
                read(value, "x", secret=True)
            except InvalidInput as error:
                assert "4" not in str(error) and "inf" not in str(error)


@pytest.mark.parametrize("value", [-(10**5000), Fraction(-(10**5000), 3)], ids=["int", "fraction"])
def test_numbers_that_python_refuses_to_write_are_refused_in_a_sentence(value):
    assert "2**166" in shown(value)
    for read in (lambda: parameters.amount(value, "epsilon"), lambda: pure(value), lambda: Laplace(value)):
        with pytest.raises(InvalidInput, match=r"^epsilon must be .*\.$"):
            read()


def test_a_tenth_is_a_tenth_for_privacy_and_a_float_for_noise():
    assert Laplace(0.1).privacy == Laplace(Fraction(1, 10)).privacy == Laplace(np.float32(0.1)).privacy
    assert Laplace(scale=0.1).scale_in_steps == Fraction(0.1) != Fraction(1, 10)
    assert isinstance(discrete_laplace(Decimal("0.1")), int)
