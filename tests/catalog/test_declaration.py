"""Declared parts are frozen and strict, and a fault is told in the owner's own words."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from incrowd.catalog.declaration import (
    Confidence,
    Count,
    Declaration,
    Delta,
    Name,
    Positive,
    Share,
    Switch,
    Text,
    fault,
    name,
    nearest,
    number,
    shown,
    text,
)
from tests.catalog.faults import fault_of


class Ward(Declaration):
    """A small declaration."""

    title: Name = "east"
    beds: Count = 1
    open: Switch = True
    note: Text = ""


@given(st.text(), st.lists(st.text(max_size=3) | st.integers(0, 9), max_size=3))
def test_a_fault_says_what_it_is_given_whatever_signs_it_holds(message: str, path: list[str | int]) -> None:
    error = fault(message, *path)
    assert error.message() == message and error.context is not None
    assert error.context["path"] == tuple(path) and error.type == "fault"


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("BOUND", ["type", "Bounds"], "perhaps you mean Bounds"),
        (12, ["120", "9"], "perhaps you mean 120"),
        ("zzz", ["bounds", "type"], "choose from bounds, type"),
        # Two letters in common of four and four are less than 0.6 of both.
        ("abxy", ["abcd"], "choose from abcd"),
        ("abcx", ["abcd"], "perhaps you mean abcd"),
        ("a", [], "there is nothing to choose from"),
    ],
)
def test_the_nearest_name_is_pointed_to_and_otherwise_all_are_listed(
    word: object, known: list[str], said: str
) -> None:
    assert nearest(word, known) == said


def test_a_declaration_takes_its_own_fields_and_no_others() -> None:
    assert Ward.model_validate({"title": "west", "beds": 3}) == Ward(title="west", beds=3)
    assert Ward.model_validate(Ward(beds=3)).beds == 3
    assert fault_of(lambda: Ward.model_validate({"bed": 3})) == (
        "bed: there is no field 'bed' here, perhaps you mean beds"
    )
    assert fault_of(lambda: Ward.model_validate({7: 3})) == (
        "7: there is no field 7 here, choose from title, beds, open, note"
    )
    for other in ("west", ["west"], None):
        said = f"expected fields such as title, beds, open, not {shown(other)}"
        assert fault_of(lambda other=other: Ward.model_validate(other)) == said  # type: ignore[misc]


def test_a_declaration_cannot_be_changed_and_does_not_print_what_it_refuses() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Ward().beds = 2  # type: ignore[misc]
    with pytest.raises(ValidationError) as caught:
        Ward.model_validate({"beds": {"secret": "x"}})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "nothing"),
        ({"a": 1}, "a mapping"),
        ([1], "a list"),
        ((1,), "a list"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (0.5, "0.5"),
        ("it's", '"it\'s"'),
        ("x" * 58, "'" + "x" * 58 + "'"),
        ("x" * 59, "'" + "x" * 56 + "..."),
    ],
)
def test_a_value_is_shown_as_it_was_written(value: object, said: str) -> None:
    assert shown(value) == said and len(shown(value)) <= 60


@given(st.integers(-(2**1000), 2**1000) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_is_itself(value: float) -> None:
    assert number(value) == float(value) and type(number(value)) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**400)])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    assert fault_of(lambda: number(value)) == "expected a finite number"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("FILL", "still says FILL; write a number"),
        ("3", "expected a number, not '3'"),
        (True, "expected a number, not true"),
        (None, "expected a number, not nothing"),
    ],
)
def test_what_is_no_number_is_refused(value: object, said: str) -> None:
    assert fault_of(lambda: number(value)) == said


LEAST = 5e-324
BELOW_1 = math.nextafter(1, 0)


@pytest.mark.parametrize(
    ("kind", "inside", "outside", "said"),
    [
        (Positive, [LEAST, 1, 1e308], [0, -LEAST, -1], "must be above 0, not {}"),
        (Delta, [0, LEAST, BELOW_1], [1, -LEAST, 2], "must be at least 0 and below 1, not {}"),
        (
            Share,
            [0, 0.5, BELOW_1],
            [1, -LEAST],
            "is a share of delta: at least 0 and below 1, not {}",
        ),
        (
            Confidence,
            [LEAST, 0.95, BELOW_1],
            [0, 1, 95],
            "must lie strictly between 0 and 1, as 0.95 does, not {}",
        ),
        (
            Count,
            [1, 2.0, 2**62],
            [0, 1.5, -1, 0.999, 2**62 + 2**10],
            "must be a whole number of at least 1, not {}",
        ),
    ],
)
def test_a_number_lies_in_its_range_or_is_refused(
    kind: Any, inside: list[float], outside: list[float], said: str
) -> None:
    read = TypeAdapter(kind).validate_python
    for value in inside:
        assert read(value) == value and type(read(value)) is (int if kind is Count else float)
    for value in outside:
        assert fault_of(lambda value=value: read(value)) == said.format(shown(value))  # type: ignore[misc]
    assert fault_of(lambda: read("1")) == "expected a number, not '1'"


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_switch_is_true_or_false_alone(value: object) -> None:
    read = TypeAdapter(Switch).validate_python
    assert read(True) is True and read(False) is False
    assert fault_of(lambda: read(value)) == f"expected true or false, not {shown(value)}"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_name_is_kept_or_refused_but_never_mended(value: str) -> None:
    control = any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in value)
    if value == value.strip() and not control and value != "FILL":
        assert name(value) == value
    else:
        assert fault_of(lambda: name(value)).startswith(("a name must not be empty", "still says FILL"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("FILL", "still says FILL; write the name"),
        ("", "a name must not be empty, begin or end with a blank, or hold control characters"),
        ("a\x1fb", "a name must not be empty, begin or end with a blank, or hold control characters"),
        ("a\x7fb", "a name must not be empty, begin or end with a blank, or hold control characters"),
        (7, "expected a name, not 7; put quotes around a name that looks like a value"),
    ],
)
def test_what_is_no_name_is_refused(value: object, said: str) -> None:
    assert fault_of(lambda: name(value)) == said
    assert name("a b") == "a b"


def test_text_is_text() -> None:
    assert text("") == "" and text(" FILL\n") == " FILL\n"
    assert fault_of(lambda: text(7)) == "expected text, not 7; put quotes around it"
