"""Backups: a copy of the whole ledger in one file, and the way back, both marked in the chain.

A backup cannot be opened as a ledger: it would forget what was spent since. `restore` charges that to every
cap: as the anchor knows it, or the ledger that is still there, or the owner says it.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, insert, select

from incrowd.catalog import Catalog
from incrowd.curator.ledger import schema
from incrowd.curator.ledger.account import Ledger
from incrowd.curator.ledger.anchors import Anchor, open_anchor
from incrowd.curator.ledger.chain import Head
from incrowd.curator.ledger.charges import FIELDS, charge_from_json, charge_to_text
from incrowd.curator.ledger.clock import day_of, moment_of
from incrowd.curator.ledger.limits import DATASET, Caps
from incrowd.curator.ledger.pages import Page, entry_at, read_head
from incrowd.curator.ledger.places import BACKUP_MARK, check_free, move_aside
from incrowd.curator.ledger.store import Store, connect, found, found_file
from incrowd.curator.ledger.totals import Totals, charge_lost
from incrowd.curator.ledger.verify import verify
from incrowd.errors import IncrowdError, LedgerError
from incrowd.privacy import Charge

_CHUNK = 1000


def backup(ledger: Ledger, file: Path, *, now: datetime | None = None) -> Head:
    """Copy the ledger into a new file, while it is in use; the head of the copy."""
    check_free(file, "backup")
    with ledger.writing() as page:
        page.append("backup", {"file": file.name}, at=moment_of(now))
    ledger.note(page)
    with ledger.store.reading() as source:
        found_file(file, lambda connection: _copy(source, connection), application=BACKUP_MARK)
    return page.head


def restore(
    file: Path, catalog: Catalog, *, lost: Charge | None = None, now: datetime | None = None
) -> tuple[Ledger, Charge]:
    """Bring a backup back as the catalog's ledger, and charge every cap what was spent since.

    That is the largest of what the anchor keeps, what the ledger that is still there says, and `lost`, the
    owner's word; without an anchor she must give it. A file that is there is kept under another name.
    """
    where, anchor = catalog.ledger_url, open_anchor(catalog.anchor_place, catalog.id or "")
    if where is None:
        raise LedgerError("A ledger in memory has no backups; name a place under ledger:.")
    with contextlib.closing(connect(file, backup=True)) as store, store.reading() as source:
        head = _require_own(source, catalog, file)
        _refuse_if_whole(where, catalog, head)
        known, noted = _known(where, anchor, read_head(store, source).ledger)
        if lost is None and not noted:
            raise _ask_owner(source, head)
        missing = _missing(source, known, lost)

        def first(connection: Connection) -> None:
            _copy(source, connection)
            _charge(store, connection, Caps.of(catalog), missing, moment_of(now))

        if "://" not in where:
            move_aside(Path(where), moment_of(now))
        found(where, first).close()
    ledger = Ledger.inspect(where, catalog)
    ledger.note_head(force=True)
    return ledger, missing


def _copy(source: Connection, target: Connection) -> None:
    """All rows of all tables but the claims, which do not know what was drawn after the copy."""
    for table in schema.metadata.sorted_tables:
        if table is schema.claims:
            continue
        rows: list[dict[str, object]] = []
        for row in source.execute(select(*table.c)):
            rows.append(dict(row._mapping))
            if len(rows) == _CHUNK:
                target.execute(insert(table), rows)
                rows = []
        if rows:
            target.execute(insert(table), rows)


def _require_own(source: Connection, catalog: Catalog, file: Path) -> Head:
    """The head of a backup; LedgerError unless it is whole and of this catalog."""
    checked = verify(source)
    if not checked.ok:
        raise LedgerError(f"The backup {file} was altered: {checked.faults[0]}; take another one.")
    first = entry_at(source, 1)
    if first is None or first.content()["policy"] != (catalog.id or ""):
        raise LedgerError(f"The backup {file} is of another owner's file; take one of this file's ledger.")
    return checked.head


def _refuse_if_whole(where: str, catalog: Catalog, head: Head) -> None:
    """LedgerError if the catalog's ledger is there, whole, and holds the backup's last entry."""
    whole = False
    with contextlib.suppress(IncrowdError), contextlib.closing(Ledger.open(where, catalog)) as present:
        whole = present.verify(head).ok
    if whole:
        raise LedgerError(
            "The ledger is there, whole, and holds all that the backup holds; go on with it, there is "
            "nothing to restore."
        )


def _known(where: str, anchor: Anchor | None, identity: str) -> tuple[list[Charge], bool]:
    """What the dataset has spent, by the anchor and by the ledger still there; whether the anchor says so."""
    known, kept = [], None if anchor is None else anchor.kept()
    if kept is not None and kept.ledger == identity:
        known.append(kept.spent)
    elif kept is not None:
        raise LedgerError("The anchor keeps the head of another ledger; name this ledger's own anchor.")
    with (
        contextlib.suppress(IncrowdError),
        contextlib.closing(connect(where)) as present,
        present.reading() as connection,
    ):
        known.append(_spent(Totals.read(connection)))
    return known, kept is not None


def _missing(source: Connection, known: list[Charge], lost: Charge | None) -> Charge:
    """What was spent since the backup, as far as anybody knows."""
    before = _spent(Totals.read(source))
    return _largest([*(_beyond(charge, before) for charge in known), *([] if lost is None else [lost])])


def _ask_owner(source: Connection, head: Head) -> LedgerError:
    last = entry_at(source, head.seq)
    when = "" if last is None else f" of {last.at[:10]}"
    return LedgerError(
        f"Nobody knows what was spent since the backup{when}; say the most that it may have been, with lost= "
        "(epsilon,delta; 0 if nothing was asked).",
        arguments=("lost",),
    )


def _charge(store: Store, connection: Connection, caps: Caps, missing: Charge, moment: datetime) -> None:
    """Append the entry that says what was lost, and charge it to every cap there is."""
    page = Page.read(store, connection, None)
    day = max(page.day, day_of(moment))
    keys = sorted(caps.caps.keys() | page.totals.caps())
    body = {
        "charge": charge_to_text(missing),
        "caps": keys,
        "day": day,
        "from": str(page.head),
    }
    page.append("restore", body, at=moment, totals=charge_lost(page.totals, keys, missing, day), day=day)


def _spent(totals: Totals) -> Charge:
    _, content = totals.rows.get(DATASET, ("", ""))
    return charge_from_json(content) if content else Charge.nothing()


def _beyond(known: Charge, before: Charge) -> Charge:
    """What `known` has above `before`, by currency."""
    pairs = {name: (getattr(known, name), getattr(before, name)) for name in FIELDS}
    return Charge.from_dict(
        {name: None if k is None else max(0, k - (b or 0)) for name, (k, b) in pairs.items()}
    )


def _largest(charges: list[Charge]) -> Charge:
    """The largest amount of each currency; None, unbounded, is above all."""
    result = {}
    for name in FIELDS:
        amounts = [getattr(charge, name) for charge in charges]
        result[name] = None if None in amounts else max(amounts, default=0)
    return Charge.from_dict(result)
