"""Histograms over an unknown domain: noisy counts of the keys that are present and pass a threshold.

Theorem (Korolova, Kenthapadi, Mishra, Ntoulas 2009; Bun, Nissim, Stemmer 2016). Let a unit be in at most g
keys and count once in each of them. Add noise Z to the count of every key that some unit has. Release the key
with its noisy count when that reaches the threshold T, where 1 + Z >= T has probability at most d / g.

- *Laplace.* With discrete Laplace noise of scale g / epsilon and d = delta, the release is
  (epsilon, delta)-differentially private.
- *Gaussian* (as in Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020). With Gaussian noise that is
  (epsilon, delta - d)-differentially private for a change of sqrt(g) in L2, the release is
  (epsilon, delta)-differentially private too. The noise grows with sqrt(g), so it is narrower for units with
  many keys.

Proof. Add a unit. At most g of the keys that other units have change, by 1 each. Suppose all their noisy
counts were published: they change by g in L1 and sqrt(g) in L2, and the threshold is post-processing. A key
that she alone has is absent without her; with her its count is 1, and some such key is released with
probability at most d in all. Noise is independent over keys, so the pair is dominated by that of the noise
composed with an event of probability d. The guarantee states both, and such a composition has a delta of at
most the sum of the two. Replacing a unit removes one and adds one: 2 g keys, g of them on either side.

Which noise is chosen, and how the Gaussian's delta is divided, depends on the parameters alone: the noise
with the lower threshold wins.

Conditions: counts are of units, each counted once per key; no key is invented that no unit has (a key with
count 0 is never released).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.gaussian import Gaussian
from incrowd.mechanisms.additive.grid import INTEGERS
from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    chosen,
    counted,
    delta_amount,
    float_above,
    float_below,
    root_above,
)
from incrowd.mechanisms.records import listed
from incrowd.mechanisms.sensitivity import Relation, relation_named
from incrowd.mechanisms.spelling import order, spelled
from incrowd.noise import Source
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, gdp, threshold

Noise = Literal["laplace", "gaussian"]
PARTS = 16  # delta is divided between the Gaussian and the threshold in so many parts


@dataclass(frozen=True, eq=False, repr=False)
class StableHistogram(Mechanism):
    """Releases keys with their noisy counts, where the domain of keys is not known beforehand.

    `noise` is "laplace" or "gaussian"; without it the one with the lower threshold is taken.

    >>> m = StableHistogram(epsilon=1.0, delta=1e-6)
    >>> m.threshold
    15
    >>> many = StableHistogram(1.0, 1e-6, groups=100)
    >>> many.threshold, StableHistogram(1.0, 1e-6, groups=100, noise="laplace").threshold
    (252, 1775)
    >>> m.release({"flu": 4000, "cold": 9000, "a rare one": 1})  # doctest: +SKIP
    {'cold': 9001, 'flu': 3999}
    """

    epsilon: Number
    delta: Number
    _: KW_ONLY
    groups: int = 1
    relation: Relation = "add-remove"
    noise: Noise | None = None

    def __post_init__(self) -> None:
        if self.noise is not None:
            chosen(self.noise, ("laplace", "gaussian"), "noise")
        _ = self.threshold

    @cached_property
    def _chosen(self) -> tuple[Laplace | Gaussian, Fraction]:
        return _best(amount(self.epsilon, "epsilon"), delta_amount(self.delta), self.sensitivity, self.noise)

    @property
    def mechanism(self) -> Laplace | Gaussian:
        """The mechanism that adds the noise to every count."""
        return self._chosen[0]

    @cached_property
    def key_delta(self) -> Fraction:
        """The part of delta that is left for the keys that one unit alone has."""
        return self._chosen[1]

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on every count."""
        return self.mechanism.noise_scale

    @property
    def sensitivity(self) -> int:
        """How many counts a unit can change."""
        return counted(self.groups, "groups") * (1 if relation_named(self.relation) == "add-remove" else 2)

    @property
    def threshold(self) -> int:
        """The least noisy count that is released: P(1 + Z >= T) is at most d / g."""
        return _threshold(self.mechanism, self.key_delta / self.sensitivity)

    @property
    def privacy(self) -> Guarantee:
        """What the release of all keys together guarantees."""
        return self.mechanism.privacy + threshold(self.key_delta)

    def release(self, value: Any, source: Source | None = None) -> dict[Any, int]:
        """Keys with noisy counts, largest first, of a mapping of keys to counts or a list of keys.

        A list means that every unit is in one key. Equal keys are one, in the spelling that their value has
        (`mechanisms.spelling`: 1 for True and 1.0); arrays of truth values or of floats keep their type.
        """
        pairs = _kept(value) if isinstance(value, Mapping) else _count(value)
        numbers = INTEGERS.steps([count for _, count in pairs], "StableHistogram")
        if (numbers < 0).any():
            raise InvalidInput("Each count given to StableHistogram must be 0 or more.")
        present = [key for (key, _), number in zip(pairs, numbers.tolist(), strict=True) if number > 0]
        noisy = np.atleast_1d(self.mechanism.release(numbers[numbers > 0], source)).tolist()
        least = self.threshold
        named: dict[Any, int] = {}
        for key, count in zip(present, noisy, strict=True):
            if count >= least:
                # Objects of classes whose `==` finds more equal than their type and `repr`: no count is lost.
                named[key] = named.get(key, 0) + count
        return dict(sorted(named.items(), key=lambda pair: -pair[1]))

    def halfwidth(self, confidence: Number, count: int = 1) -> int:
        """The error of the noise on one count with this confidence (or of `count` counts jointly).

        What is released has passed the threshold, so counts near it are biased upwards.
        """
        return int(self.mechanism.halfwidth(confidence, count))


