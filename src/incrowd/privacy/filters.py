"""Privacy filters: may this analyst ask one more, whatever she asked and saw before?

A filter holds a capacity and what was spent, as whole numbers of units (`amounts.UNITS`). An ask is priced
with `Guarantee.charge`; it is accepted when spent + asked stays within capacity, else the state does not
change by a bit. That is sound when mechanism, parameters and the moment of stopping are chosen after seeing
every earlier answer ("fully adaptive"), for exactly these sums:

  pure   sum of epsilon <= capacity                             (Rogers, Roth, Ullman, Vadhan 2016)
  zcdp   sum of rho <= capacity, and sum of delta beside it      (Feldman, Zrnic 2021; Whitehouse, Ramdas,
         <= the share set aside                                  Rogers, Wu 2023, approximate zCDP)
  gdp    sum of mu^2 <= capacity, Gaussian releases only         (Smith, Thakurta 2022), delta beside it

The sum of what an accountant for fixed plans prints is NOT among them.

Either of two rules. A zcdp (or gdp) filter for (epsilon, delta) also accepts while the plain sum of pure
epsilons is at most epsilon: a few large asks exhaust rho long before they exhaust epsilon, and no budget
should be worse than adding up.

Theorem. Accepting an ask when at least one of the two rules allows it keeps (epsilon, delta).
Proof. Let L be the privacy loss of the whole session, and L' that of the session stopped just before the
first ask that the rho rule alone would refuse. A session ends in one of two ways, which the analyst may
choose as she goes. (A) The rho rule allowed every ask: L = L'. (B) It refused one, from which on only the
epsilon rule can have accepted; sums never shrink, so the sum of all epsilons is at most epsilon and
L <= epsilon for sure. With h(x) = (1 - e^(epsilon - x))+, then, E[h(L)] = E[h(L); A] <= E[h(L')] <= delta,
the last step being the theorem of the rho filter, which holds for every adaptive analyst, hence for this
one stopped early. Releases with a delta of their own fail with probability at most the sum set aside,
in either case. (Two rules that both need delta would each use it up: only the pure one is free.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from incrowd.errors import BudgetExceeded, InvalidInput
from incrowd.noise.readings import shown
from incrowd.privacy import amounts, gdp, renyi
from incrowd.privacy.amounts import Real, float_down, float_up, from_units
from incrowd.privacy.guarantee import (
    Charge,
    Guarantee,
    read_guarantee,
)

Kind = Literal["pure", "zcdp", "gdp"]
THRESHOLD_SHARE = Fraction(1, 4)
"""The part of a budget's delta set aside for thresholds and approximate releases unless said otherwise."""


@dataclass(frozen=True)
class Capacity:
    """What a filter may spend, in units.

    `main` units of its kind's currency or else `epsilon` units of pure epsilon, and `delta` units beside
    either.
    """

    kind: Kind
    main: int
    delta: int
    epsilon: int = 0


def capacity(
    epsilon: Real, delta: Real = 0.0, *, kind: Kind | None = None, threshold_share: Real = THRESHOLD_SHARE
) -> Capacity:
    """The capacity of an (epsilon, delta) budget; `kind` is "pure" for delta = 0 and "zcdp" otherwise."""
    total = amounts.read_amount(epsilon, "budget epsilon")
    slack = amounts.read_probability(delta, "budget delta")
    share = amounts.read_probability(threshold_share, "threshold_share")
    kind = ("pure" if slack == 0 else "zcdp") if kind is None else kind
    if type(kind) is not str or kind not in ("pure", "zcdp", "gdp"):
        raise InvalidInput(f"kind must be 'pure', 'zcdp' or 'gdp', not {shown(kind)}.")
    if slack == 1:
        raise InvalidInput("budget delta must be below 1: a delta of 1 allows everything to be published.")
    if kind == "pure":
        if slack:
            raise InvalidInput("A pure budget has delta = 0; leave kind out to spend delta as well.")
        return Capacity("pure", amounts.units_down(total), 0, amounts.units_down(total))
    if slack == 0:
        raise InvalidInput(f"A budget of kind {kind!r} needs a delta above 0.")
    beside, rest = slack * share, slack * (1 - share)
    if rest == 0:
        return Capacity(kind, 0, amounts.units_down(beside), amounts.units_down(total))
    # Floats enter rounded inwards, so that the capacity is never above what the budget allows.
    whole, least = amounts.read_float(total, "budget epsilon"), amounts.read_float(rest, "budget delta")
    if not least:
        raise InvalidInput("budget delta must be 0, or at least 1e-300.")
    inner_epsilon, inner_delta = whole * (1 - 2.0**-50), least * (1 - 2.0**-50)
    if kind == "zcdp":
        main = Fraction(renyi.zcdp_rho(inner_epsilon, inner_delta))
    else:
        main = Fraction(gdp.largest_mu(inner_epsilon, inner_delta)) ** 2
    return Capacity(kind, amounts.units_down(main), amounts.units_down(beside), amounts.units_down(total))


