"""Whatever is changed in a ledger beside the curator, `verify` names it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Entry, Head, Ledger
from incrowd.curator.ledger.chain import GENESIS, canonical, seal
from incrowd.curator.ledger.charges import charge_from_json, charge_to_text
from incrowd.curator.ledger.verify import _MOST_FAULTS, Verification, _apply_reservation, _link, _Replay
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import UNITS, gaussian, pure

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))


def make(path: Path, asks: int = 4) -> None:
    ledger = Ledger.found(path, CATALOG)
    for number in range(asks):
        paid = ledger.reserve("analyst", pure(0.01 * (number + 1)), f"q{number}", "v")
        if number % 2 == 0:
            ledger.record(paid, f"answer {number}".encode())
    ledger.close()


def tamper(path: Path, *statements: str, by: Callable[[sqlite3.Connection], None] | None = None) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        if by is not None:
            by(raw)
        raw.commit()


def faults(path: Path, known: Head | None = None) -> tuple[str, ...]:
    ledger = Ledger.inspect(path, CATALOG)
    try:
        return ledger.verify(known).faults
    finally:
        ledger.close()


# The entries: 1 open, 2 budget, 3 reserve, 4 answer, 5 reserve, 6 reserve, 7 answer, 8 reserve.
CHANGES = [
    ("UPDATE incrowd_entries SET analyst = 'eve' WHERE seq = 5", "entry 5 was altered"),
    ("UPDATE incrowd_entries SET question = 'p' WHERE seq = 3", "entry 3 was altered"),
    ("UPDATE incrowd_entries SET data_version = 'w' WHERE seq = 3", "entry 3 was altered"),
    ("UPDATE incrowd_entries SET at = '2000-01-01T00:00:00.000000Z' WHERE seq = 1", "entry 1 was altered"),
    ("UPDATE incrowd_entries SET kind = 'gift' WHERE seq = 5", "entry 5 was altered"),
    ("UPDATE incrowd_entries SET body = replace(body, '0.02', '0.01') WHERE seq = 5", "entry 5 was altered"),
    ("UPDATE incrowd_entries SET body = '{' WHERE seq = 5", "entry 5 cannot be read"),
    ("UPDATE incrowd_entries SET body = '[]' WHERE seq = 8", "entry 8 cannot be read"),
    ("UPDATE incrowd_entries SET body = x'00ff' WHERE seq = 8", "entry 8 cannot be read"),
    ("UPDATE incrowd_entries SET analyst = x'00ff' WHERE seq = 8", "entry 8 cannot be read"),
    ("UPDATE incrowd_entries SET hash = previous WHERE seq = 5", "entry 5 was altered"),
    ("UPDATE incrowd_entries SET previous = hash WHERE seq = 5", "entry 5 was altered"),
    ("DELETE FROM incrowd_entries WHERE seq = 5", "entry 5 is missing"),
    ("DELETE FROM incrowd_entries WHERE seq IN (5, 6)", "entries 5 to 6 are missing"),
    ("DELETE FROM incrowd_entries WHERE seq = 1", "entry 1 is missing"),
    ("DELETE FROM incrowd_entries WHERE seq = 8", "cut off at the end"),
    ("DELETE FROM incrowd_entries WHERE seq > 3", "cut off at the end"),
    ("DELETE FROM incrowd_entries", "cut off at the end"),
    ("UPDATE incrowd_sums SET spent = replace(spent, '1', '0')", "the sum of dataset"),
    ("UPDATE incrowd_sums SET spent = '?'", "the sum of dataset"),
    ("UPDATE incrowd_sums SET spent = x'00'", "the sum of dataset"),
    ("UPDATE incrowd_sums SET cap = x'00'", "the sum of dataset"),
    ("UPDATE incrowd_sums SET day = '2000-01-01'", "the sum of dataset"),
    ("DELETE FROM incrowd_sums", "the sum of dataset"),
    ("INSERT INTO incrowd_sums VALUES ('group:x', '', '{}')", "the sum of group:x"),
    ("UPDATE incrowd_head SET seq = 7", "the head says entry 7"),
    ("UPDATE incrowd_head SET hash = 'x'", "the head says entry 8"),
    ("UPDATE incrowd_head SET day = '2000-01-01'", "the head was altered"),
    ("UPDATE incrowd_head SET day = '2999-01-01'", "the head was altered"),
    ("UPDATE incrowd_head SET caps = ''", "the head was altered"),
    ("UPDATE incrowd_head SET ledger = 'x'", "the head was altered"),
    ("UPDATE incrowd_answers SET payload = 'x' WHERE seq = 4", "the answer of entry 4 was altered"),
    ("UPDATE incrowd_answers SET question = 'x' WHERE seq = 4", "the answer of entry 4 was moved"),
    ("UPDATE incrowd_answers SET analyst = 'x' WHERE seq = 4", "the answer of entry 4 was moved"),
    ("UPDATE incrowd_answers SET reservation = 5 WHERE seq = 4", "the answer of entry 4 was moved"),
    ("DELETE FROM incrowd_answers WHERE seq = 4", "the answer of entry 4 is missing"),
    (
        "INSERT INTO incrowd_answers VALUES (9, 5, 'analyst', 'q', 'v', 'x')",
        "the answer 9 belongs to no entry",
    ),
]


@pytest.mark.parametrize(("statement", "said"), CHANGES)
def test_a_change_beside_the_curator_is_named(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    assert faults(path) == ()
    tamper(path, statement)
    reported = faults(path)
    assert any(said in fault for fault in reported), reported
    with pytest.raises(LedgerError, match="was altered"):
        Ledger.inspect(path, CATALOG).verify().require()


def test_two_entries_that_changed_places_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    swap = "UPDATE incrowd_entries SET seq = {} WHERE seq = {}"
    tamper(path, swap.format(99, 5), swap.format(5, 6), swap.format(6, 99))
    assert any("entry 5 was altered" in fault for fault in faults(path))


def reforge(raw: sqlite3.Connection) -> None:
    """Seal every entry anew, as one who may write everything would."""
    raw.row_factory = sqlite3.Row
    previous = "0" * 64
    for row in raw.execute("SELECT * FROM incrowd_entries ORDER BY seq").fetchall():
        draft = Entry(**{**dict(row), "previous": previous, "hash": ""})
        previous = draft.sealed_hash()
        raw.execute(
            "UPDATE incrowd_entries SET previous = ?, hash = ? WHERE seq = ?",
            (draft.previous, previous, row["seq"]),
        )
    raw.execute("UPDATE incrowd_head SET hash = ?", (previous,))


def test_a_charge_below_what_the_events_cost_is_found_even_in_a_forged_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)

    def cheapen(raw: sqlite3.Connection) -> None:
        seq, body = raw.execute("SELECT seq, body FROM incrowd_entries WHERE seq = 5").fetchone()
        content = Entry(seq, "", "reserve", "", "", "", body, "", "").content()
        content["charge"]["epsilon"] = "1"
        raw.execute("UPDATE incrowd_entries SET body = ? WHERE seq = 5", (canonical(content),))
        reforge(raw)

    tamper(path, by=cheapen)
    reported = faults(path)
    assert "entry 5 was charged less than its events cost" in reported
    assert not any("was altered" in fault for fault in reported), "the forged chain itself is consistent"


def test_an_overspent_cap_is_found_even_in_a_forged_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)

    def shrink(raw: sqlite3.Connection) -> None:
        raw.execute("UPDATE incrowd_entries SET body = replace(body, '720720', '10000') WHERE seq = 2")
        reforge(raw)

    tamper(path, by=shrink)
    assert any("overspent the cap dataset" in fault for fault in faults(path))


def test_yesterdays_copy_is_found_by_a_head_noted_elsewhere(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.ledger", tmp_path / "copy.ledger"
    make(path)
    shutil.copy(path, copy)
    ledger = Ledger.open(path, CATALOG)
    ledger.reserve("analyst", pure(0.1), "q", "v")
    noted = Head.from_text(str(ledger.head()))
    ledger.reserve("analyst", pure(0.1), "q", "v")
    assert ledger.verify(noted).ok
    ledger.close()
    assert faults(copy) == (), "from the inside a rolled-back ledger looks whole"
    assert faults(copy, noted) == (f"the entry {noted.seq} that was noted elsewhere is not in this chain",)


@pytest.mark.parametrize("text", ["", "5", "5:xyz", "x:" + "0" * 64, "5:" + "A" * 64])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a ledger's head"):
        Head.from_text(text)


def test_asks_stop_at_once_when_the_end_of_the_chain_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    ledger = Ledger.open(path, CATALOG)
    paid = ledger.reserve("analyst", pure(0.01), "q", "v")
    tamper(path, "DELETE FROM incrowd_entries WHERE seq = (SELECT max(seq) FROM incrowd_entries)")
    with pytest.raises(LedgerError, match="does not end where it should"):
        ledger.reserve("analyst", pure(0.01), "q", "v")
    with pytest.raises(LedgerError, match="does not end where it should"):
        ledger.record(paid, b"x")
    ledger.close()


@pytest.mark.parametrize("value", ["day = '2999-01-01'", "day = 'never'", "caps = ''"])
def test_asks_stop_when_the_day_or_the_terms_were_altered(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    tamper(path, f"UPDATE incrowd_head SET {value}")
    with pytest.raises(LedgerError, match="sums in the ledger"):
        Ledger.open(path, CATALOG)


def test_a_ledger_of_another_file_does_not_verify(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    with closing(Ledger.inspect(path, CATALOG.model_copy(update={"id": "other"}))) as ledger:
        assert ledger.verify().faults == ("it belongs to another owner's file",)


@pytest.mark.parametrize("sum_", ["'?'", "'{}'", "'[]'", "x'00'", '\'{"epsilon":"-1"}\''])
def test_asks_stop_when_a_sum_cannot_be_read(tmp_path: Path, sum_: str) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    tamper(path, f"UPDATE incrowd_sums SET spent = {sum_}")
    with pytest.raises(LedgerError, match=r"sums in the ledger .* run incrowd ledger verify"):
        Ledger.inspect(path, CATALOG).reserve("analyst", pure(0.01), "q", "v")
    with pytest.raises(LedgerError, match="sums in the ledger"):
        Ledger.open(path, CATALOG)


def test_an_altered_answer_is_not_given_out(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    tamper(path, "UPDATE incrowd_answers SET payload = 'forged' WHERE seq = 4")
    with pytest.raises(LedgerError, match="entry 4 was altered"):
        Ledger.open(path, CATALOG).recall("q0", "v", "analyst")


@pytest.mark.parametrize("column", ["question = 'q1'", "data_version = 'w'"])
@pytest.mark.parametrize("entries", [False, True], ids=["alone", "with its entry"])
def test_an_answer_is_not_given_out_for_another_question(tmp_path: Path, column: str, entries: bool) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    with closing(Ledger.open(path, CATALOG)) as ledger:
        tamper(path, f"UPDATE incrowd_answers SET {column} WHERE seq = 4")
        if entries:
            tamper(path, f"UPDATE incrowd_entries SET {column} WHERE seq = 4")
        asked = {"question": "q0", "data_version": "v", "analyst": "analyst"}
        name, value = column.replace("'", "").split(" = ")
        with pytest.raises(LedgerError, match="entry 4 was altered"):
            ledger.recall(**{**asked, name: value})


@pytest.mark.parametrize("table", ["incrowd_entries", "incrowd_answers"])
def test_the_database_itself_refuses_to_change_what_is_written(tmp_path: Path, table: str) -> None:
    path = tmp_path / "a.ledger"
    make(path)
    with closing(sqlite3.connect(path)) as raw:
        for statement in (f"UPDATE {table} SET seq = seq + 100", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(statement)
    assert faults(path) == ()


CAPS = {
    "dataset": {"kind": "pure", "main": str(UNITS), "beside": "0", "pure": str(UNITS), "daily": False},
    "day:ana": {
        "kind": "pure",
        "main": str(UNITS // 2),
        "beside": "0",
        "pure": str(UNITS // 2),
        "daily": True,
    },
}


def replayed(*asks: dict[str, Any]) -> _Replay:
    """What reservations of a quarter each add up to, under a budget of one and of a half a day."""
    replay = _Replay(day="2099-01-01", terms={"caps": CAPS, "holders": {"ana": ["dataset", "day:ana"]}})
    for place, ask in enumerate(asks):
        body = {
            "guarantee": pure(0.25).to_json(),
            "charge": charge_to_text(pure(0.25).charge()),
            "delta": "0.0",
            "caps": ["dataset", "day:ana"],
            "day": "2099-01-01",
            **ask,
        }
        analyst = body.pop("analyst", "ana")
        entry = seal(Head(place, GENESIS), at=datetime(2099, 1, 1, tzinfo=UTC), kind="reserve", body=body)
        _apply_reservation(replay, replace(entry, analyst=analyst), body)
    return replay


def test_reservations_add_up_until_a_cap_is_full() -> None:
    two = replayed({}, {})
    assert two.faults == []
    assert two.reservations == len(two.reserved) == 2
    half = pure(0.5).charge()
    twice = canonical(charge_to_text(pure(0.25).charge() + pure(0.25).charge()))
    assert two.totals.rows["dataset"] == ("", twice)
    assert two.totals.rows["day:ana"][0] == "2099-01-01"
    assert charge_from_json(two.totals.rows["dataset"][1]).epsilon == half.epsilon
    assert replayed({}, {}, {}).faults == ["entry 3 overspent the cap day:ana"]
    tomorrow = {"day": "2099-01-02"}
    four = replayed({}, {}, tomorrow, tomorrow)
    assert four.faults == []
    assert four.day == "2099-01-02"
    assert four.totals.rows["day:ana"] == ("2099-01-02", two.totals.rows["day:ana"][1])
    later = {"day": "2099-01-03"}
    assert replayed({}, {}, tomorrow, tomorrow, later).faults == ["entry 5 overspent the cap dataset"]


@pytest.mark.parametrize(
    ("ask", "faults"),
    [
        ({"day": "2098-12-31"}, ["entry 1 was counted on a day that was over"]),
        ({"caps": ["dataset"]}, ["entry 1 was not charged to the caps of its analyst"]),
        ({"analyst": "eve"}, ["entry 1 was not charged to the caps of its analyst"]),
        (
            {"caps": ["dataset", "nobody"]},
            [
                "entry 1 was not charged to the caps of its analyst",
                "entry 1 was charged to nobody, which no budget declares",
            ],
        ),
        ({"guarantee": pure(0.26).to_json()}, ["entry 1 was charged less than its events cost"]),
        ({"guarantee": pure(0.24).to_json()}, []),
        ({"guarantee": gaussian(0.01).to_json()}, ["entry 1 was charged less than its events cost"]),
    ],
)
def test_what_is_wrong_with_a_reservation_is_said(ask: dict[str, Any], faults: list[str]) -> None:
    assert replayed(ask).faults == faults


def test_only_so_many_faults_are_kept_and_the_rest_is_counted() -> None:
    replay = _Replay()
    for number in range(1000):
        replay.fault(str(number))
    assert replay.faults == [str(number) for number in range(_MOST_FAULTS)]

    def verification(*faults: str) -> Verification:
        return Verification(Head(1, GENESIS), 1, 0, 0, faults)

    assert verification().ok and verification().require() == verification()
    with pytest.raises(LedgerError, match=r"^The ledger was altered: a\.$"):
        verification("a").require()
    with pytest.raises(LedgerError, match=r"^The ledger was altered: a \(and 2 more\)\.$"):
        verification("a", "b", "c").require()


def test_a_gap_in_the_chain_is_named() -> None:
    for seq, said in ((3, "entry 2 is missing"), (5, "entries 2 to 4 are missing")):
        replay = _Replay(head=Head(1, GENESIS), count=1)
        _link(
            replay, seal(Head(seq - 1, GENESIS), at=datetime(2099, 1, 1, tzinfo=UTC), kind="budget", body={})
        )
        assert replay.faults == [said]
    replay = _Replay(head=Head(1, "f" * 64), count=1)
    _link(replay, seal(Head(1, GENESIS), at=datetime(2099, 1, 1, tzinfo=UTC), kind="open", body={}))
    assert replay.faults == [
        "entry 2 does not follow entry 1: one was replaced or moved",
        "entry 2 opens the ledger at the wrong place",
    ]
