"""The running totals: what every cap has spent so far, and what the owner changed of its limit.

They lie in one small table, and every entry of the chain holds their hash. An ask therefore notices totals
that were altered, emptied, or brought back from another day than the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.chain import canonical, digest
from incrowd.curator.ledger.charges import charge_from_json, charge_to_text
from incrowd.curator.ledger.limits import DATASET, Cap
from incrowd.privacy import Capacity, Charge


@dataclass(frozen=True)
class Totals:
    """Key -> (day, content). A cap's content is its charge; its day is "" unless it counts one day."""

    rows: Mapping[str, tuple[str, str]]

    @classmethod
    def read(cls, connection: Connection) -> Totals:
        """The totals as stored."""
        return cls({row.cap: (row.day, row.spent) for row in connection.execute(select(*schema.sums.c))})

    def stated(self, day: str, terms: str) -> str:
        """The hash that an entry states of the totals, the ledger's day and the terms in force.

        It is '' if a row holds what no curator writes.
        """
        rows = [[key, *row] for key, row in self.rows.items()]
        if not all(isinstance(part, str) for row in rows for part in row):
            return ""
        return digest(canonical([day, terms, sorted(rows)]).encode("ascii"))

    def spent(self, cap: Cap, day: str) -> Charge:
        """What a cap has spent; nothing if it counts days and its stored day is over."""
        stored_day, content = self.rows.get(cap.key, ("", ""))
        if not content or (cap.daily and stored_day < day):
            return Charge.nothing()
        return charge_from_json(content)

    def charged(self, caps: Iterable[Cap], asked: Charge, day: str) -> Totals:
        """The totals once `asked` is charged to every one of `caps`."""
        more = {
            cap.key: (day if cap.daily else "", charge_content(self.spent(cap, day) + asked)) for cap in caps
        }
        return self.having(more)

    def caps(self) -> set[str]:
        """The keys of the caps among the rows; the others are changes by the owner."""
        return {key for key in self.rows if key == DATASET or key.startswith(("group:", "analyst:", "day:"))}

    def having(self, rows: Mapping[str, tuple[str, str]]) -> Totals:
        """The totals with some rows replaced or added."""
        return Totals({**self.rows, **rows})

    def write(self, connection: Connection, before: Totals) -> None:
        """Store the rows that differ from those of `before`."""
        values: dict[str, Any] = {"day": bindparam("on"), "spent": bindparam("sum")}
        change = update(schema.sums).where(schema.sums.c.cap == bindparam("key")).values(values)
        begin = insert(schema.sums).values(cap=bindparam("key"), **values)
        for statement, stored in ((change, True), (begin, False)):
            rows = [
                {"key": key, "on": day, "sum": content}
                for key, (day, content) in self.rows.items()
                if before.rows.get(key) != (day, content) and (key in before.rows) == stored
            ]
            if rows:
                connection.execute(statement, rows)


def charge_content(charge: Charge) -> str:
    """A charge as a row of the totals holds it."""
    return canonical(charge_to_text(charge))


def charge_lost(totals: Totals, keys: Iterable[str], missing: Charge, day: str) -> Totals:
    """The totals once `missing`, which nobody knows the analyst of, is charged to all the caps in `keys`."""
    unlimited = Capacity("pure", 0, 0, 0)
    caps = [Cap(key, key, 0.0, 0.0, unlimited, daily=key.startswith("day:")) for key in keys]
    return totals.charged(caps, missing, day)
