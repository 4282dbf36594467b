"""What the owner changes in the ledger itself: limits raised or lowered, analysts retired.

Each change is an entry of the chain. Its effect lies among the totals, which every ask checks: an amount that
is added to the limit in the owner's file, or the day since when an analyst may ask no more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from incrowd.curator.ledger.chain import canonical
from incrowd.curator.ledger.limits import Cap, Caps
from incrowd.curator.ledger.totals import Totals
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import Capacity, capacity
from incrowd.privacy.amounts import float_down

_LIMIT, _RETIRED = "limit:", "retired:"


@dataclass(frozen=True)
class Change:
    """What is added to a limit; below zero where it was lowered."""

    epsilon: Fraction
    delta: Fraction

    def __add__(self, other: Change) -> Change:
        return Change(self.epsilon + other.epsilon, self.delta + other.delta)

    def content(self) -> dict[str, str]:
        """The change as JSON values."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def from_content(cls, content: Mapping[str, str]) -> Change:
        """The change that `content` wrote."""
        return cls(Fraction(content["epsilon"]), Fraction(content["delta"]))

    @classmethod
    def of(cls, epsilon: float, delta: float, *, lower: bool = False) -> Change:
        """A change by amounts as people write them: 0.1 is a tenth."""
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not math.isfinite(value) or value < 0:
                raise InvalidInput(f"{name} must be a finite number of at least 0, not {value!r}.")
        if not epsilon and not delta:
            raise InvalidInput("A change of nothing is none; say by how much epsilon or delta changes.")
        sign = -1 if lower else 1
        return cls(sign * Fraction(repr(epsilon)), sign * Fraction(repr(delta)))


def changed(totals: Totals, key: str, change: Change) -> Totals:
    """The totals with one more change of a limit."""
    sum_of = _changes(totals).get(key, Change(Fraction(0), Fraction(0))) + change
    return totals.having({_LIMIT + key: ("", canonical(sum_of.content()))})


def with_retired(totals: Totals, analyst: str, since: str) -> Totals:
    """The totals with an analyst retired since a day; '' takes it back."""
    return totals.having({_RETIRED + analyst: ("", since)})


def in_force(caps: Caps, totals: Totals) -> Caps:
    """The caps of the owner's file with all that was changed."""
    changes = _changes(totals)
    retired = {
        key.removeprefix(_RETIRED): since
        for key, (_, since) in totals.rows.items()
        if key.startswith(_RETIRED) and since
    }
    if not changes and not retired:
        return caps
    limits = {
        key: _raised(cap, changes[key], caps.threshold_share) if key in changes else cap
        for key, cap in caps.caps.items()
    }
    holders = {name: keys for name, keys in caps.holders.items() if name not in retired}
    return replace(caps, caps=limits, holders=holders, retired=retired)


def _changes(totals: Totals) -> dict[str, Change]:
    try:
        return {
            key.removeprefix(_LIMIT): Change.from_content(json.loads(content))
            for key, (_, content) in totals.rows.items()
            if key.startswith(_LIMIT)
        }
    except (ValueError, KeyError, TypeError):
        raise LedgerError(
            "A changed limit in the ledger cannot be read; run incrowd ledger verify."
        ) from None


def _raised(cap: Cap, change: Change, share: float) -> Cap:
    epsilon = float_down(Fraction(repr(cap.epsilon)) + change.epsilon)
    delta = max(0.0, float_down(Fraction(repr(cap.delta)) + change.delta))
    if epsilon <= 0:
        return replace(cap, epsilon=0.0, delta=0.0, limit=Capacity("pure", 0, 0, 0))
    return replace(cap, epsilon=epsilon, delta=delta, limit=capacity(epsilon, delta, threshold_share=share))
