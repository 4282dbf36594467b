"""A backup is brought back with what was spent since charged to everybody, and never opened as a ledger."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from incrowd.catalog import Catalog, load
from incrowd.curator.ledger import Ledger
from incrowd.curator.ledger.backups import backup, restore
from incrowd.errors import LedgerError
from incrowd.privacy import Charge, pure

POLICY = """\
id: one
sources: {s: {csv: a.csv}}
tables: {t: {unit: row, columns: {a: {type: integer}}}}
budget: {epsilon: 1}
analysts: {ana: {epsilon: 1, per_day: {epsilon: 0.9}}, bob: {epsilon: 1}}
"""


def declared(folder: Path, more: str = "") -> Catalog:
    (folder / "curator.yaml").write_text(POLICY + more)
    return load(folder / "curator.yaml")


def opened(catalog: Catalog) -> Ledger:
    return Ledger.open(catalog.ledger_url, catalog)


def spend(catalog: Catalog, epsilon: float, analyst: str = "ana") -> None:
    with closing(opened(catalog)) as ledger:
        ledger.record(ledger.reserve(analyst, pure(epsilon), f"q{epsilon}", "v"), b"answer")


def save(catalog: Catalog, file: Path) -> None:
    with closing(opened(catalog)) as ledger:
        head = backup(ledger, file)
        assert next(ledger.entries(after=head.seq - 1)).kind == "backup"


def left(catalog: Catalog, analyst: str) -> list[float]:
    with closing(opened(catalog)) as ledger:
        ledger.verify().require()
        return [balance.left.main for balance in ledger.remaining(analyst)]


def test_an_anchor_knows_what_was_lost_and_everybody_is_charged(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    catalog = declared(tmp_path, "anchor: elsewhere/anchor\n")
    Ledger.found(catalog.ledger_url, catalog).close()
    spend(catalog, 0.25)
    save(catalog, tmp_path / "backup")
    spend(catalog, 0.5)
    Path(catalog.ledger_url or "").unlink()
    ledger, missing = restore(tmp_path / "backup", catalog)
    ledger.close()
    assert missing.epsilon == pure(0.5).charge().epsilon
    assert left(catalog, "ana") == [0.25, 0.25, pytest.approx(0.15)]
    assert left(catalog, "bob") == [0.25, 0.5], "nobody knows that it was not bob"
    spend(catalog, 0.125)
    with closing(opened(catalog)) as again:
        assert again.recall("q0.25", "v", "ana") == b"answer"
        assert [entry.kind for entry in again.entries()][-3:] == ["restore", "reserve", "answer"]


def test_without_an_anchor_the_owner_says_what_was_lost(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    save(catalog, tmp_path / "backup")
    spend(catalog, 0.5)
    place = Path(catalog.ledger_url or "")
    os.truncate(place, 0)
    with pytest.raises(LedgerError, match="Nobody knows what was spent since the backup of"):
        restore(tmp_path / "backup", catalog)
    restore(tmp_path / "backup", catalog, lost=pure(0.75).charge())[0].close()
    assert left(catalog, "bob") == [0.25, 0.25]
    assert len(list(tmp_path.glob("curator.ledger.lost-*"))) == 1, "what was there is kept"


def test_what_a_damaged_ledger_still_says_counts(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    save(catalog, tmp_path / "backup")
    spend(catalog, 0.5)
    with closing(Ledger.inspect(catalog.ledger_url or "")) as ledger, ledger.store.writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER incrowd_entries_no_delete")
        connection.exec_driver_sql("DELETE FROM incrowd_entries WHERE seq > 2")
    restore(tmp_path / "backup", catalog, lost=Charge.nothing())[0].close()
    assert left(catalog, "ana")[0] == 0.5


def test_a_whole_ledger_is_not_replaced_and_a_backup_is_not_opened(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    save(catalog, tmp_path / "backup")
    with pytest.raises(LedgerError, match="there is nothing to restore"):
        restore(tmp_path / "backup", catalog, lost=Charge.nothing())
    with pytest.raises(LedgerError, match="already"), closing(opened(catalog)) as ledger:
        backup(ledger, tmp_path / "backup")
    shutil.copy(tmp_path / "backup", catalog.ledger_url or "")
    with pytest.raises(LedgerError, match="is a backup of a ledger; bring it back"):
        opened(catalog)


def test_what_is_wrong_with_the_place_of_a_backup_is_told_of_the_backup(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    (tmp_path / "taken").write_text("x")
    (tmp_path / "old-wal").write_text("x")
    (tmp_path / "empty").touch()
    for name, said in (
        ("taken", "taken already, and a backup is written to a free place only; name another file for it"),
        ("old", "old-wal is left of a file that lay at .*old; name another file for the backup"),
        (".", "The backup's path .* is a folder"),
        ("none/backup", "The backup's folder .*none does not exist"),
    ):
        with pytest.raises(LedgerError, match=said), closing(opened(catalog)) as ledger:
            backup(ledger, tmp_path / name)
    for name, said in (
        ("none", "There is no backup at .*none; name a file that incrowd ledger backup wrote"),
        ("empty", "The backup .*empty is empty; name a file that incrowd ledger backup wrote"),
    ):
        with pytest.raises(LedgerError, match=said):
            restore(tmp_path / name, catalog, lost=Charge.nothing())


def test_a_backup_may_have_several_names(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    save(catalog, tmp_path / "backup")
    os.link(tmp_path / "backup", tmp_path / "kept")
    (tmp_path / "newest").symlink_to("kept")
    Path(catalog.ledger_url or "").unlink()
    restore(tmp_path / "newest", catalog, lost=Charge.nothing())[0].close()
    assert left(catalog, "ana")[0] == 1.0


def test_a_backup_of_another_policy_or_an_altered_one_is_refused(tmp_path: Path) -> None:
    catalog = declared(tmp_path)
    Ledger.found(catalog.ledger_url, catalog).close()
    save(catalog, tmp_path / "backup")
    Path(catalog.ledger_url or "").unlink()
    other = catalog.model_copy(update={"id": "two"})
    with pytest.raises(LedgerError, match="is of another owner's file"):
        restore(tmp_path / "backup", other, lost=Charge.nothing())
    (tmp_path / "junk").write_bytes(b"junk" * 5000)
    with pytest.raises(LedgerError, match="no longer one"):
        restore(tmp_path / "junk", catalog, lost=Charge.nothing())
    assert not Path(catalog.ledger_url or "").exists()


def test_a_ledger_on_a_server_is_copied_and_brought_back(tmp_path: Path, postgres_database: str) -> None:
    import psycopg

    catalog = declared(tmp_path, f"ledger: {postgres_database}\n")
    Ledger.found(catalog.ledger_url, catalog).close()
    spend(catalog, 0.25)
    save(catalog, tmp_path / "backup")
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        for name in ("incrowd_entries", "incrowd_sums", "incrowd_head", "incrowd_answers", "incrowd_claims"):
            owner.execute(f"DROP TABLE {name}".encode())
    restore(tmp_path / "backup", catalog, lost=Charge.nothing())[0].close()
    assert left(catalog, "ana")[0] == 0.75
    spend(catalog, 0.5)
