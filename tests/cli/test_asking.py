"""`incrowd ask` and `incrowd price`: what they print is what the curator says."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from incrowd.catalog import load
from incrowd.curator import Ledger
from tests.cli.conftest import Run

BY_SEX = "SELECT sex, COUNT(*) AS people, AVG(age) AS age FROM adult GROUP BY sex"


def test_a_table_shows_numbers_with_intervals_and_the_cost(census: Path, run: Run) -> None:
    result = run("ask", BY_SEX, "--epsilon", "0.2")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[0].split() == ["sex", "people", "95%", "between", "age", "95%", "between"]
    assert [line.split()[0] for line in lines[2:4]] == ["Female", "Male"]
    assert lines[-1].startswith("paid epsilon 0.2") and "left of today's budget of analyst ana" in lines[-1]
    assert all(len(line) <= 80 for line in lines)


def test_json_has_all_that_the_answer_tells(census: Path, run: Run) -> None:
    result = run("ask", BY_SEX, "--epsilon", "0.2", "--json").json
    assert result["columns"] == ["sex", "people", "people_low", "people_high", "age", "age_low", "age_high"]
    for row in result["rows"]:
        assert row["people_low"] <= row["people"] <= row["people_high"]
        assert 17 <= row["age_low"] <= row["age"] <= row["age_high"] <= 90
    assert (result["epsilon"], result["recalled"], result["confidence"]) == (0.2, False, 0.95)
    assert {balance["cap"] for balance in result["remaining"]} == {"dataset", "analyst:ana", "day:ana"}
    # Each row is a unit of its own, so nothing is cut.
    assert result["caps"] == {"COUNT(*)": None, "AVG(age)": None} and result["beyond"] == {}


def test_an_average_within_an_error_says_what_its_pilot_and_the_answer_cost(census: Path, run: Run) -> None:
    question = ("SELECT AVG(age) AS age FROM adult", "--epsilon", "0.1", "--within", "0.05")
    offer = run("price", *question, "--json").json
    assert (offer["epsilon"], offer["pilot_epsilon"]) == (0.1, 0.01) and offer["halfwidths"] == {"age": None}
    assert offer["expected"]["age"]["rows"] == 1_000 and offer["remaining"][0]["left_share"] == 1
    shown = run("price", *question).out
    assert "of which epsilon 0.01 for a pilot" in shown and "in a group of 1,000 rows" in shown
    result = run("ask", *question, "--json").json
    assert result["pilot_epsilon"] == 0.01 and 0.02 < result["epsilon"] <= 0.1
    again = run("ask", *question)
    assert again.status == 0 and "on record: free" in again.out


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """300 people with four visits each, to run commands in as anybody."""
    monkeypatch.chdir(tmp_path)
    lines = ["id,cost", *(f"{person},5" for person in range(300) for _ in range(4))]
    (tmp_path / "visits.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "curator.yaml").write_text(
        "sources: {files: {csv: visits.csv}}\n"
        "tables: {visits: {unit: id, columns: {id: {type: integer}}}}\n"
        "budget: {epsilon: 2000}\n"
    )
    declared = load("curator.yaml")
    Ledger.found(declared.ledger_url, declared).close()
    return tmp_path


def test_chosen_caps_are_in_the_json_and_below_the_table(visits: Path, run: Run) -> None:
    question = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", "100")
    result = run("ask", *question, "--json").json
    assert (result["caps"], result["beyond"]) == ({"COUNT(*)": 4.0}, {"COUNT(*)": 0})
    said = " ".join(run("ask", *question).out.split())
    assert "each unit counts for at most 4; at 95% confidence, no unit would count for more." in said
    assert run("price", *question, "--json").json["caps"] == {}


def test_a_declared_cap_is_in_the_json_of_answer_and_price(visits: Path, run: Run) -> None:
    question = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", "100", "--contribution", "3", "--json")
    result = run("ask", *question).json
    assert (result["caps"], result["beyond"]) == ({"COUNT(*)": 3.0}, {})
    assert run("price", *question).json["caps"] == {"COUNT(*)": 3.0}


def test_csv_is_csv_and_nothing_else(census: Path, run: Run) -> None:
    result = run("ask", BY_SEX, "--epsilon", "0.2", "--csv", "--no-intervals")
    rows = list(csv.reader(io.StringIO(result.out)))
    assert rows[0] == ["sex", "people", "age"] and [row[0] for row in rows[1:]] == ["Female", "Male"]
    assert result.err == ""


def test_the_same_question_again_is_free_and_the_same(census: Path, run: Run) -> None:
    first = run("ask", BY_SEX, "--epsilon", "0.2", "--json").json
    budget = run("budget", "--json").json
    again = run("ask", BY_SEX, "--epsilon", "0.2", "--json").json
    assert again["rows"] == first["rows"] and again["recalled"] and again["epsilon"] == 0.0
    assert run("budget", "--json").json == budget
    assert "on record: free" in run("ask", BY_SEX, "--epsilon", "0.2").out


def test_an_accuracy_finds_its_price(census: Path, run: Run) -> None:
    result = run(
        "ask", "SELECT COUNT(*) AS n FROM adult", "--within", "30", "--confidence", "0.9", "--json"
    ).json
    (row,) = result["rows"]
    assert result["confidence"] == 0.9
    assert row["n_high"] - row["n_low"] <= 62
    assert 0.05 < result["epsilon"] < 0.1


def test_a_question_may_come_from_standard_input(
    census: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT COUNT(*) AS n\nFROM adult\n"))
    assert run("ask", "-", "--epsilon", "0.1", "--json").json["columns"][0] == "n"


def test_a_price_reads_and_spends_nothing(census: Path, run: Run) -> None:
    result = run("price", BY_SEX, "--epsilon", "0.2")
    assert result.status == 0 and "nothing was read or spent" in result.out
    assert "COUNT(*)" in result.out or "people" in result.out
    # Opening a curator begins its ledger; no question was paid in it.
    entries = run("ledger", "show", "--json").json["entries"]
    assert [entry["kind"] for entry in entries] == ["open"]


def test_a_price_says_what_would_be_left(census: Path, run: Run) -> None:
    result = run("price", BY_SEX, "--epsilon", "0.2", "--json").json
    assert result["fits"] and result["epsilon"] == 0.2
    assert sum(line["epsilon"] for line in result["lines"]) == pytest.approx(0.2)
    for before, after in zip(result["remaining"], result["remaining_after"], strict=True):
        assert after["left_share"] < before["left_share"]


def test_what_a_price_promises_to_leave_is_what_asking_leaves(census: Path, run: Run) -> None:
    price = run("price", BY_SEX, "--epsilon", "0.2", "--json").json
    answer = run("ask", BY_SEX, "--epsilon", "0.2", "--json").json
    assert answer["remaining"] == price["remaining_after"]


def test_a_price_that_does_not_fit_says_so_and_is_no_error(census: Path, run: Run) -> None:
    result = run("price", BY_SEX, "--epsilon", "1.5", "--json")
    assert result.status == 0 and result.json["fits"] is False and result.json["remaining_after"] is None
    assert "does not fit" in run("price", BY_SEX, "--epsilon", "1.5").out


def test_a_cap_per_query_is_a_refusal(census: Path, run: Run) -> None:
    result = run("ask", BY_SEX, "--epsilon", "0.7", "--analyst", "ben")
    assert result.status == 1 and "at most epsilon 0.5 on one query" in result.err


def test_what_is_declared_is_shown_for_nothing(census: Path, run: Run) -> None:
    shown = run("ask", "SHOW TABLES")
    assert shown.status == 0 and "adult" in shown.out
    assert shown.out.splitlines()[-1].startswith("free")
    described = run("ask", "DESCRIBE adult", "--json").json
    assert described["epsilon"] == 0 and "age" in [row["column_name"] for row in described["rows"]]
    assert run("price", "DESCRIBE adult", "--json").json["epsilon"] == 0
    assert run("ask", "DESCRIBE adults").status == 2
