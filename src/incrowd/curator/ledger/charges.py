"""Charges as the ledger writes them: whole numbers as decimal text, which no reader of JSON rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping

from incrowd.errors import LedgerError
from incrowd.privacy import Charge

FIELDS = ("epsilon", "rho", "delta", "mu2")


def charge_to_text(charge: Charge) -> dict[str, str | None]:
    """The charge as JSON values; None where the currency does not apply."""
    values = ((name, getattr(charge, name)) for name in FIELDS)
    return {name: None if value is None else str(value) for name, value in values}


def charge_from_text(content: Mapping[str, str | None]) -> Charge:
    """The charge that `charge_to_text` wrote."""
    try:
        return Charge.from_dict({name: None if text is None else int(text) for name, text in content.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LedgerError("A charge in the ledger cannot be read; run incrowd ledger verify.") from None


def charge_from_json(text: str) -> Charge:
    """The charge that was written as JSON."""
    try:
        content = json.loads(text)
    except (ValueError, TypeError):
        content = None
    return charge_from_text(content)


def covers(paid: Charge, cost: Charge) -> bool:
    """True if `paid` is at least `cost` in every currency; None means unbounded in that currency."""
    pairs = ((getattr(paid, name), getattr(cost, name)) for name in FIELDS)
    return all(had is None or (due is not None and had >= due) for had, due in pairs)
