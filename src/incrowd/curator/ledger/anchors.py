"""Anchors: where the head of the ledger is noted, out of reach of whoever brings back an old copy of it.

A note is one line of JSON: the ledger's identity, its head, and what the dataset has spent. It is written
after the ledger's own commit and before an ask is acknowledged. So a crash leaves the note at most behind the
chain, which then still runs through it; a chain that does not was rolled back. A note never goes back: what
is behind the kept one is not written.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Column, MetaData, Table, Text, create_engine, insert, make_url, select, update
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from incrowd.curator.ledger.chain import Head, canonical
from incrowd.curator.ledger.charges import charge_from_text, charge_to_text
from incrowd.curator.ledger.places import exclusive, sync_folder
from incrowd.errors import IncrowdError, LedgerError
from incrowd.privacy import Charge

PATIENCE = 60.0
"""Seconds that a command or a server has to keep a note."""


@dataclass(frozen=True)
class Note:
    """What an anchor keeps of a ledger."""

    ledger: str
    head: Head
    spent: Charge

    def __str__(self) -> str:
        content = {"ledger": self.ledger, "head": str(self.head), "spent": charge_to_text(self.spent)}
        return canonical(content)

    @classmethod
    def from_text(cls, text: str) -> Note | None:
        """The note that `str(note)` wrote; None for blank text."""
        if not text.strip():
            return None
        try:
            content = json.loads(text)
            spent = charge_from_text(content["spent"])
            return cls(str(content["ledger"]), Head.from_text(content["head"]), spent)
        except (ValueError, KeyError, TypeError, AttributeError, IncrowdError):
            raise LedgerError(
                "The anchor holds something else than a ledger's head; name another place for it, or clear "
                "it and run incrowd ledger anchor."
            ) from None

    def is_behind(self, other: Note | None) -> bool:
        """Whether `other` is a later note of the same ledger."""
        return other is not None and other.ledger == self.ledger and other.head.seq > self.head.seq


class Anchor(Protocol):
    """A place that keeps a note."""

    @property
    def name(self) -> str:
        """What error messages call it."""

    def kept(self) -> Note | None:
        """The note that is kept; None if there is none yet."""

    def keep(self, note: Note, *, force: bool = False) -> None:
        """Keep a note, unless a later one of the same ledger is kept and `force` is not set."""


@dataclass(frozen=True)
class FileAnchor:
    """A note in a file: on another disk, or where only appending to a share is backed up."""

    path: Path

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def kept(self) -> Note | None:
        """The note in the file."""
        with _readable(self.name):
            try:
                return Note.from_text(self.path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None

    def keep(self, note: Note, *, force: bool = False) -> None:
        """Replace the file, durably and as a whole."""
        with _readable(self.name), exclusive(self.path.parent):
            if not force and note.is_behind(self.kept()):
                return
            draft = self.path.with_name(self.path.name + ".new")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{note}\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
            sync_folder(self.path.parent)


@dataclass(frozen=True)
class CommandAnchor:
    """A command that keeps the note: it gets the note on standard input and prints the one that it keeps.

    With nothing on standard input it only prints. It must keep the note with the larger number.
    """

    words: Sequence[str]

    @property
    def name(self) -> str:
        """The command's first word."""
        return self.words[0]

    def kept(self) -> Note | None:
        """What the command prints."""
        return Note.from_text(self._run(""))

    def keep(self, note: Note, *, force: bool = False) -> None:
        """Give the note to the command, and see that it is kept."""
        kept = Note.from_text(self._run(f"{note}\n"))
        if kept != note and not note.is_behind(kept):
            told = "clear it first" if force else "see what it says by hand"
            raise LedgerError(f"The anchor {self.name} did not keep the ledger's head; {told}.")

    def _run(self, text: str) -> str:
        with _readable(self.name):
            done = subprocess.run(
                self.words, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            if done.returncode:
                raise LedgerError(
                    f"The anchor {self.name} failed with status {done.returncode}; nothing can be asked "
                    "until it works."
                )
            return done.stdout


_metadata = MetaData()
_notes = Table(
    "incrowd_anchor",
    _metadata,
    Column("policy", Text, primary_key=True),
    Column("note", Text, nullable=False),
)


class DatabaseAnchor:
    """A note in a table of a PostgreSQL database, beside those of other ledgers."""

    def __init__(self, url: str, policy: str) -> None:
        try:
            address = make_url(url)
            if address.drivername in ("postgresql", "postgres"):
                address = address.set(drivername="postgresql+psycopg")
            if address.get_backend_name() != "postgresql":
                raise LedgerError("An anchor is a path, a command, or postgresql://host/database.")
            self._engine = create_engine(address, poolclass=NullPool)
        except (ArgumentError, NoSuchModuleError, ValueError):
            raise LedgerError(
                "The anchor's URL is not understood; write postgresql://host/database."
            ) from None
        except ModuleNotFoundError:
            raise LedgerError("The anchor needs a driver; run pip install 'incrowd[postgres]'.") from None
        self._name = address.render_as_string(hide_password=True)
        self._policy = policy

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self._name

    def kept(self) -> Note | None:
        """The note in the table."""
        with self._transaction() as connection:
            return self._read(connection)

    def keep(self, note: Note, *, force: bool = False) -> None:
        """Write the note, unless a later one is there."""
        with self._transaction() as connection:
            connection.exec_driver_sql("LOCK TABLE incrowd_anchor IN EXCLUSIVE MODE")
            kept = self._read(connection)
            if not force and note.is_behind(kept):
                return
            if kept is None:
                connection.execute(insert(_notes), [{"policy": self._policy, "note": str(note)}])
            else:
                connection.execute(
                    update(_notes).where(_notes.c.policy == self._policy).values(note=str(note))
                )

    def _read(self, connection: Any) -> Note | None:
        text = connection.scalar(select(_notes.c.note).where(_notes.c.policy == self._policy))
        return None if text is None else Note.from_text(text)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            with self._engine.begin() as connection:
                _metadata.create_all(connection)
                connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
                yield connection
        except SQLAlchemyError as error:
            raise LedgerError(
                f"The anchor {self.name} cannot be reached; nothing can be asked until it can."
            ) from error


def open_anchor(place: str | tuple[str, ...] | None, policy: str) -> Anchor | None:
    """The anchor at a path, a URL or behind a command; `policy` tells ledgers in one database apart."""
    if place is None:
        return None
    if isinstance(place, tuple):
        return CommandAnchor(place)
    return DatabaseAnchor(place, policy) if "://" in place else FileAnchor(Path(place))


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except subprocess.TimeoutExpired:
        raise LedgerError(
            f"The anchor {name} did not answer within {PATIENCE:.0f} seconds; nothing can be asked until "
            "it does."
        ) from None
    except UnicodeDecodeError:
        raise LedgerError(f"The anchor {name} is not text; name another place for it.") from None
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        raise LedgerError(
            f"The anchor {name} cannot be used ({reason}); nothing can be asked until it can."
        ) from None
