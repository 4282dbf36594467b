"""The ledger's clock: which day an ask counts on, and which jumps of the machine's clock are believed.

Days are those of UTC, and never go back by themselves: a clock set back opens no spent day again. A clock
that jumps far ahead would use up every day in between, so an ask is refused if the last entry is more than
`LEAP` before it. The owner then says which day it is (`acts.set_day`), and the chain keeps her word.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import Connection, select

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.chain import Entry
from incrowd.curator.ledger.charges import charge_from_text
from incrowd.curator.ledger.totals import Totals, charge_content
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import Charge

LEAP = timedelta(days=92)
"""The longest silence that is believed without the owner's word: a quarter of a year."""

_PAGE = 1000


def moment_of(now: datetime | None) -> datetime:
    """The moment in UTC; the machine's if `now` is None."""
    moment = datetime.now(UTC) if now is None else now
    if moment.tzinfo is None:
        raise InvalidInput("now must have a time zone; days are counted in UTC.")
    return moment.astimezone(UTC)


def day_of(moment: datetime) -> str:
    """The day of a moment, as the ledger writes it."""
    return moment.date().isoformat()


def is_leap(moment: datetime, last: str) -> bool:
    """Whether a moment lies implausibly far beyond the ledger's last day.

    >>> is_leap(datetime(2026, 3, 1, tzinfo=UTC), "2026-01-01"), is_leap(datetime(2099, 1, 1), "2026-01-01")
    (False, True)
    """
    return moment.date() - date.fromisoformat(last) > LEAP


def counted_day(moment: datetime, last: str, name: str) -> str:
    """The day that an ask counts on; LedgerError if the clock leapt."""
    if is_leap(moment, last):
        raise LedgerError(
            f"The clock says {day_of(moment)}, but the last day in the ledger {name} is {last}; set the "
            "clock right, or, if it is, say so with incrowd ledger clock."
        )
    return max(day_of(moment), last)


def shown_day(moment: datetime, last: str) -> str:
    """The day for which balances are shown: a clock that leapt opens no new one."""
    return last if is_leap(moment, last) else max(day_of(moment), last)


def moved_to(totals: Totals, day: str, charges: Mapping[str, Charge]) -> Totals:
    """The totals once the owner has said which day it is.

    `charges` is what was charged on that day or later. All of it counts on that day, so that no day is opened
    a second time.
    """
    rows = {
        key: (day, charge_content(charges.get(key, Charge.nothing())))
        for key, (stored, _) in totals.rows.items()
        if stored >= day
    }
    return totals.having(rows)


def charged_since(connection: Connection, day: str, before: int) -> dict[str, Charge]:
    """What each cap was charged on `day` or later, by the entries numbered below `before`.

    Entries are read from the end until one that was counted on an earlier day.
    """
    charges: dict[str, Charge] = {}
    entries = schema.entries
    while True:
        which = entries.c.kind.in_(("reserve", "restore")) & (entries.c.seq < before)
        rows = connection.execute(
            select(*entries.c).where(which).order_by(entries.c.seq.desc()).limit(_PAGE)
        ).all()
        for row in rows:
            content = Entry(**row._mapping).content()
            if content["day"] < day:
                return charges
            asked = charge_from_text(content["charge"])
            for key in content["caps"]:
                charges[key] = charges.get(key, Charge.nothing()) + asked
        if len(rows) < _PAGE:
            return charges
        before = rows[-1].seq
