"""Where a ledger may lie, and the sentence for every place where it may not."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Ledger
from incrowd.errors import BudgetExceeded, LedgerError
from incrowd.privacy import pure

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))


def test_commits_wait_for_the_disk(tmp_path: Path) -> None:
    ledger = Ledger.found(tmp_path / "a.ledger", CATALOG)
    with ledger._store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    ledger.close()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but longer than the header of one would be" * 100)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger, or no longer one"):
        Ledger.open(path, CATALOG)
    with pytest.raises(LedgerError, match=r"a file at .* already"):
        Ledger.found(path, CATALOG)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE people (name TEXT)")
        raw.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger; name another path"):
        Ledger.open(path, CATALOG)
    with pytest.raises(LedgerError, match=r"a file at .* already"):
        Ledger.found(path, CATALOG)
    assert path.read_bytes() == before and sorted(file.name for file in tmp_path.iterdir()) == ["other.db"]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    Ledger.found(path, CATALOG).close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE incrowd_head SET version = 7")
        raw.commit()
    with pytest.raises(LedgerError, match=r"newer Incrowd \(format 7, this one knows 3\); upgrade"):
        Ledger.open(path, CATALOG)


@pytest.mark.parametrize("statement", ["DROP TABLE incrowd_sums", "DELETE FROM incrowd_head"])
def test_a_ledger_that_lost_parts_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "a.ledger"
    Ledger.found(path, CATALOG).close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(statement)
        raw.commit()
    with pytest.raises(LedgerError, match="lacks parts"):
        Ledger.open(path, CATALOG)


def test_a_damaged_ledger_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    Ledger.found(path, CATALOG).close()
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"damaged|lacks parts|failed"):
        Ledger.open(path, CATALOG)


def test_paths_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist; make it first"):
        Ledger.found(tmp_path / "none" / "a.ledger", CATALOG)
    with pytest.raises(LedgerError, match="is a folder"):
        Ledger.found(tmp_path, CATALOG)
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger.open(tmp_path / "a.ledger", CATALOG)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://host/db", "SQLite or PostgreSQL|not understood"),
        ("nonsense://x", "not understood"),
        ("://", "not understood"),
        ("sqlite://", "names no file"),
        ("postgresql://ana:secret@127.0.0.1:1/db", "pip install|cannot be reached"),
    ],
)
def test_urls_that_cannot_be_are_told_without_their_password(url: str, said: str) -> None:
    with pytest.raises(LedgerError, match=said) as caught:
        Ledger.found(url, CATALOG)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("FATAL:  the database system is starting up", "is being started or stopped; ask again in a moment"),
        (
            "FATAL:  the database system is shutting down",
            "is being started or stopped; ask again in a moment",
        ),
        ("attempt to write a readonly database", r"write the file, those beside it \(-wal, -shm\)"),
    ],
)
def test_what_the_engine_says_is_told_with_its_mending(tmp_path: Path, engine: str, said: str) -> None:
    ledger = Ledger.found(tmp_path / "a.ledger", CATALOG)
    with pytest.raises(LedgerError, match=said), ledger.store.reading():
        raise sqlite3.OperationalError(engine)
    ledger.close()


def test_odd_file_names_are_just_names(tmp_path: Path) -> None:
    for name in ("with space.ledger", "per%20cent?mode=ro#x.ledger", "é.ledger"):
        ledger = Ledger.found(str(tmp_path / name), CATALOG)
        ledger.close()
        assert (tmp_path / name).exists()


READ_ONLY = """
import os, sys
from pathlib import Path
from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError
from incrowd.privacy import pure
folder = Path(sys.argv[1])
catalog = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))
Ledger.open(None, catalog).close()  # all imports are done
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)  # root may write anywhere
for name, get in (("new.ledger", Ledger.found), ("old.ledger", Ledger.open)):
    try:
        get(folder / name, catalog).reserve("analyst", pure(0.1), "q", "v")
        print("no error")
    except LedgerError as error:
        print(error)
"""


def test_a_folder_that_cannot_be_written_is_told() -> None:
    # Not in tmp_path, whose parents only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        check_read_only(Path(name))


def check_read_only(folder: Path) -> None:
    Ledger.found(folder / "old.ledger", CATALOG).close()
    (folder / "old.ledger").chmod(0o444)
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=True
        )
    finally:
        folder.chmod(0o755)
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all("writable" in line or "cannot be written" in line for line in lines), lines


def test_a_ledger_deleted_while_in_use_stops_the_asks(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    ledger = Ledger.found(path, CATALOG)
    ledger.reserve("analyst", pure(0.1), "q", "v")
    path.rename(tmp_path / "moved")
    for _ in range(2):
        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            ledger.reserve("analyst", pure(0.1), "q", "v")
        path.touch()
    ledger.close()


def test_threads_share_a_ledger_without_overspending(tmp_path: Path) -> None:
    for where in (tmp_path / "a.ledger", None):
        ledger, paid, refused = Ledger.found(where, CATALOG), [], []

        def ask(ledger: Ledger = ledger, paid: list[int] = paid, refused: list[int] = refused) -> None:
            for _ in range(10):
                try:
                    paid.append(ledger.reserve("analyst", pure(0.02), "q", "v").seq)
                    ledger.remaining("analyst")
                except BudgetExceeded:
                    refused.append(1)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(paid), len(set(paid)), len(refused)) == (50, 50, 30)
        assert ledger.verify().ok
        ledger.close()


def test_the_ledger_and_the_files_beside_it_are_its_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.found(tmp_path / "curator.ledger", CATALOG)
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        ledger.close()
    finally:
        os.umask(before)
    assert "curator.ledger-wal" in files
    assert set(files.values()) == {0o600}


def test_an_old_ledger_is_closed_to_the_world_and_not_to_its_group(tmp_path: Path) -> None:
    file = tmp_path / "curator.ledger"
    Ledger.found(file, CATALOG).close()
    file.chmod(0o664)
    Ledger.open(file, CATALOG).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o660
