"""Claims: who is at work on a question that is paid and not yet on record.

The same question that is asked meanwhile waits for that answer instead of paying too. If the claimant's
process is gone, the next one takes over the claim with the price that is already paid.

Theorem. For each price paid, noise is drawn at most once, so a claim that was taken over costs nothing more.
Proof. Before the first draw, `draw` turns the claim from open to drawn, in a transaction under the ledger's
write lock, and only for its present holder. A claim that is drawn is never taken over: whoever comes later
pays again. A holder that was merely slow, and lost its claim, draws nothing and waits for the answer. What is
on record is shown to those who waited: post-processing of what was paid.

Claims are no part of the chain: they say nothing about what was spent. A backup leaves them out, since an old
claim would not know that noise was drawn for it later.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.chain import Entry
from incrowd.curator.ledger.pages import entry_at
from incrowd.privacy import Guarantee

ABANDONED = timedelta(hours=1)
"""After this time a claim of another machine, whose processes cannot be seen, counts as left behind."""

_claims = schema.claims
_held: set[str] = set()
_holding = threading.Lock()


def at_work(connection: Connection, who: Mapping[str, str], now: datetime) -> bool:
    """Whether a question is on record, or somebody is at work on it as far as can be seen from here."""
    same = [schema.answers.c[name] == value for name, value in who.items()]
    if connection.scalar(select(schema.answers.c.seq).where(*same).limit(1)) is not None:
        return True
    claim = _find(connection, who)
    if claim is None:
        return False
    machine, pid, started, _ = claim.holder.split("/")
    if machine != _machine():
        return now - datetime.fromisoformat(claim.since) < ABANDONED
    if int(pid) == os.getpid() and started == _started(os.getpid()):
        return claim.holder in _held
    return _runs(int(pid)) and _started(int(pid)) == started


def left_behind(
    connection: Connection, who: Mapping[str, str], guarantee: Guarantee, delta: float
) -> Entry | None:
    """The payment of this very price for this very question that nobody is at work on, if no noise was drawn.

    The caller has asked `at_work` in the same transaction.
    """
    claim = _find(connection, who)
    entry = None if claim is None or claim.drawn else entry_at(connection, claim.reservation)
    if entry is None or entry.kind != "reserve" or entry.sealed_hash() != entry.hash:
        return None
    if any(getattr(entry, name) != value for name, value in who.items()):
        return None
    paid = entry.content()
    return entry if (paid["guarantee"], paid["delta"]) == (guarantee.to_json(), repr(delta)) else None


def new_holder() -> str:
    """A name for whoever is about to claim a question."""
    return f"{_here()}/{secrets.token_hex(8)}"


def stake(
    connection: Connection, who: Mapping[str, str], reservation: int, now: datetime, holder: str
) -> None:
    """Claim a question for a reservation, in place of any earlier claim.

    Claims that this process let go while the database could not be reached end now.
    """
    drop(connection, **who)
    mine = _claims.c.holder.startswith(f"{_here()}/", autoescape=True)
    with _holding:
        held = sorted(_held)
        _held.add(holder)
    connection.execute(delete(_claims).where(mine, _claims.c.holder.not_in(held)))
    row = {"reservation": reservation, "holder": holder, "since": now.isoformat(), "drawn": 0, **who}
    connection.execute(insert(_claims), [row])


def draw(connection: Connection, holder: str) -> bool:
    """Say that noise is about to be drawn; False if the claim is no longer this holder's."""
    mine = (_claims.c.holder == holder) & (_claims.c.drawn == 0)
    return connection.execute(update(_claims).where(mine).values(drawn=1)).rowcount == 1


def drop(connection: Connection, **which: str) -> None:
    """End the claims with these words in their columns."""
    connection.execute(delete(_claims).where(*(_claims.c[name] == value for name, value in which.items())))


def let_go(holder: str) -> bool:
    """Forget a claim of this process; whether it had it."""
    with _holding:
        had = holder in _held
        _held.discard(holder)
        return had


def _find(connection: Connection, who: Mapping[str, str]) -> Row[Any] | None:
    same = (_claims.c[name] == value for name, value in who.items())
    return connection.execute(select(*_claims.c).where(*same)).one_or_none()


def _here() -> str:
    """How the names of this process's holders begin."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}"


@functools.cache
def _machine() -> str:
    """A word for this machine since it was started, and for the part of it whose processes are seen here."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        space = str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        boot = space = ""
    return f"{socket.gethostname()} {boot} {space}".replace("/", " ")


def _started(pid: int) -> str:
    """When a process was started, where the system says it: a number that is used again is told apart."""
    return _status(pid, 19)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return _status(pid, 0) not in ("Z", "X")


def _status(pid: int, field: int) -> str:
    """A field of what Linux says about a process, after its name; empty elsewhere."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()[field]
    except (OSError, IndexError):
        return ""
