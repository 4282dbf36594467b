"""The schedule of a grant: how a whole price is split over releases that are chosen later.

Theorem. Fix a list of releases with guarantees G_1, ..., G_n beforehand. Let an analyst choose, in any order
and after seeing all earlier results, for each of them one mechanism that keeps G_i, or none. What she sees is
as private as G_1 + ... + G_n, the composition that the accountant computes for a fixed list.

Proof. Let (P_i, Q_i) be a pair that dominates G_i: for every mechanism that keeps G_i, all neighbours and
all y, the hockey-stick divergence at y is at most that of the pair. Then the same holds for every functional
E[f(Q/P)] under P with f convex and decreasing, which is a mixture of hockey sticks (Zhu, Dong, Wang 2022).
Let V(S, y) be the largest delta at y that she reaches with the releases S still to come: V(none, y) =
(1 - y)_+. If, for every smaller S', V(S', y) is the integral over the product of the pairs of S', it is
convex and decreasing in y, so the best next mechanism for release i is its pair, and gives the integral over
the product of the pairs of S: by Fubini the same number for every i that she may choose next. To leave a
release out is a mechanism that shows nothing, which every pair dominates. So V(all, y) is the curve of the
product, which is what the accountant bounds. (For selections, whose pair she chooses too, the accountant
takes the supremum itself: `privacy.ranges`.)

The condition: what is fixed are the guarantees, so noise is as wide as the sensitivity of the chosen question
demands for G_i. Questions, their clips and their groups may depend on results; G_1, ..., G_n may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from incrowd.curator.request import plain_number
from incrowd.errors import InvalidInput
from incrowd.noise.readings import shown
from incrowd.privacy import Guarantee, bounded_range, calibrate, compose, gaussian, pure
from incrowd.privacy.amounts import read

Kind = Literal["sums", "histogram", "tree", "select"]
MOST_STEPS = 100_000


@dataclass(frozen=True)
class Step:
    """One release of a schedule. `share` is its part of the price, relative to the other steps."""

    kind: Kind
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidInput(f"A step is one of {', '.join(get_args(Kind))}, not {shown(self.kind)}.")
        if not (type(self.share) in (int, float) and 0 < self.share < math.inf):
            raise InvalidInput(f"The share of a step must be a positive number, not {shown(self.share)}.")


@dataclass(frozen=True)
class Strength:
    """What one step may use: a mu (Gaussian noise) or an epsilon (Laplace noise, a selection)."""

    kind: Kind
    mu: float = 0.0
    epsilon: Fraction = Fraction(0)

    @property
    def guarantee(self) -> Guarantee:
        """What the step keeps, whatever is asked with it."""
        if self.kind == "select":
            return bounded_range(self.epsilon)
        return gaussian(self.mu) if self.mu else pure(self.epsilon)


def read_schedule(schedule: Mapping[Kind, int] | Sequence[Step]) -> tuple[Step, ...]:
    """A schedule as steps: `{"sums": 10, "select": 2}` stands for ten and two steps of equal shares."""
    if isinstance(schedule, Mapping):
        schedule = {kind: plain_number(times, "The schedule") for kind, times in schedule.items()}
        for kind, times in schedule.items():
            if not isinstance(times, int) or isinstance(times, bool) or not 0 < times <= MOST_STEPS:
                raise InvalidInput(
                    f"The schedule must say how often as a whole number from 1 to {MOST_STEPS:,}, "
                    f"not {kind if isinstance(kind, str) else shown(kind)}: {shown(times)}."
                )
        steps = tuple(Step(kind) for kind, times in schedule.items() for _ in range(times))
    elif not isinstance(schedule, Sequence) or isinstance(schedule, str):
        raise InvalidInput("A schedule says what is released, such as {'sums': 10, 'select': 2}.")
    else:
        steps = tuple(schedule)
        wrong = [shown(step) for step in steps if not isinstance(step, Step)]
        if wrong:
            raise InvalidInput(f"A schedule is a list of steps, such as [Step('sums')], not of {wrong[0]}.")
    if not 0 < len(steps) <= MOST_STEPS:
        raise InvalidInput(f"A schedule has from 1 to {MOST_STEPS:,} steps, not {len(steps):,}.")
    return steps


def strengths(steps: Sequence[Step], epsilon: float, delta: float) -> tuple[Strength, ...]:
    """How much each step may use so that all of them together are (epsilon, delta)-private.

    Without a delta, epsilon is shared exactly. With one, steps get Gaussian noise (a selection: bounded
    range) of equal zCDP per share, as much as the accountant allows.
    """
    whole, slack = read(epsilon, "epsilon"), read(delta, "delta")
    if not whole > 0:
        raise InvalidInput(f"epsilon must be a positive number, not {shown(epsilon)}.")
    if not 0 <= slack < 1:
        raise InvalidInput(f"delta must be a number from 0 up to but not including 1, not {shown(delta)}.")
    shares = [Fraction(step.share) for step in steps]
    total = sum(shares, Fraction(0))
    if not slack:
        pairs = zip(steps, shares, strict=True)
        return tuple(Strength(step.kind, epsilon=whole * share / total) for step, share in pairs)

    def scaled(noise: float) -> tuple[Strength, ...]:
        return tuple(
            _with_noise(step, float(share / total), noise) for step, share in zip(steps, shares, strict=True)
        )

    if not Fraction(1, 10**9) <= whole <= 10**6:
        raise InvalidInput(f"epsilon of a grant lies between 1e-9 and 1e6, not at {shown(epsilon)}.")
    noise = calibrate(lambda noise: together(scaled(noise)), epsilon, delta, start=4.0 / float(whole))
    return scaled(noise)


def together(given: Sequence[Strength]) -> Guarantee:
    """What all steps keep together."""
    counts: dict[Strength, int] = {}
    for strength in given:
        counts[strength] = counts.get(strength, 0) + 1
    return compose(*(strength.guarantee * times for strength, times in counts.items()))


def _with_noise(step: Step, share: float, noise: float) -> Strength:
    root = math.sqrt(share) / noise
    # Bounded range of epsilon is epsilon^2 / 8 of zCDP, Gaussian noise of mu is mu^2 / 2.
    if step.kind == "select":
        return Strength(step.kind, epsilon=Fraction(2 * root))
    return Strength(step.kind, mu=root)
