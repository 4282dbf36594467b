"""The chain: what an entry is, and the hash that ties it to the one before.

The hash of an entry is SHA-256 over a canonical text of all its fields, the previous entry's hash among them.
Whoever knows the hash of entry n therefore knows every entry up to n: none can be altered, left out or moved
without changing it. The form of the text is part of the stored format and must not change within a schema
version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

Kind = Literal["open", "budget", "reserve", "answer", "change", "clock", "backup", "restore"]
GENESIS = "0" * 64
"""What the first entry has in place of a hash before it."""


def canonical(value: object) -> str:
    """JSON with one spelling for one value.

    >>> canonical({"b": 1, "a": "é"})
    '{"a":"\\\\u00e9","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(content: object) -> str:
    """SHA-256 in hexadecimal; '' if `content` is not bytes (a tampered row)."""
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else ""


def spell_time(moment: datetime) -> str:
    """A moment as the ledger writes it: UTC, to the microsecond."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Head:
    """The last entry's number and hash: enough to recognise everything before it."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def from_text(cls, text: str) -> Head:
        """The head that `str(head)` wrote."""
        seq, _, value = text.strip().partition(":")
        if not seq.isdecimal() or len(value) != 64 or set(value) - set("0123456789abcdef"):
            from incrowd.errors import InvalidInput

            raise InvalidInput(
                f"{text!r} is not a ledger's head; expected its number, a colon and 64 hex digits."
            )
        return cls(int(seq), value)


@dataclass(frozen=True)
class Entry:
    """One line of the account.

    `body` is canonical JSON, by kind: `open` the identities of the ledger and of the owner's
    file, and perhaps that of the file while its account before was not given up; `budget`
    the caps in force from here on; `reserve` the guarantee's events, its integer charge, the caps it was
    charged to with what they have spent now, the day, and perhaps the question in words; `answer` the
    reservation it belongs to and the hash of the released bytes; `change` what the owner changed of a limit
    or of an analyst; `clock` the day that the owner states; `backup` that a copy was made; `restore` what was
    charged for entries that were lost. In each, `sums` is the hash of all totals once it is written, with the
    ledger's day and the terms in force.
    """

    seq: int
    at: str
    kind: Kind
    analyst: str
    question: str
    data_version: str
    body: str
    previous: str
    hash: str

    def content(self) -> dict[str, Any]:
        """The body as values."""
        return cast("dict[str, Any]", json.loads(self.body))

    def sealed_hash(self) -> str:
        """The hash that the fields call for."""
        fields = [self.seq, self.at, self.kind, self.analyst, self.question, self.data_version]
        return digest(canonical([*fields, self.body, self.previous]).encode("ascii"))


def seal(
    after: Head,
    *,
    at: datetime,
    kind: Kind,
    body: Mapping[str, object],
    analyst: str = "",
    question: str = "",
    data_version: str = "",
) -> Entry:
    """The entry that follows `after`."""
    draft = Entry(
        seq=after.seq + 1,
        at=spell_time(at),
        kind=kind,
        analyst=analyst,
        question=question,
        data_version=data_version,
        body=canonical(body),
        previous=after.hash,
        hash="",
    )
    return Entry(**{**draft.__dict__, "hash": draft.sealed_hash()})