def price(kind: Kind, charge: Charge) -> int | None:
    """What a charge takes of the main currency; None where this kind of filter cannot hold it."""
    match kind:
        case "pure":
            return charge.epsilon if charge.delta == 0 else None
        case "zcdp":
            return charge.rho
        case "gdp":
            return charge.mu2


def _check(limit: object, *charges: object) -> None:
    """InvalidInput for what is no capacity, or no charge."""
    if not isinstance(limit, Capacity):
        raise InvalidInput(f"limit must be a capacity, as capacity(1.0) gives it, not {shown(limit)}.")
    for charge in charges:
        if not isinstance(charge, Charge):
            raise InvalidInput(
                f"What is spent or asked must be a charge, such as pure(0.1).charge(), not {shown(charge)}."
            )


def fits(limit: Capacity, spent: Charge, asked: Charge) -> bool:
    """Whether `asked` may be spent on top of `spent`."""
    _check(limit, spent, asked)
    if spent.delta + asked.delta > limit.delta:
        return False
    before, more = price(limit.kind, spent), price(limit.kind, asked)
    if before is not None and more is not None and before + more <= limit.main:
        return True
    if spent.epsilon is None or asked.epsilon is None:
        return False
    return spent.epsilon + asked.epsilon <= limit.epsilon


@dataclass(frozen=True)
class Remaining:
    """What is left of a filter, rounded down.

    `epsilon` is left by adding up, `main` in the filter's own currency (epsilon, rho or mu^2, by `kind`):
    an ask must fit one of the two, and `delta` beside it.
    """

    kind: Kind
    main: float
    delta: float
    epsilon: float = 0.0

    def __str__(self) -> str:
        parts = [f"epsilon {self.epsilon:.6g}"]
        if self.kind != "pure":
            word = {"zcdp": "rho", "gdp": "mu^2"}[self.kind]
            own = [f"{word} {self.main:.6g}"]
            parts = own if self.main and not self.epsilon else parts + own if self.main else parts
        beside = f" and delta {self.delta:.4g}" if self.delta else ""
        return " or ".join(parts) + beside


