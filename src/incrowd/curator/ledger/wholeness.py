"""What every opening checks of the whole ledger: that no entry and no answer is missing.

The end of the chain is checked by every ask (`pages`), and hashes are recomputed by `verify` alone. This
reads the number, the kind and the links of each entry, which takes two microseconds or so an entry.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.pages import MEND, broken_chain
from incrowd.curator.ledger.store import Store
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


def _first_broken() -> Select[Any]:
    """The number of the first entry that does not follow the one before."""
    later, earlier = schema.entries.alias("later"), schema.entries.alias("earlier")
    pairs = later.outerjoin(earlier, earlier.c.seq == later.c.seq - 1)
    unlinked = or_(earlier.c.hash.is_(None), earlier.c.hash != later.c.previous)
    return select(func.min(later.c.seq)).select_from(pairs).where(later.c.seq != 1, unlinked)


def _first_without_answer() -> Select[Any]:
    """The number of the first entry whose answer is not there, although it says that one was recorded."""
    entries, answers = schema.entries, schema.answers
    pairs = entries.outerjoin(answers, answers.c.seq == entries.c.seq)
    missing = (entries.c.kind == "answer") & answers.c.seq.is_(None)
    return select(func.min(entries.c.seq)).select_from(pairs).where(missing)
