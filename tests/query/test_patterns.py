"""Regular expressions as trees: what they write is read by engines and by Python as what they mean."""

from __future__ import annotations

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query.patterns import Choice, Class, Part, Pattern

LETTERS = [*map(chr, range(32, 127)), "\n", "\t", "\r", "\f", "é", "🧑"]
CLASSES = st.builds(Class, st.frozensets(st.sampled_from(LETTERS), min_size=1, max_size=20), st.booleans())
A, B = Class(frozenset("a")), Class(frozenset("b"))


def choice(*branches: tuple[Part, ...]) -> Choice:
    return Choice(branches)


@settings(max_examples=60, deadline=None)
@given(CLASSES)
def test_a_class_matches_its_letters_and_no_other(letters: Class) -> None:
    text = letters.written()
    meant = [(letter in letters.letters) != letters.others for letter in LETTERS]
    assert [re.fullmatch(text, letter) is not None for letter in LETTERS] == meant
    rows = duckdb.execute("SELECT REGEXP_FULL_MATCH(UNNEST($l), $t)", {"l": LETTERS, "t": text}).fetchall()
    assert [row[0] for row in rows] == meant


@pytest.mark.parametrize(
    ("letters", "others", "written"),
    [
        ("a", False, "a"),
        ("a", True, "[^a]"),
        ("ab", False, "[ab]"),
        ("abc", False, "[a-c]"),
        ("0123456789_xyz", False, "[0-9_x-z]"),
        ("\\]^-", False, r"[\-\\\]\^]"),
        ("\n", True, r"[^\n]"),
        ("89:;", False, r"[89\:\;]"),
        ("YZ[", False, r"[YZ\[]"),
        ("áâã", False, "[áâã]"),
    ],
)
def test_classes_are_ranges_of_ascii_letters_and_digits_alone(
    letters: str, others: bool, written: str
) -> None:
    assert Class(frozenset(letters), others).written() == written


@given(CLASSES, CLASSES)
def test_two_classes_meet_where_one_letter_is_in_both(one: Class, two: Class) -> None:
    alphabet = [*LETTERS, "文"]  # a letter that no class lists
    shared = any(
        ((letter in one.letters) != one.others) and ((letter in two.letters) != two.others)
        for letter in alphabet
    )
    assert one.meets(two) == two.meets(one) == shared


@pytest.mark.parametrize(
    ("least", "most", "written", "states"),
    [
        (1, 1, "a", 1),
        (0, 1, "a?", 1),
        (0, None, "a*", 1),
        (1, None, "a+", 1),
        (3, 3, "a{3}", 3),
        (0, 4, "a{0,4}", 4),
        (2, None, "a{2,}", 2),
        (50, 50, "a{50}", 50),
    ],
)
def test_a_repetition_matches_its_counts_and_unrolls_into_as_many_letters(
    least: int, most: int | None, written: str, states: int
) -> None:
    part = Part(A, least, most)
    assert (part.written(), part.states) == (written, states)
    matched = [times for times in range(60) if re.fullmatch(written, "a" * times)]
    assert matched == list(range(least, 60 if most is None else most + 1))


def test_a_group_has_the_states_of_all_its_branches() -> None:
    group = choice((Part(A, 3, 3), Part(B)), (Part(B, 0, None),))
    assert group.written() == "(?:a{3}b|b*)" and group.alternatives() == "a{3}b|b*"
    assert group.states == 3 + 1 + 1
    assert Part(group, 0, 1).written() == "(?:a{3}b|b*)?" and Part(group, 0, 1).states == 5


def test_the_ends_of_a_text_hold_for_every_branch() -> None:
    either = choice((Part(A),), (Part(B),))
    assert Pattern(either).written("duckdb") == "a|b"
    assert Pattern(either, start=True).written("duckdb") == "^(?:a|b)"
    assert Pattern(either).whole().written("duckdb") == "^(?:a|b)$"
    assert Pattern(either).whole().written("spark") == r"^(?:a|b)\z"
    assert Pattern(choice((Part(A),)), end=True).written("spark") == r"a\z"
    whole = Pattern(either).whole().written("duckdb")
    values = ["a", "b", "", "ab", "xb", "a\n", None]
    rows = duckdb.execute("SELECT REGEXP_MATCHES(UNNEST($v), $p)", {"v": values, "p": whole}).fetchall()
    assert [row[0] for row in rows] == [True, True, False, False, False, False, None]


def test_lower_case_folds_a_to_z_in_groups_too_and_leaves_the_ends() -> None:
    inner = choice((Part(Class(frozenset("AbZ")), 0, None),))
    pattern = Pattern(choice((Part(inner, 0, 1), Part(Class(frozenset("K"), others=True)))), end=True)
    lower = pattern.in_lower_case("it")
    assert lower.written("duckdb") == "(?:[abz]*)?[^k]$"
    assert lower.in_lower_case("it") == lower
    for text in ("ABZ1", "abK", "zz", "K", "", "-"):
        wanted = re.search(pattern.written("duckdb"), text, re.IGNORECASE | re.ASCII) is not None
        assert (re.search(lower.written("duckdb"), text.lower()) is not None) == wanted


def test_lower_case_refuses_letters_of_two_cases_beyond_ascii() -> None:
    def of(letters: str) -> Pattern:
        return Pattern(choice((Part(Class(frozenset(letters))),)))

    said = "REGEXP_MATCHES(t) asks for letters beyond A to Z in either case; write both of them."
    for letters in ("é", "aÉ", "ß"):
        with pytest.raises(QueryError) as refusal:
            of(letters).in_lower_case("REGEXP_MATCHES(t)")
        assert said in str(refusal.value)
    assert of("文").in_lower_case("it") == of("文")
