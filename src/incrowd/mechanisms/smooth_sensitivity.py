"""Smooth sensitivity: noise as wide as the data at hand need, when the worst case is far wider.

A function S of the data is a *beta-smooth bound* when S is at least the local sensitivity of f (how far f
can move to a neighbour) and S changes by a factor of at most e^beta between neighbours.

Theorem (Nissim, Raskhodnikova, Smith 2007; Student noise as in Bun, Steinke 2019). f + (S / a) T with
Student's T of v >= 1 degrees of freedom is epsilon-differentially private for epsilon = a (v + 1) / (2
sqrt(v)) + beta v. Proof. The density at y is (a / S) h(a (y - f) / S), h(z) proportional to (1 + z^2 /
v)^(-(v + 1) / 2). Going to a neighbour, first move f by at most S: the argument moves by at most a, and |d
ln h / dz| = (v + 1)(|z| / v) / (1 + z^2 / v) is largest at z = sqrt(v), where it is (v + 1) / (2 sqrt(v)).
Then change S by at most a factor e^beta: with u = z^2 / v, the slope of ln(e^l h(e^l z)) in l is 1 - (v +
1) u / (1 + u), between -v and 1. Rounding to a fixed grid is post-processing, and is done exactly
(`incrowd.mechanisms.student`).

Cauchy noise (v = 1) has no mean; v = 3 has standard deviation sqrt(3) S / a and is the default.

With a delta (Laplace noise; after the same paper, with the constants worked out). f + (S / a) Z with
Laplace's Z is (a + e, delta)-differentially private when beta <= e and e + beta >= (e^beta - 1) ln(1 /
delta). Proof. Let S, S' belong to x, x' and b = S / a. First narrow or widen the noise around f(x) from S
to S', then move f by at most S' (the local sensitivity at x' is at most S'), which is the plain Laplace
mechanism at a, with no delta. Widening costs ln(S' / S) <= beta <= e. Narrowing by e^-l, l <= beta: the
ratio of densities at distance y is e^-l exp((e^l - 1) y / b), above e^e only where y / b > (e + l) / (e^l -
1). That has probability exp(-(e + l) / (e^l - 1)), largest at l = beta, where it is delta at most. So P <=
e^e (Lap around f(x) with S') + delta <= e^(e + a) P' + delta.

Order statistics (same paper, section 3.1). Let x_1 <= ... <= x_n be clamped to [low, high], with x_i = low
below 1 and high above n, and the number n be public (records are replaced, not added). The statistic x_m
can move with k + 1 records changed within a window of k + 1 neighbours, so its local sensitivity at
distance k is A_k = max over i <= m <= j, j - i = k + 1 of x_j - x_i, and S = max over k of e^(-beta k) A_k
is beta-smooth, the least that is. The best j for each i never falls as i grows, so a divide-and-conquer
search takes n log n steps. S is computed in floats with a relative error below 10^-11, raised by it, and 4
* 10^-11 is added to the beta that is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from incrowd.errors import InvalidInput
from incrowd.mechanisms.grid import LIMIT, Grid, lattice
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    Number,
    amount,
    confidence_level,
    exact,
    float_above,
    positive,
    root_below,
    whole,
)
from incrowd.mechanisms.records import read_column
from incrowd.mechanisms.rounded_laplace import rounded_laplace
from incrowd.mechanisms.student import rounded_student
from incrowd.noise import Source
from incrowd.privacy import Guarantee, approximate

ERROR = Fraction(4, 10**11)  # what float errors of S may add to beta


@dataclass(frozen=True, init=False)
class SmoothSensitivity(Mechanism):
    """Releases a number with noise of width (smooth bound) / a, on a grid.

    The noise is Student's, for pure epsilon; with `delta` it is Laplace's, which has lighter tails but asks
    for a smoother (smaller) beta. `share` of epsilon pays for the smooth bound, the rest for the number. Give
    the bound together with the value: `release((value, bound))`, where the bound is `beta`-smooth for the
    function.

    >>> m = SmoothSensitivity(epsilon=1.0)
    >>> round(m.beta, 4), round(float(m.factor), 4)
    (0.1667, 0.433)
    >>> ages = list(range(18, 90)) * 20
    >>> centre, bound = order_statistic(ages, 720, low=0, high=120, beta=m.beta)
    >>> centre, bound < 2
    (53.0, True)
    """

    exact_epsilon: Fraction
    exact_delta: Fraction
    degrees: int
    exact_beta: Fraction
    factor: Fraction
    grid: Grid

    def __init__(
        self,
        epsilon: Number,
        degrees: int = 3,
        share: Number = Fraction(1, 2),
        grid: Number | Grid = Fraction(1, 2**20),
        *,
        delta: Number | None = None,
    ) -> None:
        total = amount(epsilon, "epsilon")
        freedom = whole(degrees, "degrees")
        if freedom % 2 == 0 or freedom > 99:
            raise InvalidInput(f"degrees must be an odd number from 1 to 99, not {degrees}.")
        part = exact(share, "share")
        if not 0 < part < 1:
            raise InvalidInput(f"share must lie strictly between 0 and 1, not {share}.")
        slack = Fraction(0) if delta is None else amount(delta, "delta")
        if slack > Fraction(1, 4):
            raise InvalidInput(f"delta must be at most 1/4 for smooth sensitivity, not {delta}.")
        beta = (_laplace_beta(total * part, slack) if slack else total * part / freedom) - ERROR
        if beta <= 0:
            raise InvalidInput(f"An epsilon of {epsilon} is too small for smooth sensitivity here.")
        # a (v + 1) / (2 sqrt(v)) = (1 - share) epsilon, with sqrt(v) rounded down
        factor = total * (1 - part)
        if not slack:
            factor *= 2 * root_below(Fraction(freedom)) / (freedom + 1)
        for name, value in (
            ("exact_epsilon", total),
            ("exact_delta", slack),
            ("degrees", freedom),
            ("exact_beta", beta),
            ("factor", factor),
            ("grid", lattice(grid, 1.0, 0)),
        ):
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> float:
        """The claimed epsilon."""
        return float_above(self.exact_epsilon)

    @property
    def beta(self) -> float:
        """How smooth the bound must be."""
        return float(self.exact_beta) * (1 - 2.0**-52)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees."""
        return approximate(self.exact_epsilon, self.exact_delta)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """A private number for (value, smooth bound); neither is private by itself."""
        centre, width = self._read(value)
        if self.exact_delta:
            steps = rounded_laplace(centre, width, self.grid.step, source)
        else:
            steps = rounded_student(centre, width, self.grid.step, self.degrees, source)
        clamped = max(-LIMIT, min(LIMIT, steps))  # post-processing
        return self.grid.values(np.asarray(clamped, dtype=np.int64))

    def release_rank(
        self, values: Any, rank: int, *, low: Number, high: Number, source: Source | None = None
    ) -> Any:
        """A private order statistic, with the bound that is smooth enough for this mechanism."""
        return self.release(order_statistic(values, rank, low=low, high=high, beta=self.beta), source)

    def distribution(self, outcome: Any, value: Any) -> Any:
        """P(released <= outcome) for (value, smooth bound), in float64."""
        centre, width = self._read(value)
        edge = (self.grid.steps(outcome, "SmoothSensitivity") + 0.5) * float(self.grid.step)
        place = (edge - float(centre)) / float(width)
        if self.exact_delta:
            tail = np.exp(-np.abs(place)) / 2
            return np.where(place < 0, tail, 1 - tail)
        return stdtr(self.degrees, place)

    def halfwidth(self, confidence: Number, bound: Number = 1) -> float:
        """The error with this confidence, given the smooth bound (which is as private as the data)."""
        level = float(confidence_level(confidence))
        width = float(positive(bound, "bound") / self.factor)
        if self.exact_delta:
            quantile = -math.log1p(-level)
        else:
            quantile = float(stdtrit(self.degrees, (1 + level) / 2))
        return quantile * width * (1 + 1e-9) + float(self.grid.step)

    def _read(self, value: Any) -> tuple[Fraction, Fraction]:
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidInput("SmoothSensitivity releases a pair (value, smooth bound).")
        centre = value[0]
        if isinstance(centre, float | np.floating) and not math.isfinite(centre):
            centre = float(np.nan_to_num(float(centre)))  # 0 for NaN, the largest float for an infinity
        return exact(centre, "the value", True), positive(value[1], "the smooth bound", True) / self.factor


