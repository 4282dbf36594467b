"""The exponential mechanism: choose a candidate with weight exp(rate * utility).

Theorem (McSherry, Talwar 2007; the range form Dong, Durfee, Rogers 2020). With rate = epsilon / (2 D), where
D bounds how far any one utility moves between neighbours, the log of the ratio of the two probabilities of
candidate i is rate (u_i - u'_i) + ln(Z' / Z). Over i its range is at most rate * 2 D = epsilon: the mechanism
is epsilon-bounded-range. As some candidate has a log ratio of at least 0 and some at most 0, bounded range
implies epsilon-differential privacy (and epsilon^2/8-zCDP, Cesar, Rogers 2021). When all utilities move in
the same direction, u_i - u'_i itself has range D, so rate = epsilon / D gives the same guarantee.

Conditions: the list of candidates does not depend on the data; D bounds the utilities *as given* (round them
before, not after, working out D).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms.parameters import (
    confidence_level,
    counted,
    float_above,
)
from incrowd.mechanisms.selection.utilities import Selection, candidates, gaps_below_best
from incrowd.noise import Source, categorical
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, bounded_range


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(Selection):
    """Chooses one candidate; better ones are exponentially likelier.

    Accuracy: with k candidates the chosen one lies t or more below the best with probability at most
    (k - 1) e^(-rate t) / (1 + (k - 1) e^(-rate t)) (`halfwidth`), and ln(k) / rate below on average at most.

    The pumpkin auction (McSherry, Talwar 2007). Four buyers bid 1, 1, 1 and 3 for pumpkins, of which there
    are plenty. At a price of 1 all four buy (revenue 4), at 3 one does (revenue 3), at 1.01 or 3.01 revenue
    collapses to 1.01 or 0: there is no noise that can be added to the price. So the price itself is chosen,
    with revenue as utility. Bids are capped at 3; one bidder moves any revenue by at most 3, in one
    direction (her arrival can only add), so the utilities are monotone:

    >>> prices = [0.5, 1.0, 1.01, 2.0, 3.0, 3.01]
    >>> bids = [1, 1, 1, 3]
    >>> revenue = [price * sum(bid >= price for bid in bids) for price in prices]
    >>> revenue
    [2.0, 4.0, 1.01, 2.0, 3.0, 0.0]
    >>> auction = Exponential(epsilon=6, sensitivity=3, monotone=True)
    >>> [round(float(p), 3) for p in auction.probabilities(revenue)]
    [0.016, 0.851, 0.002, 0.016, 0.115, 0.0]
    """

    @property
    def privacy(self) -> Guarantee:
        """What one choice guarantees."""
        return bounded_range(self.exact_epsilon)

    def release(self, utilities: Any, source: Source | None = None) -> int:
        """The index of the chosen candidate."""
        scores = candidates(utilities, "Exponential")
        return int(categorical(scores, rate=self.rate, source=source))

    def probabilities(self, utilities: Any) -> NDArray[np.float64]:
        """The probability of each candidate."""
        gaps = gaps_below_best(candidates(utilities, "Exponential"))
        weights = np.exp([-float(self.rate * gap) for gap in gaps])
        return np.asarray(weights / math.fsum(weights), dtype=np.float64)

    def halfwidth(self, confidence: Number, candidates: int = 2) -> float:
        """How far below the best the chosen utility may lie, with this confidence, among so many candidates.

        At worst one candidate is best and the other k - 1 lie just that far below.
        """
        odds = (1 - confidence_level(confidence)) / confidence_level(confidence)
        rivals = counted(candidates, "candidates") - 1
        if rivals <= odds:
            return 0.0
        return float_above(Fraction(math.log(rivals / odds)) / self.rate) * (1 + 1e-12)
