"""Founding the ledger of an owner's file: both get the same id, by which each is known to the other.

A file that has an id had a ledger. If that is gone, nobody knows what was spent, so another one is founded
only where the owner gives up the old account in so many words.
"""

from __future__ import annotations

from pathlib import Path

from incrowd.catalog import Catalog, load
from incrowd.catalog.identity import tied
from incrowd.curator.ledger.account import Ledger, require_blank
from incrowd.curator.ledger.anchors import open_anchor
from incrowd.curator.ledger.places import BRING_BACK, exclusive
from incrowd.curator.ledger.store import require_free
from incrowd.errors import CatalogError, LedgerError


def found_for(file: Path, *, give_up: bool = False) -> tuple[Catalog, Ledger]:
    """Found the ledger of an owner's file, once; the file as it is then, with its id, and the ledger.

    `give_up` says that the account that was tied to the file is given up.
    """
    load(file)
    with exclusive(file):
        declared = load(file)
        place = declared.ledger_url or ""
        name = require_free(place)
        if declared.id is not None and not give_up:
            raise LedgerError(
                f"{file.name} has an id, so it had a ledger, which is not at {name} any more; {BRING_BACK}, "
                "or give up that account, with all that was spent on it, by incrowd ledger found --give-up."
            )
        require_blank(open_anchor(declared.anchor_place, declared.id or ""))
        before = file.read_text(encoding="utf-8")
        _write(file, tied(before, declared, file))
        try:
            now = load(file)
            return now, Ledger.found(place, now, gave_up=declared.id or "")
        except BaseException:
            file.write_text(before, encoding="utf-8")
            raise


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError:
        raise CatalogError(
            f"{file} cannot be written, and its ledger's id must stand in it; let this user write it."
        ) from None
