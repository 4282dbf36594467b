"""What a fixed plan costs: the least of every bound that is proven for it."""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.privacy import conversions, events, renyi
from incrowd.privacy.amounts import float_up

Counts = dict[events.Event, int]


def _finite_part(counts: Counts) -> tuple[Fraction, Counts]:
    """The mass that tells the pair apart for sure, 1 - product of (1 - delta), and what has a finite loss."""
    keep = Fraction(1)
    rest: Counts = {}
    for event, count in counts.items():
        mass = conversions.delta_mass(event)
        if mass:
            keep *= (1 - mass) ** count if count <= 64 else max(Fraction(0), 1 - mass * count)
        if not isinstance(event, events.Threshold):
            rest[event] = rest.get(event, 0) + count
    return 1 - keep, rest


def cumulant(counts: Counts, c: renyi.Floats) -> renyi.Floats:
    """K(c) of the plan."""
    return renyi.cumulant(counts, c)


def pure_sum(counts: Counts) -> Fraction | None:
    """The sum of pure epsilons, where each event has one."""
    total = Fraction(0)
    for event, count in counts.items():
        epsilon = conversions.pure_epsilon(event)
        if epsilon is None:
            return None
        total += epsilon * count
    return total


def epsilon(counts: Counts, delta: Fraction) -> float:
    """The least epsilon, rounded up."""
    mass, rest = _finite_part(counts)
    pure = pure_sum(rest)
    if delta < mass:
        return math.inf
    if delta >= 1:
        return 0.0
    best = math.inf if pure is None else float_up(pure)
    slack = float((delta - mass) / (1 - mass)) * (1 - 2.0**-50)
    if slack <= 0:
        return best
    return min(best, renyi.epsilon_bound(lambda c: cumulant(rest, c), slack))


def delta(counts: Counts, epsilon: Fraction) -> float:
    """The least delta, rounded up."""
    mass, rest = _finite_part(counts)
    pure = pure_sum(rest)
    if pure is not None and pure <= epsilon:
        return float_up(mass)
    inner = renyi.delta_bound(lambda c: cumulant(rest, c), float(epsilon) * (1 - 2.0**-50))
    return min(1.0, float_up(mass + (1 - mass) * Fraction(inner)))
