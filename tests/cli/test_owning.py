"""`incrowd ledger found` and its kin: what the owner does to the account."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from incrowd.catalog import load
from tests.cli.conftest import Run

COUNT = "SELECT COUNT(*) AS n FROM adult"


def test_found_makes_a_ledger_once_and_ties_it_to_the_file(census: Path, run: Run) -> None:
    (census / "curator.ledger").unlink()
    before = (census / "curator.yaml").read_text()
    made = run("ledger", "found", "--json")
    assert made.status == 0, made.err
    declared = load("curator.yaml")
    assert made.json["id"] == declared.id and declared.ledger == "curator.ledger"
    after = (census / "curator.yaml").read_text()
    assert after.startswith(before)
    assert run("ask", COUNT, "--epsilon", "0.1").status == 0
    again = run("ledger", "found")
    assert again.status == 2 and "free place" in again.err
    assert (census / "curator.yaml").read_text() == after


def test_a_lost_account_is_given_up_in_so_many_words(census: Path, run: Run) -> None:
    (census / "curator.ledger").unlink()
    assert run("ledger", "found").status == 0
    assert run("ask", COUNT, "--epsilon", "0.1").status == 0
    (census / "curator.ledger").unlink()
    before = (census / "curator.yaml").read_text()
    refused = run("ledger", "found")
    assert refused.status == 2 and "ledger restore" in refused.err and "--give-up" in refused.err
    words = ("init", "people.csv", "--unit", "row", "--budget", "1", "--yes", "--force")
    (census / "people.csv").write_text("age\n31\n44\n")
    forced = run(*words)
    assert forced.status == 2 and "--give-up" in forced.err
    assert (census / "curator.yaml").read_text() == before
    given_up = run("ledger", "found", "--give-up", "--json")
    assert given_up.status == 0 and given_up.json["id"] == load("curator.yaml").id
    assert given_up.json["id"] not in before
    assert budget_of(run, "analyst:ana") == 1.0
    again = run("ledger", "found", "--give-up")
    assert again.status == 2 and "free place" in again.err


def test_a_file_that_init_left_open_gets_its_ledger_once_it_is_complete(census: Path, run: Run) -> None:
    (census / "people.csv").write_text("age\n31\n44\n")
    assert run("init", "people.csv", "--out", "people.yaml", "--unit", "row", "--yes").status == 0
    file = census / "people.yaml"
    file.write_text(file.read_text().replace("FILL", "1"))
    assert load(file).id is None and load(file).ledger == "people.ledger"
    assert run("ledger", "found", "-c", "people.yaml").status == 0
    assert load(file).id is not None and (census / "people.ledger").exists()


def test_a_founding_that_is_refused_leaves_the_file_alone(census: Path, run: Run) -> None:
    before = (census / "curator.yaml").read_text()
    assert run("ledger", "found").status == 2
    assert (census / "curator.yaml").read_text() == before


def test_init_founds_the_ledger_and_again_with_force_keeps_it(census: Path, run: Run) -> None:
    words = ("init", "people.csv", "--out", "people.yaml", "--unit", "row", "--budget", "1", "--yes")
    (census / "people.csv").write_text("age\n31\n44\n")
    assert run(*words).status == 0
    first = load("people.yaml")
    spent = ("ask", "SELECT COUNT(*) FROM people", "--epsilon", "0.4", "-c", "people.yaml", "-a", "analyst")
    assert run(*spent).status == 0
    assert run(*words, "--force").status == 0
    assert load("people.yaml").id == first.id
    left = run("budget", "-c", "people.yaml", "-a", "analyst", "--json").json["budgets"][0]
    assert left["left_share"] < 0.7
    (census / "people.yaml").unlink()
    again = run(*words)
    assert again.status == 2 and "There is a ledger at people.ledger already" in again.err
    assert not (census / "people.yaml").exists()


def budget_of(run: Run, cap: str) -> float:
    balances = run("budget", "--json").json["budgets"]
    (share,) = (balance["left_share"] for balance in balances if balance["cap"] == cap)
    return float(share)


def test_the_owner_steers_and_sees_it_in_the_ledger(census: Path, run: Run) -> None:
    assert run("ask", COUNT, "--epsilon", "0.1").status == 0
    raised = run("ledger", "top-up", "ana", "--epsilon", "0.5", "--json").json
    assert (raised["budget"], raised["epsilon"]) == ("analyst:ana", 1.5)
    assert "is now epsilon 1.5" in run("ledger", "lower", "dataset", "--epsilon", "0.5").out
    assert "ben may ask no more" in run("ledger", "retire", "ben").out
    refused = run("ask", COUNT, "--epsilon", "0.1", "--analyst", "ben")
    assert refused.status == 1 and "The owner retired analyst ben" in refused.err
    assert run("budget", "--analyst", "ben").status == 1
    assert run("ledger", "retire", "ben", "--undo", "--json").json == {"analyst": "ben", "retired": False}
    assert run("ledger", "lower", "eve", "--epsilon", "1").status == 2
    shown = " ".join(run("ledger", "show").out.split())
    assert "analyst:ana by epsilon" in shown and "ben retired" in shown and "SELECT COUNT(*)" in shown
    assert run("ledger", "verify").status == 0


def test_the_whole_ledger_is_printed_for_an_auditor(census: Path, run: Run) -> None:
    run("ask", "SELECT COUNT(*) AS n FROM adult WHERE age < 30", "--epsilon", "0.1")
    rows = list(csv.DictReader(io.StringIO(run("ledger", "export", "--csv").out)))
    assert [row["kind"] for row in rows] == ["open", "budget", "reserve", "answer"]
    paid = rows[2]
    assert (paid["analyst"], paid["cost"]) == ("ana", "epsilon 0.1") and "age < 30" in paid["question or act"]
    assert rows[3]["answers entry"] == paid["entry"]
    entries = run("ledger", "export", "--json").json["entries"]
    assert entries[2]["body"]["words"].endswith("age < 30")
    assert run("ledger", "export", "--csv", "--json").status == 2


def test_a_question_is_not_kept_where_the_owner_says_so(census: Path, run: Run) -> None:
    with (census / "curator.yaml").open("a") as file:
        file.write("keep_questions: false\n")
    run("ask", COUNT, "--epsilon", "0.1")
    assert "SELECT" not in run("ledger", "export", "--csv").out


def test_a_backup_comes_back_with_what_was_lost(census: Path, run: Run) -> None:
    assert run("ledger", "backup", "copy.backup").status == 0
    run("ask", COUNT, "--epsilon", "0.1")
    whole = run("ledger", "restore", "copy.backup", "--lost", "0")
    assert whole.status == 2 and "there is nothing to restore" in whole.err
    (census / "curator.ledger").unlink()
    asked = run("ledger", "restore", "copy.backup")
    assert asked.status == 2 and "with --lost" in asked.err
    done = run("ledger", "restore", "copy.backup", "--lost", "0.5", "--json")
    assert done.status == 0 and done.json["charged_epsilon"] == 0.5
    assert budget_of(run, "analyst:ana") < 0.6
    assert run("ledger", "verify").status == 0


def test_the_clock_needs_no_correction_on_an_ordinary_day(census: Path, run: Run) -> None:
    said = run("ledger", "clock")
    assert said.status == 2 and "nothing needs to be corrected" in said.err


def test_an_anchor_is_set_once_and_checked(census: Path, run: Run) -> None:
    assert "names no anchor" in run("ledger", "anchor").err
    with (census / "curator.yaml").open("a") as file:
        file.write("anchor: kept.anchor\n")
    assert "keeps nothing" in run("ask", COUNT, "--epsilon", "0.1").err
    assert run("ledger", "anchor").status == 0
    assert run("ask", COUNT, "--epsilon", "0.1").status == 0
    assert run("ledger", "verify").status == 0
    assert (census / "kept.anchor").read_text().count("\n") == 1


def test_a_budget_that_protects_nobody_is_told(census: Path, run: Run) -> None:
    file = census / "curator.yaml"
    file.write_text(file.read_text().replace("epsilon: 2.0, delta: 1e-6", "epsilon: 1000000, delta: 0.5"))
    said = run("budget").err
    assert "Warning: budget: epsilon 1e+06 protects nobody" in said and "delta 0.5 protects nobody" in said
