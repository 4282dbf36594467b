"""`incrowd tune`: shows what it would spend, asks, and writes what it bought into the owner's file."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from incrowd.catalog import load
from incrowd.curator import Curator
from incrowd.curator.ledger import Ledger
from tests.cli.conftest import Run
from tests.curator.test_tuning import VISITS

CATALOG = """\
# The clinic's visits.
sources:
  main: {parquet: visits.parquet}
tables:
  visits:
    unit: patient  # a person
    columns:
      patient: {type: integer, nullable: false}
      cost: {type: float, bounds: [0, 10000]}
      ward:
        type: text
        # domain: [FILL]  # public values; without them GROUP BY costs delta
budget: {epsilon: 1000.0, delta: 1e-6}  # for everyone
"""
SPEND = ("--epsilon", "500")
"""Noise is none at 500: what is tested with it fails by chance less than once in 10^9."""


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    file = tmp_path / "curator.yaml"
    file.write_text(CATALOG, encoding="utf-8")
    catalog = load(file)
    Ledger.found(catalog.ledger_url, catalog).close()
    return file


def test_what_was_bought_goes_into_the_file_and_questions_need_no_census(clinic: Path, run: Run) -> None:
    result = run("tune", *SPEND, "--yes")
    assert result.status == 0 and "Wrote 4 values into curator.yaml" in result.out
    text = clinic.read_text(encoding="utf-8")
    assert "    unit: patient  # a person\n    contribution: 4  # bought " in text
    assert "bounds: [0.0, 39.1], contribution: 128}" in text and "budget: {epsilon: 1000.0" in text
    assert "        domain: [north, south]  # bought " in text and "FILL" not in text
    kinds = [line["kind"] for line in run("price", "SELECT SUM(cost) FROM visits", "--json").json["lines"]]
    assert kinds == ["sum"]
    assert load(clinic).bought_of("visits").contribution is not None
    assert run("ledger", "verify").status == 0


def test_the_same_tuning_is_free_and_writes_the_same(clinic: Path, run: Run) -> None:
    run("tune", "curator.yaml", *SPEND, "--yes")
    text = clinic.read_text(encoding="utf-8")
    assert "On record: free" in run("tune", *SPEND, "--yes").out
    assert clinic.read_text(encoding="utf-8") == text


def test_a_dry_run_says_what_would_be_measured_and_spends_nothing(clinic: Path, run: Run) -> None:
    result = run("tune", "--dry-run")
    assert "visits: rows per unit" in result.out and "nothing was read or spent" in result.out
    plan = run("tune", "--dry-run", "--json").json
    assert plan["fits"] and sum(part["epsilon"] for part in plan["measurements"]) == pytest.approx(1.0)
    assert clinic.read_text(encoding="utf-8") == CATALOG
    with Curator.open(clinic) as curator:
        assert curator.budget()[0].affordable == 1000.0


def test_whoever_says_no_spends_nothing(clinic: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    result = run("tune")
    assert result.status == 0 and "Nothing was spent, and nothing written." in result.err
    assert clinic.read_text(encoding="utf-8") == CATALOG
    with Curator.open(clinic) as curator:
        assert curator.budget()[0].affordable == 1000.0


def test_json_holds_readings_and_proposals(clinic: Path, run: Run) -> None:
    state = run("tune", *SPEND, "--column", "cost", "--json").json
    assert state["file"] == "curator.yaml" and state["epsilon"] == 500.0 and not state["recalled"]
    assert [proposal["path"][-1] for proposal in state["proposals"]] == [
        "contribution",
        "contribution",
        "bounds",
    ]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--epsilon", "0.0001"), 2, "fewer than about"),
        (("--table", "people"), 2, "There is no private table people"),
        (("--epsilon", "2000"), 1, "still fits"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    clinic: Path, run: Run, options: tuple[str, ...], status: int, said: str
) -> None:
    result = run("tune", *options, "--yes")
    assert result.status == status and said in result.err and result.err.count("\n") == 1
    assert clinic.read_text(encoding="utf-8") == CATALOG


def test_init_says_how_to_tune(clinic: Path, run: Run) -> None:
    result = run(
        "init", "visits.parquet", "--unit", "patient", "--budget", "1", "--yes", "--out", "other.yaml"
    )
    assert "incrowd tune --catalog other.yaml --dry-run" in " ".join(result.out.split())