class Filter:
    """A budget that asks are reserved from, sound for fully adaptive use.

    >>> from incrowd.privacy import pure
    >>> budget = Filter(1.0)
    >>> for _ in range(10): budget.reserve(pure(0.1))
    >>> budget.fits(pure(1e-9))
    False
    """

    def __init__(
        self,
        epsilon: Real,
        delta: Real = 0.0,
        *,
        kind: Kind | None = None,
        threshold_share: Real = THRESHOLD_SHARE,
    ) -> None:
        self.epsilon = amounts.read_amount(epsilon, "budget epsilon")
        self.delta = amounts.read_probability(delta, "budget delta")
        self.threshold_share = amounts.read_probability(threshold_share, "threshold_share")
        self.capacity = capacity(epsilon, delta, kind=kind, threshold_share=threshold_share)
        self.spent = Charge.nothing()

    @property
    def kind(self) -> Kind:
        """The currency: "pure", "zcdp" or "gdp"."""
        return self.capacity.kind

    def fits(self, guarantee: Guarantee) -> bool:
        """Whether `reserve` would accept."""
        return fits(self.capacity, self.spent, read_guarantee(guarantee).charge())

    def reserve(self, guarantee: Guarantee) -> None:
        """Spend, or raise `BudgetExceeded` and change nothing."""
        asked = read_guarantee(guarantee).charge()
        if not fits(self.capacity, self.spent, asked):
            raise refusal(self.capacity, self.spent, asked)
        self.spent = self.spent + asked

    def remaining(self) -> Remaining:
        """What is left."""
        return remaining(self.capacity, self.spent)

    def affordable(self) -> float:
        """The largest epsilon of a pure release (as `pure(epsilon)`) that still fits, rounded down."""
        return affordable(self.capacity, self.spent)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: the budget as given and the units spent. Never data."""
        return {
            "version": 1,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "threshold_share": str(self.threshold_share),
            "capacity": {
                "kind": self.kind,
                "main": self.capacity.main,
                "delta": self.capacity.delta,
                "epsilon": self.capacity.epsilon,
            },
            "spent": self.spent.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The filter as it was saved, to the bit."""
        try:
            if state["version"] != 1:
                raise InvalidInput("This filter was saved by a newer version; upgrade to read it.")
            loaded = cls(
                Fraction(state["epsilon"]),
                Fraction(state["delta"]),
                kind=state["capacity"]["kind"],
                threshold_share=Fraction(state["threshold_share"]),
            )
            # The capacity that was promised stays, even if a later version would find a larger one.
            loaded.capacity = Capacity(
                loaded.kind,
                amounts.read_count(state["capacity"]["main"], "capacity"),
                amounts.read_count(state["capacity"]["delta"], "capacity delta"),
                amounts.read_count(state["capacity"]["epsilon"], "capacity epsilon"),
            )
            loaded.spent = Charge.from_dict(state["spent"])
        except InvalidInput:
            raise
        except Exception as error:  # whatever a thing that is no state raises
            raise InvalidInput(
                "This is not a saved filter: its numbers are missing or unreadable."
            ) from error
        return loaded

    def __repr__(self) -> str:
        return (
            f"Filter(epsilon={float(self.epsilon):g}, delta={float(self.delta):g}, kind={self.kind!r}: "
            f"{self.remaining()} left)"
        )


def remaining(limit: Capacity, spent: Charge) -> Remaining:
    """What is left of a capacity; nothing is ever shown below zero."""
    _check(limit, spent)
    used = price(limit.kind, spent)
    main = 0 if used is None else max(0, limit.main - used)
    pure = 0 if spent.epsilon is None else max(0, limit.epsilon - spent.epsilon)
    beside = max(0, limit.delta - spent.delta)
    return Remaining(limit.kind, *(float_down(from_units(units)) for units in (main, beside, pure)))


def affordable(limit: Capacity, spent: Charge) -> float:
    """The largest epsilon such that one `pure(epsilon)` release fits, rounded down."""
    from incrowd.privacy.guarantee import pure

    if not fits(limit, spent, Charge.nothing()):
        return 0.0
    left_pure = 0 if spent.epsilon is None else max(0, limit.epsilon - spent.epsilon)
    adding_up = float_down(from_units(left_pure))
    if price(limit.kind, spent) is None or limit.kind == "gdp":
        return adding_up
    left = Fraction(from_units(max(0, limit.main - (price(limit.kind, spent) or 0))))
    if limit.kind == "pure":
        guess = float_down(left)
    else:
        rest = float(left)
        low, high = 0.0, max(1.0, 2 * rest)
        high = max(high, 2 * math.sqrt(2 * rest))
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if middle * math.tanh(middle / 2) <= rest else (low, middle)
        guess = low
    while guess > 0 and not fits(limit, spent, pure(guess).charge()):
        guess = guess * (1 - 1e-14) if guess > 1e-300 else 0.0
    return max(guess, adding_up)


def refusal(limit: Capacity, spent: Charge, asked: Charge, whose: str = "This budget") -> BudgetExceeded:
    """The error for an ask that does not fit, with what was asked and what is left in words."""
    _check(limit, spent, asked)
    left = remaining(limit, spent)
    cost = price(limit.kind, asked)
    if cost is None and (asked.epsilon is None or limit.kind == "pure"):
        kinds = {
            "pure": "releases with a finite epsilon and delta = 0",
            "zcdp": "releases with a finite rho",
            "gdp": "Gaussian releases",
        }
        words = "a release of another kind"
        message = f"{whose} takes only {kinds[limit.kind]}; ask for one of those."
    else:
        figures = (float_up(from_units(units or 0)) for units in (cost, asked.delta, asked.epsilon))
        words = str(Remaining(limit.kind, *figures))
        message = f"{whose} has {left} left, but {words} was asked; ask for less or wait for more budget."
    return BudgetExceeded(message, asked=words, left=str(left))
