"""The Laplace mechanism: a number or a vector with discrete Laplace noise.

Theorem (Dwork, McSherry, Nissim, Smith 2006; on the integers Ghosh, Roughgarden, Sundararajan 2009). Let f
return whole numbers and move by at most s in L1 between neighbours. f + Z, with independent P(Z = z)
proportional to exp(-|z| / b) in every coordinate, is (s / b)-differentially private. Proof: the ratio of two
mass functions is exp((|y - f'| - |y - f|) / b) coordinate by coordinate, and the exponents sum to at most
s / b by the triangle inequality. It is tight when s is attained in one coordinate.

Conditions: the sensitivity is that of the whole vector, in L1; the noise has exactly this law
(`incrowd.noise` sees to it); reals are floored onto a grid first, which moves them by up to one step each,
and the claimed epsilon counts the sensitivity after flooring (`mechanisms.additive.grid` has the proof).
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
    CLAMP,
    Grid,
    add_saturating,
    check_length,
    floored_l1,
    lattice_of,
)
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    counted,
    failure_each,
    log2_floor,
    one_calibration,
    positive,
)
from incrowd.noise import Source, discrete_laplace, discrete_laplace_pmf, geometric
from incrowd.noise.arguments import as_float
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, laplace

MOST_STEPS = 2**50  # the largest scale that the sampler takes


def unclamped(draw: int, scale: Fraction, source: Source | None = None) -> int:
    """The exact draw behind one that the sampler clamped to -1 - CLAMP or CLAMP; others as they are.

    For mechanisms that compare noise and so cannot clamp it. Given that it is at least CLAMP, a geometric
    variable exceeds it by a geometric one: it has no memory. A negative draw is -1 - G for a geometric G.
    """
    if -1 - CLAMP < draw < CLAMP:
        return draw
    size, more = CLAMP, CLAMP
    while more == CLAMP:
        more = geometric(scale, source=source)
        size += more
    return size if draw > 0 else -1 - size


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(Mechanism):
    """Releases a value with discrete Laplace noise; pure epsilon-differential privacy.

    Give epsilon (the noise then has the scale sensitivity / epsilon) or the scale itself. `sensitivity` is
    the largest L1 distance between the values of two neighbouring datasets. With a whole sensitivity (1,
    not 1.0) and no grid, integers go in and integers come out. Otherwise values are reals on a grid of
    multiples of a power of two (by default fine enough to cost less than a millionth of epsilon), and
    `size` is the most numbers that one release may hold.

    Accuracy: the error of each coordinate has standard deviation about sqrt(2) noise_scale, and stays within
    noise_scale * ln(1 / beta) with probability 1 - beta (`halfwidth` is exact).

    >>> m = Laplace(epsilon=0.5, sensitivity=1)
    >>> m.noise_scale, m.halfwidth(0.95), m.privacy.epsilon()
    (2.0, 6, 0.5)
    >>> from incrowd.noise import SeededSource
    >>> type(m.release(42, source=SeededSource(1)))
    <class 'int'>
    """

    epsilon: Number | None = None
    _: KW_ONLY
    scale: Number | None = None
    sensitivity: Number = 1
    grid: Number | Grid | None = None
    size: int = 1

    def __post_init__(self) -> None:
        one_calibration("Laplace", (("epsilon",), ("scale",)), {"epsilon": self.epsilon, "scale": self.scale})
        if self.scale_in_steps > MOST_STEPS:
            raise InvalidInput(
                f"Laplace noise of scale {self.noise_scale:.3g} on a grid of {float(self.lattice.step):.3g} "
                "is too wide (beyond 2**50 steps): use a coarser grid or unit."
            )

    @cached_property
    def lattice(self) -> Grid:
        """The grid that values are floored onto."""
        reach = positive(self.sensitivity, "sensitivity")
        width = (
            reach / amount(self.epsilon, "epsilon") if self.scale is None else positive(self.scale, "scale")
        )
        # Flooring should cost under 2^-20 of epsilon, as long as the sampler can take the scale.
        finest = log2_floor(min(reach / (counted(self.size, "size") << 20), width))
        return lattice_of(self.grid, self.sensitivity, max(finest, log2_floor(width) - 48))

    @cached_property
    def sensitivity_in_steps(self) -> int:
        """The largest L1 distance after flooring, in grid steps."""
        return floored_l1(positive(self.sensitivity, "sensitivity"), self.lattice, counted(self.size, "size"))

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """The exact scale of the noise, in grid steps."""
        if self.scale is not None:
            return positive(self.scale, "scale") / self.lattice.step
        return self.sensitivity_in_steps / amount(self.epsilon, "epsilon")

    @property
    def noise_scale(self) -> float:
        """The scale b of the noise, in the units of the value."""
        return float(self.scale_in_steps * self.lattice.step)

    @property
    def privacy(self) -> Guarantee:
        """What one release guarantees."""
        return laplace(self.sensitivity_in_steps / self.scale_in_steps, self.sensitivity_in_steps)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """The value (a number or an array of numbers) plus independent noise in every coordinate."""
        steps = self.lattice.steps(value, "Laplace")
        check_length(steps, self.lattice, self.size, "Laplace")
        noise = discrete_laplace(self.scale_in_steps, size=steps.shape or None, source=source)
        return self.lattice.values(add_saturating(steps, noise))

    def halfwidth(self, confidence: Number, count: int = 1) -> Any:
        """The least h such that released values lie within h of the truth with this confidence.

        With q = exp(-1 / b), P(|Z| > h) = 2 q^(h + 1) / (1 + q). `count` numbers are covered jointly.
        Flooring a real can add one step to the error, which is counted.
        """
        failure = failure_each(confidence, counted(count, "count"))
        rate = as_float(1 / self.scale_in_steps)
        ratio = math.exp(-rate)
        # Outward by a part in 10^12, far above the rounding of these few operations.
        bound = math.log(2 / ((1 + ratio) * failure)) / rate
        steps = max(0, math.ceil(bound * (1 + 1e-12) - 1))
        return self.lattice.length(steps if self.lattice.integers else steps + 1)

    def pmf(self, outcome: Any, value: Any = 0) -> Any:
        """The probability that one released number equals `outcome` when the truth is `value`."""
        apart: NDArray[np.int64] = self.lattice.steps(outcome, "Laplace") - self.lattice.steps(
            value, "Laplace"
        )
        return discrete_laplace_pmf(apart, self.scale_in_steps)
