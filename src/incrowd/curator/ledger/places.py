"""Where a ledger's file may lie, and which files are no ledger any more.

A file that is missing, empty or reached by a second name is refused before it is opened: what was spent would
be lost, or be counted twice apart.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from incrowd.errors import LedgerError

SIDE_FILES = ("-wal", "-shm", "-journal")
BACKUP_MARK = 0x1C20DBA
"""SQLite's application_id of a backup, which is brought back and never opened as a ledger."""

BRING_BACK = "bring it back with incrowd ledger restore"
FOUND_ONE = "if nothing was ever asked, found one with incrowd ledger found"
NAME_BACKUP = "name a file that incrowd ledger backup wrote"
What = Literal["ledger", "backup"]


def check_file(file: Path) -> None:
    """LedgerError if the file cannot be a whole ledger with one name."""
    if file.is_symlink():
        raise LedgerError(
            f"The ledger {file} is a link to another place; name the file itself under ledger: in the "
            "owner's file."
        )
    check_folder(file)
    if not file.exists():
        raise LedgerError(f"There is no ledger at {file}; {BRING_BACK}, or, {FOUND_ONE}.")
    state = file.stat()
    if state.st_nlink > 1:
        raise LedgerError(
            f"The ledger {file} has a second name (a hard link), under which it would be written apart; "
            "remove the other name, and make copies with incrowd ledger backup."
        )
    if not state.st_size:
        raise LedgerError(f"The ledger {file} is empty, so what was spent is not known; {BRING_BACK}.")


def check_backup(file: Path) -> None:
    """LedgerError if the file cannot be a backup. It is only read, so links to it do no harm."""
    check_folder(file, "backup")
    if not file.exists():
        raise LedgerError(f"There is no backup at {file}; {NAME_BACKUP}.")
    if not file.stat().st_size:
        raise LedgerError(f"The backup {file} is empty; {NAME_BACKUP}.")


def check_folder(file: Path, what: What = "ledger") -> None:
    """LedgerError if no file can lie there."""
    if file.is_dir():
        raise LedgerError(f"The {what}'s path {file} is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise LedgerError(f"The {what}'s folder {file.parent} does not exist; make it first.")


def check_free(file: Path, what: What = "ledger") -> None:
    """LedgerError if anything of a ledger lies there: a new one never takes the place of an old one."""
    check_folder(file, what)
    if os.path.lexists(file):
        raise LedgerError(
            f"There is a file at {file} already, and a backup is written to a free place only; name another "
            "file for it."
            if what == "backup"
            else f"There is a file at {file} already, and a ledger is founded in a free place only; open it, "
            "or name another place under ledger: in the owner's file."
        )
    for suffix in SIDE_FILES:
        side = file.with_name(file.name + suffix)
        if side.exists():
            raise LedgerError(
                f"{side} is left of a file that lay at {file}; name another file for the backup."
                if what == "backup"
                else f"{side} is left of a ledger that lay there; {BRING_BACK}, or name another place under "
                "ledger: in the owner's file."
            )


def settle(draft: Path, file: Path, what: What = "ledger") -> None:
    """Give a finished draft its name, durably; LedgerError if the place was taken meanwhile."""
    with exclusive(file.parent):
        check_free(file, what)
        draft.rename(file)
        sync_folder(file.parent)


def move_aside(file: Path, moment: datetime) -> None:
    """Keep what lies at the place of a ledger under another name."""
    stamp = moment.strftime("%Y%m%dT%H%M%S")
    with exclusive(file.parent):
        for suffix in ("", *SIDE_FILES):
            part = file.with_name(file.name + suffix)
            if os.path.lexists(part):
                part.rename(file.with_name(f"{file.name}.lost-{stamp}{suffix}"))
        sync_folder(file.parent)


@contextlib.contextmanager
def exclusive(place: Path) -> Iterator[None]:
    """One process at a time, by a lock on a folder or a file that no database has open."""
    import fcntl

    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
