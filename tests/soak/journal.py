"""Journals: what an asking process was about to do and what it saw, on disk before it goes on.

One file for each process, one JSON object on each line. A last line that a kill cut short is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """The journal that a process writes."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.asks = 0

    def ask(self, **what: Any) -> None:
        """Begin a new ask."""
        self.asks += 1
        self.note("asked", **what)

    def note(self, event: str, **what: Any) -> None:
        """Write one line about the present ask."""
        line = json.dumps({"event": event, "ask": self.asks, **what}, default=str) + "\n"
        os.write(self._descriptor, line.encode())
        os.fsync(self._descriptor)


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def asks_of(file: Path) -> list[list[dict[str, Any]]]:
    """The lines of a journal, by ask."""
    asks: dict[int, list[dict[str, Any]]] = {}
    for line in lines_of(file):
        asks.setdefault(line["ask"], []).append(line)
    return list(asks.values())
