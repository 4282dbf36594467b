"""A word for what a file holds: the same for the same bytes, whatever the name and the times of the file.

A file is read whole once and then known by its inode, size and times. The word is keyed with a secret that
lies beside the private copies, so that whoever reads the ledger cannot test guesses about rows with it. If
the secret is lost, recorded answers are found no more, and nothing worse.
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

_KEY, _KNOWN = "contents.key", "contents.json"
_SETTLED = 2_000_000_000
"""Nanoseconds after which a change shows in a file's times, however coarse its file system's clock."""


class Contents:
    """Words for files, remembered in a private folder."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._secret: bytes | None = None
        self._known: dict[str, list[str]] | None = None

    def word(self, path: str) -> str:
        """A word for what a file, and DuckDB's log beside it, hold; OSError if it changes meanwhile."""
        return " ".join(self._word(Path(file)) for file in (path, f"{path}.wal") if Path(file).exists())

    def _word(self, file: Path) -> str:
        seen = file.stat()
        place, state = f"{seen.st_dev} {seen.st_ino}", _state(seen)
        known = self._remembered()
        if place in known and known[place][0] == state:
            return known[place][1]
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        if _state(file.stat()) != state:
            raise OSError
        word = hmac.new(self._key(), content, "sha256").hexdigest()
        if time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) > _SETTLED:
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


def _state(seen: os.stat_result) -> str:
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}"


def _write(file: Path, content: bytes) -> Path:
    """Write a small private file completely or not at all."""
    draft = file.with_name(f"{secrets.token_hex(8)}.new")
    draft.touch(0o600)
    draft.write_bytes(content)
    return draft.replace(file)
