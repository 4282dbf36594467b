"""A running account: the price of a plan that is written down release by release, at a constant cost each.

It is the accountant of `Guarantee.epsilon` with its contour kept between questions: one more release
multiplies the moments at the same nodes, and the line is chosen anew only when epsilon has moved by a fifth.
Every line is sound. The plan must still be fixed beforehand: what an analyst decides as she goes belongs in
a `Filter`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

from incrowd.errors import InvalidInput
from incrowd.privacy import accountant, contour, events
from incrowd.privacy.amounts import Real, float_up, read_probability
from incrowd.privacy.guarantee import (
    Guarantee,
    read_guarantee,
)


class Account:
    """The least epsilon at one delta of all that was added.

    >>> from incrowd.privacy import laplace
    >>> account = Account(1e-6)
    >>> account.add(laplace(0.01) * 1000)
    >>> round(account.epsilon(), 4)
    1.3629
    """

    def __init__(self, delta: Real) -> None:
        self._delta = read_probability(delta, "delta")
        if not 0 < self._delta < 1:
            raise InvalidInput("An account needs a delta between 0 and 1.")
        self._counts: dict[events.Event, int] = {}
        self._line: contour.Contour | None = None
        self._pure: Fraction | None = Fraction(0)
        self._mass = Fraction(0)
        self._epsilon = 0.0

    def guarantee(self) -> Guarantee:
        """Everything added so far."""
        return Guarantee(self._counts)

    def add(self, guarantee: Guarantee) -> None:
        """Write down one more release, or several."""
        extra = dict(read_guarantee(guarantee).events)
        for event, count in extra.items():
            self._counts[event] = self._counts.get(event, 0) + count
        mass, rest = accountant.finite_part(extra)
        self._mass = 1 - (1 - self._mass) * (1 - mass)
        more = accountant.pure_sum(rest)
        self._pure = None if self._pure is None or more is None else self._pure + more
        if self._line is not None and rest:
            plan = contour.make_plan(rest, "remove")
            if plan is None or plan.sampled or plan.ranged:
                self._line = None
            else:
                self._line.extend(plan)

    def epsilon(self) -> float:
        """The least epsilon, rounded up."""
        if self._line is None:
            return self._renew()
        slack = self._slack()
        if slack <= 0:
            return math.inf if self._delta < self._mass or self._pure is None else float_up(self._pure)
        self._epsilon = accountant.solve(self._line.delta, self._line.c, slack, max(self._epsilon, 1e-12))
        if not 0.8 <= self._epsilon / self._line.made_for <= 1.25:
            return self._renew()
        return self._epsilon if self._pure is None else min(self._epsilon, float_up(self._pure))

    def _slack(self) -> float:
        return float((self._delta - self._mass) / (1 - self._mass)) * accountant.INWARDS

    def _renew(self) -> float:
        """The accountant's answer, and a line to go on from where the plan allows one."""
        self._epsilon = accountant.epsilon(self._counts, self._delta)
        self._line = None
        _, rest = accountant.finite_part(self._counts)
        plan = contour.make_plan(rest, "remove") if rest else None
        if plan is not None and not plan.sampled and not plan.ranged and 0 < self._epsilon < math.inf:
            with suppress(contour.DoesNotFit):
                self._line = contour.Contour(plan, self._epsilon, room=0.25 * self._epsilon)
        return self._epsilon
