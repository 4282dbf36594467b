"""Flaws that an account might have, each of which the soak must notice: `python -m tests.soak --prove`."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from incrowd import Curator, LedgerError
from incrowd.catalog import Catalog
from incrowd.curator.ledger import Ledger, account, claims
from incrowd.curator.ledger.pages import Page
from incrowd.curator.ledger.totals import charge_content
from incrowd.curator.paying import Payment
from incrowd.privacy import Charge


def apply(name: str) -> None:
    """Put a flaw into this process; none for the empty name."""
    if name:
        FLAWS[name][0]()


def _put(place: object, name: str, value: object) -> None:
    setattr(place, name, value)


def _unrecorded() -> None:
    def record(payment: Payment, content: bytes) -> None:
        payment.recorded = content

    _put(Payment, "record", record)


def _refunded() -> None:
    append = Page.append

    @functools.wraps(append)
    def refund(page: Page, kind: Any, body: Any, **named: Any) -> Any:
        if kind == "answer":
            named["totals"] = page.totals.having({"dataset": ("", charge_content(Charge.nothing()))})
        return append(page, kind, body, **named)

    _put(Page, "append", refund)


def _overspent() -> None:
    _put(account, "refuse_unless_all_fit", lambda *_: None)


def _paid_twice() -> None:
    _put(claims, "at_work", lambda *_: False)
    _put(claims, "left_behind", lambda *_: None)
    _put(Ledger, "recall", lambda *_: None)
    _put(Curator, "_better", lambda *_: None)


def _other_errors() -> None:
    execute, chance = Curator.execute, random.Random(os.getpid())

    def fail(*words: Any) -> Any:
        if chance.random() < 0.2:
            raise RuntimeError("a row")
        return execute(*words)

    _put(Curator, "execute", fail)


def _founded_anew() -> None:
    def anew(method: Callable[..., Ledger]) -> Any:
        def open_or_found(where: str, catalog: Catalog) -> Ledger:
            try:
                return method(where, catalog)
            except LedgerError:
                for place in (where, catalog.anchor_place):
                    Path(str(place)).unlink(missing_ok=True)
                return Ledger.found(where, catalog)

        return open_or_found

    _put(Ledger, "open", anew(Ledger.open))
    _put(Ledger, "inspect", anew(Ledger.inspect))


FLAWS: dict[str, tuple[Callable[[], None], str]] = {
    "unrecorded": (_unrecorded, "is not in the chain"),
    "refunded": (_refunded, "fell at entry"),
    "overspent": (_overspent, "exceeds the budget"),
    "paid twice": (_paid_twice, "was paid"),
    "other errors": (_other_errors, "not Incrowd's: RuntimeError"),
    "founded anew": (_founded_anew, "lost its content and was opened"),
}
"""Each flaw, with words that the soak must say about it."""
