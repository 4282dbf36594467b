"""A rollback is noticed: by whoever has the ledger open, and by an anchor across processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from incrowd.catalog import Catalog, check
from incrowd.curator.ledger import Head, Ledger
from incrowd.curator.ledger.anchors import CommandAnchor, FileAnchor, Note, open_anchor
from incrowd.errors import LedgerError
from incrowd.privacy import Charge, pure

KEEPER = """
import json, pathlib, sys
place = pathlib.Path(sys.argv[1])
kept = place.read_text() if place.exists() else ""
given = sys.stdin.read()
number = lambda note: int(json.loads(note)["head"].partition(":")[0]) if note.strip() else 0
if number(given) > number(kept):
    place.write_text(given)
    kept = given
print(kept, end="")
"""


def catalog(anchor: Any = None) -> Catalog:
    return check(
        {
            "id": "one",
            "sources": {"s": {"csv": "a.csv"}},
            "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
            "budget": {"epsilon": 1.0},
            **({"anchor": anchor} if anchor else {}),
        }
    )


@pytest.fixture(params=["file", "command", "server"])
def anchored(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "server":
        return catalog(request.getfixturevalue("postgres_database"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if request.param == "file":
        return catalog(str(elsewhere / "anchor"))
    (elsewhere / "keeper.py").write_text(KEEPER)
    return catalog([sys.executable, str(elsewhere / "keeper.py"), str(elsewhere / "kept")])


@pytest.mark.parametrize("log", ["kept", "removed", "reopened"])
def test_a_rollback_is_noticed_while_the_ledger_is_open(tmp_path: Path, log: str) -> None:
    path, copy = tmp_path / "a.ledger", tmp_path / "copy"
    ledger = Ledger.found(path, catalog())
    ledger.reserve("analyst", pure(0.1), "q", "v")
    overwrite(copy, path)
    paid = ledger.reserve("analyst", pure(0.5), "q", "v")
    if log == "reopened":
        ledger.close()
    if log == "removed":
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink()
    overwrite(path, copy)
    said = "file beside it" if log == "removed" else r"rolled back or replaced: its entry 4, which was seen"
    for ask in (
        lambda: ledger.reserve("analyst", pure(0.1), "q", "v"),
        lambda: ledger.record(paid, b"x"),
        lambda: ledger.remaining("analyst"),
        lambda: ledger.recall("q", "v", "analyst"),
    ):
        with pytest.raises(LedgerError, match=said):
            ask()
    ledger.close()


def overwrite(path: Path, copy: Path) -> None:
    """The same file with the content of another, by another process: SQLite's locks are this one's."""
    subprocess.run(["cp", copy, path], check=True)


def test_a_rollback_on_a_server_is_noticed_while_it_is_open(postgres_database: str) -> None:
    ledger = Ledger.found(postgres_database, catalog())
    ledger.reserve("analyst", pure(0.1), "q", "v")
    names = ("incrowd_entries", "incrowd_sums", "incrowd_head")
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        for name in names:
            owner.execute(f"CREATE TABLE saved_{name} AS SELECT * FROM {name}".encode())
        ledger.reserve("analyst", pure(0.5), "q", "v")
        owner.execute(b"ALTER TABLE incrowd_entries DISABLE TRIGGER USER")
        for name in names:
            owner.execute(f"DELETE FROM {name}".encode())
            owner.execute(f"INSERT INTO {name} SELECT * FROM saved_{name}".encode())
    with pytest.raises(LedgerError, match="rolled back or replaced"):
        ledger.reserve("analyst", pure(0.1), "q", "v")
    ledger.close()


def test_sums_of_another_day_than_the_entries_stop_the_next_ask(postgres_database: str) -> None:
    ledger = Ledger.found(postgres_database, catalog())
    ledger.reserve("analyst", pure(0.1), "q", "v")
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        owner.execute(b"CREATE TABLE saved AS SELECT * FROM incrowd_sums")
        ledger.reserve("analyst", pure(0.5), "q", "v")
        owner.execute(b"DELETE FROM incrowd_sums")
        owner.execute(b"INSERT INTO incrowd_sums SELECT * FROM saved")
    with pytest.raises(LedgerError, match="not those that its last entry states"):
        ledger.reserve("analyst", pure(0.1), "q", "v")
    ledger.close()


def test_an_anchor_notices_a_rollback_between_processes(anchored: Catalog, tmp_path: Path) -> None:
    path, copy = tmp_path / "a.ledger", tmp_path / "copy.ledger"
    ledger = Ledger.found(path, anchored)
    ledger.reserve("analyst", pure(0.1), "q", "v")
    ledger.close()
    shutil.copy(path, copy)
    ledger = Ledger.open(path, anchored)
    ledger.reserve("analyst", pure(0.5), "q", "v")
    assert ledger.verify().ok
    ledger.close()
    shutil.copy(copy, path)
    with pytest.raises(LedgerError, match=r"rolled back or replaced: its entry 4"):
        Ledger.open(path, anchored)
    inspected = Ledger.inspect(path, anchored)
    assert inspected.verify().faults == ("the entry 4 that was noted elsewhere is not in this chain",)
    with pytest.raises(LedgerError, match="which its anchor keeps"):
        inspected.reserve("analyst", pure(0.1), "q", "v")
    inspected.close()
    path.unlink()
    with pytest.raises(LedgerError, match="keeps the head of a ledger already, so none is founded"):
        Ledger.found(path, anchored)


def test_a_crash_between_commit_and_note_leaves_a_chain_that_goes_on(
    anchored: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.found(tmp_path / "a.ledger", anchored)
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "note", lambda _: (_ for _ in ()).throw(LedgerError("The anchor is gone.")))
        with pytest.raises(LedgerError, match="gone"):
            ledger.reserve("analyst", pure(0.4), "q", "v")
    ledger.close()
    ledger = Ledger.open(tmp_path / "a.ledger", anchored)
    assert ledger.remaining("analyst")[0].left.main == 0.6, "what was not acknowledged stays spent"
    ledger.reserve("analyst", pure(0.1), "q", "v")
    assert ledger.verify().ok
    ledger.close()


def test_an_anchor_that_is_added_later_is_set_once(anchored: Catalog, tmp_path: Path) -> None:
    Ledger.found(tmp_path / "a.ledger", catalog()).close()
    with pytest.raises(LedgerError, match="keeps nothing; if this is the right ledger"):
        Ledger.open(tmp_path / "a.ledger", anchored)
    ledger = Ledger.inspect(tmp_path / "a.ledger", anchored)
    ledger.note_head()
    ledger.close()
    Ledger.open(tmp_path / "a.ledger", anchored).close()
    other = Ledger.found(tmp_path / "b.ledger", catalog())
    other._anchor = open_anchor(anchored.anchor_place, "one")
    with pytest.raises(LedgerError, match="rolled back or replaced"):
        other.note_head()
    other.close()


def note(seq: int) -> Note:
    return Note("ledger", Head(seq, "0" * 64), Charge.nothing())


def test_a_note_never_goes_back(tmp_path: Path) -> None:
    anchor = FileAnchor(tmp_path / "anchor")
    anchor.keep(note(5))
    anchor.keep(note(4))
    assert anchor.kept() == note(5)
    anchor.keep(note(4), force=True)
    assert anchor.kept() == note(4)
    assert (tmp_path / "anchor").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("anchor", "said"),
    [
        (CommandAnchor(["no-such-command"]), "cannot be used"),
        (CommandAnchor(["false"]), "failed with status 1"),
        (CommandAnchor(["echo", "no note"]), "something else than a ledger's head"),
        (CommandAnchor(["true"]), "did not keep"),
        (FileAnchor(Path("/nowhere/anchor")), "cannot be used"),
    ],
)
def test_an_anchor_that_cannot_keep_is_told(anchor: CommandAnchor | FileAnchor, said: str) -> None:
    with pytest.raises(LedgerError, match=said) as caught:
        anchor.keep(note(1))
    assert "\n" not in str(caught.value)
