"""The Gaussian mechanism: a number or a vector with discrete Gaussian noise on a fine lattice.

Theorem. Let f return points of the lattice Z^d and move by at most D in L2 between neighbours, and let Z have
independent coordinates with P(Z = z) proportional to exp(-z^2 / (2 sigma^2)) on the integers. For any r with
0 < r < sigma, f + Z is mu-GDP (as private as telling N(0, 1) from N(mu, 1); Dong, Roth, Su 2022) for
mu = D / sqrt(sigma^2 - r^2), up to a factor c^d on probabilities, where c = (1 + t) / (1 - t) and
t = 2.01 exp(-2 pi^2 r^2). In every dimension, for every epsilon.

Proof. Given x in Z^d, draw X from the continuous N(x, s^2 I) with s^2 = sigma^2 - r^2. Then draw each Y_j
from the discrete Gaussian of parameter r *centred at X_j*:

    P(Y = y | X) = exp(-(y - X)^2 / (2 r^2)) / T_r(X),

T_r(X) being the sum of the numerator over all whole y. X is the continuous Gaussian mechanism, mu-GDP with
mu = D / s, and Y sees only X. By Poisson summation

    T_r(X) = r sqrt(2 pi) (1 + 2 sum over k >= 1 of exp(-2 pi^2 r^2 k^2) cos(2 pi k X)),

within a factor 1 +- t of r sqrt(2 pi) whatever X. So the mass of Y at y, the integral over X of
N(X; x, s^2) exp(-(y - X)^2 / (2 r^2)) / T_r(X), is within a factor 1 / (1 +- t) of the convolution of two
Gaussian densities, N(y; x, sigma^2).

The mass of x + Z at y is N(y; x, sigma^2) times sigma sqrt(2 pi) / T_sigma(0) (x is a lattice point, so the
sum does not depend on it). That is within a factor 1 / (1 +- t) of the same density, as sigma > r. So the two
laws are within a factor c of each other in each coordinate, and if Y satisfies (epsilon, delta) then x + Z
satisfies (epsilon + 2 d ln c, c^d delta).

Here r = 64 steps: t < 10^-35000, and c^d - 1 < 10^-34900 for every d < 2^64. We claim a mu that is larger
than D / s by at least a part in 2^53. That pays for the factor. With z = epsilon/mu - mu/2,

    d delta_mu(epsilon) / d mu = phi(z),

while the factor adds less than 4 (c^(2d) - 1) exp(mu^2 / 8) phi(z) to delta (bound delta by 1.26 phi(z) for
z >= 0 and by 1 otherwise, and -d delta / d epsilon = e^epsilon Phi(-epsilon/mu - mu/2) by 1.26 phi(z)). For
mu from 10^-300 to 500, which is all that is accepted, the former is larger. Noise beyond 2^62 fine steps, of
probability below exp(-2^22), is clamped by the sampler or with the output. It is likewise below every delta
that a float holds.

*On the integers* the noise is drawn on the finer lattice of multiples of 2^-k, with sigma at least 2^20 of
its steps, and rounded: value + round(noise). As the value is an integer this is the rounding of
value + noise, that is, post-processing of the mechanism above. Reals are floored onto their grid first and
treated like integers after.

Calibration. (epsilon, delta): mu-GDP is (epsilon, delta)-DP exactly when Phi(mu/2 - epsilon/mu) - e^epsilon
Phi(-mu/2 - epsilon/mu) <= delta (the analytic Gaussian mechanism; Balle, Wang 2018), so the largest such mu
is taken. rho-zCDP: mu^2 / 2 = rho (Bun, Steinke 2016).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import (
    Grid,
    add_saturating,
    check_length,
    floored_l2,
    lattice_of,
)
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    counted,
    delta_amount,
    failure_each,
    float_above,
    float_below,
    log2_floor,
    one_calibration,
    positive,
    probability,
    root_above,
    root_below,
)
from incrowd.noise import Source, discrete_gaussian, discrete_gaussian_sf
from incrowd.noise.arguments import as_float
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, gaussian, gdp

RADIUS = 64  # r of the theorem, in fine steps
FINE = 20  # sigma is at least 2^FINE fine steps
LEAST_MU, MOST_MU = 1e-300, 500.0


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Mechanism):
    """Releases a value with discrete Gaussian noise.

    Give (epsilon, delta), rho, or the scale (standard deviation) itself. `sensitivity` is the largest L2
    distance between the values of two neighbouring datasets. With a whole sensitivity (1, not 1.0) and no
    grid, integers go in and integers come out; otherwise values are reals on a grid of multiples of a power
    of two, and `size` is the most numbers that one release may hold.

    Accuracy: each coordinate's error has standard deviation `noise_scale`; `halfwidth` gives intervals.

    >>> m = Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1)
    >>> round(m.noise_scale, 4), m.halfwidth(0.95)
    (4.2247, 8)
    >>> round(textbook_sigma(0.99, 1e-6), 4)
    5.3523
    """

    epsilon: Number | None = None
    delta: Number | None = None
    _: KW_ONLY
    rho: Number | None = None
    scale: Number | None = None
    sensitivity: Number = 1
    grid: Number | Grid | None = None
    size: int = 1

    def __post_init__(self) -> None:
        ways = (("epsilon", "delta"), ("rho",), ("scale",))
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "scale": self.scale}
        way = one_calibration("Gaussian", ways, amounts)
        _check_mu(self.mu, way)
        if self.sigma_in_fine_steps > 2**50:
            raise InvalidInput(
                f"Gaussian noise of scale {self.noise_scale:.3g} on a grid of {float(self.lattice.step):.3g} "
                "is too wide (beyond 2**50 steps): use a coarser grid or unit."
            )

    @cached_property
    def _wanted_mu(self) -> float | None:
        """The mu that epsilon and delta, or rho, ask for; None where the scale is given."""
        if self.scale is not None:
            return None
        return _mu_for(self.epsilon, self.delta) if self.rho is None else _mu_for_rho(self.rho)

    @cached_property
    def lattice(self) -> Grid:
        """The grid that values are floored onto."""
        reach = positive(self.sensitivity, "sensitivity")
        mu = self._wanted_mu
        width = positive(self.scale, "scale") if mu is None else reach / Fraction(mu)
        finest = log2_floor(min(reach / root_above(Fraction(counted(self.size, "size"))), width)) - FINE
        return lattice_of(self.grid, self.sensitivity, max(finest, log2_floor(width) - 48))

    @cached_property
    def sensitivity_in_steps(self) -> Fraction:
        """The largest L2 distance after flooring, in grid steps, rounded up."""
        return floored_l2(positive(self.sensitivity, "sensitivity"), self.lattice, counted(self.size, "size"))

    @cached_property
    def _sigma_in_steps(self) -> Fraction:
        """The standard deviation in grid steps, before the r of the theorem widens it."""
        mu = self._wanted_mu
        if mu is None:
            return positive(self.scale, "scale") / self.lattice.step
        return self.sensitivity_in_steps / Fraction(mu) * (1 + Fraction(1, 2**50))

    @cached_property
    def fine(self) -> int:
        """The k of the fine lattice: noise is drawn in steps of 2^-k grid steps."""
        return max(0, FINE + 1 - log2_floor(self._sigma_in_steps))

    @cached_property
    def sigma_in_fine_steps(self) -> Fraction:
        """The exact standard deviation of the noise, in fine steps."""
        sigma = self._sigma_in_steps * 2**self.fine
        return sigma if self._wanted_mu is None else root_above(sigma**2 + RADIUS**2)

    @cached_property
    def mu(self) -> float:
        """The mu of mu-GDP that one release guarantees, rounded up."""
        if self._wanted_mu is not None:
            return self._wanted_mu
        smooth = root_below(self.sigma_in_fine_steps**2 - RADIUS**2)
        return math.nextafter(float_above(self.sensitivity_in_steps * 2**self.fine / smooth), math.inf)

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise, in the units of the value."""
        return float(self.sigma_in_fine_steps * self.lattice.step / 2**self.fine)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees: mu-GDP, from which every (epsilon, delta) follows."""
        return gaussian(Fraction(self.mu))

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The value (a number or an array of numbers) plus independent noise in every coordinate."""
        steps = self.lattice.steps(value, "Gaussian")
        check_length(steps, self.lattice, self.size, "Gaussian")
        noise = np.asarray(
            discrete_gaussian(self.sigma_in_fine_steps, size=steps.shape or None, source=source),
            dtype=np.int64,
        )
        return self.lattice.values(add_saturating(steps, self._rounded(noise)))

    def halfwidth(self, confidence: Number, count: int = 1) -> Any:
        """A distance within which released values lie from the truth with this confidence, `count` jointly.

        P(noise >= a) <= Phi(-(a - 1) / sigma) for whole a >= 1 (each term is below the integral over the unit
        before it). Flooring a real can add one step to the error, which is counted.
        """
        from scipy.special import ndtri

        z = -float(ndtri(failure_each(confidence, counted(count, "count")) / 2))
        reach = z * (1 + 1e-12) * float(self.sigma_in_fine_steps) + 1
        steps = max(0, math.ceil(math.ldexp(reach, -self.fine) - 0.5))
        return self.lattice.length(steps if self.lattice.integers else steps + 1)

    def pmf(self, outcome: Any, value: Any = 0) -> Any:
        """The probability that one released number equals `outcome` when the truth is `value`."""
        apart = self.lattice.steps(outcome, "Gaussian") - self.lattice.steps(value, "Gaussian")
        # Both tails are taken on the side away from 0, where they do not cancel.
        far = np.abs(apart)
        half = 2**self.fine // 2
        first = np.where(apart >= 0, far * 2**self.fine - half, far * 2**self.fine - half + 1)
        if self.fine == 0:
            first = far
        high = discrete_gaussian_sf(first + 2**self.fine - 1, self.sigma_in_fine_steps)
        return discrete_gaussian_sf(first - 1, self.sigma_in_fine_steps) - high

    def _rounded(self, noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fine steps to the nearest whole step, halves upwards: floor((noise + half) / whole)."""
        if self.fine == 0:
            return noise
        # In two shifts, so that adding the half cannot overflow.
        return np.asarray(((noise >> np.int64(self.fine - 1)) + 1) >> np.int64(1), dtype=np.int64)


def textbook_sigma(epsilon: Number, delta: Number, sensitivity: Number = 1) -> float:
    """The classical sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, for comparison only.

    Dwork, Roth 2014, Theorem A.1. It holds for epsilon < 1 alone, where it asks for more noise than needed.
    """
    budget = amount(epsilon, "epsilon")
    if budget >= 1:
        raise InvalidInput(
            "The textbook sigma is proven only for epsilon below 1; Gaussian(epsilon, delta) holds for all."
        )
    reach = positive(sensitivity, "sensitivity")
    return as_float(reach / budget) * math.sqrt(2 * math.log(1.25 / float(probability(delta, "delta"))))


def _mu_for_rho(rho: object) -> float:
    """The largest mu with mu^2 / 2 <= rho, as a float."""
    budget = amount(rho, "rho")
    return float_below(root_below(2 * budget))


def _mu_for(epsilon: object, delta: object) -> float:
    """The largest mu, to about 12 digits, for which mu-GDP implies (epsilon, delta), and never more."""
    budget, slack = amount(epsilon, "epsilon"), delta_amount(delta)
    # Both are rounded in the strict direction; `largest_mu` rounds down.
    mu = gdp.largest_mu(float_below(budget), float_below(slack))
    # The accountant rounds outwards once more; what it will state should not be above what was asked for.
    for place in range(8):
        if gaussian(Fraction(mu)).delta(budget) <= slack:
            break
        mu *= 1 - 1e-14 * 4**place
    return mu


def _check_mu(mu: float, name: str) -> None:
    if not LEAST_MU <= mu <= MOST_MU:
        raise InvalidInput(
            f"This {name} asks for noise that is "
            f"{'too wide to draw' if mu < 1 else 'too small to protect anybody'} "
            f"(sensitivity / scale = {mu:.3g}, outside 1e-300 to 500)."
        )
