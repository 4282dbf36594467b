"""The state of a file: whether it may have changed, and a word for what it holds.

The word is the same for the same bytes, whatever the name and the times of the file. A file is read whole
once and then known by its device, inode, size and times. Times of modification can be set back, as `cp -p`
does; the time of a change of status, which every write moves too, cannot. The word is keyed with a secret
that lies beside the private copies, so that whoever reads the ledger cannot test guesses about rows with it.
If the secret is lost, recorded answers are found no more, and nothing worse.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_KEY, _KNOWN = "contents.key", "contents.json"
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in a file's times, however coarse its file system's clock."""


class State(NamedTuple):
    """A file at one moment, with DuckDB's log beside it.

    identity: a text that changes whenever the file may have changed, be it only by `touch`.
    word: a text for what it holds.
    """

    path: str
    identity: str
    word: str


def identity(path: str | Path) -> str:
    """A text that changes when a file, or DuckDB's log beside it, may have changed."""
    return _identity(path, _looked_at(path))


class Contents:
    """Words for files, remembered in a private folder."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._secret: bytes | None = None
        self._known: dict[str, list[str]] | None = None

    def state(self, path: str) -> State:
        """A file as it is now; OSError if it changes meanwhile."""
        looks = _looked_at(path)
        word = " ".join(self._word(file, look) for file, look in looks)
        return State(path, _identity(path, looks), word)

    def _word(self, file: Path, seen: os.stat_result) -> str:
        place, state = f"{seen.st_dev} {seen.st_ino}", _times(seen)
        known = self._remembered()
        if place in known and known[place][0] == state:
            return known[place][1]
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        if _marks(file.stat()) != _marks(seen):
            raise OSError
        word = hmac.new(self._key(), content, "sha256").hexdigest()
        if time.time_ns() - seen.st_ctime_ns > _SETTLED:
            known[place] = [state, word]
            with contextlib.suppress(OSError):
                _write(self._folder() / _KNOWN, json.dumps(known).encode())
        return word

    def _remembered(self) -> dict[str, list[str]]:
        if self._known is None:
            try:
                self._known = dict(json.loads((self._folder() / _KNOWN).read_bytes()))
            except (OSError, ValueError, TypeError):
                self._known = {}
        return self._known

    def _key(self) -> bytes:
        """The secret of the folder; made if there is none, by the first of several processes."""
        if self._secret is None:
            place = self._folder() / _KEY
            if not place.exists():
                draft = _write(place.with_name(secrets.token_hex(8) + ".new"), secrets.token_bytes(32))
                try:
                    os.link(draft, place)
                except OSError:
                    if not place.exists():  # a file system without hard links
                        draft.replace(place)
                draft.unlink(missing_ok=True)
            self._secret = place.read_bytes()
        return self._secret


def _looked_at(path: str | Path) -> list[tuple[Path, os.stat_result]]:
    """A file and DuckDB's log beside it, if there is one."""
    looks = [(Path(path), Path(path).stat())]
    log = Path(f"{path}.wal")
    with contextlib.suppress(FileNotFoundError):
        looks.append((log, log.stat()))
    return looks


def _identity(path: str | Path, looks: list[tuple[Path, os.stat_result]]) -> str:
    return f"{path} {' '.join(_marks(seen) for _, seen in looks)}"


def _marks(seen: os.stat_result) -> str:
    return f"{seen.st_dev} {seen.st_ino} {_times(seen)}"


def _times(seen: os.stat_result) -> str:
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}"


def _write(file: Path, content: bytes) -> Path:
    """Write a small private file completely or not at all."""
    draft = file.with_name(f"{secrets.token_hex(8)}.new")
    draft.touch(0o600)
    draft.write_bytes(content)
    return draft.replace(file)
