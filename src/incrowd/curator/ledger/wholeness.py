"""What every opening checks of the whole ledger: that no entry and no answer is missing.

The end of the chain is checked by every ask (`pages`), and hashes are recomputed by `verify` alone. This
reads the number, the kind and the links of each entry, which takes two microseconds or so an entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.pages import MEND, broken_chain, read_head
from incrowd.curator.ledger.store import Store
from incrowd.curator.ledger.verify import verify
from incrowd.errors import LedgerError


def require_whole(store: Store, connection: Connection) -> None:
    """LedgerError unless each entry follows the one before, and each recorded answer is there."""
    broken = connection.scalar(_first_broken())
    if broken is not None:
        raise broken_chain(store, broken)
    unanswered = connection.scalar(_first_without_answer())
    if unanswered is not None:
        raise LedgerError(
            f"The ledger {store.name} lacks the answer of entry {unanswered}, whose question would be paid "
            f"for again, so nothing can be asked; {MEND}."
        )


def lacking_guards(store: Store, connection: Connection) -> tuple[schema.Guard, ...]:
    """The triggers that were taken off, switched off or replaced; LedgerError if anything was altered.

    Whoever took one off meant to change rows, so everything is recomputed before it is put back.
    """
    present = _present_guards(store, connection)
    lacking = tuple(guard for guard in schema.guards(store.dialect) if guard.name not in present)
    faults = verify(connection).faults if lacking else ()
    if faults:
        raise LedgerError(
            f"The ledger {store.name} was altered, so nothing can be asked: {faults[0]}; {MEND}."
        )
    return lacking


def put_back(store: Store, lacking: Iterable[schema.Guard]) -> None:
    """Make the triggers that a ledger lacks."""
    with store.writing() as connection:
        read_head(store, connection, lock=True)
        for guard in lacking:
            on = "" if store.is_sqlite else f" ON {guard.table}"
            for statement in (f"DROP TRIGGER IF EXISTS {guard.name}{on}", *guard.statements):
                connection.exec_driver_sql(statement)


def _present_guards(store: Store, connection: Connection) -> set[str]:
    """The names of the triggers that are at work as they should be."""
    if store.is_sqlite:
        made = {guard.statements[-1]: guard.name for guard in schema.guards(store.dialect)}
        rows = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
        return {made[row.sql] for row in rows if row.sql in made}
    tables = ", ".join(f"to_regclass('{guard.table}')" for guard in schema.guards(store.dialect))
    at_work = f"SELECT tgname FROM pg_trigger WHERE tgrelid IN ({tables}) AND tgenabled IN ('O', 'A')"
    return {row.tgname for row in connection.exec_driver_sql(at_work)}


def _first_broken() -> Select[Any]:
    """The number of the first entry that does not follow the one before."""
    later, earlier = schema.entries.alias("later"), schema.entries.alias("earlier")
    pairs = later.outerjoin(earlier, earlier.c.seq == later.c.seq - 1)
    unlinked = or_(earlier.c.hash.is_(None), earlier.c.hash != later.c.previous)
    return select(func.min(later.c.seq)).select_from(pairs).where(later.c.seq != 1, unlinked)


def _first_without_answer() -> Select[Any]:
    """The number of the first entry whose answer is not there as its own, although it says that it is."""
    entries, answers = schema.entries, schema.answers
    same = [answers.c[name] == entries.c[name] for name in ("seq", "analyst", "question", "data_version")]
    pairs = entries.outerjoin(answers, and_(*same))
    missing = (entries.c.kind == "answer") & answers.c.seq.is_(None)
    return select(func.min(entries.c.seq)).select_from(pairs).where(missing)
