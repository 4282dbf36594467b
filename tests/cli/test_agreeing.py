"""A price that was not named, and takes most of what is left, is agreed to before it is paid."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from tests.cli.conftest import Run

SMALL, LARGE = ("--within", "100"), ("--within", "5.5")
COUNT = "SELECT COUNT(*) AS n FROM adult"


def left(run: Run) -> float:
    return min(balance["left_share"] for balance in run("price", COUNT, "--json").json["remaining"])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal on which everything is declined; what it was asked."""
    asked: list[str] = []

    def decline(question: str, err: bool = False) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", decline)
    return asked


def test_without_a_terminal_most_of_the_rest_is_refused_and_yes_pays_it(census: Path, run: Run) -> None:
    refused = run("ask", COUNT, *LARGE)
    assert (
        refused.status == 1 and "--yes" in refused.err and "of what is left of today's budget" in refused.err
    )
    assert "\n" not in refused.err.strip() and refused.out == ""
    paid = run("ask", COUNT, *LARGE, "--yes", "--json").json
    assert 0.3 < paid["epsilon"] <= 0.6 and not paid["recalled"]


def test_nothing_is_spent_by_a_refusal(census: Path, run: Run) -> None:
    before = left(run)
    run("ask", COUNT, *LARGE)
    assert left(run) == before == 1.0


def test_a_little_is_paid_without_asking(census: Path, run: Run, terminal: list[str]) -> None:
    assert run("ask", COUNT, *SMALL).status == 0 and terminal == []


def test_on_a_terminal_it_is_asked_and_no_means_no(census: Path, run: Run, terminal: list[str]) -> None:
    declined = run("ask", COUNT, *LARGE)
    assert declined.status == 1 and "Nothing was spent" in declined.err
    (question,) = terminal
    assert question.startswith("This takes epsilon 0.") and question.endswith("Go on?")
    assert left(run) == 1.0


def test_on_a_terminal_yes_pays(census: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda question, err: True)
    assert run("ask", COUNT, *LARGE).status == 0 and left(run) < 0.5


def test_a_price_that_is_named_needs_no_asking(census: Path, run: Run, terminal: list[str]) -> None:
    assert run("ask", COUNT, "--epsilon", "0.59", *LARGE).status == 0
    assert terminal == []


def test_what_is_on_record_is_free_and_not_asked_about(census: Path, run: Run, terminal: list[str]) -> None:
    run("ask", COUNT, *LARGE, "--yes")
    assert run("ask", COUNT, *LARGE).status == 0 and terminal == []


def test_what_does_not_fit_is_refused_as_ever(census: Path, run: Run, terminal: list[str]) -> None:
    run("ask", COUNT, "--epsilon", "0.5")
    refused = run("ask", "SELECT COUNT(*) FROM adult WHERE age > 40", *LARGE)
    assert refused.status == 1 and "fits" in refused.err and terminal == []
