"""Smooth sensitivity: noise as wide as the data at hand need, when the worst case is far wider.

A function S of the data is a *beta-smooth bound* when S is at least the local sensitivity of f (how far f
can move to a neighbour) and S changes by a factor of at most e^beta between neighbours.

Both theorems below compare f(x) + (S / a) Z with its neighbour. Measure in units of S / a around f(x). Then Z
has density h, and the neighbour's noise is e^l times as wide, |l| <= beta, around a point s. As f moves by at
most the local sensitivities of both, which S and S' bound, |s| <= a min(1, e^l). At the point z the log ratio
of the two densities is

    L = l + ln h(z) - ln h(e^-l (z - s)).

All pairs are of this form in both directions. Rounding to a fixed grid, which is done exactly
(`incrowd.mechanisms.robust.student`, `incrowd.mechanisms.robust.rounded_laplace`), is post-processing.

Theorem (after Nissim, Raskhodnikova, Smith 2007; Student noise as in Bun, Steinke 2019; the exact loss is
worked out here). With Student's noise of v >= 1 degrees of freedom the release is epsilon-differentially
private exactly when epsilon is at least the largest of the three numbers

    sup over z >= 0 of l + ((v + 1) / 2) ln((v + (g z + c)^2) / (v + z^2)),

(l, g, c) = (-beta, e^beta, a), (0, 1, a) and (beta, e^-beta, a e^-beta).

Proof. ln h(z) = -((v + 1) / 2) ln(v + z^2) + constant, so L grows with |w|, where w = e^-l (z - s). By
symmetry z >= 0; then s = -a min(1, e^l) is worst, and w = e^-l z + a for l <= 0, w = e^-l (z + a) for l >= 0.

- For l >= 0 the slope of L in l is 1 - (v + 1) w^2 / (v + w^2), where w falls with l. So the slope rises, and
  L is convex in l.
- For l <= 0 it is 1 - (v + 1) w (w - a) / (v + w^2). Here w (w - a) / (v + w^2) rises with w >= a (its slope
  has the sign of a w^2 + 2 v w - a v > 0), while w falls with l: L is convex again.

So L is largest at l = -beta, 0 or beta. Each of the three is largest where

    g (g z + c) (v + z^2) = z (v + (g z + c)^2), that is g c z^2 + (v + c^2 - g^2 v) z - g c v = 0,

which has one positive root.

The first number is at least beta v, its limit for large z: no beta above epsilon / v is private. `share` says
how far beta goes towards that, and a is the largest that epsilon then allows. Cauchy noise (v = 1) has no
mean; v = 3 has standard deviation sqrt(3) S / a and is the default. Where records are dense S is about
proportional to 1 / beta, and a share of 0.7 makes S / a least.

Theorem (Laplace noise; the exact delta). With a < epsilon, max(a, beta + a e^-beta) <= epsilon and

    (1 - e^-beta) (exp(-(epsilon - a + beta) / k) + exp(-(epsilon + a + beta) / k)) / 2 <= delta,

k = e^beta - 1, the release is (epsilon, delta)-differentially private.

Proof. *Noise that gets wider*, l >= 0. L = l - |z| + e^-l |z - s| is largest at z = 0, where it is at most
l + a e^-l. That is convex in l, so L is at most max(a, beta + a e^-beta) <= epsilon, and nothing is lost to
delta.

*Noise that gets narrower* by e^-l, l > 0. Let b = e^l |s| <= a, and s <= 0 by symmetry.

- For z >= 0, L = (e^l - 1) z + b - l is above epsilon from z1 = (epsilon - b + l) / (e^l - 1) on.
- For z < s, L = (e^l - 1) |z| - b - l is above epsilon from |z| = z2 = (epsilon + b + l) / (e^l - 1) on.
- In between, L <= b - l < epsilon.

The mass beyond z1 is exp(-z1) / 2 here and exp(-e^l z1 - b) / 2 = exp(-epsilon - l - z1) / 2 there. So z1
adds (1 - e^-l) exp(-z1) / 2 to delta, and z2 likewise. Their sum grows with b (it is a cosh) and with l
(z1 and z2 fall with l, as e^l - 1 <= l e^l), so it is largest at b = a and l = beta.

Order statistics (same paper, section 3.1). Let x_1 <= ... <= x_n be clamped to [low, high], with x_i = low
below 1 and x_i = high above n, and let the number n be public (records are replaced, not added). With k + 1
records changed the statistic x_m can move within a window of k + 1 neighbours. So its local sensitivity at
distance k is

    A_k = max over i <= m <= j with j - i = k + 1 of x_j - x_i,

and S = max over k of e^(-beta k) A_k is beta-smooth, the least bound that is. The best j for each i never
falls as i grows, so a divide-and-conquer search takes n log n steps. S is computed in floats with a relative
error below 10^-11 and raised by that error, and 4 * 10^-11 is added to the beta that is charged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import LIMIT, Grid, lattice_of
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    confidence_level,
    counted,
    float_above,
    float_below,
    positive,
    share_of_epsilon,
)
from incrowd.mechanisms.records import read_column
from incrowd.mechanisms.robust.rounded_laplace import rounded_laplace
from incrowd.mechanisms.robust.student import rounded_student
from incrowd.noise import Source
from incrowd.noise.readings import (
    Number,
    binary,
    shown,
)
from incrowd.privacy import Guarantee, approximate

ERROR = Fraction(4, 10**11)  # what float errors of S may add to beta
MOST_BETA, MOST_FACTOR = 50.0, 1e6  # enough for every epsilon of use, and floats do not overflow
_LEAST_SHARE = Fraction(1, 10**9)


@dataclass(frozen=True, eq=False, repr=False)
class SmoothSensitivity(Mechanism):
    """Releases a number with noise of width (smooth bound) / a, on a grid.

    The noise is Student's, for pure epsilon. With `delta` it is Laplace's, which has lighter tails but asks
    for a smoother (smaller) beta. `share` says how epsilon is divided: Student noise takes
    beta = share * epsilon / degrees (share 0.7 unless given), Laplace noise a = (1 - share) epsilon (0.5),
    and the other of the two is the largest that the theorems allow. Give the bound together with the value:
    `release((value, bound))`, where the bound is `beta`-smooth for the function.

    >>> m = SmoothSensitivity(epsilon=1.0)
    >>> round(m.beta, 4), round(float(m.factor), 4)
    (0.2333, 0.5969)
    >>> round(SmoothSensitivity(epsilon=1.0, delta=1e-6).beta, 4)
    0.053
    >>> ages = list(range(18, 90)) * 20
    >>> centre, bound = order_statistic(ages, 720, low=0, high=120, beta=m.beta)
    >>> centre, bound < 2
    (53.0, True)
    """

    epsilon: Number
    delta: Number | None = None
    _: KW_ONLY
    degrees: int = 3
    share: Number | None = None
    grid: Number | Grid = 2.0**-20

    def __post_init__(self) -> None:
        if counted(self.degrees, "degrees") % 2 == 0 or self.degrees > 99:
            raise InvalidInput(f"degrees must be an odd number from 1 to 99, not {shown(self.degrees)}.")
        if self.exact_delta > Fraction(1, 4):
            raise InvalidInput(f"delta must be at most 1/4 for smooth sensitivity, not {shown(self.delta)}.")
        if self.exact_beta <= 0 or self.factor <= 0:
            raise InvalidInput(
                f"An epsilon of {shown(self.epsilon)} is too small for smooth sensitivity here."
            )
        _ = self.lattice

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """Epsilon as a fraction."""
        return amount(self.epsilon, "epsilon")

    @cached_property
    def exact_delta(self) -> Fraction:
        """Delta as a fraction; 0 where none is given."""
        return Fraction(0) if self.delta is None else amount(self.delta, "delta")

    @cached_property
    def _share(self) -> Fraction:
        usual = Fraction(1, 2) if self.exact_delta else Fraction(7, 10)
        share = usual if self.share is None else share_of_epsilon(self.share)
        if not _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
            raise InvalidInput("share must lie between 1e-9 and 1 - 1e-9 for smooth sensitivity.")
        return share

    @cached_property
    def _charged_beta(self) -> Fraction:
        """The beta that the theorems charge for: the one asked of a bound, and what float errors may add."""
        if not self.exact_delta:
            return min(self.exact_epsilon * self._share / self.degrees, Fraction(MOST_BETA))
        a = float(self.factor)
        fits = partial(_laplace_fits, a, epsilon=self.exact_epsilon, delta=self.exact_delta)
        return Fraction(_largest(fits, MOST_BETA))

    @cached_property
    def exact_beta(self) -> Fraction:
        """How smooth the bound must be."""
        return self._charged_beta - ERROR

    @cached_property
    def factor(self) -> Fraction:
        """The a of the theorems: noise is (smooth bound) / a wide."""
        if self.exact_delta:
            return self.exact_epsilon * (1 - self._share)
        beta, most = float_above(self._charged_beta), float_below(self.exact_epsilon)
        return Fraction(
            _largest(lambda a: student_loss(a, beta, self.degrees) * (1 + 1e-12) <= most, MOST_FACTOR)
        )

    @cached_property
    def lattice(self) -> Grid:
        """The grid that answers are rounded to."""
        return lattice_of(self.grid, 1.0, 0)

    @property
    def beta(self) -> float:
        """How smooth the bound must be, as a float that is not above it."""
        return float(self.exact_beta) * (1 - 2.0**-52)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees."""
        return approximate(self.exact_epsilon, self.exact_delta)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """A private number for (value, smooth bound); neither is private by itself."""
        centre, width = self._read(value)
        if self.exact_delta:
            steps = rounded_laplace(centre, width, self.lattice.step, source)
        else:
            steps = rounded_student(centre, width, self.lattice.step, self.degrees, source)
        clamped = max(-LIMIT, min(LIMIT, steps))  # post-processing
        return self.lattice.values(np.asarray(clamped, dtype=np.int64))

    def release_rank(
        self, values: Any, rank: int, *, low: Number, high: Number, source: Source | None = None
    ) -> Any:
        """A private order statistic, with the bound that is smooth enough for this mechanism."""
        return self.release(order_statistic(values, rank, low=low, high=high, beta=self.beta), source)

    def distribution(self, outcome: Any, value: Any) -> Any:
        """P(released <= outcome) for (value, smooth bound), in float64."""
        centre, width = self._read(value)
        edge = (self.lattice.steps(outcome, "SmoothSensitivity") + 0.5) * float(self.lattice.step)
        place = (edge - float(centre)) / float(width)
        if self.exact_delta:
            tail = np.exp(-np.abs(place)) / 2
            return np.where(place < 0, tail, 1 - tail)
        from scipy.special import stdtr

        return stdtr(self.degrees, place)

    def halfwidth(self, confidence: Number, bound: Number = 1) -> float:
        """The error with this confidence, given the smooth bound (which is as private as the data)."""
        failure = float_below(1 - confidence_level(confidence))
        width = float_above(positive(bound, "bound") / self.factor)
        quantile = -math.log(failure) if self.exact_delta else _student_reach(failure, self.degrees)
        return quantile * width * (1 + 1e-9) + float(self.lattice.step)

    def _read(self, value: Any) -> tuple[Fraction, Fraction]:
        if not isinstance(value, tuple) or len(value) != 2:
            raise InvalidInput("SmoothSensitivity releases a pair (value, smooth bound).")
        centre = value[0]
        if isinstance(centre, float | np.floating) and not math.isfinite(centre):
            centre = float(np.nan_to_num(float(centre)))  # 0 for NaN, the largest float for an infinity
        return binary(centre, "the value", True), positive(value[1], "the smooth bound", True) / self.factor


