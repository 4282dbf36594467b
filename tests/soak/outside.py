"""The ledger as an auditor reads it who has the database and the format, and none of Incrowd's code."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.soak.arena import Arena

UNITS = 720720 * 10**24
"""What the ledger's whole numbers count: so many make an epsilon of one."""

_ENTRIES = "SELECT seq, at, kind, analyst, question, data_version, body, previous, hash FROM incrowd_entries"
_Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Entry:
    """One line of the account, with its body read."""

    seq: int
    at: str
    kind: str
    analyst: str
    question: str
    data_version: str
    body: str
    previous: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body as values."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def charge(self) -> Fraction:
        """The epsilon of a reservation."""
        return Fraction(int(self.content["charge"]["epsilon"]), UNITS)

    @property
    def about(self) -> tuple[str, str, str]:
        """Who asked what, of which data."""
        return self.analyst, self.question, self.data_version

    def seal(self) -> str:
        """The hash that the other fields call for."""
        fields = [self.seq, self.at, self.kind, *self.about, self.body, self.previous]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Glance:
    """What one look at a ledger in use shows: its head, and what each budget has spent."""

    seq: int
    hash: str
    spent: dict[str, Fraction]


def entries(arena: Arena) -> list[Entry]:
    """The whole chain."""
    return [Entry(*row) for row in _read(arena, lambda ask: ask(f"{_ENTRIES} ORDER BY seq"))]


def entries_in(file: Path) -> list[Entry]:
    """The whole chain in a file that nobody writes."""
    with closing(_opened(file)) as connection:
        return [Entry(*row) for row in connection.execute(f"{_ENTRIES} ORDER BY seq")]


def payloads(arena: Arena) -> dict[int, str]:
    """The hash of each recorded answer, by its entry."""
    rows = _read(arena, lambda ask: ask("SELECT seq, payload FROM incrowd_answers"))
    return {seq: hashlib.sha256(payload).hexdigest() for seq, payload in rows}


def glance(arena: Arena) -> Glance:
    """The end of the ledger, at one moment."""

    def both(ask: Callable[[str], _Rows]) -> tuple[_Rows, _Rows]:
        return ask("SELECT seq, hash FROM incrowd_head"), ask("SELECT cap, spent FROM incrowd_sums")

    ((seq, value),), rows = _read(arena, both)
    contents = {cap: json.loads(text) for cap, text in rows if cap in ("dataset", "group:all")}
    contents |= {cap: json.loads(text) for cap, text in rows if cap.startswith("analyst:")}
    return Glance(
        seq, value, {cap: Fraction(int(content["epsilon"]), UNITS) for cap, content in contents.items()}
    )


def _read(arena: Arena, query: Callable[[Callable[[str], _Rows]], Any]) -> Any:
    """What a query sees within one transaction."""
    if arena.url is None:
        with closing(_opened(arena.ledger)) as connection:
            connection.execute("BEGIN")
            return query(lambda sql: connection.execute(sql).fetchall())
    import psycopg

    with psycopg.connect(arena.url) as connected:
        connected.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return query(lambda sql: connected.execute(sql.encode()).fetchall())


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30, isolation_level=None)
