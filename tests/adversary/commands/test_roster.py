"""The attacks by name: each is found, takes what it says, and refuses the rest in the user's words."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pyarrow as pa
import pytest

from incrowd.adversary.commands.roster import ATTACKS, Entry, Wish, find
from incrowd.data import adult
from incrowd.errors import InvalidInput

WISHES = {field.name for field in dataclasses.fields(Wish)}
FRIENDS = pa.table({"age": np.arange(40), "town": ["x", "y"] * 20, "ill": [0, 1, 1, 0] * 10})
MARKS = pa.table(
    {
        "who": np.repeat(np.arange(30), 6),
        "film": np.arange(180) % 37,
        "when": np.arange(180) * 11 % 101,
        "mark": np.arange(180) % 5 + 1,
    }
)


@pytest.mark.parametrize("entry", ATTACKS, ids=lambda entry: entry.name)
def test_an_attack_has_a_sentence_and_takes_only_what_can_be_wished(entry: Entry) -> None:
    assert find(entry.name) is entry and find(entry.name.replace("-", "_").upper()) is entry
    assert entry.about.endswith(".") and entry.takes.keys() <= WISHES
    assert {"epsilon", "seed", "table"} <= entry.takes.keys()
    named = inspect.signature(entry.function).parameters
    loose = any(parameter.kind is parameter.VAR_KEYWORD for parameter in named.values())
    assert loose or set(entry.takes.values()) <= set(named)


@pytest.mark.parametrize("entry", ATTACKS, ids=lambda entry: entry.name)
def test_the_census_has_the_columns_that_an_attack_reads_by_itself(entry: Entry) -> None:
    assert set(entry.columns) <= set(adult().column_names)


def test_a_wish_that_means_nothing_to_an_attack_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"^tracing has no use for --secret: leave it out \(it takes --file"
    ):
        find("tracing").run(Wish(secret="x"))
    with pytest.raises(InvalidInput, match="k-anonymity has no use for --people"):
        find("k-anonymity").run(Wish(people=100))
    with pytest.raises(InvalidInput, match="--people must be at least 10, not 3"):
        find("averaging").run(Wish(people=3))
    with pytest.raises(InvalidInput, match="linkage makes up its table"):
        find("linkage").run(Wish(known=("a", "b", "c", "d")))


@pytest.mark.parametrize("name", ["averaging", "k-anonymity"])
def test_a_table_with_other_columns_needs_them_named(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"--known .* --secret .* the file has age, town, ill\.$"):
        find(name).run(Wish(table=FRIENDS))


def test_a_table_of_one_s_own_is_attacked_by_the_columns_named() -> None:
    wish = Wish(table=FRIENDS, known=("age", "town"), secret="ill = 1", epsilon=1.0, seed=3)
    report = find("averaging").run(wish)
    assert "epsilon 1 each time" in report.title
    assert report.details["targets"] == 40 and report.details["budget"] == 4.0


def test_ratings_are_read_from_four_columns() -> None:
    report = find("linkage").run(Wish(table=MARKS, known=("who", "film", "when", "mark"), seed=1))
    assert report.details["users"] == 30
    with pytest.raises(InvalidInput, match="--known user,item,day,stars; the file has who, film, when, mark"):
        find("linkage").run(Wish(table=MARKS))
    with pytest.raises(InvalidInput, match="leave out --people"):
        find("linkage").run(Wish(table=MARKS, people=20))


def test_people_are_the_users_of_made_up_ratings() -> None:
    assert find("linkage").run(Wish(people=25, seed=1)).details["users"] == 25


def test_one_epsilon_stands_for_the_list() -> None:
    report = find("floating-point").run(Wish(people=30, epsilon=0.7, seed=2))
    assert {attempt.x for attempt in report.attempts} == {0.7}


def test_an_unknown_attack_is_answered_with_the_list() -> None:
    with pytest.raises(InvalidInput, match=r"no attack 'tracking': choose from differencing, .*, all\."):
        find("tracking")
