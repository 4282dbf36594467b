"""What the owner changes is an entry of the chain, holds for the next ask, and gives nothing back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from incrowd.catalog import Catalog, check
from incrowd.curator.ledger import Ledger, acts
from incrowd.errors import BudgetExceeded, InvalidInput, LedgerError, NotPermitted
from incrowd.privacy import pure

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def catalog(**sections: Any) -> Catalog:
    people = {"ana": {"epsilon": 1.0, "per_day": {"epsilon": 0.2}}, "bob": {"epsilon": 0.5}}
    declared = {
        "sources": {"s": {"csv": "a.csv"}},
        "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
        "budget": {"epsilon": 2.0},
        "analysts": people,
    }
    return check({**declared, **sections})


@pytest.fixture(params=["file", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    file = request.param == "file"
    where = str(tmp_path / "a.ledger") if file else request.getfixturevalue("postgres_database")
    opened = Ledger.found(where, catalog(), now=NOON)
    yield opened
    assert opened.verify().faults == ()
    opened.close()


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_raised_or_lowered_budget_holds_for_the_next_ask(ledger: Ledger) -> None:
    ledger.reserve("bob", pure(0.4), "q", "v", now=NOON)
    with pytest.raises(BudgetExceeded):
        ledger.reserve("bob", pure(0.2), "q", "v", now=NOON)
    assert acts.change_limit(ledger, "bob", 0.1, now=NOON).epsilon == 0.6
    ledger.reserve("bob", pure(0.2), "q", "v", now=NOON)
    assert acts.change_limit(ledger, "bob", 0.3, lower=True, now=NOON).epsilon == 0.3
    with pytest.raises(BudgetExceeded, match="analyst bob has epsilon 0 left"):
        ledger.reserve("bob", pure(0.01), "q", "v", now=NOON)
    assert ledger.remaining("bob", now=NOON)[-1].spent.epsilon == 2 * pure(0.3).charge().epsilon  # type: ignore[operator]
    acts.change_limit(ledger, "dataset", 1.5, lower=True, now=NOON)
    with pytest.raises(BudgetExceeded, match="The dataset's budget"):
        ledger.reserve("ana", pure(0.1), "q", "v", now=NOON)
    assert kinds(ledger).count("change") == 3


def test_a_change_of_nothing_or_of_nobody_is_refused(ledger: Ledger) -> None:
    before = ledger.head()
    for whose, epsilon, lower, said in (
        ("eve", 0.1, False, "no budget of 'eve'; choose from dataset, ana, day:ana, bob"),
        ("ana", 0.0, False, "change of nothing"),
        ("ana", float("inf"), False, "finite number"),
        ("ana", 1.0, True, "would fall to nothing"),
    ):
        with pytest.raises(InvalidInput, match=said):
            acts.change_limit(ledger, whose, epsilon, lower=lower, now=NOON)
    assert ledger.head() == before


def test_a_retired_analyst_asks_no_more_until_that_is_undone(ledger: Ledger) -> None:
    ledger.record(ledger.reserve("bob", pure(0.1), "q", "v", now=NOON), b"x")
    acts.retire(ledger, "bob", now=NOON)
    for ask in (
        lambda: ledger.reserve("bob", pure(0.1), "p", "v", now=NOON),
        lambda: ledger.recall("q", "v", "bob"),
        lambda: ledger.remaining("bob"),
    ):
        with pytest.raises(NotPermitted, match="retired analyst bob on 2030-05-01"):
            ask()
    with pytest.raises(InvalidInput, match="retired already"):
        acts.retire(ledger, "bob", now=NOON)
    ledger.reserve("ana", pure(0.1), "q", "v", now=NOON)
    acts.retire(ledger, "bob", undo=True, now=NOON)
    with pytest.raises(BudgetExceeded, match=r"bob has epsilon 0\.4 left"):
        ledger.reserve("bob", pure(0.5), "q", "v", now=NOON)


def test_a_clock_that_leapt_is_refused_and_writes_nothing(ledger: Ledger) -> None:
    before = ledger.head()
    for moment in (NOON + 93 * DAY, datetime(2099, 1, 1, tzinfo=UTC)):
        with pytest.raises(LedgerError, match=r"set the clock right, or, if it is, say so"):
            ledger.reserve("ana", pure(0.1), "q", "v", now=moment)
        assert ledger.remaining("ana", now=moment)[-1].left.main == 0.2
    assert ledger.head() == before
    ledger.reserve("ana", pure(0.1), "q", "v", now=NOON + 92 * DAY)


def test_after_a_long_silence_the_owner_says_that_the_clock_is_right(ledger: Ledger) -> None:
    ledger.reserve("ana", pure(0.2), "q", "v", now=NOON)
    later = NOON + 400 * DAY
    acts.set_day(ledger, now=later)
    ledger.reserve("ana", pure(0.2), "q", "v", now=later)
    with pytest.raises(InvalidInput, match="already"):
        acts.set_day(ledger, now=later)


def test_a_leap_that_was_counted_is_mended_and_opens_no_day_again(ledger: Ledger) -> None:
    ledger.reserve("ana", pure(0.05), "q", "v", now=NOON)
    ahead = NOON + 80 * DAY  # small enough to be believed
    ledger.reserve("ana", pure(0.1), "q", "v", now=ahead)
    with pytest.raises(BudgetExceeded, match="Today's"):  # the clock is right again, and the day is not
        ledger.reserve("ana", pure(0.15), "q", "v", now=NOON + DAY)
    acts.set_day(ledger, now=NOON)
    with pytest.raises(BudgetExceeded, match=r"Today's budget of analyst ana has epsilon 0\.05 left"):
        ledger.reserve("ana", pure(0.06), "q", "v", now=NOON)
    ledger.reserve("ana", pure(0.05), "q", "v", now=NOON)
    ledger.reserve("ana", pure(0.2), "q", "v", now=NOON + DAY)
    assert kinds(ledger).count("clock") == 1
    lifetime = ledger.remaining("ana", now=NOON + DAY)[1]
    assert lifetime.left.main == pytest.approx(0.6), "nothing was given back"


def test_the_question_in_words_is_in_the_chain(ledger: Ledger) -> None:
    ledger.reserve("ana", pure(0.1), "q", "v", words="SELECT COUNT(*) FROM t", now=NOON)
    ledger.reserve("ana", pure(0.1), "q", "v", now=NOON)
    *_, first, second = ledger.entries()
    assert first.content()["words"] == "SELECT COUNT(*) FROM t" and "words" not in second.content()
    spent = first.content()["spent"]
    assert set(spent) == {"dataset", "analyst:ana", "day:ana"} and spent["dataset"] == spent["day:ana"]
