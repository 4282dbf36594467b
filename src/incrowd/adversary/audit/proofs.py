"""Exact checks, for mechanisms of whose guarantee sampling sees too little.

An audit by sampling sees events of a few in a thousand at best, and only what post-processing has left. Where
that is little, a mechanism is checked in one of two ways besides:

- *exact*: the probability of every output, on many pairs of neighbours. The least epsilon for which a pair
  is (epsilon, delta)-indistinguishable follows from the definition: with delta = 0 it is the largest log
  ratio of two probabilities, otherwise the epsilon at which the sum of max(0, p - e^epsilon q) falls to
  delta. Some data are sampled too, and the frequency of every output must agree with its probability.
- *replayed*: what a mechanism does before noise is drawn, on many pairs of neighbours (`replays`).

Probabilities are floats, so a share may exceed 1 by TOLERANCE, and outputs of probability below NEGLIGIBLE
are left out where delta is 0: there the theorem of the mechanism is all there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.audit.binomial import at_least, at_most
from incrowd.adversary.audit.outputs import Failure

Floats = NDArray[np.float64]
Law = Mapping[Any, float]
"""The probability of every output."""
Pairs = Iterable[tuple[Any, Any]]
TOLERANCE = 1e-9
NEGLIGIBLE = 1e-13
ERROR = 1e-7
"""The chance of reporting that frequencies disagree with a law that they follow."""


@dataclass(frozen=True)
class Proof:
    """What an exact check found."""

    how: Literal["exact", "replayed"]
    share: float
    """The most that any pair loses, as a share of the claim (in epsilon, or in delta where that is more)."""
    pairs: int
    worst: str
    """The pair that loses most."""
    agrees: bool = True
    """Whether sampled outputs follow the probabilities."""

    @property
    def holds(self) -> bool:
        """Whether no pair loses more than is claimed."""
        return self.pairs > 0 and self.agrees and self.share <= 1 + TOLERANCE


def proven(
    how: Literal["exact", "replayed"],
    loss: Callable[[Any, Any], float],
    pairs: Pairs,
    agrees: bool = True,
) -> Proof:
    """The proof from the share of the claim that each pair of neighbours loses."""
    share, worst, count = 0.0, "", 0
    for x, x_prime in pairs:
        lost = loss(x, x_prime)
        count += 1
        if lost > share or not worst:
            share, worst = lost, f"{x!r} and {x_prime!r}"
    return Proof(how, share, count, worst if len(worst) <= 200 else worst[:197] + "...", agrees)


def exactly(
    law: Callable[[Any], Law],
    pairs: Pairs,
    epsilon: float,
    delta: float = 0.0,
    *,
    release: Callable[[Any], Any] | None = None,
    sampled: Iterable[Any] = (),
    runs: int = 2_000,
) -> Proof:
    """The check of a law on pairs of neighbours; `release` is held to the law on the `sampled` data.

    >>> from incrowd.mechanisms import Exponential
    >>> choice = Exponential(1.0)
    >>> proof = exactly(lambda data: dict(enumerate(choice.probabilities(data))), [([1, 0], [0, 1])], 1.0)
    >>> round(proof.share, 3), proof.holds
    (0.5, True)
    """
    kept: dict[str, Law] = {}
    most = 0.0

    def known(data: Any) -> Law:
        key = repr(data)
        if key not in kept:
            if len(kept) > 10_000:
                kept.clear()
            try:
                kept[key] = law(data)
            except Exception as error:  # a failure is an output too, and must not reveal the data
                kept[key] = {Failure(type(error).__name__): 1.0}
        return kept[key]

    def loss(x: Any, x_prime: Any) -> float:
        nonlocal most
        most = max(most, share_of(known(x), known(x_prime), epsilon, delta, most))
        return most

    agrees = release is None or all(follows(release, data, known(data), runs) for data in sampled)
    return proven("exact", loss, pairs, agrees)


def share_of(first: Law, second: Law, epsilon: float, delta: float = 0.0, least: float = 0.0) -> float:
    """What two laws lose, as a share of the claim: of epsilon at its delta, or of delta at its epsilon.

    A share up to `least` may be returned as 0, which saves the search for epsilon.
    """
    keys = list({**first, **second})
    p, q = (np.array([law.get(key, 0.0) for key in keys], dtype=np.float64) for law in (first, second))
    share = 0.0
    for one, other in ((p, q), (q, p)):
        if not delta or hockey_stick(one, other, least * epsilon) > delta:
            share = max(share, least_epsilon(one, other, delta) / epsilon)
        if delta:
            share = max(share, hockey_stick(one, other, epsilon) / delta)
    return share


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    """The delta of one direction: the sum of max(0, p - e^epsilon q)."""
    return float(np.maximum(0.0, p - math.exp(min(epsilon, 700.0)) * q).sum())


def least_epsilon(p: Floats, q: Floats, delta: float = 0.0) -> float:
    """The least epsilon for which P is at most e^epsilon Q + delta on every event."""
    if delta <= 0:
        seen = p > NEGLIGIBLE
        with np.errstate(divide="ignore"):
            return max(0.0, float(np.max(np.log(p[seen]) - np.log(q[seen]), initial=0.0)))
    if hockey_stick(p, q, 0.0) <= delta:
        return 0.0
    if hockey_stick(p, q, 700.0) > delta:
        return math.inf
    from scipy.optimize import brentq

    return float(brentq(lambda e: hockey_stick(p, q, e) - delta, 0.0, 700.0, xtol=1e-12))


def follows(release: Callable[[Any], Any], data: Any, law: Law, runs: int) -> bool:
    """Whether the frequencies of `runs` outputs agree with their probabilities, but for a chance of ERROR.

    Each probability must lie within its exact confidence bounds, ERROR being shared over outputs and sides.
    """
    counts = dict.fromkeys(law, 0)
    for _ in range(runs):
        output = release(data)
        if output not in counts:
            return False
        counts[output] += 1
    hits, masses = np.array(list(counts.values())), np.array([law[key] for key in counts])
    error = ERROR / (2 * len(counts))
    return bool(
        (at_least(hits, runs, error) <= masses).all() and (masses <= at_most(hits, runs, error)).all()
    )
