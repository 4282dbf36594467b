"""What every opening checks of the whole ledger: that no entry is missing.

The end of the chain is checked by every ask (`pages`), and hashes are recomputed by `verify` alone. This
reads the number and the links of each entry once, which takes about a microsecond an entry.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.pages import broken_chain
from incrowd.curator.ledger.store import Store


def require_whole(store: Store, connection: Connection) -> None:
    """LedgerError unless each entry follows the one before."""
    broken = connection.scalar(_first_broken())
    if broken is not None:
        raise broken_chain(store, broken)


def _first_broken() -> Select[Any]:
    """The number of the first entry that does not follow the one before."""
    later, earlier = schema.entries.alias("later"), schema.entries.alias("earlier")
    pairs = later.outerjoin(earlier, earlier.c.seq == later.c.seq - 1)
    unlinked = or_(earlier.c.hash.is_(None), earlier.c.hash != later.c.previous)
    return select(func.min(later.c.seq)).select_from(pairs).where(later.c.seq != 1, unlinked)
