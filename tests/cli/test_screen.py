"""What is printed: numbers that hold, JSON that any reader takes, bars that do not flatter."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import unicodedata
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from incrowd.cli import screen

numbers = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(1e-9, 1e9)


def rendered(thing: object, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(thing)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(positive, st.integers(1, 8))
def test_bounds_are_rounded_outwards_and_budgets_inwards(value: float, digits: int) -> None:
    assert (
        value * (1 - 1e-12)
        <= float(screen.round_up(value, digits))
        <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-9)
    )
    assert value * (1 - 10.0 ** (1 - digits)) * (1 - 1e-9) <= screen.round_down(value, digits) <= value


@given(
    st.recursive(
        numbers | st.none() | st.booleans() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(max_examples=40)
def test_plain_values_survive_json(value: object) -> None:
    assert json.loads(json.dumps(screen.plain(value), allow_nan=False)) == value


def test_what_json_lacks_becomes_text_or_null() -> None:
    odd = [
        math.nan,
        math.inf,
        date(2024, 2, 29),
        datetime(2024, 2, 29, 1, 2),
        Decimal("1.5"),
        (1,),
        {2: b"x"},
    ]
    assert screen.plain(odd) == [None, None, "2024-02-29", "2024-02-29 01:02:00", 1.5, [1], {"2": "b'x'"}]


@given(st.floats(0, 1))
def test_a_bar_is_as_long_as_what_is_left(share: float) -> None:
    text = screen.bar(share, 20).plain
    assert len(text) == 20
    assert abs(text.count("█") - share * 20) <= 1
    assert (text.count("█") == 0) == (share == 0)


def test_an_answer_is_shown_with_its_intervals_and_markup_is_plain_text() -> None:
    answer = pa.table(
        {"who": ["[red]x[/red]", None], "n": [1234567, 2], "n_low": [1234000, 0], "n_high": [1235000, 9]}
    )
    shown = rendered(screen.answer_table(answer, 0.95))
    assert "[red]x[/red]" in shown and "NULL" in shown
    assert "1,234,000 and 1,235,000" in shown and "95% between" in shown


def test_columns_that_only_look_like_ends_are_shown() -> None:
    shown = rendered(screen.answer_table(pa.table({"price_low": [1.5], "price_high": [2.5]}), 0.9))
    assert "price_low" in shown and "price_high" in shown


def test_an_empty_answer_is_a_heading() -> None:
    shown = rendered(screen.answer_table(pa.table({"who": pa.array([], pa.string())}), 0.95))
    assert "who" in shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_wide_answers_are_folded_and_lose_nothing(width: int) -> None:
    answer = pa.table({f"column_{i}": ["abcdefghij" * 3] for i in range(4)})
    shown = "".join(rendered(screen.answer_table(answer, 0.95), width).split("\n"))
    assert sum(shown.count(letter) for letter in "j") == 12


def test_a_bar_appears_only_on_a_terminal_and_when_a_question_runs_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(screen, "aside", lambda: terminal)
    with screen.watching() as report:
        report(0.5)
    assert isinstance(terminal.file, io.StringIO) and terminal.file.getvalue() == ""
    monkeypatch.setattr(screen, "PATIENCE", -1.0)
    with screen.watching() as report:
        report(0.5)
    assert "asking the database" in terminal.file.getvalue()
    monkeypatch.setattr(screen, "aside", lambda: Console(stderr=True))
    with screen.watching() as report:
        report(0.5)
    assert capsys.readouterr().err == ""


STEERING = ["\x1b]0;owned\x07", "\x1b[2J", "a\rb", "\u202egnp", "\x9b31m", "\u2028", "\x7f", "a\nb"]


@pytest.mark.parametrize("key", STEERING)
def test_no_key_and_no_column_name_steers_a_terminal(key: str) -> None:
    shown = rendered(screen.answer_table(pa.table({key: [key], "n": [1]}), 0.95))
    assert not any(letter in shown for letter in "\x1b\x07\r\u202e\x9b\u2028\x7f")
    assert screen.visible("Zoë Łukasz 東京 👍") == "Zoë Łukasz 東京 👍"


def test_a_sentence_with_control_characters_is_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    screen.complain("There is no table \x1b[2J.")
    assert capsys.readouterr().err == "There is no table \\x1b[2J.\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_is_kept_text(text: str) -> None:
    assert screen.csv_cell(text) == f"'{text}"
    assert screen.csv_cell(-1.5) == -1.5 and screen.csv_cell("plain = text") == "plain = text"


@pytest.mark.parametrize("text", STEERING)
def test_json_has_its_own_escapes_for_what_would_steer(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = {text: [text, "Zoë 👍", "\U000e0001"]}
    screen.emit_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value and "Zoë 👍" in shown
    assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Zl") for letter in shown.replace("\n", ""))


@pytest.mark.parametrize("terminal", [True, False])
def test_csv_has_escapes_on_a_terminal_and_values_elsewhere(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    screen.emit_csv(["n", *STEERING], [[1, *STEERING], [None, *reversed(STEERING)]])
    shown = capsys.readouterr().out
    if terminal:
        assert not any(
            unicodedata.category(letter) in ("Cc", "Cf", "Zl") for letter in shown.replace("\n", "")
        )
        assert len(shown.splitlines()) == 3 and "\\x1b[2J" in shown
    else:
        names, first, second = csv.reader(io.StringIO(shown, newline=""))
        assert names == ["n", *STEERING] and first == ["1", *STEERING] and second[0] == ""
