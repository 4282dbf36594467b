"""What a fixed plan costs: the least of every bound that is proven for it.

The bounds: the sum of pure epsilons; the moments (`renyi`), which alone know zCDP events; and, where every
event has a pair, the exact curve: in closed form for Gaussians alone, by enumeration for few values, else on
the contour. What tells the pair apart for sure is kept out of the curve: with mass m of it, delta(epsilon)
is m + (1 - m) times that of the rest. Plans with Poisson sampling are taken in both directions, the worse
counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from incrowd.privacy import atoms, contour, conversions, events, gdp, renyi, sampling
from incrowd.privacy.amounts import float_up, precisely
from incrowd.privacy.sampling import Direction
from incrowd.privacy.transforms import Floats

Counts = dict[events.Event, int]
INWARDS = 1 - 2.0**-50
"""Targets are moved inwards by this before they become floats."""


def finite_part(counts: Counts) -> tuple[Fraction, Counts]:
    """The mass that tells the pair apart for sure, 1 - product of (1 - delta), and what has a finite loss."""
    keep = Fraction(1)
    rest: Counts = {}
    for event, count in counts.items():
        mass = conversions.delta_mass(event)
        if mass:
            keep *= 1 - _repeated(mass, count)
        if not isinstance(event, events.Threshold):
            rest[event] = rest.get(event, 0) + count
    return 1 - keep, rest


def _repeated(mass: Fraction, count: int) -> Fraction:
    """1 - (1 - mass)^count, rounded up."""
    if count == 1 or mass == 1:
        return mass
    crude = min(Fraction(1), mass * count)
    if crude < Fraction(1, 10**20):
        return crude

    def exact(m: Decimal) -> Decimal:
        return 1 - (count * (1 - m).ln()).exp()

    return min(crude, precisely(exact, mass))


def pure_sum(counts: Counts) -> Fraction | None:
    """The sum of pure epsilons, where each event has one."""
    total = Fraction(0)
    for event, count in counts.items():
        epsilon = conversions.pure_epsilon(event)
        if epsilon is None:
            return None
        total += epsilon * count
    return total


def directions(counts: Counts) -> tuple[Direction, ...]:
    """Both where an event's pair is not symmetric."""
    uneven = any(isinstance(event, events.PoissonSubsampled) for event in counts)
    return ("remove", "add") if uneven else ("remove",)


def cumulant(counts: Counts, c: Floats) -> Floats:
    """K(c) of the plan, the worse direction."""
    plain: Counts = {e: n for e, n in counts.items() if not isinstance(e, events.PoissonSubsampled)}
    worst = np.full_like(c, -np.inf)
    for direction in directions(counts):
        total = renyi.cumulant(plain, c)
        for event, count in counts.items():
            if isinstance(event, events.PoissonSubsampled):
                own = sampling.cumulant(event, c, direction)
                total = total + count * np.minimum(own, renyi.event_cumulant(event, c))
        worst = np.maximum(worst, total)
    return worst


def epsilon(counts: Counts, delta: Fraction) -> float:
    """The least epsilon, rounded up; inf where there is none."""
    mass, rest = finite_part(counts)
    if delta < mass:
        return math.inf
    if delta >= 1 or not rest:
        return 0.0
    pure = pure_sum(rest)
    best = math.inf if pure is None else float_up(pure)
    slack = float((delta - mass) / (1 - mass)) * INWARDS
    if slack < 1e-280:
        return best
    best = min(best, renyi.epsilon_bound(lambda c: cumulant(rest, c), slack))
    if best == 0:
        return best
    found = 0.0
    for direction in directions(rest):
        if found == 0 or _exact_delta(rest, direction, found) > slack:
            found = max(found, _exact_epsilon(rest, direction, slack, best))
    return min(best, found)


def _exact_epsilon(counts: Counts, direction: Direction, delta: float, start: float) -> float:
    """The least epsilon in one direction from the exact curve; inf where there is none."""
    plan = contour.make_plan(counts, direction)
    if plan is None:
        return math.inf
    closed = _closed_form(plan)
    if closed is not None:
        return closed[1](delta)
    found = start
    for _ in range(3):
        line = contour.Contour(plan, found)
        before, found = found, _solve(lambda e, line=line: _at(line, e), line.c, delta, found)  # type: ignore[misc]
        if abs(found - before) <= 0.1 * found:
            break
    return found


