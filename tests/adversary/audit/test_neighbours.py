"""Pairs to search over: one record apart, each once, and no more than asked for."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.adversary.audit import neighbours
from incrowd.errors import InvalidInput

lists = st.lists(st.integers(0, 5), max_size=5)


@given(lists, st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_pairs_differ_by_one_record_more_or_less(example, values):
    for one, other in neighbours(example, values):
        more = (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))
        assert more.total() == 1


@given(lists, st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_pairs_differ_in_one_place_where_records_are_replaced(example, values):
    for one, other in neighbours(example, values, "replace"):
        assert len(one) == len(other)
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_no_pair_comes_twice_and_the_empty_list_is_among_them():
    pairs = list(neighbours([1, 2, 3], (0, 9), most=100))
    assert len({repr(pair) for pair in pairs}) == len(pairs)
    assert ([], [0]) in pairs
    assert len(list(neighbours([1, 2, 3], (0, 9), most=4))) == 4


def test_bad_searches_get_one_sentence():
    with pytest.raises(InvalidInput, match="at least one value"):
        next(neighbours([1], []))
    with pytest.raises(InvalidInput, match="relation must be"):
        next(neighbours([1], [2], "swap"))  # type: ignore[arg-type]
