"""Balances: what is left of a cap, and which cap refuses a price that does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from incrowd.curator.ledger.limits import Cap
from incrowd.curator.ledger.totals import Totals
from incrowd.privacy import Capacity, Charge, Remaining, fits
from incrowd.privacy.filters import affordable, price, refusal, remaining


@dataclass(frozen=True, repr=False)
class Balance:
    """A cap, what was spent of it (today, for a daily one), and what is left."""

    cap: Cap
    spent: Charge

    def __str__(self) -> str:
        whole = f"epsilon {self.cap.epsilon:g}" + (f", delta {self.cap.delta:g}" if self.cap.delta else "")
        return f"{self.cap.whose}: {self.left} left of {whole}"

    def __repr__(self) -> str:
        return f"<Balance {self}>"

    @property
    def left(self) -> Remaining:
        """What is left, rounded down."""
        return remaining(self.cap.limit, self.spent)

    @property
    def share(self) -> float:
        """What is left as a part of the whole, from 0 to 1, for a picture; decisions use whole units."""
        limit = self.cap.limit
        spent = ((price(limit.kind, self.spent), limit.main), (self.spent.epsilon, limit.epsilon))
        return max(
            (max(0, most - used) / most for used, most in spent if used is not None and most), default=0.0
        )

    @property
    def affordable(self) -> float:
        """The largest epsilon of one pure release that fits this cap."""
        if not fits(self.cap.limit, self.spent, Charge.nothing()):
            return 0.0  # spent beyond a lowered budget, or in a currency that this one cannot hold
        return affordable(self.cap.limit, self.spent)


def refuse_unless_all_fit(caps: tuple[Cap, ...], totals: Totals, day: str, asked: Charge) -> None:
    """Raise BudgetExceeded, in the words of the tightest cap, if a price does not fit all of them."""
    short = [cap for cap in caps if not fits(cap.limit, totals.spent(cap, day), asked)]
    if short:
        tightest = min(short, key=lambda cap: _room(cap.limit, totals.spent(cap, day), asked))
        raise refusal(tightest.limit, totals.spent(tightest, day), asked, tightest.whose)


def _room(limit: Capacity, spent: Charge, asked: Charge) -> Fraction:
    """What is left as a share of what is asked, in the scarcer currency; -1 if it cannot be held."""
    routes = (
        (limit.main, price(limit.kind, spent), price(limit.kind, asked)),
        (limit.epsilon, spent.epsilon, asked.epsilon),
    )
    open_routes = [
        Fraction(max(0, most - used), need) for most, used, need in routes if used is not None and need
    ]
    if not open_routes:
        return Fraction(-1)
    if asked.delta:
        return min(max(open_routes), Fraction(max(0, limit.delta - spent.delta), asked.delta))
    return max(open_routes)
