"""A ledger that lost its content, its name or its identity is refused, and never founded anew."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from incrowd.catalog import catalog_for, load
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError
from incrowd.privacy import pure

CATALOG = catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0))
POLICY = """\
sources: {s: {csv: a.csv}}
tables: {t: {unit: row, columns: {a: {type: integer}}}}
budget: {epsilon: 1}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in which something is spent."""
    place = tmp_path / "a.ledger"
    ledger = Ledger.found(place, CATALOG)
    ledger.reserve("analyst", pure(0.4), "q", "v")
    ledger.close()
    return place


def refused(place: Path, said: str) -> None:
    """Opening and asking are refused with a sentence that says how to mend it, and nothing is written."""
    files = {file: file.read_bytes() for file in place.parent.iterdir() if file.is_file()}
    with pytest.raises(LedgerError, match=said) as caught:
        Ledger.open(place, CATALOG)
    assert "\n" not in str(caught.value) and ";" in str(caught.value)
    assert {file: file.read_bytes() for file in files} == files


def test_opening_makes_no_ledger(tmp_path: Path) -> None:
    refused(tmp_path / "a.ledger", r"There is no ledger at .* incrowd ledger restore, .* ledger found")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_cut_to_nothing_is_refused(path: Path) -> None:
    os.truncate(path, 0)
    refused(path, "is empty, so what was spent is not known; bring it back")
    with pytest.raises(LedgerError, match="already"):
        Ledger.found(path, CATALOG)


@pytest.mark.parametrize("size", [1, 100, 4096, 8192, 12288])
def test_a_ledger_cut_anywhere_is_refused(path: Path, size: int) -> None:
    os.truncate(path, size)
    with pytest.raises(LedgerError, match=r"no longer one|damaged|lacks|failed|does not end|no ledger"):
        Ledger.open(path, CATALOG)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (["incrowd_sums"], "sums in the ledger"),
        (["incrowd_entries"], "lost its beginning"),
        (["incrowd_head"], "lacks parts"),
        (
            ["incrowd_entries", "incrowd_sums", "incrowd_head", "incrowd_answers", "incrowd_claims"],
            "lacks parts",
        ),
        (["incrowd_entries", "incrowd_sums", "incrowd_answers", "incrowd_claims"], "lost its beginning"),
    ],
)
def test_emptied_tables_are_refused(path: Path, tables: list[str], said: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for table in tables:
            raw.execute(f"DELETE FROM {table}")
        raw.commit()
    refused(path, said)


def test_dropped_tables_are_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for name in ("incrowd_entries", "incrowd_sums", "incrowd_head", "incrowd_answers", "incrowd_claims"):
            raw.execute(f"DROP TABLE {name}")
        raw.commit()
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger.open(path, CATALOG)


def test_a_database_restored_empty_is_refused(postgres_database: str) -> None:
    Ledger.found(postgres_database, CATALOG).close()
    names = ("incrowd_entries", "incrowd_sums", "incrowd_head", "incrowd_answers", "incrowd_claims")
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        for name in names:
            owner.execute(f"DROP TABLE {name}".encode())
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger.open(postgres_database, CATALOG)


KILLED = """
import os, signal, sys
from incrowd.catalog import catalog_for
from incrowd.curator.ledger import Ledger
from incrowd.privacy import pure
ledger = Ledger.found(sys.argv[1], catalog_for({"t": {"a": "integer"}}, budget=(1.0, 0.0)))
for number in range(3):
    ledger.reserve("analyst", pure(0.1), f"q{number}", "v")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_log_removed_after_a_kill_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    done = subprocess.run([sys.executable, "-c", KILLED, str(place)], check=False)
    assert done.returncode < 0
    for suffix in ("-wal", "-shm"):
        place.with_name(place.name + suffix).unlink()
    with closing(Ledger.open(place, CATALOG)) as ledger:
        assert ledger.verify().require().reservations == 3


def test_a_copy_of_the_main_file_alone_lacks_nothing(tmp_path: Path) -> None:
    with closing(Ledger.found(tmp_path / "a.ledger", CATALOG)) as ledger:
        ledger.reserve("analyst", pure(0.1), "q", "v")
        shutil.copy(tmp_path / "a.ledger", tmp_path / "copy.ledger")
    with closing(Ledger.open(tmp_path / "copy.ledger", CATALOG)) as copy:
        assert copy.verify().require().reservations == 1


def test_a_second_name_is_refused(path: Path) -> None:
    other = path.with_name("b.ledger")
    os.link(path, other)
    for name in (path, other):
        refused(name, "has a second name")
    other.unlink()
    Ledger.open(path, CATALOG).close()
    other.symlink_to(path)
    refused(other, "is a link to another place; name the file itself")


def test_a_log_left_of_another_ledger_stops_a_founding(tmp_path: Path) -> None:
    (tmp_path / "a.ledger-wal").write_bytes(b"x")
    with pytest.raises(LedgerError, match=r"a\.ledger-wal is left of a ledger"):
        Ledger.found(tmp_path / "a.ledger", CATALOG)
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger-wal"]


def test_founding_needs_a_free_place_and_leaves_one_file(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="free place"):
        Ledger.found(path, CATALOG)
    assert path.read_bytes() == before and [file.name for file in path.parent.iterdir()] == ["a.ledger"]


def test_a_ledger_of_another_identity_is_refused(tmp_path: Path) -> None:
    policies = {}
    for name, line in (("a", "id: one\n"), ("b", "id: two\n"), ("c", "")):
        (tmp_path / f"{name}.yaml").write_text(POLICY + line)
        policies[name] = load(tmp_path / f"{name}.yaml")
        Ledger.found(policies[name].ledger_url, policies[name]).close()
    for name, policy in policies.items():
        for other in policies.values():
            assert other.ledger_url is not None
            if other is policy:
                Ledger.open(other.ledger_url, policy).close()
                continue
            with pytest.raises(LedgerError, match="belongs to an owner's file") as caught:
                Ledger.open(other.ledger_url, policy)
            assert (other.id or "without id") in str(caught.value), name


def test_a_policy_may_be_edited_and_renamed_but_a_copy_elsewhere_has_no_ledger(tmp_path: Path) -> None:
    file = tmp_path / "curator.yaml"
    file.write_text(POLICY + "ledger: account.ledger\nid: one\n")
    policy = load(file)
    Ledger.found(policy.ledger_url, policy).close()
    file.write_text(file.read_text().replace("epsilon: 1", "epsilon: 2") + "analysts: {ana: {epsilon: 1}}\n")
    file.rename(tmp_path / "hospital.yaml")
    renamed = load(tmp_path / "hospital.yaml")
    Ledger.open(renamed.ledger_url, renamed).close()
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "hospital.yaml", tmp_path / "elsewhere/curator.yaml")
    copied = load(tmp_path / "elsewhere/curator.yaml")
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger.open(copied.ledger_url, copied)
    (tmp_path / "elsewhere/link.yaml").symlink_to(tmp_path / "hospital.yaml")
    linked = load(tmp_path / "elsewhere/link.yaml")
    assert linked.ledger_url == renamed.ledger_url


def test_a_link_to_a_policy_has_the_ledger_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(POLICY)
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    assert load(tmp_path / "link.yaml").ledger_url == str(tmp_path.resolve() / "real.ledger")
