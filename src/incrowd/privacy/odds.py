"""What a guarantee means for what somebody can come to believe.

An attacker weighs two worlds that differ in one unit. By Bayes' rule the answer multiplies her odds by
exp(loss), and epsilon-DP keeps the loss within [-epsilon, epsilon]. For a whole posterior over data sets,
compared with the one she would hold had the unit been left out, both the numerator and the normalising sum
move by e^epsilon: the factor is e^(2 epsilon) (Kasiviswanathan, Smith 2014).

With delta above 0 the loss may exceed any bound, but rarely: P(loss > b) <= delta(e) / (1 - exp(e - b)) for
every e < b, because delta(e) >= E[(1 - exp(e - loss))_+]. So b = epsilon(s delta) - ln(1 - s) fails with
probability at most delta, for any s in (0, 1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from incrowd.errors import InvalidInput
from incrowd.privacy.amounts import Real, read_probability

if TYPE_CHECKING:
    from incrowd.privacy.guarantee import Guarantee

_SHARES = (0.5, 0.7, 0.85, 0.95)


def loss_bound(guarantee: Guarantee, delta: Real = 0.0) -> float:
    """A bound on the privacy loss that fails with probability at most delta."""
    slack = read_probability(delta, "delta")
    bound = guarantee.epsilon()
    if slack:
        level = float(slack) * (1 - 2.0**-50)
        bound = min(bound, *(guarantee.epsilon(level * s) - math.log1p(-s) * (1 + 1e-14) for s in _SHARES))
    if math.isinf(bound):
        raise InvalidInput(
            "This guarantee has no finite epsilon at the given delta; give delta= a larger probability with "
            "which the bound may fail."
        )
    return bound


def posterior(guarantee: Guarantee, prior: Real, delta: Real = 0.0) -> tuple[float, float]:
    """The interval that a belief of probability `prior` stays in."""
    belief = float(read_probability(prior, "prior"))
    bound = loss_bound(guarantee, delta)
    if belief in (0.0, 1.0):
        return belief, belief
    shrink = math.exp(-bound)
    low = belief * shrink / (belief * shrink + (1 - belief)) * (1 - 1e-15)
    rest = (1 - belief) * shrink / (belief + (1 - belief) * shrink) * (1 - 1e-15)
    return low, math.nextafter(1 - rest, 1.0)


def posterior_shift(guarantee: Guarantee) -> float:
    """e^(2 epsilon): how far any probability in a whole posterior moves, as a factor, rounded up."""
    bound = loss_bound(guarantee)
    return math.exp(2 * bound) * (1 + 1e-14 * (1 + bound)) if bound < 350 else math.inf