def student_loss(a: float, beta: float, degrees: int) -> float:
    """The exact epsilon of Student noise, up to a relative 1e-13.

    >>> round(student_loss(0.433, 1 / 6, 3), 4), round(student_loss(0.725, 1 / 6, 3), 4)
    (0.7331, 1.0)
    """
    return max(
        _largest_ratio(-beta, beta, a, degrees),
        _largest_ratio(0.0, 0.0, a, degrees),
        _largest_ratio(beta, -beta, a * math.exp(-beta), degrees),
    )


def _largest_ratio(shift: float, log_g: float, c: float, v: int) -> float:
    """The sup over z >= 0 of shift + ((v + 1) / 2) ln((v + (g z + c)^2) / (v + z^2)), in closed form."""
    g, more = math.exp(log_g), math.expm1(log_g)
    middle = c**2 - v * more * (g + 1)
    root = math.sqrt(middle**2 + 4 * g**2 * c**2 * v)
    # The positive root of g c z^2 + middle z - g c v, without cancellation.
    z = 2 * g * c * v / (middle + root) if middle > 0 else (root - middle) / (2 * g * c)
    # (g z + c)^2 - z^2 as a product, so that a small loss is computed to full precision.
    gain = (more * z + c) * ((g + 1) * z + c) / (v + z**2)
    return shift + (v + 1) / 2 * math.log1p(gain)


