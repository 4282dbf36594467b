"""The privacy of shuffled reports, from the pair behind the theorem, rounded outwards.

THEOREM (Feldman, McMillan, Talwar 2022, "Hiding among the clones", Theorem 3.1 and its proof). n people each
send the output of an epsilon0-DP local randomiser, which may depend on earlier reports; the reports are
shuffled. Replacing one person's value is a post-processing of the pair

    P: (A + D, C - A + 1 - D)    Q: (A + 1 - D, C - A + D),

C ~ Binomial(n - 1, s) with s = exp(-epsilon0), A ~ Binomial(C, 1/2),
D ~ Bernoulli(e^epsilon0 / (1 + e^epsilon0)). C counts the clones: every other report is, with probability s,
drawn as if from one of the two values in question. For two-way randomized response s = 2 / (1 + e^epsilon0):
each report is a fair coin with that probability and its own value otherwise, and the person's report is one
of the two outcomes.

For a given C = c the first count a has P / Q = (e^epsilon0 a + b) / (a + e^epsilon0 b), b = c + 1 - a, which
rises with a, so the best test is a >= a*, and with S(a) = P(Binomial(c, 1/2) >= a)

    delta_c(epsilon) = (1 - e^(epsilon - epsilon0)) / (1 + e^-epsilon0) P(Binomial(c, 1/2) = a* - 1)
                       - (e^epsilon - 1) S(a*).

Error. More clones only hide more (add fair coins), so delta_c falls with c, and delta is at most its sum over
steps of c with any upper bound on P(C < c): its value raised by a millionth, or for large n that of Chernoff,
exp(-(n s - c)^2 / (2 n v)), v the largest t (1 - t) for t from c / n to s. S is bounded from below: masses
are log-concave, so that between two of them lie at least those of a geometric series; each is known by
Stirling's formula with its bounds. Both signs of a rounded a* are tried.
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.privacy.transforms import Floats

MOST_REPORTS = 10**18
"""Fewer reports than there are is a weaker statement, and so true."""
_EXACT = 2000
"""Up to this many coins masses are products of factorials; beyond, Stirling's formula is close enough."""
_MOST_EXACT = 10**8
"""Up to this many others the number of clones has its exact distribution."""
_ROUNDING = 1e-9
_FINE = 25
"""Masses that are evaluated in a deviation of A, and ..."""
_REACH = 12 * _FINE
"""... altogether. What is left out would only lower delta."""


def delta(epsilon0: float, share: float, reports: int, epsilon: float, target: float) -> float:
    """An upper bound on delta(epsilon), close where it is about `target`."""
    if epsilon >= epsilon0:
        return 0.0
    others = float(min(reports, MOST_REPORTS) - 1)
    share *= 1 - 1e-14
    mean, deviation = others * share, math.sqrt(others * share * (1 - share))
    depth = 1.5 * math.sqrt(2 * (math.log(1 / target) + 12))
    z = np.append(np.arange(-4.0, depth, 0.25), depth)
    coins = np.clip(np.floor(mean * (1 - 1e-15) - z * deviation), 0.0, others)
    coins[-1] = 0.0
    chance = _fewer(coins, others, share)
    deltas = np.maximum.accumulate(_conditional(epsilon0, coins, epsilon))
    # C is at least coins[i] but for a chance below chance[i]: then the next, larger delta counts.
    return min(1.0, float(deltas[0] + chance[:-1] @ np.diff(deltas)) * (1 + 1e-9))


def _fewer(coins: Floats, others: float, share: float) -> Floats:
    """Upper bounds on P(C < c) for each c: Chernoff's, and the incomplete beta function where it is exact."""
    below = coins / max(others, 1.0)
    spread = np.where(below > 0.5, below * (1 - below), np.where(share < 0.5, share * (1 - share), 0.25))
    gap = np.maximum(0.0, others * share - coins)
    chance = np.exp(-np.minimum(gap * gap / np.maximum(2 * others * spread, 1e-300), 700.0))
    if others <= _MOST_EXACT:
        from scipy.special import betainc

        # P(C <= c - 1) = I_(1 - s)(n - c + 1, c)
        exact = betainc(others - coins + 1, np.maximum(coins, 1.0), 1 - share)
        chance = np.minimum(chance, np.where(coins > 0, exact, 0.0) + 1e-300)
    return np.asarray(np.minimum(1.0, chance * (1 + 1e-6)))


