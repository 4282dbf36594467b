"""`incrowd attack`: what it prints, its JSON, pictures, exit statuses and complaints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.commands import roster
from tests.adversary.commands.conftest import Run

HELD = Attempt("noise", Rate(5, 10), 0.5, 0.75)


def stub(monkeypatch: pytest.MonkeyPatch, *attempts: Attempt) -> None:
    """In place of all attacks, one whose outcome is known."""

    def attack(table: Any = None, epsilon: float = 1.0, seed: int = 0) -> Report:
        rows = "" if table is None else f" on {table.num_rows} rows"
        return Report("stub", f"A stub{rows}", "Nothing.", "Anything.", attempts, f"Seed {seed}.")

    takes = {name: name for name in ("table", "epsilon", "seed")}
    monkeypatch.setattr(roster, "ATTACKS", (roster.Entry("stub", "It does nothing.", attack, takes),))


def test_the_attacks_are_listed_with_a_sentence_each(run: Run) -> None:
    status, out, _ = run("attack")
    assert status == 0 and all(entry.name in out for entry in roster.ATTACKS)
    told = json.loads(run("attack", "--json")[1])["attacks"]
    assert [listed["name"] for listed in told] == [entry.name for entry in roster.ATTACKS]


def test_an_attack_runs_for_real_and_says_what_it_found(run: Run) -> None:
    status, out, err = run("attack", "floating-point", "--people", "60", "--seed", "1", "--epsilon", "0.1")
    assert err == "" and "The attacker knows" in out and "Success:" in out
    assert "textbook noise in float64" in out and "≤ 52.5%" in out
    assert status == (1 if "BROKEN" in out else 0)


def test_the_json_of_an_attack_is_its_report(run: Run) -> None:
    status, out, _ = run("attack", "averaging", "--people", "60", "--seed", "1", "--json")
    told = json.loads(out)
    assert status == (0 if told["holds"] else 1)
    assert told["name"] == "averaging" and {"success", "allowed", "holds"} <= told["attempts"][0].keys()


def test_a_guarantee_found_broken_ends_with_status_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, HELD)
    assert run("attack", "stub")[0] == 0
    stub(monkeypatch, replace(HELD, success=Rate(1000, 1000)))
    status, out, _ = run("attack", "stub")
    assert status == 1 and "BROKEN" in out
    status, out, _ = run("attack", "all", "--json")
    assert status == 1 and json.loads(out)["attacks"][0]["holds"] is False
    stub(monkeypatch, replace(HELD, success=Rate(1000, 1000), claimed=True))
    status, out, _ = run("attack", "stub")
    assert status == 0 and "breaks its claim" in out


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_file_is_attacked(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    stub(monkeypatch, HELD)
    if name.endswith("csv"):
        (tmp_path / name).write_text("age,town\n30,x\n40,y\n50,\n")
    else:
        pq.write_table(pa.table({"age": [1, 2, 3]}), tmp_path / name)
    status, out, err = run("attack", "stub", "--file", name, "--seed", "7")
    assert (status, err) == (0, "") and "A stub on 3 rows" in out and "Seed 7." in out


def test_a_picture_is_saved(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub(monkeypatch, HELD)
    assert run("attack", "all", "--picture", "a.svg")[0] == 0
    assert "A stub" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["attack", "x"], "There is no attack 'x': choose from differencing"),
        (["attack", "tracing", "--secret", "x"], "tracing has no use for --secret"),
        (["attack", "all", "--people", "50"], "leave out --file, --known, --secret and --people"),
        (["attack", "tracing", "--file", "no.csv"], "There is no file no.csv"),
        (["attack", "tracing", "--file", "here.txt"], "cannot be read as a csv file"),
        (["attack", "tracing", "--file", "here.duckdb"], "here.duckdb"),
        (["attack", "tracing", "--epsilon", "-1"], "--epsilon must be a number above 0"),
        (["attack", "tracing", "--epsilon", "nan"], "--epsilon must be a number above 0"),
        (["attack", "tracing", "--seed", "-1"], "--seed must be 0 or more"),
        (["attack", "tracing", "--people", "100000"], "--people must lie between 10 and 48840"),
        (["attack", "tracing", "--picture", "a.gif"], "must end in .html, .svg or .png"),
        (["attack", "averaging", "--known", "height"], "The attacker cannot know height"),
        (["attack", "averaging", "--secret", "heigh > 3"], "The secret must be SQL"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_a_mistake_gets_one_sentence(run: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "here.txt").write_bytes(b"\xff\xfe\x00\xd8")
    (tmp_path / "here.duckdb").write_text("nothing")
    status, out, err = run(*arguments)
    assert (status, out) == (2, "") and said in err
    assert err.count("\n") == 1 and err.rstrip().endswith(".")
