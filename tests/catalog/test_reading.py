"""YAML as its owner means it: YAML 1.2, each part with its line, and no part that is silently lost."""

from __future__ import annotations

from datetime import date, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.reading import located, read, scalar, spelled
from incrowd.errors import CatalogError

PLAIN = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.dates()
VALUES = st.recursive(
    PLAIN | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text("abc1no.- ", min_size=1, max_size=4), below, max_size=3)
    ),
    max_leaves=8,
)


def written(value: object) -> str:
    """A value in YAML, with quotes around all text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return {"inf": ".inf", "-inf": "-.inf"}.get(repr(value), str(value))


@given(VALUES)
def test_what_is_written_is_read(value: object) -> None:
    assert read(f"a: {written(value)}", "c.yaml")[0] == {"a": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("1e-6", 1e-6),
        ("1:30", "1:30"),
        ("010", 10),
        ("+3", 3),
        ("-.5", -0.5),
        ("1.", 1.0),
        (".", "."),
        ("1_000", "1_000"),
        ("TRUE", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("-.INF", float("-inf")),
        ("2024-02-29", date(2024, 2, 29)),
        ("2024-2-9", "2024-2-9"),
        ("2024-02-29 12:30", datetime(2024, 2, 29, 12, 30)),
        ("2024-02-29T12:30:01", datetime(2024, 2, 29, 12, 30, 1)),
        ("9" * 399, int("9" * 399)),
        ("9" * 400, float("inf")),
    ],
)
def test_a_plain_scalar_is_that_of_yaml_1_2_and_a_quoted_one_is_text(text: str, value: object) -> None:
    read_as = scalar(text, plain=True)
    assert read_as == value and type(read_as) is type(value)
    assert scalar(text, plain=False) == text


@pytest.mark.parametrize("text", ["2024-02-30", "2024-13-01 00:00", "2024-02-29 25:00"])
def test_a_date_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        scalar(text, plain=True)
    with pytest.raises(CatalogError) as caught:
        read(f"a:\n  b: {text}", "c.yaml")
    assert str(caught.value) == f"c.yaml, line 2: a.b: {text} is not a date that exists."


def test_each_part_has_the_line_at_which_it_begins() -> None:
    value, lines = read("# note\na:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", "c.yaml")
    assert value == {"a": {"b": 1, "c": ["x", {"d": 2}]}}
    assert lines == {
        (): 2,
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "c"): 4,
        ("a", "c", 0): 5,
        ("a", "c", 1): 6,
        ("a", "c", 1, "d"): 6,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "c.yaml: the file is empty; a catalog declares at least tables and a budget."),
        ("a: 1\nb: 2\na: 3", "c.yaml, line 3: a: is declared twice."),
        ("a: {b: 1, b: 1}", "c.yaml, line 1: a.b: is declared twice."),
        (
            "x: &x {a: 1}\ny:\n  <<: *x",
            "c.yaml, line 3: y: merge keys (<<) are not understood; write the fields out.",
        ),
        ("a:\n  ? [b]\n  : 1", "c.yaml, line 2: a: a name must be plain text."),
        ("a: &a [*a]", "c.yaml, line 1: the file nests too deeply, or refers to itself."),
        (
            "a: \x07",
            "c.yaml: this is not YAML: it holds characters or nesting that YAML does not allow.",
        ),
        ("[" * 1000, "c.yaml: this is not YAML: it holds characters or nesting that YAML does not allow."),
        (
            "a: [1",
            (
                "c.yaml, line 1: this is not YAML, while parsing a flow sequence "
                "expected ',' or ']', but got '<stream end>'."
            ),
        ),
    ],
)
def test_what_no_owner_means_is_refused(text: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read(text, "c.yaml")
    assert str(caught.value) == said


def test_names_are_text_and_a_quoted_merge_key_is_a_name() -> None:
    assert read("1: a\nno: b\n'<<': c", "c.yaml")[0] == {"1": "a", "no": "b", "<<": "c"}


@pytest.mark.parametrize(("depth", "deep"), [(40, False), (41, True)])
def test_forty_levels_are_read(depth: int, deep: bool) -> None:
    text = "[" * depth + "1" + "]" * depth
    if not deep:
        assert read(text, "c.yaml")[0] == yaml.safe_load(text)
        return
    with pytest.raises(CatalogError, match="nests too deeply"):
        read(text, "c.yaml")


def test_a_fault_is_one_sentence_with_its_place() -> None:
    assert spelled(("tables", "people", "domain", 2)) == "tables.people.domain[2]" and spelled(()) == ""
    assert str(located(("a", 0), "is wrong.", "c.yaml", 7)) == "c.yaml, line 7: a[0]: is wrong."
    assert str(located((), "is wrong", "c.yaml")) == "c.yaml: is wrong."


def test_a_few_lines_that_stand_for_billions_of_values_are_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12)
    )
    with pytest.raises(CatalogError, match=r"the file holds more than 200,000 values; take long domains"):
        read(bomb, "curator.yaml")


@pytest.mark.parametrize("text", ['a: "\\ud800"', '"\\udfff": 1', 'a: ["x", "\\ud800"]'])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(CatalogError, match=r"curator.yaml, line 1: .*half a character \(a lone surrogate\)"):
        read(text, "curator.yaml")
