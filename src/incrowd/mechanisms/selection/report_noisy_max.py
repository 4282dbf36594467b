"""Report noisy max: add Laplace noise to every utility and name the candidate that comes out on top.

Theorem (Dwork, Roth 2014, section 3.3; here on a lattice, with ties). Utilities are whole numbers of steps,
each moving by at most s between neighbours; Z_i are independent discrete Laplace of scale b. Draw a
uniformly random order of the candidates beforehand; name the candidate with the largest u_i + Z_i, the
earliest in that order when several share it. Only the name is released. That is (2 s / b)-differentially
private, and (s / b) when utilities are monotone, however many candidates there are.

Proof. Fix the order and every Z_j but Z_i. Candidate i wins exactly when Z_i >= T for a whole number T: the
largest u_j + Z_j - u_i over the rivals, plus 1 where that rival comes earlier. Between neighbours T moves
by at most 2 s, or by s when all utilities move the same way. As P(Z >= t + 1) >= e^(-1/b) P(Z >= t) for
every whole t (equality for t >= 0; for t < 0 both tails hold more than half), P(Z_i >= T') >= e^(-2 s / b)
P(Z_i >= T). Average over the order and the Z_j. Without the order, fixed tie-breaking by index is covered
by the same proof; a rule that looks at the utilities is not.

*Drawing the order afterwards.* It is independent of the noise, so the earliest of the tied candidates is
uniform among them: a uniform choice among the largest has the same law.

Accuracy: with probability 1 - beta every noise is within b ln(k / beta) of 0, so the chosen utility lies at
most 2 b ln(k / beta) below the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.additive.grid import Grid, floored_l1, lattice_of
from incrowd.mechanisms.additive.laplace import MOST_STEPS, Laplace, unclamped
from incrowd.mechanisms.parameters import (
    counted,
    log2_floor,
    positive,
)
from incrowd.mechanisms.selection.utilities import Selection, candidates
from incrowd.noise import Source, discrete_laplace, discrete_laplace_pmf, discrete_laplace_sf, uniform
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, pure


@dataclass(frozen=True, eq=False, repr=False)
class ReportNoisyMax(Selection):
    """Names the candidate whose noisy utility is largest; pure epsilon-differential privacy.

    Integer utilities stay integers when the sensitivity is whole and no grid is given; others are floored
    onto a grid, which keeps monotone utilities monotone.

    >>> ReportNoisyMax(epsilon=1.0, monotone=True).noise_scale
    1.0
    """

    grid: Number | Grid | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale_in_steps > MOST_STEPS:
            raise InvalidInput(
                f"Noise of scale {self.scale:.3g} on a grid of {float(self.lattice.step):.3g} is too wide "
                "(beyond 2**50 steps): use a coarser grid or unit."
            )

    @cached_property
    def lattice(self) -> Grid:
        """The grid that utilities are floored onto."""
        reach, width = positive(self.sensitivity, "sensitivity"), 1 / self.rate
        finest = max(log2_floor(min(reach / 2**20, width)), log2_floor(width) - 48)
        return lattice_of(self.grid, self.sensitivity, finest)

    @cached_property
    def sensitivity_in_steps(self) -> int:
        """How far one utility moves after flooring, in grid steps."""
        return floored_l1(positive(self.sensitivity, "sensitivity"), self.lattice, 1)

    @cached_property
    def scale_in_steps(self) -> Fraction:
        """The exact scale of the noise, in grid steps."""
        return self.sensitivity_in_steps / (positive(self.sensitivity, "sensitivity") * self.rate)

    @property
    def noise_scale(self) -> float:
        """The scale of the noise, in the units of the utilities."""
        return float(self.scale_in_steps * self.lattice.step)

    @property
    def privacy(self) -> Guarantee:
        """What one choice guarantees."""
        return pure(self.exact_epsilon)

    def release(self, utilities: Any, source: Source | None = None) -> int:
        """The index of the candidate with the largest noisy utility."""
        steps = self._steps(utilities)
        noise = np.asarray(discrete_laplace(self.scale_in_steps, size=steps.shape, source=source))
        # Python integers and unclamped noise: a comparison must neither wrap around nor see a clamp.
        noisy = [
            u + unclamped(z, self.scale_in_steps, source)
            for u, z in zip(steps.tolist(), noise.tolist(), strict=True)
        ]
        best = max(noisy)
        tied = [index for index, score in enumerate(noisy) if score == best]
        return tied[uniform(len(tied), source=source)]

    def probabilities(self, utilities: Any) -> NDArray[np.float64]:
        """The probability of each candidate, summed over the lattice (for checks; scales up to about 10^5).

        P(i) = sum over y of P(u_i + Z_i = y) times E[1 / (1 + ties)] over rivals at most y; the expectation
        is the integral over t in [0, 1] of the product over rivals of (P(below y) + t P(at y)).
        """
        steps = self._steps(utilities)
        reach = int(self.scale_in_steps * 45) + 2
        y = np.arange(int(steps.max()) - reach, int(steps.max()) + reach + 1)
        apart = y[None, :] - steps[:, None]
        at = np.asarray(discrete_laplace_pmf(apart, self.scale_in_steps))
        below = 1 - np.asarray(discrete_laplace_sf(apart - 1, self.scale_in_steps))
        nodes, weights = np.polynomial.legendre.leggauss(len(steps) // 2 + 1)
        chances = np.zeros(len(steps))
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            at_most = below + node * at
            for i in range(len(steps)):
                others = np.prod(np.delete(at_most, i, axis=0), axis=0)
                chances[i] += weight * float((at[i] * others).sum())
        return chances

    def halfwidth(self, confidence: Number, candidates: int = 2) -> Any:
        """How far below the best the chosen utility may lie, with this confidence, among k candidates."""
        every = Laplace(scale=self.scale_in_steps, sensitivity=1)
        steps = 2 * int(every.halfwidth(confidence, counted(candidates, "candidates")))
        return self.lattice.length(steps if self.lattice.integers else steps + 1)

    def _steps(self, utilities: Any) -> NDArray[np.int64]:
        return self.lattice.steps(candidates(utilities, "ReportNoisyMax"), "ReportNoisyMax")
