"""Sensitivities are never exceeded by neighbours found at random, and reached by the worst ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.mechanisms import sensitivity

RELATIONS = ("add-remove", "replace", "change-attribute")
small = st.integers(-8, 8)


def upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(len(matrix))]


def neighbours(draw, row, relation):
    """A dataset of a few rows and a neighbour of it; `row` draws one row as a tuple."""
    rows = draw(st.lists(row, min_size=2, max_size=5))
    other = draw(row)
    if relation == "add-remove":
        return rows, rows[1:]
    if relation == "replace":
        return rows, [other, *rows[1:]]
    place = draw(st.integers(0, len(other) - 1))
    changed = tuple(other[i] if i == place else value for i, value in enumerate(rows[0]))
    return rows, [changed, *rows[1:]]


@pytest.mark.parametrize("relation", RELATIONS)
@given(data=st.data())
def test_a_sum_never_moves_further_than_its_sensitivity(relation, data):
    low, high = sorted((data.draw(small), data.draw(small)))
    one, other = neighbours(data.draw, st.tuples(st.integers(low, high)), relation)
    change = abs(sum(r[0] for r in one) - sum(r[0] for r in other))
    assert change <= sensitivity.total(low, high, relation).l1


def test_sums_differ_between_relations():
    assert sensitivity.total(10, 20).l1 == 20
    assert sensitivity.total(10, 20, "replace").l1 == 10
    assert sensitivity.total(-20, -10).l1 == 20
    assert sensitivity.total(-10, 20, "change-attribute").l1 == 30


@pytest.mark.parametrize("relation", ("replace", "change-attribute"))
@given(data=st.data())
def test_a_mean_of_known_length_never_moves_further(relation, data):
    low, high = sorted((data.draw(small), data.draw(small)))
    one, other = neighbours(data.draw, st.tuples(st.integers(low, high)), relation)
    change = abs(Fraction(sum(r[0] for r in one), len(one)) - Fraction(sum(r[0] for r in other), len(other)))
    assert change <= sensitivity.mean(low, high, len(one), relation).l1


def test_a_mean_under_add_remove_is_refused():
    with pytest.raises(InvalidInput, match="sum and the count"):
        sensitivity.mean(0, 1, 10, "add-remove")


@pytest.mark.parametrize("relation", RELATIONS)
@given(data=st.data())
def test_contingency_tables_never_move_further(relation, data):
    margins = data.draw(st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=4))
    one, other = neighbours(data.draw, st.tuples(*[st.integers(0, 2)] * 3), relation)

    def tables(rows):
        counts = np.zeros((len(margins), 27))
        for m, margin in enumerate(margins):
            for row in rows:
                counts[m, sum(row[a] * 3**a for a in margin)] += 1
        return counts.ravel()

    change = tables(one) - tables(other)
    reach = sensitivity.contingency([[str(a) for a in margin] for margin in margins], relation)
    assert np.abs(change).sum() <= reach.l1
    assert (change**2).sum() <= reach.l2_squared


@pytest.mark.parametrize("relation", RELATIONS)
@given(data=st.data())
def test_second_moments_never_move_further(relation, data):
    bounds = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    row = st.tuples(*[st.integers(-b, b) for b in bounds])
    one, other = neighbours(data.draw, row, relation)

    def moments(rows):
        matrix = np.array(rows, float)
        return upper(matrix.T @ matrix)

    change = moments(one) - moments(other)
    reach = sensitivity.second_moments(bounds, relation)
    assert np.abs(change).sum() <= reach.l1
    assert (change**2).sum() <= reach.l2_squared


def test_second_moments_are_tight_for_one_record_and_one_attribute():
    bounds = np.array([2.0, 3.0, 1.0])
    added = upper(np.outer(bounds, bounds))
    reach = sensitivity.second_moments([2, 3, 1])
    assert added.sum() == reach.l1 and (added**2).sum() == reach.l2_squared
    # others sum to 4 >= 2 * 2 for the first attribute; for the second 3 < 6, so the optimum lies inside
    assert sensitivity.second_moments([2, 3, 1], "change-attribute").l1 == max(16, Fraction(81, 4), 10)


@pytest.mark.parametrize("relation", ("replace", "change-attribute"))
@given(data=st.data())
def test_covariances_never_move_further(relation, data):
    ends = data.draw(st.lists(st.tuples(small, st.integers(1, 6)), min_size=1, max_size=3))
    ranges = [(low, low + width) for low, width in ends]
    one, other = neighbours(data.draw, st.tuples(*[st.integers(a, b) for a, b in ranges]), relation)
    change = [upper(np.atleast_2d(np.cov(np.array(rows, float).T, bias=True))) for rows in (one, other)]
    reach = sensitivity.covariance(ranges, len(one), relation)
    assert np.abs(change[0] - change[1]).sum() <= reach.l1 + 1e-9
    assert ((change[0] - change[1]) ** 2).sum() <= reach.l2_squared + 1e-9


def test_a_variance_is_tight():
    rows = np.array([0.0] * 9 + [1.0])
    assert math.isclose(np.var(rows), sensitivity.covariance([(0, 1)], 10).l1)


def test_l2_is_rounded_up_and_exact_roots_are_exact():
    assert sensitivity.contingency(4).l2 == 2.0
    assert Fraction(sensitivity.contingency(1, "replace").l2) ** 2 >= 2
    assert math.isclose(sensitivity.contingency(1, "replace").l2, math.sqrt(2), rel_tol=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sensitivity.count("swap"),
        lambda: sensitivity.total(2, 1),
        lambda: sensitivity.total(float("nan"), 1),
        lambda: sensitivity.total("0", 1),
        lambda: sensitivity.total(0, float("inf")),
        lambda: sensitivity.mean(0, 1, 0),
        lambda: sensitivity.mean(0, 1, 2.5),
        lambda: sensitivity.contingency(0),
        lambda: sensitivity.contingency([]),
        lambda: sensitivity.contingency("age"),
        lambda: sensitivity.contingency(1.5),
        lambda: sensitivity.second_moments([]),
        lambda: sensitivity.second_moments([0]),
        lambda: sensitivity.second_moments("ab"),
        lambda: sensitivity.second_moments(3),
        lambda: sensitivity.covariance([], 10),
        lambda: sensitivity.covariance([(0, 0)], 10),
        lambda: sensitivity.covariance([(0, 1)], 1),
        lambda: sensitivity.covariance([(0, 1)], 10, "add-remove"),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
