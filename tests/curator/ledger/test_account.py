"""What the ledger accepts, refuses, remembers and shows, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from incrowd.catalog import Catalog, check
from incrowd.curator.ledger import Ledger, schema
from incrowd.curator.ledger.clock import day_of, moment_of
from incrowd.errors import BudgetExceeded, InvalidInput, LedgerError, NotPermitted
from incrowd.privacy import (
    Filter,
    Guarantee,
    approximate,
    gaussian,
    pure,
    threshold,
    zcdp,
)
from tests.curator.ledger.founding import open_or_found

# The day on which these ledgers are founded, and later ones.
FIRST = datetime(2099, 1, 1, tzinfo=UTC)
NOON = datetime(2099, 3, 1, 12, tzinfo=UTC)
NEXT = datetime(2099, 3, 2, 0, 0, 1, tzinfo=UTC)


@pytest.fixture(params=["file", "memory", "server"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    if request.param == "server":
        url: str = request.getfixturevalue("postgres_database")
        return url
    return None if request.param == "memory" else str(tmp_path / "test.ledger")


def catalog(budget: dict[str, float] | None = None, **sections: Any) -> Catalog:
    return check(
        {
            "sources": {"s": {"csv": "a.csv"}},
            "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
            "budget": budget or {"epsilon": 1.0},
            **sections,
        }
    )


@pytest.fixture
def opened() -> Iterator[list[Ledger]]:
    ledgers: list[Ledger] = []
    yield ledgers
    for ledger in ledgers:
        ledger.close()


def open_ledger(where: str | None, declared: Catalog, opened: list[Ledger]) -> Ledger:
    opened.append(open_or_found(where, declared, now=FIRST))
    return opened[-1]


def rows(ledger: Ledger) -> list[Any]:
    """Every row of every table."""
    with ledger._store.reading() as connection:
        tables = schema.metadata.sorted_tables
        return [tuple(row) for table in tables for row in connection.execute(select(table)).all()]


def test_asks_are_paid_until_the_budget_is_gone_and_not_a_unit_further(
    where: str | None, opened: list[Ledger]
) -> None:
    ledger = open_ledger(where, catalog(), opened)
    for number in range(10):
        ledger.reserve("analyst", pure(0.1), f"q{number}", "v1")
    with pytest.raises(BudgetExceeded, match="dataset") as caught:
        ledger.reserve("analyst", pure(1e-20), "more", "v1")
    assert caught.value.left == "epsilon 0" and caught.value.asked == "epsilon 1e-20"
    (balance,) = ledger.remaining("analyst")
    assert balance.left.main == balance.affordable == balance.share == 0.0
    assert ledger.verify().ok and ledger.verify().reservations == 10


def test_a_refused_ask_changes_no_row(where: str | None, opened: list[Ledger]) -> None:
    people = {
        "ana": {"epsilon": 0.5, "per_day": {"epsilon": 0.3}, "max_epsilon": 0.25},
        "bob": {"epsilon": 0.9},
    }
    ledger = open_ledger(where, catalog(analysts=people), opened)
    ledger.reserve("ana", pure(0.2), "q", "v", now=NOON)
    before = rows(ledger)
    refused = [
        ("ana", pure(0.2), BudgetExceeded, "Today's budget of analyst ana"),
        ("ana", pure(0.26), BudgetExceeded, "at most epsilon 0.25 on one query"),
        ("ana", pure(1e20), BudgetExceeded, "on one query"),
        ("bob", pure(0.85), BudgetExceeded, "dataset"),
        ("bob", pure(1e300), BudgetExceeded, "dataset|bob"),
        ("bob", approximate(0.1, 1e-9), BudgetExceeded, "delta = 0"),
        ("bob", gaussian(0.1), BudgetExceeded, "finite epsilon"),
        ("eve", pure(0.1), NotPermitted, "eve"),
        ("analyst", pure(0.1), NotPermitted, "analyst"),
    ]
    for analyst, guarantee, error, said in refused:
        with pytest.raises(error, match=said):
            ledger.reserve(analyst, guarantee, "q", "v", now=NOON)
    # Nor is the turn of the day written by an ask that is refused.
    with pytest.raises(BudgetExceeded):
        ledger.reserve("bob", pure(0.85), "q", "v", now=NEXT)
    assert rows(ledger) == before
    ledger.reserve("bob", pure(0.8), "q", "v", now=NEXT)


def test_refusals_leave_the_file_itself_alone(tmp_path: Path, opened: list[Ledger]) -> None:
    ledger = open_ledger(str(tmp_path / "a.ledger"), catalog(), opened)
    ledger.reserve("analyst", pure(0.9), "q", "v")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            ledger.reserve("analyst", pure(0.2), "q", "v")
    assert {n: (tmp_path / n).read_bytes() for n in before} == before


def test_one_ask_must_fit_dataset_group_analyst_and_day(where: str | None, opened: list[Ledger]) -> None:
    declared = catalog(
        {"epsilon": 3.0},
        groups={"staff": {"epsilon": 1.0, "members": ["ana", "bob"]}},
        analysts={
            "ana": {"epsilon": 0.8, "per_day": {"epsilon": 0.4}},
            "bob": {"epsilon": 0.8},
            "cyd": {"epsilon": 3.0},
        },
    )
    ledger = open_ledger(where, declared, opened)
    ledger.reserve("ana", pure(0.4), "q", "v", now=NOON)
    with pytest.raises(BudgetExceeded, match="Today's budget of analyst ana has epsilon 0 left"):
        ledger.reserve("ana", pure(0.1), "q", "v", now=NOON)
    ledger.reserve("ana", pure(0.4), "q", "v", now=NEXT)
    with pytest.raises(BudgetExceeded, match="analyst ana has epsilon 0 left"):
        ledger.reserve("ana", pure(0.1), "q", "v", now=NEXT)
    with pytest.raises(BudgetExceeded, match=r"group staff has epsilon 0\.2 left"):
        ledger.reserve("bob", pure(0.3), "q", "v")
    ledger.reserve("bob", pure(0.2), "q", "v")
    with pytest.raises(BudgetExceeded, match="The dataset's budget has epsilon 2 left"):
        ledger.reserve("cyd", pure(2.5), "q", "v")
    ledger.reserve("cyd", pure(2.0), "q", "v")
    assert [b.cap.key for b in ledger.remaining("ana")] == [
        "dataset",
        "group:staff",
        "analyst:ana",
        "day:ana",
    ]
    assert ledger.verify().ok


def test_a_clock_set_back_opens_no_spent_day_again(where: str | None, opened: list[Ledger]) -> None:
    people = {"ana": {"epsilon": 1.0, "per_day": {"epsilon": 0.1}}, "bob": {"epsilon": 1.0}}
    ledger = open_ledger(where, catalog(analysts=people), opened)
    first = datetime(2099, 1, 1, 23, 59, 59, tzinfo=UTC)
    second, long_ago = datetime(2099, 1, 2, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)
    ledger.reserve("ana", pure(0.1), "q", "v", now=first)
    for moment in (long_ago, first, datetime.now(UTC)):
        with pytest.raises(BudgetExceeded, match="Today's"):
            ledger.reserve("ana", pure(0.1), "q", "v", now=moment)
    # Another analyst's ask moves the day for all; going back afterwards does not help either.
    ledger.reserve("bob", pure(0.1), "q", "v", now=second)
    ledger.reserve("ana", pure(0.1), "q", "v", now=first)
    for moment in (first, second):
        with pytest.raises(BudgetExceeded, match="Today's"):
            ledger.reserve("ana", pure(0.1), "q", "v", now=moment)
    assert ledger.remaining("ana", now=long_ago)[-1].left.main == 0.0
    assert ledger.verify().ok


def test_days_are_those_of_utc(where: str | None, opened: list[Ledger]) -> None:
    people = {"ana": {"epsilon": 1.0, "per_day": {"epsilon": 0.1}}}
    ledger = open_ledger(where, catalog(analysts=people), opened)
    ledger.reserve("ana", pure(0.1), "q", "v", now=datetime.fromisoformat("2099-01-01T23:30:00+00:00"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("ana", pure(0.1), "q", "v", now=datetime.fromisoformat("2099-01-02T01:30:00+02:00"))
    ledger.reserve("ana", pure(0.1), "q", "v", now=datetime.fromisoformat("2099-01-01T23:30:00-02:00"))
    with pytest.raises(InvalidInput, match="time zone"):
        ledger.reserve("ana", pure(0.1), "q", "v", now=datetime(2099, 1, 5))


def test_the_owner_may_change_budgets_between_sessions(tmp_path: Path, opened: list[Ledger]) -> None:
    where = str(tmp_path / "a.ledger")

    def under(**people: float) -> Ledger:
        analysts = {name: {"epsilon": epsilon} for name, epsilon in people.items()}
        return open_ledger(where, catalog({"epsilon": 1.0}, analysts=analysts), opened)

    under(ana=0.5).reserve("ana", pure(0.4), "q", "v")
    raised = under(ana=0.7)
    raised.reserve("ana", pure(0.3), "q", "v")
    lowered = under(ana=0.2)
    with pytest.raises(BudgetExceeded, match="analyst ana has epsilon 0 left"):
        lowered.reserve("ana", pure(1e-9), "q", "v")
    removed = under(bob=0.5)
    with pytest.raises(NotPermitted):
        removed.reserve("ana", pure(0.1), "q", "v")
    with pytest.raises(BudgetExceeded, match=r"dataset's budget has epsilon 0\.3 left"):
        removed.reserve("bob", pure(0.4), "q", "v")
    removed.reserve("bob", pure(0.1), "q", "v")
    again = under(ana=0.8, bob=0.5)
    with pytest.raises(BudgetExceeded, match=r"analyst ana has epsilon 0\.1 left"):
        again.reserve("ana", pure(0.15), "q", "v")
    again.reserve("ana", pure(0.1), "q", "v")
    assert again.verify().ok
    # Each change that was acted upon is on record, and an opening that spends nothing is not.
    assert [entry.kind for entry in again.entries()].count("budget") == 4


def test_a_budget_may_turn_from_pure_to_approximate_and_back(tmp_path: Path, opened: list[Ledger]) -> None:
    where, wide = str(tmp_path / "a.ledger"), {"epsilon": 1.0, "delta": 1e-6}
    open_ledger(where, catalog({"epsilon": 1.0}), opened).reserve("analyst", pure(0.1), "q", "v")
    wider, filter_ = open_ledger(where, catalog(wide), opened), Filter(1.0, 1e-6)
    filter_.reserve(pure(0.1))
    wider.reserve("analyst", zcdp(1e-3), "q", "v")
    filter_.reserve(zcdp(1e-3))
    assert wider.remaining("analyst")[0].left == filter_.remaining()
    # A release without a pure epsilon cannot be unspent: no pure promise holds over it any more.
    narrow = open_ledger(where, catalog({"epsilon": 9.0}), opened)
    with pytest.raises(BudgetExceeded):
        narrow.reserve("analyst", pure(1e-9), "q", "v")
    assert wider.verify().ok


def test_thresholds_are_paid_from_the_share_of_delta(where: str | None, opened: list[Ledger]) -> None:
    ledger = open_ledger(where, catalog({"epsilon": 1.0, "delta": 1e-6, "threshold_share": 0.5}), opened)
    ledger.reserve("analyst", threshold(4e-7) + gaussian(0.01), "q", "v")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve("analyst", threshold(2e-7), "q", "v")
    assert "delta 1e-07" in caught.value.left
    ledger.reserve("analyst", threshold(1e-7), "q", "v")


def test_the_same_question_is_answered_from_the_record(where: str | None, opened: list[Ledger]) -> None:
    ledger = open_ledger(where, catalog(), opened)
    assert ledger.recall("q", "v1", "analyst") is None
    paid = ledger.reserve("analyst", pure(0.1), "q", "v1")
    assert ledger.recall("q", "v1", "analyst") is None, "a reservation is no answer"
    answer = bytes(range(256)) * 10
    ledger.record(paid, answer)
    before = rows(ledger)
    assert ledger.recall("q", "v1", "analyst") == answer
    assert ledger.recall("q", "v2", "analyst") is None and ledger.recall("p", "v1", "analyst") is None
    assert rows(ledger) == before
    with pytest.raises(LedgerError, match="recorded once"):
        ledger.record(paid, b"another")
    assert ledger.recall("q", "v1", "analyst") == answer
    ledger.record(ledger.reserve("analyst", pure(0.1), "q", "v1"), b"later")
    assert ledger.recall("q", "v1", "analyst") == answer, "the first answer stays the answer"
    ledger.record(ledger.reserve("analyst", pure(0.1), "empty", "v1"), b"")
    assert ledger.recall("empty", "v1", "analyst") == b""
    assert ledger.verify().ok and ledger.verify().unanswered == 0


@pytest.mark.parametrize(
    ("sharing", "seen"), [("own", {"ana"}), ("group", {"ana", "bob"}), ("all", {"ana", "bob", "cyd"})]
)
def test_recorded_answers_are_seen_by_those_the_owner_says(
    sharing: str, seen: set[str], opened: list[Ledger]
) -> None:
    declared = catalog(
        groups={"staff": {"epsilon": 1.0, "members": ["ana", "bob"]}},
        analysts={name: {"epsilon": 0.5} for name in ("ana", "bob", "cyd")},
        sharing=sharing,
    )
    ledger = open_ledger(None, declared, opened)
    ledger.record(ledger.reserve("ana", pure(0.1), "q", "v"), b"hers")
    for name in ("ana", "bob", "cyd"):
        assert ledger.recall("q", "v", name) == (b"hers" if name in seen else None)
    ledger.record(ledger.reserve("cyd", pure(0.1), "q", "v"), b"mine")
    assert ledger.recall("q", "v", "cyd") == b"mine", "her own answer first, though it is the later one"
    with pytest.raises(NotPermitted):
        ledger.recall("q", "v", "eve")


def test_a_reservation_counts_in_its_own_ledger_only(tmp_path: Path, opened: list[Ledger]) -> None:
    one = open_ledger(str(tmp_path / "1.ledger"), catalog(), opened)
    two = open_ledger(str(tmp_path / "2.ledger"), catalog(), opened)
    paid = one.reserve("analyst", pure(0.1), "q", "v")
    two.reserve("analyst", pure(0.1), "q", "v")
    with pytest.raises(LedgerError, match="another ledger"):
        two.record(paid, b"x")
    assert not hasattr(one, "refund") and not hasattr(one, "release")


@pytest.mark.parametrize("odd", ["", "a\x00b", "\ud800"])
def test_text_that_a_database_cannot_hold_is_refused(odd: str, opened: list[Ledger]) -> None:
    ledger = open_ledger(None, catalog(), opened)
    before = rows(ledger)
    for question, version in ((odd, "v"), ("q", odd)):
        with pytest.raises(InvalidInput, match="without null characters"):
            ledger.reserve("analyst", pure(0.1), question, version)
    assert rows(ledger) == before


def test_entries_come_in_order_and_tell_what_was_spent(where: str | None, opened: list[Ledger]) -> None:
    ledger = open_ledger(where, catalog(), opened)
    paid = ledger.reserve("analyst", pure(0.1) * 2 + pure(0.3), "q", "v", now=NOON)
    ledger.record(paid, b"x", now=NOON)
    entries = list(ledger.entries())
    assert [entry.kind for entry in entries] == ["open", "budget", "reserve", "answer"]
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    assert [entry.seq for entry in ledger.entries(after=2)] == [3, 4]
    spent = entries[2]
    assert (spent.analyst, spent.question, spent.data_version) == ("analyst", "q", "v")
    assert spent.at == "2099-03-01T12:00:00.000000Z"
    assert Guarantee.from_json(spent.content()["guarantee"]) == pure(0.1) * 2 + pure(0.3)
    assert ledger.head().seq == 4 and ledger.head().hash == entries[-1].hash


def test_caps_per_query_are_read_at_the_analysts_delta(opened: list[Ledger]) -> None:
    declared = catalog(
        {"epsilon": 4.0, "delta": 1e-6}, analysts={"ana": {"epsilon": 4.0, "max_epsilon": 0.5}}
    )
    ledger = open_ledger(None, declared, opened)
    ledger.reserve("ana", gaussian(0.05), "q", "v")
    with pytest.raises(BudgetExceeded, match="at delta 1e-06"):
        ledger.reserve("ana", gaussian(0.3), "q", "v")


ASKS = st.tuples(
    st.sampled_from(["ana", "bob", "cyd"]),
    st.one_of(
        st.floats(1e-6, 0.4).map(pure),
        st.floats(1e-6, 0.3).map(gaussian),
        st.floats(1e-9, 1e-6).map(threshold),
        st.floats(1e-6, 0.05).map(zcdp),
    ),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(ASKS, max_size=25))
def test_the_ledger_decides_as_nested_filters_do(asks: list[tuple[str, Guarantee]]) -> None:
    declared = catalog(
        {"epsilon": 2.0, "delta": 1e-5},
        groups={"staff": {"epsilon": 1.5, "members": ["ana", "bob"]}},
        analysts={"ana": {"epsilon": 1.0}, "bob": {"epsilon": 1.2, "delta": 0}, "cyd": {"epsilon": 2.0}},
    )
    total, staff = Filter(2.0, 1e-5), Filter(1.5, 1e-5)
    own = {"ana": Filter(1.0, 1e-5), "bob": Filter(1.2), "cyd": Filter(2.0, 1e-5)}
    ledger = Ledger.open(None, declared)
    try:
        for analyst, guarantee in asks:
            filters = [total, own[analyst], *([staff] if analyst != "cyd" else [])]
            if all(privacy_filter.fits(guarantee) for privacy_filter in filters):
                for privacy_filter in filters:
                    privacy_filter.reserve(guarantee)
                ledger.reserve(analyst, guarantee, "q", "v")
            else:
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(analyst, guarantee, "q", "v")
        for name in own:
            spent = {balance.cap.key: balance.spent for balance in ledger.remaining(name)}
            assert spent["dataset"] == total.spent and spent[f"analyst:{name}"] == own[name].spent
        assert ledger.verify().ok
    finally:
        ledger.close()


def test_a_moment_needs_a_time_zone_and_its_day_is_that_of_utc() -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        moment_of(datetime(2099, 1, 1))
    late = datetime.fromisoformat("2099-01-01T23:30:00-05:00")
    assert day_of(moment_of(late)) == "2099-01-02"
    assert moment_of(None).tzinfo is UTC
