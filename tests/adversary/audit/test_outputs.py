"""Outputs in columns: every kind has its place, and what an output becomes depends on it alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.adversary.audit.outputs import Failure, read

numbers = st.one_of(st.booleans(), st.integers(-(2**70), 2**70), st.floats())
leaves = st.one_of(numbers, st.none(), st.text(max_size=3), st.just(Failure("KeyError")))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=6,
)


def row(outputs, place):
    """All that the columns say about one output; what they do not mention is missing."""
    numbers = {name: column[place] for name, column in outputs.numbers.items() if not np.isnan(column[place])}
    words = {name: column[place] for name, column in outputs.words.items() if column[place]}
    return numbers, words, outputs.whole()[place]


@settings(max_examples=60)
@given(st.lists(values, min_size=1, max_size=6))
def test_what_an_output_becomes_does_not_depend_on_its_neighbours(outputs):
    together = read(outputs)
    for place, output in enumerate(outputs):
        assert row(together, place) == row(read([output]), 0)


@given(st.lists(st.floats(), min_size=1, max_size=5))
def test_an_array_reads_like_a_list(listed):
    one, other = read(listed), read(np.array(listed))
    assert all(row(one, place) == row(other, place) for place in range(len(listed)))


def test_rows_of_an_array_read_like_lists():
    rows = [[1.5, float("nan")], [2.0, -3.0]]
    one, other = read(rows), read(np.array(rows))
    assert all(row(one, place) == row(other, place) for place in range(2))
    assert read(np.zeros((3, 2, 2))).numbers.keys() >= {"[1][0]", "[1]length", "length"}


@dataclass(frozen=True)
class Thing:
    size: int
    name: str | None


def test_every_kind_has_its_place():
    columns = read([Thing(3, "x"), {"a": Fraction(1, 2)}, {"flu", "cold"}, b"raw", 10**400])
    assert (
        columns.number(".size")[0] == 3
        and columns.word(".name")[0] == "'x'"
        and columns.word("type")[0] == "Thing"
    )
    assert columns.number("['a']")[1] == 0.5 and columns.word("order")[1] == "'a'"
    assert columns.number(" holds 'flu'")[2] == 1 and columns.number("length")[2] == 2
    assert columns.word("")[3] == "b'raw'"
    assert columns.number("")[4] == np.inf


def test_the_order_of_keys_is_part_of_an_output():
    one, other = read([{"a": 1, "b": 2}]), read([{"b": 2, "a": 1}])
    assert one.word("order")[0] != other.word("order")[0] and one.whole()[0] != other.whole()[0]