def _laplace_beta(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest beta, rounded down, with epsilon + beta >= (e^beta - 1) ln(1 / delta)."""
    spend, depth = float(epsilon) * (1 - 1e-14), -math.log(float(delta)) * (1 + 1e-14)
    low, high = 0.0, spend
    for _ in range(200):
        middle = (low + high) / 2
        fits = (spend + middle) * (1 - 1e-14) >= math.expm1(min(middle, 700.0)) * depth * (1 + 1e-14)
        low, high = (middle, high) if fits else (low, middle)
    return Fraction(low)


def order_statistic(
    values: Any, rank: int, *, low: Number, high: Number, beta: Number
) -> tuple[float, float]:
    """The value of a rank (1 is the least) among the clamped values, and its least beta-smooth bound.

    The bound is above the exact one by a relative 2 * 10^-11 at most. Conditions: records are replaced, never
    added, so their number is public; low and high do not depend on the data.
    """
    least, most = exact(low, "low"), exact(high, "high")
    speed = float(positive(beta, "beta"))
    if least >= most:
        raise InvalidInput(f"low must be below high, but they are {low} and {high}.")
    array = read_column(values, "an order statistic", public=True)
    if array.size == 0:
        raise InvalidInput("The values of an order statistic must hold at least one number.")
    if whole(rank, "rank") > array.size:
        raise InvalidInput(f"rank must be at most the number of values, not {rank}.")
    ends = float(least), float(most)
    if not 0 < ends[1] - ends[0] < math.inf:
        raise InvalidInput("low and high of an order statistic must be apart by a finite distance.")
    ordered = np.concatenate(([ends[0]], np.sort(np.clip(array, *ends)), [ends[1]]))
    log_bound = _log_smooth(ordered, rank, speed)
    # A floor that does not depend on the data keeps the bound smooth, and above zero where all values agree.
    floor = max(math.log(ends[1] - ends[0]) - 600, -700.0)
    return float(ordered[rank]), math.exp(max(log_bound, floor)) * (1 + 2e-11)


def _log_smooth(x: NDArray[np.float64], m: int, beta: float) -> float:
    """ln of the max over i <= m <= j, i < j, of (x_j - x_i) exp(-beta (j - i - 1)); x has both ends added.

    Only windows that can win are searched: beyond reach = (ln(range / A) / beta) from m, with A the best of
    the direct neighbours, even the whole range is too small.
    """
    n = x.size - 1
    near = max(x[m] - x[m - 1], x[m + 1] - x[m])
    reach = n
    if near > 0:
        # Logarithms first: the quotient of a range and a denormal distance overflows.
        wanted = (math.log(x[n] - x[0]) - math.log(near)) / beta
        reach = n if wanted >= n else min(n, math.ceil(wanted) + 2)
    first, last = max(0, m - reach), min(n, m + reach)
    best = -math.inf
    jobs = [(first, m, m, last)]
    while jobs:
        a, b, p, q = jobs.pop()
        if a > b:
            continue
        i = (a + b) // 2
        js = np.arange(max(p, i + 1), q + 1)
        gaps = x[js] - x[i]
        with np.errstate(divide="ignore"):
            scores = np.log(gaps) - beta * (js - i - 1)
        place = int(scores.argmax())
        best = max(best, float(scores[place]))
        j = int(js[place]) if np.isfinite(scores[place]) else p
        jobs.append((a, i - 1, p, q if not np.isfinite(scores[place]) else max(j, p)))
        jobs.append((i + 1, b, j, q))
    return best
