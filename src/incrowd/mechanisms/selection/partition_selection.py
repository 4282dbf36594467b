"""Which keys may be named: the optimal private selection of groups from an unknown domain.

A key (a town, a disease) that few people have may point at them. Each key is named with a probability pi(n)
that depends only on its number n of units, independently of the others, and pi(0) = 0: a key that nobody has
is never named.

Theorem (Desfontaines, Voss, Gipson, Mandayam 2022). When a unit is in one key, the selection is
(epsilon, delta)-differentially private exactly when for every n both

    pi(n + 1) <= e^epsilon pi(n) + delta   and   1 - pi(n) <= e^epsilon (1 - pi(n + 1)) + delta.

The largest pi that obeys them names, key by key, the most that any private selection can name:

    pi(n + 1) = min(e^epsilon pi(n) + delta, 1 - e^-epsilon (1 - pi(n) - delta), 1).

Proof. Adding a unit changes one coin, and the two inequalities are the definition for its two outcomes (the
other two directions hold as pi increases). By induction no pi is larger.

Units in up to g keys: (epsilon / g, delta / g) for each key, by composition. Replacing a unit changes two
keys at once for each of hers, so it counts as 2 g.

Exactness. pi is computed in whole multiples of a power of two, with e^epsilon replaced by a rational that is
not above it, and rounded down. Both inequalities then hold exactly, and the coin is drawn with that very
rational.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    confidence_level,
    counted,
    delta_amount,
)
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.noise import Source, bernoulli
from incrowd.noise.exact import exp_bounds
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, approximate

MOST_ENTRIES = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class PartitionSelection(Mechanism):
    """Names keys that enough units share.

    >>> m = PartitionSelection(epsilon=1.0, delta=1e-5)
    >>> [round(float(m.probability(n)), 5) for n in (0, 1, 5, 11, 12, 20, 30)]
    [0.0, 1e-05, 0.00086, 0.34845, 0.76031, 0.99993, 1.0]
    """

    epsilon: Number
    delta: Number
    _: KW_ONLY
    groups: int = 1
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        self._table()

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def exact_delta(self) -> Fraction:
        """Delta as a fraction."""
        return delta_amount(self.delta)

    @property
    def privacy(self) -> Guarantee:
        """What naming all the keys together guarantees."""
        return approximate(self.exact_epsilon, self.exact_delta)

    def probability(self, units: int) -> Fraction:
        """The exact probability that a key with so many units is named."""
        table = self._table()
        return table[min(counted(units, "units", least=0), len(table) - 1)]

    def release(self, value: Any, source: Source | None = None) -> Any:
        """Which keys are named: a list for a mapping of keys to counts, else one truth value per count.

        The list is ordered by the keys' text, so that its order tells nothing but the keys themselves.
        """
        if isinstance(value, Mapping):
            keys: list[Hashable] = sorted(value, key=repr)
            named = self._draw([value[key] for key in keys], source)
            return [key for key, kept in zip(keys, named, strict=True) if kept]
        return self._draw(value, source)

    def halfwidth(self, confidence: Number) -> int:
        """The least number of units with which a key is named with this probability."""
        level = confidence_level(confidence)
        return next(n for n, chance in enumerate(self._table()) if chance >= level)

    def _draw(self, counts: Any, source: Source | None) -> NDArray[np.bool_]:
        numbers = INTEGERS.steps(counts, "PartitionSelection")
        if (numbers < 0).any():
            raise InvalidInput("Each count given to PartitionSelection must be 0 or more.")
        table = self._table()
        places = np.minimum(numbers, len(table) - 1).ravel()
        named = np.zeros(places.size, dtype=np.bool_)
        for place in np.unique(places).tolist():
            here = np.flatnonzero(places == place)
            named[here] = bernoulli(table[place], size=here.size, source=source)
        return named.reshape(numbers.shape)

    def _table(self) -> tuple[Fraction, ...]:
        groups = counted(self.groups, "groups")
        share = groups if relation_named(self.relation) == "add-remove" else 2 * groups
        return _optimal(self.exact_epsilon / share, self.exact_delta / share)


@lru_cache(maxsize=64)
def _optimal(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """pi(0), pi(1), ... up to the first 1, each rounded down to a multiple of 2^-bits."""
    # Below pi = 1/2 each step adds at least delta and multiplies by e^epsilon; above it, the same from 1.
    entries = 2 / float(epsilon) * float(np.log1p(float(epsilon) / float(delta))) + 4
    if entries > MOST_ENTRIES and 1 / float(delta) > MOST_ENTRIES:
        raise InvalidInput(
            "So small an epsilon would name only keys with millions of units: raise epsilon or delta."
        )
    bits = 64 + math.ceil(1 / delta).bit_length()
    one = 1 << bits
    slack = delta.numerator * one // delta.denominator
    # e^epsilon = 1 / e^-epsilon, and a larger e^-epsilon gives a smaller one.
    most = exp_bounds(epsilon, bits)[1]
    chances = [0]
    while chances[-1] < one:
        now = chances[-1]
        grown = now * one // most + slack
        rest = max(0, one - now - slack)
        from_above = one - -(-rest * most // one)
        chances.append(min(grown, from_above, one))
    return tuple(Fraction(chance, one) for chance in chances)
