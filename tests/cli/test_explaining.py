"""`incrowd explain`: the tables are those of the rooms below, rounded outwards."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run


def test_an_epsilon_in_words_and_odds(run: Run) -> None:
    found = run("explain", "epsilon", "1")
    assert found.status == 0
    assert "a factor of at most 2.72" in " ".join(found.out.split())
    assert "at most 73.2% sure" in " ".join(found.out.split())


def test_a_ladder_without_a_number(run: Run) -> None:
    found = run("explain", "epsilon", "--json").json
    highs = [next(b["high"] for b in each["beliefs"] if b["prior"] == 0.5) for each in found["ladder"]]
    assert highs == sorted(highs) and len(highs) == 7
    assert "50% sure becomes" in run("explain", "epsilon").out


def test_a_delta_is_told(run: Run) -> None:
    found = run("explain", "epsilon", "1", "--delta", "1e-6")
    assert "except with a probability of at most 3e-06" in " ".join(found.out.split())


def test_five_theorems_side_by_side(run: Run) -> None:
    words = ["laplace:0.01*1000", "gaussian:0.1*100", "exponential:0.1*10", "rr:0.1*20"]
    found = run("explain", "compose", *words, "--delta", "1e-6", "--json").json
    epsilons = {each["method"]: each["epsilon"] for each in found["methods"]}
    assert list(epsilons) == ["basic", "advanced", "optimal homogeneous", "zCDP", "exact"]
    assert epsilons["exact"] == min(epsilons.values())
    table = run("explain", "compose", *words).out
    shown = float(next(line for line in table.splitlines() if line.startswith("exact")).split()[1])
    assert epsilons["exact"] <= shown <= epsilons["exact"] * 1.00001


def test_a_theorem_that_does_not_apply_says_so(run: Run) -> None:
    found = run("explain", "compose", "threshold:1e-3", "pure:0.1", "--delta", "1e-6")
    assert found.status == 0 and "does not apply" in found.out


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_tables_keep_to_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for words in (["epsilon", "1"], ["epsilon"], ["compose", "laplace:0.1*9"]):
        assert max(len(line) for line in run("explain", *words).out.splitlines()) <= int(width)
