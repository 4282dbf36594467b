"""The command starts, ends with the right status, and complains in one sentence, whatever is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import incrowd
from incrowd.cli import asking, entry
from incrowd.errors import InvalidInput
from tests.cli.conftest import Run

COUNT = "SELECT COUNT(*) AS people FROM adult"
MISTAKES = [
    (["aks"], 2, "No such command 'aks'"),
    (["ask"], 2, "Missing argument 'SQL' (see incrowd ask --help)."),
    (["ask", COUNT, "--foo"], 2, "No such option: --foo"),
    (["ask", COUNT, "--epsilon"], 2, "requires an argument"),
    (["ask", COUNT, "--epsilon", "abc"], 2, "'abc' is not a number"),
    (["ask", COUNT, "--epsilon", "nan"], 2, "epsilon must be a positive number"),
    (["ask", COUNT, "--epsilon", "-1"], 2, "epsilon must be a positive number"),
    (["ask", COUNT, "--epsilon", "1e20"], 1, "above the dataset's whole budget"),
    (["ask", COUNT, "--epsilon", "1.5"], 1, "an epsilon of 0.6 still fits"),
    (["ask", COUNT, "--confidence", "2"], 2, "confidence"),
    (["ask", COUNT, "--within", "-3"], 2, "within must be a positive number"),
    (["ask", COUNT, "--contribution", "x"], 2, "--contribution"),
    (["ask", COUNT, "--analyst", "bob"], 1, "There is no analyst 'bob'"),
    (["ask", COUNT, "--catalog", "nope.yaml"], 2, "There is no file nope.yaml"),
    (["ask", ""], 2, "The question is empty"),
    (["ask", "SELEC 1"], 2, "SQL"),
    (["ask", "SELECT * FROM adult"], 2, "aggregate"),
    (["ask", "SELECT AVG(agee) FROM adult"], 2, "agee"),
    (["ask", "SELECT AVG(age) FROM adlt"], 2, "adlt"),
    (["ask", "SELECT AVG(fnlwgt) FROM adult"], 2, "needs bounds for fnlwgt"),
    (["ask", "SELECT education, COUNT(*) FROM adult GROUP BY 1", "--delta", "0"], 2, "delta"),
    (["price", COUNT, "--analyst", "bob"], 1, "There is no analyst 'bob'"),
    (["budget", "--analyst", "bob"], 1, "There is no analyst 'bob'"),
    (["ledger"], 2, "Missing command"),
    (["ledger", "verify", "--ledger", "gone.ledger"], 2, "There is no ledger"),
    (["ledger", "show", "--ledger", "curator.yaml"], 2, "is not a ledger"),
    (["ledger", "verify", "--head", "3:abc"], 2, "is not a ledger's head"),
    (["explain", "epsilon", "x"], 2, "'x' is not a number"),
    (["explain", "epsilon", "0"], 2, "epsilon must be a positive number"),
    (["explain", "compose"], 2, "RELEASE..."),
    (["explain", "compose", "foo:1"], 2, "'foo' is no mechanism"),
    (["explain", "compose", "pure:1", "--delta", "0"], 2, "delta"),
    (["init"], 2, "TABLE-FILE"),
    (["init", "nope.csv", "--out", "x.yaml"], 2, "There is no file nope.csv"),
]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    MISTAKES,
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_a_mistake_gets_one_sentence_and_its_status(
    census: Path, run: Run, arguments: list[str], status: int, said: str
) -> None:
    result = run(*arguments)
    assert (result.status, result.out) == (status, "")
    assert said in result.err
    assert result.err.count("\n") == 1 and result.err.rstrip().endswith((".", "?"))
    assert "Traceback" not in result.err


def test_a_mistake_spends_nothing(census: Path, run: Run) -> None:
    assert run("ask", COUNT, "--epsilon", "0.1").status == 0
    before = run("ledger", "head").out
    for arguments, *_ in MISTAKES:
        run(*arguments)
    assert run("ledger", "head").out == before


def test_with_json_an_error_is_json_too(census: Path, run: Run) -> None:
    result = run("ask", COUNT, "--epsilon", "1.5", "--json")
    assert result.status == 1
    assert result.json["error"]["kind"] == "BudgetExceeded"
    assert result.json["error"]["asked"] and result.json["error"]["left"]
    assert result.json["error"]["message"] in result.err


def test_two_formats_at_once_are_refused(census: Path, run: Run) -> None:
    result = run("ask", COUNT, "--csv", "--json")
    assert result.status == 2 and "either --csv or --json" in result.err


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    result = run()
    assert result.status == 0
    for name in ("demo", "init", "ask", "price", "budget", "ledger", "explain"):
        assert f"  {name} " in result.out


def test_the_version_is_the_package_s(run: Run) -> None:
    assert run("--version").out == f"incrowd {incrowd.__version__}\n"


def test_an_unforeseen_error_tells_its_kind_and_no_value(
    census: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> str:
        raise KeyError("a value of somebody's row")

    monkeypatch.setattr(asking, "read_question", broken)
    result = run("ask", COUNT)
    assert result.status == 2
    assert "KeyError" in result.err and "somebody" not in result.err
    monkeypatch.setenv(entry.TRACEBACK, "1")
    with pytest.raises(KeyError):
        entry.main(["ask", COUNT])


def test_an_interruption_says_that_the_price_stays_paid(
    census: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(asking, "read_question", interrupted)
    result = run("ask", COUNT)
    assert (
        result.status == 130
        and result.err.splitlines()[-1] == "Interrupted; a price that was reserved stays paid."
    )


def test_options_are_called_options(census: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INCROWD_ANALYST")
    assert run("ask", COUNT).err == "Say who asks, with --analyst: choose from ana, ben.\n"
    result = run("ask", COUNT, "--within", "0", "--analyst", "ana")
    assert result.status == 2 and result.err.startswith("within must be")


def test_words_of_the_user_are_not_rewritten_as_options(
    census: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(sql: str) -> str:
        raise InvalidInput("The file epsilon=: is no table.")

    monkeypatch.setattr(asking, "read_question", refused)
    assert run("ask", COUNT).err == "The file epsilon=: is no table.\n"


def shell(*arguments: str, folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "incrowd.cli", *arguments]
    return subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_real_process_reads_the_question_from_standard_input(census: Path) -> None:
    done = shell("ask", "-", "--epsilon", "0.1", "--json", folder=census, text=COUNT)
    assert (done.returncode, done.stderr) == (0, "")
    assert abs(json.loads(done.stdout)["rows"][0]["people"] - 48_842) < 1_000


def test_a_real_process_ends_with_the_status_of_its_error(census: Path) -> None:
    done = shell("ask", COUNT, "--epsilon", "0.9", folder=census)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_a_terminal_without_the_letters_and_a_reader_who_leaves_are_no_errors(
    census: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = shell("budget", folder=census)
    assert (done.returncode, done.stderr) == (0, "")
    command = f"{sys.executable} -m incrowd.cli explain epsilon --json | head -c 1"
    piped = subprocess.run(
        command, shell=True, cwd=census, capture_output=True, text=True, timeout=60, check=True
    )
    assert (piped.stdout, piped.stderr) == ("{", "")


def test_the_installed_command_is_this_one() -> None:
    from importlib.metadata import entry_points

    (point,) = [point for point in entry_points(group="console_scripts") if point.name == "incrowd"]
    assert point.load() is entry.main
