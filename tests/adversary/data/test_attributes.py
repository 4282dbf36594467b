"""A table turned into yes-or-no attributes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from incrowd.adversary.data.attributes import binary_attributes
from incrowd.data import adult
from incrowd.errors import InvalidInput


def test_the_census_has_as_many_attributes_as_asked_and_none_that_all_share() -> None:
    people = binary_attributes(adult().slice(0, 4_000), 300)
    assert people.shape == (4_000, 300)
    means = people.mean(axis=0)
    assert set(np.unique(people).tolist()) == {0, 1} and means.min() > 0 and means.max() < 1


def test_pairs_are_conjunctions_of_values_of_two_columns() -> None:
    people = binary_attributes(pa.table({"a": ["x", "y", "y"], "b": [1, 1, 2]}), 100)
    singles, pairs = people[:, :4], people[:, 4:]
    expected = {tuple(singles[:, i] & singles[:, j]) for i in (0, 1) for j in (2, 3)} - {(0, 0, 0)}
    assert {tuple(pair) for pair in pairs.T} == expected


def test_missing_is_a_value_and_long_columns_are_cut_or_left_out() -> None:
    rows = 200
    table = pa.table(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": [None if i % 50 == 0 else i for i in range(rows)],
            "same": [1] * rows,
        }
    )
    people = binary_attributes(table, 40)
    assert people.shape == (rows, 10)  # ten tenths of the ages, the missing among the lowest
    assert (people.sum(axis=1) == 1).all()


def test_a_table_without_differences_or_a_count_of_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no column in which people differ"):
        binary_attributes(pa.table({"same": [1, 1]}), 3)
    with pytest.raises(InvalidInput, match="attributes must be at least 1"):
        binary_attributes(pa.table({"a": [1, 2]}), 0)
