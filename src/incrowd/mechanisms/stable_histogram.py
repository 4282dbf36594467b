"""Histograms over an unknown domain: noisy counts of the keys that are present and pass a threshold.

Theorem (Korolova, Kenthapadi, Mishra, Ntoulas 2009; Bun, Nissim, Stemmer 2016). Let a unit be in at most g
keys and count once in each. Add discrete Laplace noise of scale b = g / epsilon to the count of every key
that some unit has, and release the key with its noisy count when that reaches the threshold T. If 1 + Z >=
T with probability at most delta / g, the release is (epsilon, delta)-differentially private.

Proof. Add a unit. The keys that others have too change by 1 each, at most g of them: as if all their noisy
counts were published, (g / b) = epsilon in all, and the threshold is post-processing. Each key that she
alone has is absent without her; with her its count is 1, and some such key is released with probability at
most delta in all. So the pair is dominated by Laplace noise over g steps composed with an event of
probability delta: the guarantee states both. Replacing a unit removes one and adds one: twice g keys.

Conditions: counts are of units, each counted once per key; no key is made up that no unit has (a key with
count 0 is never released).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.mechanisms.grid import INTEGERS
from incrowd.mechanisms.laplace import Laplace
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import Number, amount, float_above, float_below, whole
from incrowd.mechanisms.records import identity, listed
from incrowd.mechanisms.relations import Relation, relation_named
from incrowd.noise import Source
from incrowd.privacy import Guarantee, threshold


@dataclass(frozen=True, init=False)
class StableHistogram(Mechanism):
    """Releases keys with their noisy counts, where the domain of keys is not known beforehand.

    >>> m = StableHistogram(epsilon=1.0, delta=1e-6)
    >>> m.threshold
    15
    >>> m.release({"flu": 4000, "cold": 9000, "a rare one": 1})  # doctest: +SKIP
    {'cold': 9001, 'flu': 3999}
    """

    noise: Laplace
    exact_delta: Fraction
    groups: int
    relation: Relation

    def __init__(
        self, epsilon: Number, delta: Number, groups: int = 1, relation: Relation = "add-remove"
    ) -> None:
        slack = amount(delta, "delta")
        if slack >= 1:
            raise InvalidInput(f"delta must lie strictly between 0 and 1, not {delta}.")
        keys = whole(groups, "groups") * (1 if relation_named(relation) == "add-remove" else 2)
        object.__setattr__(self, "noise", Laplace(epsilon, sensitivity=keys))
        object.__setattr__(self, "exact_delta", slack)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "relation", relation)

    @property
    def scale(self) -> float:
        """The scale of the noise on every count."""
        return self.noise.scale

    @property
    def sensitivity(self) -> int:
        """How many counts a unit can change."""
        return self.noise.sensitivity_in_steps

    @property
    def threshold(self) -> int:
        """The least noisy count that is released.

        P(1 + Z >= T) = q^(T - 1) / (1 + q) for T >= 1, q = exp(-1 / b), must be at most delta / g.
        """
        each = float_below(self.exact_delta / self.sensitivity)
        width = float_above(self.noise.scale_in_steps)
        ratio = math.exp(-1 / width)
        # Outward by a part in 10^12, far above the rounding of these few operations.
        return 1 + max(0, math.ceil(-math.log(each * (1 + ratio)) * width * (1 + 1e-12) + 1e-12))

    @property
    def privacy(self) -> Guarantee:
        """What the release of all keys together guarantees."""
        return self.noise.privacy + threshold(self.exact_delta)

    def release(self, value: Any, source: Source | None = None) -> dict[Any, int]:
        """Keys with noisy counts, largest first, of a mapping of keys to counts or a list of keys.

        A list means that every unit is in one key.
        """
        pairs = list(value.items()) if isinstance(value, Mapping) else _count(value)
        pairs.sort(key=lambda pair: (repr(pair[0]), str(type(pair[0]))))
        numbers = INTEGERS.steps([count for _, count in pairs], "StableHistogram")
        if (numbers < 0).any():
            raise InvalidInput("Each count given to StableHistogram must be 0 or more.")
        present = [key for (key, _), number in zip(pairs, numbers.tolist(), strict=True) if number > 0]
        noisy = np.atleast_1d(self.noise.release(numbers[numbers > 0], source)).tolist()
        least = self.threshold
        named = [(key, count) for key, count in zip(present, noisy, strict=True) if count >= least]
        return dict(sorted(named, key=lambda pair: -pair[1]))

    def halfwidth(self, confidence: Number, count: int = 1) -> int:
        """The error of the noise on one count with this confidence (or of `count` counts jointly).

        What is released has passed the threshold, so counts near it are biased upwards.
        """
        return int(self.noise.halfwidth(confidence, count))


def _count(values: Any) -> list[tuple[Any, int]]:
    """How many records have each key; those that cannot be a key (lists) have none.

    Records of one key have one spelling, so that no record decides how the key of others is shown.
    """
    complaint = "StableHistogram takes a mapping of keys to counts or a list of one key per unit."
    counts: dict[tuple[type, str], int] = {}
    spelled: dict[tuple[type, str], Any] = {}
    for value in listed(values, complaint):
        key = identity(value)
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
            spelled.setdefault(key, value)
    return [(spelled[key], count) for key, count in counts.items()]
