"""`incrowd explain`: the tables are those of the rooms below, rounded outwards."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run


def test_an_epsilon_in_words_and_odds(run: Run) -> None:
    result = run("explain", "epsilon", "1")
    assert result.status == 0
    assert "a factor of at most 2.72" in " ".join(result.out.split())
    assert "at most 73.2% sure" in " ".join(result.out.split())


def test_a_ladder_without_a_number(run: Run) -> None:
    result = run("explain", "epsilon", "--json").json
    highs = [next(b["high"] for b in rung["beliefs"] if b["prior"] == 0.5) for rung in result["ladder"]]
    assert highs == sorted(highs) and len(highs) == 7
    assert "50% sure becomes" in run("explain", "epsilon").out


def test_a_delta_is_told(run: Run) -> None:
    result = run("explain", "epsilon", "1", "--delta", "1e-6")
    assert "except with a probability of at most 3e-06" in " ".join(result.out.split())


def test_five_theorems_side_by_side(run: Run) -> None:
    words = ["laplace:0.01*1000", "gaussian:0.1*100", "exponential:0.1*10", "rr:0.1*20"]
    result = run("explain", "compose", *words, "--delta", "1e-6", "--json").json
    epsilons = {row["method"]: row["epsilon"] for row in result["methods"]}
    assert list(epsilons) == ["basic", "advanced", "optimal homogeneous", "zCDP", "exact"]
    assert epsilons["exact"] == min(epsilons.values())
    table = run("explain", "compose", *words).out
    shown = float(next(line for line in table.splitlines() if line.startswith("exact")).split()[1])
    assert epsilons["exact"] <= shown <= epsilons["exact"] * 1.00001


def test_a_theorem_that_does_not_apply_says_so(run: Run) -> None:
    result = run("explain", "compose", "threshold:1e-3", "pure:0.1", "--delta", "1e-6")
    assert result.status == 0 and "does not apply" in result.out


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_tables_keep_to_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for words in (["epsilon", "1"], ["epsilon"], ["compose", "laplace:0.1*9"]):
        assert max(len(line) for line in run("explain", *words).out.splitlines()) <= int(width)
