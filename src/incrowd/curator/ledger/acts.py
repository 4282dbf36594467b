"""What the owner does to a ledger: change a limit, retire an analyst, say which day it is.

Each act is one entry of the chain. None gives back what was spent.
"""

from __future__ import annotations

from datetime import datetime

from incrowd.curator.ledger import steering
from incrowd.curator.ledger.account import Ledger
from incrowd.curator.ledger.chain import Entry
from incrowd.curator.ledger.clock import charged_since, day_of, moment_of, moved_to
from incrowd.curator.ledger.limits import Cap
from incrowd.errors import InvalidInput


def change_limit(
    ledger: Ledger,
    whose: str,
    epsilon: float = 0.0,
    delta: float = 0.0,
    *,
    lower: bool = False,
    now: datetime | None = None,
) -> Cap:
    """Raise or lower a budget by an amount: an analyst's, `dataset`, `group:NAME` or `day:NAME`.

    The budget that then holds. What was spent stays spent: below it, nothing is left.
    """
    key = ledger.caps.key_of(whose)
    change = steering.Change.of(epsilon, delta, lower=lower)
    with ledger.writing() as page:
        totals = steering.changed(page.totals, key, change)
        cap = steering.in_force(ledger.caps, totals).caps[key]
        if cap.epsilon <= 0:
            raise InvalidInput(
                f"{cap.whose} would fall to nothing; lower it by less, or retire the analyst instead."
            )
        page.append("change", {"limit": key, "by": change.content()}, at=moment_of(now), totals=totals)
    ledger.note(page)
    return cap


def retire(ledger: Ledger, analyst: str, *, undo: bool = False, now: datetime | None = None) -> Entry:
    """Let an analyst ask no more; or again, with `undo`. What she spent stays spent."""
    moment = moment_of(now)
    if analyst not in ledger.caps.holders:
        raise InvalidInput(f"There is no analyst {analyst!r} in the catalog, so nobody to retire.")
    with ledger.writing() as page:
        retired = analyst in steering.in_force(ledger.caps, page.totals).retired
        if retired != undo:
            state = "is retired already" if retired else "is not retired"
            raise InvalidInput(f"Analyst {analyst} {state}; nothing was changed.")
        since = "" if undo else day_of(moment)
        totals = steering.with_retired(page.totals, analyst, since)
        entry = page.append("change", {"retired": analyst, "since": since}, at=moment, totals=totals)
    ledger.note(page)
    return entry


def set_day(ledger: Ledger, *, now: datetime | None = None) -> Entry:
    """Say that the machine's clock is right, after it leapt or after a long silence.

    What was charged on that day or later counts on it, so that no day is opened a second time. Any other day
    than today's would open today again.
    """
    moment = moment_of(now)
    told = day_of(moment)
    with ledger.writing() as page:
        if told == page.day:
            raise InvalidInput(f"The ledger's last day is {told} already; nothing needs to be corrected.")
        charges = charged_since(page.connection, told, page.last.seq + 1)
        totals = moved_to(page.totals, told, charges)
        entry = page.append("clock", {"day": told, "was": page.day}, at=moment, totals=totals, day=told)
    ledger.note(page)
    return entry
