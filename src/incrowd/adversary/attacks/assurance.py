"""An attacker who speaks only when sure: how often noisy counts can make her sure, and her best attack.

Her target's secret is one of K values, equally likely to her; she sees a release and names a value or stays
silent. She is *sure at level c* when, of the cases in which she speaks, a share of at least c is right.

Theorem. Let the release be (epsilon, delta)-private for the change of one person's value, S the probability
that she speaks and is right, and r = e^epsilon (1 - c) / (c (K - 1)). If r < 1, then S <= delta / (1 - r).
With delta = 0 she never speaks at all, however much else she knows.

Proof. Let a(v | u) be the probability that she names v when the secret is u. For u other than v,
a(v | v) <= e^epsilon a(v | u) + delta. Averaged over all ordered pairs, S <= e^epsilon W / (K - 1) + delta,
where W is the probability that she speaks and is wrong: W = (1/K) sum over u, v of a(v | u), u other than v.
Being sure at level c means W <= S (1 - c) / c, so S <= r S + delta.

This module knows nothing of tables.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from incrowd.adversary.attacks.bounds import most_success
from incrowd.errors import InvalidInput

SILENT = -1


def most_assured(epsilon: float, delta: float, choices: int, level: float) -> float:
    """The highest probability of being right of an attacker who is sure at this level when she speaks.

    epsilon and delta are those of the change of one secret for another.

    >>> most_assured(1.0, 0.0, choices=14, level=0.95), round(most_assured(8.0, 0.0, 14, 0.95), 4)
    (0.0, 0.9957)
    """
    if not (choices >= 2 and 0 < level <= 1):
        raise InvalidInput("Being sure needs at least two choices, and a level above 0 and at most 1.")
    any_attack = most_success(epsilon, delta, choices)
    ratio = 0.0 if level == 1 else math.exp(min(epsilon, 700.0)) * (1 - level) / (level * (choices - 1))
    return min(any_attack, delta / (1 - ratio)) if ratio < 1 else any_attack


def beliefs(residuals: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """The probability of each secret value, from noisy counts of the values minus everyone else's rows.

    `residuals` has a row for each target, a column for each value, and in front any number of releases: the
    secret's own column is 1 plus noise, the others are noise, all of it discrete Laplace of this scale. The
    beliefs are Bayes' rule from equal priors: each release weighs value v by
    exp((|x_v| - |x_v - 1|) / scale).

    >>> beliefs(np.array([[1, 0]]), scale=1.0).round(3).tolist()
    [[0.881, 0.119]]
    """
    weighed = (np.abs(residuals) - np.abs(residuals - 1)) / scale
    logs = weighed.reshape(-1, *residuals.shape[-2:]).sum(axis=0)
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def named(believed: NDArray[np.float64], level: float) -> NDArray[np.int64]:
    """For each row, the value whose probability is at least `level`; -1 (silence) if there is none.

    >>> named(np.array([[0.97, 0.03], [0.6, 0.4]]), level=0.95).tolist()
    [0, -1]
    """
    return np.where(believed.max(axis=1) >= level, believed.argmax(axis=1), SILENT)
