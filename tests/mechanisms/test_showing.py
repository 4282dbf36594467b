"""A mechanism shows the call that makes it, and a notebook what it promises."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import incrowd.mechanisms as room
from incrowd.mechanisms import Exponential, Gaussian, Histogram, Laplace, Mean, Quantile, SparseVector
from incrowd.mechanisms.showing import value_text

from .test_mechanism import MECHANISMS

NAMES = {**vars(room), "Fraction": Fraction, "Decimal": Decimal}


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)
def test_the_text_of_a_mechanism_makes_an_equal_one(m):
    assert eval(repr(m), dict(NAMES)) == m
    assert len(repr(m)) < 120 and "\n" not in repr(m)


@pytest.mark.parametrize(
    ("m", "text"),
    [
        (Laplace(1.0), "Laplace(epsilon=1.0, sensitivity=1)"),
        (Laplace(scale=2, sensitivity=0.5), "Laplace(scale=2, sensitivity=0.5)"),
        (Gaussian(1.0, 1e-6), "Gaussian(epsilon=1.0, delta=1e-06, sensitivity=1)"),
        (Histogram(1, relation="replace"), "Histogram(epsilon=1, relation='replace')"),
        (Mean(1.0, low=0, high=9), "Mean(epsilon=1.0, low=0, high=9)"),
        (Quantile(1.0, q=[0.25, 0.5], low=0, high=9), "Quantile(epsilon=1.0, q=[0.25, 0.5], low=0, high=9)"),
        (SparseVector(1.0), "SparseVector(epsilon=1.0, sensitivity=1)"),
        (Laplace(1.0).then(abs), "Processed(mechanism=Laplace(epsilon=1.0, sensitivity=1), function=abs)"),
        (Exponential(np.float32(0.1)), "Exponential(epsilon=0.1, sensitivity=1)"),
        (Exponential(Fraction(1, 3)), "Exponential(epsilon=Fraction(1, 3), sensitivity=1)"),
        (Exponential(Fraction(0.1)), "Exponential(epsilon=Fraction(0.1), sensitivity=1)"),
        (Exponential(Fraction(10**30, 3**70)), "Exponential(epsilon=0.0003994957556592953, sensitivity=1)"),
    ],
    ids=str,
)
def test_parameters_are_shown_as_given_without_needless_defaults(m, text):
    assert repr(m) == text


@given(
    st.sampled_from(["epsilon", "scale"]),
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.fractions(max_denominator=10**6)
    | st.decimals(allow_nan=False, allow_infinity=False, places=6),
)
@example("epsilon", 10**5000)
@example("scale", Fraction(10**400, 3))
@example("epsilon", Fraction(-18677707068452, 100001))
def test_numbers_are_short_and_stand_for_themselves(name, value):
    text = value_text(name, value)
    assert len(text) <= 41
    if abs(value) < 10**15 and len(repr(value)) <= 32:
        read = eval(text, {"Fraction": Fraction, "Decimal": Decimal})
        # A float epsilon counts as the decimal that is written.
        assert read == value or (name == "epsilon" and Fraction(repr(read)) == Fraction(value))


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_notebook_shows_what_a_mechanism_promises(m):
    shown = m._repr_html_()
    assert shown.startswith("<code>") and "One release guarantees" in shown
    assert "nan" not in shown


def test_a_notebook_shows_the_half_width_in_words():
    shown = Laplace(1.0)._repr_html_()
    assert "guarantees epsilon=1." in shown and "Half-width at 95% confidence: 3." in shown
    assert "epsilon=1 at delta=1e-06" in Gaussian(1.0, 1e-6)._repr_html_()
    assert "Half-width" not in Mean(1.0, low=0, high=9)._repr_html_()  # it depends on the number of records
