"""What an epsilon means to one person: by how much anybody's belief about her can move.

The figures come from `Guarantee.posterior`, so they hold against an attacker who knows everybody else's rows
and has unlimited computing power; what a real one achieves is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from incrowd.errors import InvalidInput
from incrowd.privacy import approximate
from incrowd.privacy.amounts import (
    is_number,
    items_of,
    plain,
    read,
    read_float,
    read_probability,
    shown,
)

PRIORS = (0.001, 0.01, 0.1, 0.5, 0.9)
LADDER = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The epsilons that are set side by side where none is given."""

# A generic (epsilon, delta) release has no loss bound that fails with probability delta itself; with this
# multiple of it the bound is epsilon + ln 2 (see `privacy.meaning`).
_ROOM = 3.0
_SCALE = (
    (0.1, "Very strong protection: what anyone can learn about one person is barely measurable."),
    (1.0, "Strong protection: beliefs about one person can shift, but not by much."),
    (3.0, "Moderate protection: a determined attacker can become noticeably surer about one person."),
    (8.0, "Weak protection: in the worst case a guess about one person can become close to certain."),
    (math.inf, "Hardly any protection in the worst case: only what real attackers cannot do helps."),
)


@dataclass(frozen=True)
class Belief:
    """A belief before the answers, and where it can move to."""

    prior: float
    low: float
    high: float


@dataclass(frozen=True)
class Meaning:
    """An epsilon (and delta) in odds and words; `failure` is the probability that the odds do not hold."""

    epsilon: float
    delta: float
    factor: float
    failure: float
    beliefs: tuple[Belief, ...]

    @property
    def verdict(self) -> str:
        """How strong that is, in one sentence."""
        return next(said for most, said in _SCALE if self.epsilon <= most)

    @property
    def sentence(self) -> str:
        """What it means for one person, in one sentence.

        >>> explain_epsilon(1.0).sentence.partition("can be ")[2]
        'at most 73.2% sure of it afterwards.'
        """
        even = self.at(0.5)
        return (
            "Whoever thought a guess about one person as likely as not (50%) can be at most "
            f"{percent_up(even.high)} sure of it afterwards{self.exception}."
        )

    @property
    def exception(self) -> str:
        """The clause that delta adds."""
        if not self.failure:
            return ""
        return f", except with a probability of at most {self.failure:.1g}"

    def at(self, prior: float) -> Belief:
        """The belief that starts at `prior`, one of those that were explained."""
        start = float(read_probability(prior, "prior"))
        for belief in self.beliefs:
            if belief.prior == start:
                return belief
        known = ", ".join(f"{belief.prior:g}" for belief in self.beliefs)
        raise InvalidInput(f"No belief starts at {start:g} here; choose from {known}, or name it in priors.")


def explain_epsilon(epsilon: float, delta: float = 0.0, priors: Sequence[float] = PRIORS) -> Meaning:
    """What (epsilon, delta) means for one unit.

    >>> from math import log
    >>> round(explain_epsilon(log(3)).at(0.5).high, 9)
    0.75
    """
    epsilon, delta = plain(epsilon), plain(delta)
    if not (is_number(epsilon) and 0 < read(epsilon, "epsilon") <= 10**300):
        raise InvalidInput(f"epsilon must be a positive number, not {shown(epsilon)}.")
    if not (is_number(delta) and 0 <= read(delta, "delta") < 1 / _ROOM):
        raise InvalidInput(f"delta must be a small probability such as 1e-6, not {shown(delta)}.")
    epsilon, delta = read_float(epsilon, "epsilon"), read_float(delta, "delta")
    guarantee = approximate(epsilon, delta)
    failure = _ROOM * delta
    listed = items_of(priors, "priors must be a list of probabilities.")
    kept = dict.fromkeys((*(float(read_probability(prior, "prior")) for prior in listed), 0.5))
    beliefs = tuple(Belief(prior, *guarantee.posterior(prior, failure)) for prior in sorted(kept))
    factor = math.exp(epsilon) * (1 + 1e-12) if epsilon < 700 else math.inf
    return Meaning(float(epsilon), float(delta), factor, failure, beliefs)


def percent_up(share: float) -> str:
    """A share in percent, rounded up, so that a printed bound holds.

    >>> percent_up(0.7310586), percent_up(0.25), percent_up(0.0027110)
    ('73.2%', '25%', '0.272%')
    """
    return _percent(share, math.ceil)


def percent_down(share: float) -> str:
    """A share in percent, rounded down.

    >>> percent_down(0.2689414), percent_down(0.999999)
    ('26.8%', '99.9%')
    """
    return _percent(share, math.floor)


def _percent(share: float, rounding: Callable[[float], int]) -> str:
    value = share * 100
    digits = 1 if value >= 10 else 2 if value >= 1 else 3
    # Nine digits first: 25.000000000000004 is meant as 25.
    return f"{rounding(round(value * 10**digits, 9)) / 10**digits:g}%"