def _conditional(epsilon0: float, coins: Floats, epsilon: float) -> Floats:
    """Upper bounds on delta_c(epsilon) for each number of coins c."""
    hit = -math.expm1(epsilon - epsilon0) / (1 + math.exp(-epsilon0)) * (1 + 1e-13)
    miss = math.expm1(epsilon) * (1 - 1e-13)
    # a and c + 1 - a differ by more than (c + 1) tanh(epsilon / 2) / tanh(epsilon0 / 2), and like c + 1 in
    # parity. From here on a mass is named by how far heads exceed tails.
    least = np.floor((coins + 1) * (math.tanh(epsilon / 2) / math.tanh(epsilon0 / 2))) + 1
    least += (least + coins + 1) % 2
    tail = _tail(coins, least + 1)
    here, before, after = (_mass(coins, least + shift, 1) for shift in (-1, -3, 1))
    tried = (
        hit * here - miss * tail,
        hit * before - miss * (tail + _mass(coins, least - 1, -1)),
        hit * after - miss * np.maximum(0.0, tail - after),
    )
    return np.asarray(np.maximum(0.0, np.maximum.reduce(tried)))


def _mass(coins: Floats, excess: Floats, sign: int) -> Floats:
    """P(heads - tails = excess) of fair coins, bounded from above (sign 1) or below (-1)."""
    from scipy.special import gammaln

    heads, tails = (coins + excess) / 2, (coins - excess) / 2
    inside = (heads >= 0) & (tails >= 0)
    heads, tails = np.maximum(heads, 0.0), np.maximum(tails, 0.0)
    exact = gammaln(coins + 1) - gammaln(heads + 1) - gammaln(tails + 1) - coins * math.log(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(coins > 0, np.abs(excess) / coins, 0.0)
        square = x * x
        near = np.zeros_like(square)
        for j in range(7, 0, -1):
            near = square * (1 / (2 * j * (2 * j - 1)) + near)
        far = ((1 + x) * np.log1p(x) + (1 - x) * np.log1p(-np.minimum(x, 1 - 1e-16))) / 2
        stirling = np.log(2 / (math.pi * coins * (1 - square))) / 2 - coins * np.where(x < 0.05, near, far)
        # log n! - Stirling lies between 1 / (12 n + 1) and 1 / (12 n).
        more, less = (0, 1) if sign > 0 else (1, 0)
        stirling += 1 / (12 * coins + more) - 1 / (12 * heads + less) - 1 / (12 * tails + less)
    ends = np.where(np.minimum(heads, tails) < 1, -coins * math.log(2), stirling)
    log_mass = np.where(coins <= _EXACT, exact, ends)
    return np.asarray(np.where(inside, np.exp(log_mass), 0.0) * (1 + sign * _ROUNDING))


def _tail(coins: Floats, excess: Floats) -> Floats:
    """P(heads - tails >= excess) of fair coins, bounded from below."""
    stride = np.maximum(1.0, np.floor(np.sqrt(coins) / (2 * _FINE)))
    place = excess[:, None] + 2 * stride[:, None] * np.arange(_REACH + 1)
    mass = _mass(coins[:, None], place, -1)
    first, last = mass[:, :-1], mass[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = np.log(first / last)
        series = (first - last) / -np.expm1(-fall / stride[:, None])
        steps = np.where(fall > 1e-6, series, stride[:, None] * np.minimum(first, last))
    # Without a next mass there is only the first of the series.
    steps = np.where((last > 0) & (first > 0), steps * (1 - 1e-9), first)
    return np.asarray(steps.sum(axis=1) * (1 - 1e-9))


def least_epsilon(epsilon0: float, share: float, reports: int, target: float) -> float:
    """The least epsilon (rounded up) with delta(epsilon) <= target."""
    inner = target * (1 - 1e-12)
    if delta(epsilon0, share, reports, 0.0, inner) <= inner:
        return 0.0
    low, high = 0.0, epsilon0
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        good = delta(epsilon0, share, reports, middle, inner) <= inner
        low, high = (low, middle) if good else (middle, high)
    return high
