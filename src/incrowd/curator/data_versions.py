"""Which data an answer is about: the version under which it is on record.

Everything on record is about the state of all tables. A question that reads only closed periods of a table
(`query.confining`, `catalog.periods`) is on record under a version that leaves out what that table holds, so
that later rows make it no other question. The rest counts as ever: public tables, and private ones that
the question reads whole.

Privacy. A recorded answer was released already and is shown only to whom the record allows it; whether it is
shown again depends on the question, the owner's file, the clock, and the other tables as before. So nothing
rests on the owner's promise but that the answer is still true.

Truth. A period counts as closed by the ledger's clock when the question is paid for, and stays closed. By the
theorem in `query.confining` the leaf's rows then depend on closed rows and on other tables alone. The version
names the table, where it lies and the promise: whoever changes one of them asks about other data.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re

from incrowd.backends import Backend
from incrowd.catalog import Catalog
from incrowd.query import Plan
from incrowd.query.confining import is_below


def closed_tables(plan: Plan, catalog: Catalog, today: dt.date) -> tuple[str, ...]:
    """The tables of which a question reads closed periods alone, wherever it reads them."""
    read = sorted({name for leaf in plan.leaves for name in leaf.tables})
    return tuple(name for name in read if _closed(name, plan, catalog, today))


def _closed(name: str, plan: Plan, catalog: Catalog, today: dt.date) -> bool:
    period = catalog.tables[name].period
    # A data frame is another one whenever it is opened, and does not grow meanwhile.
    if period is None or catalog.source_of(name).kind == "frame":
        return False
    ends = [leaf.until.get(name) for leaf in plan.leaves if name in leaf.tables]
    return all(end is not None and is_below(end, period.open_from(today)) for end in ends)


def closed_version(plan: Plan, catalog: Catalog, backend: Backend, today: dt.date) -> str | None:
    """The version of what a question about closed periods reads; None for every other question."""
    closed = closed_tables(plan, catalog, today)
    if not closed:
        return None
    read = {name for leaf in plan.leaves for name in leaf.tables} - set(closed)
    others = [name for name, table in catalog.tables.items() if not table.private or name in read]
    promises = [[name, _place(name, catalog), repr(catalog.tables[name].period)] for name in closed]
    text = json.dumps([promises, backend.version(others) if others else ""])
    return f"closed {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _place(name: str, catalog: Catalog) -> list[object]:
    """Where a table lies, as the owner's file says it; without users, passwords and options."""
    source, table = catalog.source_of(name), catalog.tables[name]
    server = re.split("[?;]", (source.url or "").rpartition("@")[2])[0]
    return [source.kind, source.duckdb, source.csv, source.parquet, server, table.table or name, table.path]
