"""Events: the scores they are learned from, and the words they are told in."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.adversary.audit.auditor import _epsilon_promise
from incrowd.adversary.audit.distinguishers import Event, learn
from incrowd.adversary.audit.features import Bins, Cells, Feature, Value, Weighted, features_of, lowest_bit
from incrowd.adversary.audit.outputs import read

OBJECTIVE = _epsilon_promise(0.0, 1e-3, 2_000)


def best(first, second) -> Event:
    (event,) = learn(first, second, [OBJECTIVE])
    return event


def shares(event, *samples):
    return [float(event.holds(read(outputs)).mean()) for outputs in samples]


def test_a_value_that_only_one_side_has_is_found():
    event = best(np.arange(4_000) % 10, np.arange(4_000) % 9)
    assert event.words == "the output is at least 9" and event.forward
    assert shares(event, np.array([9, 3]), np.array([0])) == [0.5, 0.0]


def test_an_event_may_be_a_union_of_ranges():
    first, second = np.arange(4_000) % 2 * 6 + np.arange(4_000) % 3, 3 + np.arange(4_000) % 3
    event = best(first, second)
    assert shares(event, first, second) in ([1, 0], [0, 1])
    assert isinstance(event.score, Bins)
    assert event.words in ("the output is from 0 to 2 or from 6 to 8", "the output is from 3 to 5")


def test_words_and_failures_are_told_by_name():
    event = best(["yes", None] * 500, ["yes", "no"] * 500)
    assert isinstance(event.score, Cells)
    assert event.words in ("the output is None", "the output is 'no'")


def test_noise_that_is_used_twice_cancels_in_a_difference():
    noise = np.random.default_rng(1).integers(-50, 50, 4_000)
    event = best(np.column_stack([noise, noise]), np.column_stack([noise, noise + 1]))
    assert "minus" in event.words


def test_bits_of_floats_are_looked_at():
    noise = np.random.default_rng(1).uniform(1, 2, 4_000)
    event = best(noise, np.round(noise * 2**20) / 2**20)
    assert event.words.startswith("the exponent of the lowest bit of the output is at")
    assert lowest_bit(np.array([0.0, np.inf, np.nan, 5e-324, -0.75]))[3:].tolist() == [-1074.0, -2.0]


def test_many_weak_places_add_up():
    generator = np.random.default_rng(3)
    first, second = (generator.normal(shift, 1.0, (2_000, 9)) for shift in (0.0, 0.8))
    event = best(first, second)
    assert isinstance(event.score, Weighted)
    assert abs(np.subtract(*shares(event, first, second))) > 0.5
    assert "features (above all" in event.words


def test_places_that_never_come_together_have_no_difference():
    event = best([{"a": 1}, {"b": 2}] * 400, [{"a": 1}, {"b": 3}] * 400)
    assert shares(event, [{"a": 1}], [{"b": 2}], [{"b": 3}])[0] == 0


def test_infinities_and_gaps_are_values_too():
    first = np.tile([np.inf, -np.inf, np.nan, 1.0], (400, 1)).ravel()
    second = np.tile([np.inf, 2.0, np.nan, 1.0], (400, 1)).ravel()
    event = best(first, second)
    assert abs(np.subtract(*shares(event, first, second))) == 0.25


def test_constant_places_are_no_features():
    outputs = read(np.column_stack([np.zeros(9), np.arange(9)]))
    assert features_of(outputs) == [Feature("value", ("[1]",))]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event(Value(Feature("value", ("",))), 2.5, True, True), "the output is at least 2.5"),
        (
            Event(Value(Feature("sum", ("[0]", "[1]"))), 1.0, False, True),
            "the output's [0] plus the output's [1] is at most 1",
        ),
        (
            Event(Cells(Feature("word", ("",)), {"": -1.0, "'a'": 2.0}), -1.0, False, True),
            "the output is not 'a'",
        ),
        (
            Event(Cells(Feature("word", ("",)), {"": 1.0, "'a'": 2.0}), 0.0, True, True),
            "the output is anything",
        ),
    ],
)
def test_words_of_events(event, words):
    assert event.words == words