def _at(line: contour.Contour, epsilon: float) -> float:
    return line.delta(epsilon, float(line.plan.reach - Fraction(epsilon)))


def _solve(curve: Callable[[float], float], slope: float, delta: float, start: float) -> float:
    """An epsilon with curve(epsilon) <= delta, close to the least: Newton on the log, then a safe step up."""
    if curve(0.0) <= delta:
        return 0.0
    goal = math.log(delta)
    at, last, last_value = start, math.nan, math.nan
    for _ in range(40):
        value = math.log(max(curve(at), 1e-300)) - goal
        if last_value == last_value and at != last and abs(value - last_value) > 0:
            slope = min(max(-(value - last_value) / (at - last), slope / 8), slope * 8)
        last, last_value = at, value
        step = value / slope
        at = max(at + step, at / 4)
        if abs(step) <= 1e-11 * at:
            break
    # The curve is decreasing: any point where it is within delta is an answer.
    margin = 1e-11
    while curve(at * (1 + margin)) > delta:
        margin *= 2
        if margin > 1e6:
            return math.inf
    return at * (1 + margin)


def delta(counts: Counts, epsilon: Fraction) -> float:
    """The least delta, rounded up."""
    mass, rest = finite_part(counts)
    pure = pure_sum(rest)
    if pure is not None and pure <= epsilon:
        return float_up(mass)
    at = float(epsilon) * INWARDS
    inner = renyi.delta_bound(lambda c: cumulant(rest, c), at)
    inner = min(inner, max(_exact_delta(rest, direction, at) for direction in directions(rest)))
    return min(1.0, float_up(mass + (1 - mass) * Fraction(inner)))


def _largest_loss(counts: Counts, direction: Direction) -> float:
    """A bound on the loss in one direction: a unit added to a sample is missed with probability 1 - rate."""
    total = 0.0
    for event, count in counts.items():
        bounds = [math.inf]
        epsilon = conversions.pure_epsilon(event)
        if epsilon is not None:
            bounds.append(float(epsilon))
        if isinstance(event, events.PoissonSubsampled) and direction == "add" and event.rate < 1:
            bounds.append(-math.log1p(-float(event.rate)))
        total += count * min(bounds)
    return total * (1 + 1e-13)


def _exact_delta(counts: Counts, direction: Direction, epsilon: float) -> float:
    """delta in one direction from the exact curve; 1 where there is none."""
    if _largest_loss(counts, direction) <= epsilon:
        return 0.0
    plan = contour.make_plan(counts, direction)
    if plan is None:
        return 1.0
    closed = _closed_form(plan)
    if closed is not None:
        return closed[0](epsilon)
    return _at(contour.Contour(plan, epsilon), epsilon)


def _closed_form(
    plan: contour.Plan,
) -> tuple[Callable[[float], float], Callable[[float], float]] | None:
    """(delta of epsilon, epsilon of delta) for plans that need no quadrature."""
    if plan.sampled or plan.ranged:
        return None
    if not plan.factors:
        mu = math.sqrt(plan.mu2) * (1 + 2.0**-51)
        return (lambda e: gdp.delta(mu, e)), (lambda d: gdp.epsilon(mu, d))
    if plan.mu2:
        return None
    if len(plan.factors) == 1 and plan.factors[0].family == "laplace" and plan.factors[0].count == 1:
        top = plan.factors[0].epsilon * (1 + 2.0**-51)
        return (
            lambda e: max(0.0, -math.expm1((e - top) / 2)) * (1 + 1e-14),
            lambda d: max(0.0, top + 2 * math.log1p(-d * (1 - 1e-14)) * (1 - 1e-14)),
        )
    found = atoms.enumerate_atoms([(f.epsilon, f.family, f.size, f.count) for f in plan.factors])
    return None if found is None else (found.delta, found.epsilon)
