"""`incrowd budget` and `incrowd ledger`: what is left, what was spent, and whether anybody altered it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.cli.conftest import Run

COUNT = "SELECT COUNT(*) AS n FROM adult"


def test_a_fresh_budget_is_full_and_looking_writes_nothing(census: Path, run: Run) -> None:
    before = (census / "curator.ledger").read_bytes()
    result = run("budget", "--json").json
    assert {balance["left_share"] for balance in result["budgets"]} == {1.0}
    assert (census / "curator.ledger").read_bytes() == before


def test_a_ledger_that_is_lost_is_told_and_never_made(census: Path, run: Run) -> None:
    (census / "curator.ledger").unlink()
    for words in (("budget",), ("ask", COUNT), ("price", COUNT), ("ledger", "show"), ("ledger", "verify")):
        result = run(*words)
        assert result.status == 2 and "There is no ledger at" in result.err, words
        assert not (census / "curator.ledger").exists()


def test_without_an_analyst_every_cap_is_shown_once(census: Path, run: Run, monkeypatch: object) -> None:
    monkeypatch.delenv("INCROWD_ANALYST")  # type: ignore[attr-defined]
    result = run("budget", "--json").json
    assert [balance["cap"] for balance in result["budgets"]] == [
        "dataset",
        "analyst:ana",
        "day:ana",
        "analyst:ben",
    ]
    table = run("budget").out
    assert "Today's budget of analyst ana" in table and table.count("The dataset's budget") == 1
    assert all(len(line) <= 80 for line in table.splitlines())


def test_the_largest_next_question_really_fits(census: Path, run: Run) -> None:
    assert run("ask", COUNT, "--epsilon", "0.25").status == 0
    most = min(balance["largest_epsilon"] for balance in run("budget", "--json").json["budgets"])
    assert run("ask", COUNT, "--epsilon", repr(most)).status == 0
    assert run("ask", f"{COUNT} WHERE age > 30", "--epsilon", "0.2").status == 1


def test_the_ledger_shows_who_paid_what(census: Path, run: Run) -> None:
    run("ask", COUNT, "--epsilon", "0.1")
    kinds = [entry["kind"] for entry in run("ledger", "show", "--json").json["entries"]]
    assert kinds == ["open", "budget", "reserve", "answer"]
    table = run("ledger", "show", "--last", "2").out
    assert "epsilon 0.1" in table and "ana" in table and "2 earlier entries" in table


def test_a_whole_ledger_verifies_also_without_its_catalog(census: Path, run: Run) -> None:
    run("ask", COUNT, "--epsilon", "0.1")
    head = run("ledger", "head").out.strip()
    assert run("ledger", "verify", "--head", head).status == 0
    result = run("ledger", "verify", "--ledger", "curator.ledger", "--json").json
    assert result == {"ok": True, "entries": 4, "reservations": 1, "unanswered": 0, "head": head}
    assert run("ledger", "head", "--ledger", "curator.ledger", "--json").json["head"] == head


def test_an_altered_ledger_does_not_verify(census: Path, run: Run) -> None:
    run("ask", COUNT, "--epsilon", "0.1")
    with sqlite3.connect(census / "curator.ledger") as database:
        # Triggers keep entries from being changed by mistake; whoever alters them on purpose drops them.
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE incrowd_entries SET analyst = 'ben' WHERE seq = 3")
    database.close()
    result = run("ledger", "verify")
    assert result.status == 2 and "entry 3 was altered" in result.err
    assert run("ledger", "verify", "--json").json["error"]["kind"] == "LedgerError"


def test_a_head_that_is_not_in_the_chain_does_not_verify(census: Path, run: Run) -> None:
    run("ask", COUNT, "--epsilon", "0.1")
    assert run("ledger", "verify", "--head", f"3:{'0' * 64}").status == 2