def _student_reach(failure: float, v: int) -> float:
    """A t with P(|T| > t) at most the failure; the least one, to nine digits, unless the failure is tiny.

    Beyond what the library inverts, the density is at most c v^((v + 1) / 2) t^-(v + 1), and so the two tails
    together at most 2 c v^((v - 1) / 2) t^-v.
    """
    if failure >= 1e-100:
        from scipy.special import stdtrit

        return -float(stdtrit(v, failure / 2))
    log_c = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - math.log(v * math.pi) / 2
    return math.exp((log_c + (v - 1) / 2 * math.log(v) + math.log(2) - math.log(failure)) / v)


def laplace_delta(a: float, beta: float, epsilon: float) -> float:
    """The exact delta of Laplace noise that gets narrower by up to e^-beta, up to a relative 1e-12.

    >>> round(laplace_delta(0.5, 0.053, 1.0) * 1e6, 2)
    1.0
    """
    k = math.expm1(beta)
    tails = math.exp(-(epsilon - a + beta) / k) + math.exp(-(epsilon + a + beta) / k)
    return -math.expm1(-beta) * tails / 2


def _laplace_fits(a: float, beta: float, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the two conditions of the theorem hold, with a margin far above the errors of the floats."""
    budget, slack = float_below(epsilon), float_below(delta)
    wider = max(a, beta + a * math.exp(-beta)) * (1 + 1e-14)
    return wider <= budget and laplace_delta(a * (1 + 1e-15), beta, budget) * (1 + 1e-10) <= slack


def _largest(fits: Callable[[float], bool], most: float) -> float:
    """About the largest positive float up to `most` that fits, by bisection; one that fits, or 0."""
    low, high = 0.0, most
    if fits(most):
        return most
    for _ in range(1200):  # more than floats have exponents
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def order_statistic(
    values: Any, rank: int, *, low: Number, high: Number, beta: Number
) -> tuple[float, float]:
    """The value of a rank (1 is the least) among the clamped values, and its least beta-smooth bound.

    The bound is above the exact one by a relative 2 * 10^-11 at most. Conditions: records are replaced, never
    added, so their number is public; low and high do not depend on the data.
    """
    least, most = binary(low, "low"), binary(high, "high")
    speed = float(positive(beta, "beta"))
    if least >= most:
        raise InvalidInput(f"low must be below high, but they are {shown(low)} and {shown(high)}.")
    array = read_column(values, "an order statistic", public=True)
    if array.size == 0:
        raise InvalidInput("The values of an order statistic must hold at least one number.")
    if counted(rank, "rank") > array.size:
        raise InvalidInput(f"rank must be at most the number of values, not {shown(rank)}.")
    # The bound is at most this distance, raised by a little, whatever the records are.
    if max(abs(least), abs(most), (most - least) * (1 + Fraction(1, 10**10))) > sys.float_info.max:
        raise InvalidInput("low and high of an order statistic are too far apart: use a larger unit.")
    ends = float(least), float(most)
    if not ends[0] < ends[1]:
        raise InvalidInput("low and high of an order statistic must be two different floats.")
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
