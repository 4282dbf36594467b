"""What a price is: one line for each release, its guarantee, and how wide the answers would be."""

from __future__ import annotations

import functools
import html
import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from incrowd.curator.caveats import Expected
from incrowd.curator.centres import DRAWS
from incrowd.curator.contribution import LEAST_TOTAL
from incrowd.curator.ledger import Balance
from incrowd.curator.quantiles import CHAIN, TREE_ALONE, Shares
from incrowd.curator.showing import WIDER
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Gaussian, Laplace, TruncatedLaplace
from incrowd.privacy import (
    Charge,
    Guarantee,
    approximate,
    bounded_range,
    compose,
    fits,
    gaussian,
    laplace,
    threshold,
)
from incrowd.query import Measure

LEAST_SHARE = 1e-5
"""The least epsilon or mu of one release: 2^33 steps of sensitivity over it are still drawn exactly."""
Noise = Literal["laplace", "gaussian", "exponential", "selection", "thresholded"]
"""`thresholded`: a count that decides which groups are shown, with the noise that its cap asks for."""
LineKind = Literal["centre", "census", "keys", "totals", "sum", "quantile"]


@dataclass(frozen=True)
class Line:
    """One release: what it is, its share of epsilon (or its mu), and the event that it states."""

    leaf: int
    kind: LineKind
    target: str
    """The measure's name, or the weigh key of a census."""
    label: str
    noise: Noise
    epsilon: Fraction = Fraction(0)
    mu: float = 0.0
    delta: Fraction = Fraction(0)
    levels: int = 1
    """For a quantile, the levels of its tree."""
    shares: Shares = TREE_ALONE
    """For a quantile, how its epsilon is shared."""

    @property
    def guarantee(self) -> Guarantee:
        """What this release alone costs."""
        if self.noise == "gaussian":
            stated = gaussian(self.mu)
            return stated + threshold(self.delta) if self.delta else stated
        if self.noise in ("selection", "thresholded"):
            return approximate(self.epsilon, self.delta)
        if self.kind == "centre":
            return compose(*(bounded_range(self.epsilon * share) for share in DRAWS))
        if self.kind == "quantile":
            return compose(*self._quantile_parts())
        steps = CHAIN if self.kind in ("sum", "keys") else 1
        stated = laplace(self.epsilon, steps)
        return stated + threshold(self.delta) if self.delta else stated

    @property
    def epsilon_like(self) -> float:
        """Its epsilon, or that of Laplace noise as wide as its own noise."""
        if self.kind == "quantile":
            # A rank from a tree of h levels errs about h^2 times as far as one that is drawn by itself.
            return float(self.epsilon * (self.shares.points or Fraction(1, self.levels**2)))
        return self.mu * 2**0.5 if self.mu else float(self.epsilon)

    def _quantile_parts(self) -> Iterator[Guarantee]:
        if self.shares.points:
            yield bounded_range(self.epsilon * self.shares.points)
            yield laplace(self.epsilon * self.shares.window, CHAIN)
        if self.shares.tree:
            yield laplace(self.epsilon * self.shares.tree / self.levels, CHAIN) * self.levels

    @property
    def least(self) -> float:
        """The least epsilon or mu of its draws."""
        if self.noise == "gaussian":
            return self.mu
        if self.noise == "thresholded":
            return min(float(self.epsilon), self.mu or math.inf)
        if self.kind == "quantile":
            parts = (self.shares.points, self.shares.window, self.shares.tree / self.levels)
            return float(self.epsilon * min(part for part in parts if part))
        if self.kind == "centre":
            return float(self.epsilon * min(DRAWS))
        return float(self.epsilon) * (LEAST_TOTAL if self.kind == "totals" else 1.0)

    @property
    def threshold_delta(self) -> Fraction:
        """What is left of delta for a threshold, beside Gaussian noise."""
        return self.delta / 2 if self.noise == "thresholded" else self.delta

    def mechanism(self, measure: Measure, distance: int) -> Laplace | Gaussian | TruncatedLaplace:
        """The mechanism that releases a sum whose cap is known; integers in steps of the measure's grid."""
        steps = measure.sensitivity_steps * distance
        if self.noise == "thresholded" and measure.norm == 1:
            largest = min(measure.limit_steps, steps)
            return TruncatedLaplace(self.epsilon, self.delta, sensitivity=steps, largest=largest)
        if measure.norm == 2 and not self.mu:
            raise InvalidInput("A measure that is bounded in L2 takes Gaussian noise only.")
        if self.mu:
            # Noise on a grid is mu-GDP for a mu above sensitivity / scale by a part in 2^28 (see Gaussian).
            return Gaussian(scale=Fraction(steps) / Fraction(self.mu) * WIDER, sensitivity=steps)
        return Laplace(self.epsilon, sensitivity=-(-steps // CHAIN) * CHAIN)


@dataclass(frozen=True, repr=False)
class Price:
    """What a question would cost and how wrong its answer would be."""

    epsilon: float
    delta: float
    lines: tuple[Line, ...]
    halfwidths: Mapping[str, float | None]
    """By column of the answer (keys left out): its half-width, or None if it is not known beforehand."""
    confidence: float
    notes: tuple[str, ...] = ()
    caps: Mapping[str, float | None] = field(default_factory=dict)
    """By aggregate, the most that one unit counts for; None if nothing is cut, left out if not yet chosen."""
    before: tuple[Balance, ...] = field(default=(), compare=False)
    """What is left of each cap that holds the analyst, before paying."""
    expected: Mapping[str, Expected] = field(default_factory=dict)
    """By column whose half-width depends on the data: how wide it would be in a group of a stated size."""
    steps: tuple[Price, ...] = ()
    """Where a pilot finds out what an accuracy costs (`piloting`): its price, and the most of what follows.

    The price itself is then that of both.
    """
    free: bool = False
    """Whether the answer is on record, so that asking costs nothing."""

    @property
    def remaining(self) -> tuple[Balance, ...]:
        """What would be left of each cap after paying."""
        return tuple(Balance(balance.cap, balance.spent + self.charge) for balance in self.before)

    @property
    def fits(self) -> bool:
        """Whether every cap allows it."""
        return all(fits(balance.cap.limit, balance.spent, self.charge) for balance in self.before)

    @property
    def charged_delta(self) -> float:
        """The delta at which the plan is charged as one: its own where Gaussian noise has no pure epsilon."""
        return self.delta if any(line.noise == "gaussian" for line in self.lines) else 0.0

    @property
    def charge(self) -> Charge:
        """What every cap is charged."""
        if self.steps:
            return functools.reduce(operator.add, (step.charge for step in self.steps))
        return self.guarantee.charge(self.charged_delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole answer."""
        return compose(*(line.guarantee for line in self.lines))

    def line(self, leaf: int, kind: LineKind, target: str) -> Line | None:
        """The line of a release."""
        asked = (leaf, kind, target)
        return next((line for line in self.lines if (line.leaf, line.kind, line.target) == asked), None)

    def __repr__(self) -> str:
        return f"<Price {self}>"

    def _repr_html_(self) -> str:
        lines = [str(self), *self.notes, *(f"left: {balance}" for balance in self.remaining)]
        return "".join(f"<p>{html.escape(line)}</p>" for line in lines)

    def __str__(self) -> str:
        cost = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        if self.steps:
            cost = f"at most {cost}, of which epsilon {self.steps[0].epsilon:g} for a pilot"
        widths = [f"{name} ± {width:.4g}" for name, width in self.halfwidths.items() if width is not None]
        widths += [f"{name} {expected}" for name, expected in self.expected.items()]
        return f"{cost}; {self.confidence:.0%} of answers within {', '.join(widths)}" if widths else cost
