"""Histograms: one unit moves one cell, however many there are; the claim holds for all of them jointly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import Histogram, Laplace
from incrowd.mechanisms.additive.histogram import count_between, count_categories
from tests.mechanisms.checks import FAILURE, smallest_delta, smallest_epsilon, surprise


def joint(m, counts, reach=None):
    """The joint law of two cells."""
    y = np.arange(-60, 61) if reach is None else np.arange(-reach, reach + 1)
    return np.outer(m.pmf(y, counts[0]), m.pmf(y, counts[1]))


@given(st.floats(0.1, 3), st.integers(0, 5), st.integers(1, 5))
def test_adding_a_unit_costs_epsilon_and_replacing_one_costs_epsilon_too(epsilon, a, b):
    added = Histogram(epsilon=epsilon)
    worst = smallest_epsilon(joint(added, (a, b)), joint(added, (a, b - 1)))
    assert worst == pytest.approx(added.privacy.epsilon(), rel=1e-9)
    replaced = Histogram(epsilon=epsilon, relation="replace")
    worst = smallest_epsilon(joint(replaced, (a, b)), joint(replaced, (a + 1, b - 1)))
    assert worst == pytest.approx(replaced.privacy.epsilon(), rel=1e-9)
    assert replaced.noise_scale == pytest.approx(2 * added.noise_scale)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_gaussian_cells_stay_within_epsilon_and_delta(relation):
    m = Histogram(epsilon=1.0, delta=1e-3, relation=relation)
    moved = (4, 3) if relation == "add-remove" else (5, 3)
    assert smallest_delta(joint(m, (4, 4)), joint(m, moved), 1.0) <= 1e-3
    assert m.release([3, 4, 0]).dtype == np.int64
    rho = Histogram(rho=0.5, relation=relation)
    assert rho.privacy.rho <= 0.5
    assert rho.noise_scale == pytest.approx(1.0 if relation == "add-remove" else math.sqrt(2), rel=1e-6)


def test_a_mutant_that_forgets_the_relation_is_caught():
    """The bug: sensitivity 1 although records are replaced."""
    mutant = Histogram(epsilon=1.0, relation="add-remove")
    assert smallest_epsilon(joint(mutant, (4, 4)), joint(mutant, (5, 3))) > 1.9
    mutant = Histogram(epsilon=1.0, delta=1e-3, relation="add-remove")
    assert smallest_delta(joint(mutant, (4, 4)), joint(mutant, (5, 3)), 1.0) > 1e-3


def test_the_gain_over_composing_cell_by_cell_is_the_number_of_cells():
    together, alone = Histogram(epsilon=1.0), Laplace(epsilon=1.0 / 1000)
    assert alone.noise_scale / together.noise_scale == pytest.approx(1000)
    assert (alone.privacy * 1000).epsilon() >= together.privacy.epsilon()


@pytest.mark.statistical
def test_released_cells_follow_the_stated_masses():
    """Fails by chance below 1e-7."""
    m = Histogram(epsilon=0.7)
    released = m.release(np.full(40_000, 12))
    y = np.arange(-40, 65)
    assert surprise(np.clip(released, -40, 65) + 40, m.pmf(y, 12)) > FAILURE


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None, math.nan, 3])))
def test_categories_are_counted(values):
    counts = count_categories(values, ["b", "a", 3])
    assert counts.tolist() == [values.count("b"), values.count("a"), values.count(3)]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, 2.5])))
def test_edges_count_like_numpy_and_ignore_what_is_outside(values):
    inside = [v for v in values if 0 <= v <= 2.5]
    assert count_between(values, [0, 1, 2.5]).tolist() == np.histogram(inside, [0, 1, 2.5])[0].tolist()


def test_values_counts_and_edges_give_the_same_shape():
    m = Histogram(epsilon=50.0)
    assert m.release(["x", "y", "x"], categories=["x", "y", "z"]).tolist() == [2, 1, 0]
    assert m.release([0.5, 1.5, 7, math.nan], edges=[0, 1, 2]).tolist() == [1, 1]
    assert m.release([2, 1, 0]).tolist() == [2, 1, 0]
    assert m.release([], categories=["x"]).tolist() == [0]
    assert m.release([["unhashable"]], categories=["x"]).shape == (1,)
    assert m.release([(1, "a"), (1, "b"), (1, "a")], categories=[(1, "a"), (1, "b")]).tolist() == [2, 1]
    assert m.release(np.array([[1, 2], [2, 2]]), categories=[1, 2]).tolist() == [1, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: Histogram(),
        lambda: Histogram(epsilon=1, rho=1),
        lambda: Histogram(delta=1e-6),
        lambda: Histogram(epsilon=0),
        lambda: Histogram(scale="1"),
        lambda: Histogram(epsilon=1, relation="swap"),
        lambda: Histogram(epsilon=1).release([1.5]),
        lambda: Histogram(epsilon=1).release("abc"),
        lambda: Histogram(epsilon=1).release([1], categories=[1], edges=[0, 1]),
        lambda: Histogram(epsilon=1).release([1], categories=[]),
        lambda: Histogram(epsilon=1).release([1], categories=[1, 1]),
        lambda: Histogram(epsilon=1).release([1], categories=5),
        lambda: Histogram(epsilon=1).release("abc", categories=["a"]),
        lambda: Histogram(epsilon=1).release(5, categories=[5]),
        lambda: Histogram(epsilon=1).release([1], categories=[[1]]),
        lambda: Histogram(epsilon=1).release([1], edges=[0]),
        lambda: Histogram(epsilon=1).release([1], edges=[1, 0]),
        lambda: Histogram(epsilon=1).release([1], edges=[0, math.nan]),
        lambda: Histogram(epsilon=1).release(["a"], edges=[0, 1]),
        lambda: Histogram(epsilon=1).halfwidth(0),
        lambda: Histogram(epsilon=1).halfwidth(0.5, 0),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
