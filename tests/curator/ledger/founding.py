"""A ledger for a test, founded if it is not there yet."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from incrowd.catalog import Catalog
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError


def open_or_found(where: str | Path | None, catalog: Catalog, *, now: datetime | None = None) -> Ledger:
    """The ledger that is there, or a new one of the day of `now`."""
    try:
        return Ledger.found(where, catalog, now=now)
    except LedgerError as error:
        if where is None or "already" not in str(error):
            raise
        return Ledger.open(where, catalog)