def _threshold(noise: Laplace | Gaussian, chance: Fraction) -> int:
    """The least T, 1 or more, known to have P(1 + Z >= T) <= chance.

    Laplace: P(Z >= t) = q^t / (1 + q) for t >= 0, q = exp(-1 / b). Gaussian: Z is noise of sigma fine steps,
    2^k of them to one, rounded to the nearest; with P(fine >= a) <= Phi(-(a - 1) / sigma) for whole a
    (`Gaussian.halfwidth`), Z >= t needs fine steps of t 2^k - 2^k / 2.
    """
    failure = float_below(chance)
    # Outward by a part in 10^12, far above the rounding of these few operations.
    if isinstance(noise, Laplace):
        width = float_above(noise.scale_in_steps)
        ratio = math.exp(-1 / width)
        return 1 + max(0, math.ceil(-math.log(failure * (1 + ratio)) * width * (1 + 1e-12) + 1e-12))
    from scipy.special import ndtri

    reach = -float(ndtri(failure)) * float(noise.sigma_in_fine_steps) * (1 + 1e-12) + 1
    half = 0.5 if noise.fine else 0.0
    return 1 + max(1, math.ceil(math.ldexp(reach, -noise.fine) + half + 1e-12))


def _best(
    epsilon: Fraction, delta: Fraction, keys: int, wanted: Noise | None
) -> tuple[Laplace | Gaussian, Fraction]:
    """The noise with the lower threshold, and the delta that is left for keys that one unit alone has."""
    plain = Laplace(epsilon, sensitivity=keys)
    # A unit in one key changes L1 and L2 alike, and Laplace noise has less to give to delta.
    if wanted == "laplace" or (wanted is None and keys == 1):
        return plain, delta
    try:
        curved = _gaussian(epsilon, delta, keys)
    except InvalidInput:
        if wanted == "gaussian":
            raise
        return plain, delta  # Gaussian noise for so large or small an epsilon cannot be drawn
    if wanted is None and _threshold(plain, delta / keys) <= _threshold(curved[0], curved[1] / keys):
        return plain, delta
    return curved


def _gaussian(epsilon: Fraction, delta: Fraction, keys: int) -> tuple[Gaussian, Fraction]:
    """Gaussian noise with the part of delta that makes its threshold about the lowest."""
    from scipy.special import ndtri

    budget = float_below(epsilon)

    def height(part: int) -> float:
        mu = gdp.largest_mu(budget, float_below(delta * part / PARTS))
        return -float(ndtri(float_below(delta * (PARTS - part) / PARTS / keys))) / mu

    share = delta * min(range(1, PARTS), key=height) / PARTS
    reach = root_above(Fraction(keys))
    return Gaussian(epsilon, share, sensitivity=reach, grid=INTEGERS), delta - share


def _count(values: Any) -> list[tuple[Any, int]]:
    """How many records have each key; those that cannot be a key (lists) have none."""
    complaint = "StableHistogram takes a mapping of keys to counts or a list of one key per unit."
    counts: dict[tuple[Any, ...], int] = {}
    shown: dict[tuple[Any, ...], Any] = {}
    for record in listed(values, complaint):
        if (spelling := spelled(record)) is not None:
            counts[spelling[0]] = counts.get(spelling[0], 0) + 1
            shown[spelling[0]] = spelling[1]
    kind = _kind(values)
    return [(kind(shown[name]), counts[name]) for name in sorted(counts, key=order)]


def _kept(counts: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The counts of a mapping, whose keys may be spelled as the first record of each was."""
    entries = [(*read, count) for key, count in counts.items() if (read := spelled(key)) is not None]
    entries.sort(key=lambda entry: order(entry[0]))
    return [(key, count) for _, key, count in entries]


def _kind(values: Any) -> Callable[[Any], Any]:
    """How keys are shown: by the type of an array, which the program chose, and else as they are spelled."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "bf" and values.dtype.itemsize <= 8:
        return bool if values.dtype.kind == "b" else float
    return lambda key: key
