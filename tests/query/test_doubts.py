"""What a doubt says: the values that may be meant, and nothing where the constants are among them."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from incrowd.query.doubts import Doubt, alternatives, nearest_values, spoken


def doubt(*wanted: object, unlike: bool = False) -> Doubt:
    return Doubt("payment = ...", "", unlike, "payment", wanted)


@pytest.mark.parametrize(
    ("wrong", "known", "near"),
    [
        ("crad", ["cash", "card", "dispute"], ["card"]),
        ("CARD", ["cash", "card", "dispute"], ["card"]),
        ("credit-card", ["cash", "card", "dispute"], ["card"]),
        ("zzz", ["cash", "card"], []),
        ("", ["cash"], []),
        (2030, [2018, 2019, 2020], [2020, 2019, 2018]),
        (True, [1, 2], []),
        ("x", [1, 2], []),
    ],
)
def test_the_nearest_values_are_named_the_nearest_first(wrong: object, known: list, near: list) -> None:
    assert nearest_values(wrong, known) == near


def test_a_constant_among_the_values_is_no_doubt() -> None:
    assert doubt("cash").among(["card", "cash", None]) is None
    assert doubt(2.0).among([1, 2]) is None


def test_nothing_is_said_where_no_value_is_known() -> None:
    assert doubt("cash").among([]) is None and doubt("cash").among([None]) is None


def test_the_sentence_names_the_constant_the_values_and_what_may_be_meant() -> None:
    told = doubt("crad").among(["cash", "card"])
    assert told is not None
    assert told.sentence == (
        "payment = ... matches no row: payment can only be 'cash' or 'card'; did you mean 'card'?"
    )
    unlike = doubt("x", unlike=True).among(["cash", "card"])
    assert unlike is not None and "leaves out no row" in unlike.sentence


def test_of_many_values_the_nearest_are_named_alone() -> None:
    told = doubt("value 77x").among([f"value {number}" for number in range(1000)])
    assert told is not None and "one of 1,000 other values" in told.sentence
    assert "'value 77'" in told.sentence and len(told.sentence) < 200


def test_of_several_constants_the_wrong_one_is_named() -> None:
    told = doubt("cash", "crad").among(["cash", "card"])
    assert told is not None and told.sentence.startswith("'crad' in payment = ...")


def test_a_sentence_is_one_short_line_whatever_the_values_hold() -> None:
    generator = random.Random(7)
    for _ in range(200):
        text = "".join(generator.choice("ab'\n\t\"ß\u2028x ") for _ in range(generator.randrange(120)))
        told = Doubt(text, "", False, "c", (text,)).among([text + "y", "b"])
        assert told is not None
        assert told.sentence.splitlines() == [told.sentence] and told.sentence.endswith((".", "?"))


def test_values_are_spoken_as_sql_writes_them() -> None:
    assert spoken(dt.datetime(2024, 1, 2, 3, 4)) == "'2024-01-02 03:04:00'"
    assert [spoken(value) for value in (True, 3, 0.1, "a'b")] == ["TRUE", "3", "0.1", "'a''b'"]
    assert alternatives(["a", "b", "c"]) == "'a', 'b' or 'c'"
