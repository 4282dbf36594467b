"""Commands of other packages: found by entry point, never in place of our own, and no harm when broken."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from incrowd.cli import elsewhere
from tests.cli.conftest import Run

OFFERS = [
    EntryPoint("broken", "no_such_package.at_all:command", elsewhere.GROUP),
    EntryPoint("explain", "tests.cli.test_elsewhere:hello", elsewhere.GROUP),
    EntryPoint("hello", "tests.cli.test_elsewhere:hello", elsewhere.GROUP),
]


def hello(name: str = "you", json: bool = False) -> None:
    """Say hello."""
    print(f"hello {name}")


@pytest.fixture(autouse=True)
def offers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "entry_points", lambda group: OFFERS if group == elsewhere.GROUP else [])


def test_an_offered_command_is_listed_helped_with_and_run(run: Run) -> None:
    assert "  hello    Say hello.\n" in run("--help").out
    assert "--name" in run("hello", "--help").out
    assert run("hello", "--name", "ana").out == "hello ana\n"


def test_a_mistake_in_an_offered_command_is_one_sentence_too(run: Run) -> None:
    result = run("hello", "--nme", "ana")
    assert result.status == 2 and "(see incrowd hello --help)." in result.err


def test_our_own_commands_cannot_be_replaced(run: Run) -> None:
    assert run("--help").out.count("\n  explain ") == 1
    assert "hello" not in run("explain", "epsilon", "1").out


def test_a_broken_package_spoils_only_its_own_command(run: Run) -> None:
    result = run("--help")
    assert result.status == 0 and "broken" not in result.out
    result = run("broken")
    assert result.status == 2 and result.out == ""
    assert result.err.startswith("The command broken cannot be loaded from no_such_package.at_all (ModuleNot")


def test_what_nobody_offers_is_no_command(run: Run) -> None:
    result = run("nothing")
    assert result.status == 2 and "No such command 'nothing'" in result.err
