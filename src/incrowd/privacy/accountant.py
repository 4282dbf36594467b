"""What a fixed plan costs: the least of every bound that is proven for it.

There are three bounds: the sum of pure epsilons; the moments (`renyi`), the only bound that knows zCDP
events; and, where every event has a pair, the exact curve. The curve has a closed form for Gaussians alone,
is enumerated for few values, and is computed on the contour otherwise. Outcomes that tell the pair apart for
sure are kept out of the curve: if they have mass m, delta(epsilon) is m + (1 - m) times that of the rest.
Plans with Poisson sampling are taken in both directions, and the worse one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from incrowd.privacy import atoms, contour, conversions, events, gdp, grouping, mixtures, renyi, sampling
from incrowd.privacy.amounts import LEAST, float_down, float_up, precisely, short_up
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
    if count <= 8:
        return 1 - (1 - mass) ** count
    crude = min(Fraction(1), mass * count)
    if crude < Fraction(1, 10**20):
        return crude

    if mass < Fraction(1, 10**20):
        # 1 - m would lose m: -ln(1 - m) = m + m^2 / 2 + m^3 / 3 + ..., whose rest is below m^3.
        rate = mass + mass**2 / 2 + mass**3
    else:
        rate = precisely(lambda kept: -kept.ln(), 1 - mass)
    if rate * count > 10**4:
        return Fraction(1)
    return min(crude, precisely(lambda r: 1 - (-r).exp(), rate * count))


def _variation(counts: Counts) -> Fraction:
    """A bound on the total variation distance of the composed pair: (0, this)-DP holds of every plan."""
    keep = Fraction(1)
    for event, count in counts.items():
        keep *= 1 - short_up(_repeated(conversions.variation(event), count))
    return 1 - keep


def _without_samples(mass: Fraction, counts: Counts) -> tuple[Fraction, Counts] | None:
    """The plan with its sampled releases as (0, delta)-DP ones: best where the rates are tiny."""
    sampled: Counts = {event: n for event, n in counts.items() if isinstance(event, events.OnSample)}
    if not sampled:
        return None
    rest = {event: n for event, n in counts.items() if event not in sampled}
    return 1 - (1 - mass) * (1 - _variation(sampled)), rest


def pure_sum(counts: Counts) -> Fraction | None:
    """The sum of pure epsilons, where each event has one."""
    total = Fraction(0)
    for event, count in counts.items():
        epsilon = conversions.pure_epsilon(event)
        if epsilon is None:
            return None
        total += epsilon * count
    return total


Case = tuple[dict[contour.Part, int], Direction]


def cases(counts: Counts) -> list[Case]:
    """The plan in each direction, or at each split of several units, of which the worst counts.

    The splits of one event are those of the others of as many units. Where there are others, or too many
    splits, the pair that covers all of them stands for each.
    """
    sizes = {event.units for event in counts if isinstance(event, events.PoissonUnits)}
    uneven = any(isinstance(event, events.PoissonSubsampled) for event in counts)
    units = max(sizes, default=0)
    splits = [(units, units)]
    if len(sizes) == 1 and not uneven and units <= mixtures.MOST_SPLITS:
        splits = [(units - added, added) for added in range(units + 1)]
    pairs_to_try: list[Case] = []
    for removed, added in splits if sizes else [(0, 0)]:
        plan: dict[contour.Part, int] = {}
        for event, count in counts.items():
            part: contour.Part = event
            if isinstance(event, events.PoissonUnits):
                pair = (removed, added) if len(sizes) == 1 else (event.units, event.units)
                part = mixtures.Mixture(event, *pair) if mixtures.fits(event) else grouping.as_group(event)
            elif isinstance(event, events.WithoutReplacement) and event.records > 1:
                part = mixtures.replaced(event) or grouping.as_group(event)
            plan[part] = plan.get(part, 0) + count
        pairs_to_try.extend((plan, direction) for direction in _BOTH[: 1 + uneven])
    return pairs_to_try


_BOTH: tuple[Direction, Direction] = ("remove", "add")


def cumulant(counts: Counts, c: Floats) -> Floats:
    """K(c) of the plan, the worse direction."""
    plain: Counts = {e: n for e, n in counts.items() if not isinstance(e, events.PoissonSubsampled)}
    worst = np.full_like(c, -np.inf)
    uneven = any(isinstance(event, events.PoissonSubsampled) for event in counts)
    for direction in _BOTH[: 1 + uneven]:
        total = renyi.cumulant(plain, c)
        for event, count in counts.items():
            if isinstance(event, events.PoissonSubsampled):
                own = sampling.cumulant(event, c, direction)
                total = total + float_up(Fraction(count)) * np.minimum(own, renyi.event_cumulant(event, c))
        worst = np.maximum(worst, total)
    return worst


def epsilon(counts: Counts, delta: Fraction) -> float:
    """The least epsilon, rounded up; inf where there is none."""
    mass, rest = finite_part(counts)
    if delta < mass:
        return math.inf
    if delta >= mass + (1 - mass) * _variation(rest):
        return 0.0
    aside = _without_samples(mass, rest)
    if aside is not None and aside[0] < delta:
        return min(_epsilon(mass, rest, delta), _epsilon(*aside, delta))
    return _epsilon(mass, rest, delta)


def _epsilon(mass: Fraction, rest: Counts, delta: Fraction) -> float:
    """The least epsilon of a plan of finite losses beside a mass that tells the pair apart."""
    pure = pure_sum(rest)
    best = math.inf if pure is None else float_up(pure)
    slack = float((delta - mass) / (1 - mass)) * INWARDS
    if slack <= 0:
        return best
    best = min(best, renyi.epsilon_bound(lambda c: cumulant(rest, c), slack))
    if best == 0 or slack < 1e-280 or not rest:
        return best
    largest = 0.0
    for plan, direction in cases(rest):
        if largest == 0 or _exact_delta(plan, direction, largest) > slack:
            largest = max(largest, _exact_epsilon(plan, direction, slack, best))
    return min(best, largest)


def _exact_epsilon(
    counts: dict[contour.Part, int], direction: Direction, delta: float, start: float
) -> float:
    """The least epsilon in one direction from the exact curve; inf where there is none."""
    plan = contour.make_plan(counts, direction)
    if plan is None:
        return math.inf
    closed = _closed_form(plan)
    if closed is not None:
        return closed[1](delta)
    # Moments that are not proven may still tell where to look: every line is sound.
    epsilon = min(start, max(renyi.epsilon_bound(plan.cumulant, delta), 1e-9))
    rough, steepness = True, 0.0
    for _ in range(8):
        try:
            line = contour.Contour(plan, epsilon, rough=rough, least_steepness=steepness)
        except contour.DoesNotFit:
            return math.inf
        # A line can be too loose to beat the bound we came from, never the other way round.
        before, epsilon = epsilon, min(start, solve(line.delta, line.c, delta, epsilon))
        if before - line.room <= epsilon <= before * 1.001:
            # Where the curve falls faster than its moments tell, smoothing must be finer than they ask.
            steepness = _steepness(line, epsilon)
            if not rough and steepness <= 1.5 * line.steepness:
                break
            rough = False
    return epsilon


def _steepness(line: contour.Contour, epsilon: float) -> float:
    """How fast log(delta) falls at epsilon; 0 where it cannot be told."""
    here, there = line.delta(epsilon), line.delta(epsilon * 1.0001)
    return (math.log(here) - math.log(there)) / (1e-4 * epsilon) if epsilon and 0 < there < here else 0.0


def solve(curve: Callable[[float], float], slope: float, delta: float, start: float) -> float:
    """The least epsilon (rounded up) with curve(epsilon) <= delta, for a decreasing curve.

    A bracket around the root in log(curve), shrunk by secants (Illinois) and bisection; its upper end, where
    the curve was seen to be within delta, is the answer.
    """
    goal = math.log(delta)

    def excess(epsilon: float) -> float:
        return math.log(max(curve(epsilon), 1e-300)) - goal

    high, high_value = start, excess(start)
    low, low_value = start, high_value
    step = max(abs(high_value) / slope, 1e-6 * start) * 1.1
    while high_value > 0:
        low, low_value = high, high_value
        high, step = high + step, 2 * step
        high_value = excess(high)
        if high > 1e9:
            return math.inf
    while low_value <= 0:
        if low == 0:
            return 0.0
        high, high_value = low, low_value
        low, step = max(0.0, low - step), 2 * step
        low_value = excess(low)
    pull, middle = 0, high
    for turn in range(200):
        if high - low <= 1e-11 * high:
            break
        if turn % 4 == 3:
            middle = (low + high) / 2
        else:
            middle = low + (high - low) * low_value / (low_value - high_value)
            middle = min(max(middle, low + 1e-12 * high), high - 1e-12 * high)
        value = excess(middle)
        if value > 0:
            low, low_value = middle, value
            high_value = high_value / 2 if pull > 0 else high_value
            pull = 1
        else:
            high, high_value = middle, value
            low_value = low_value / 2 if pull < 0 else low_value
            pull = -1
    return high


def delta(counts: Counts, epsilon: Fraction) -> float:
    """The least delta, rounded up."""
    mass, rest = finite_part(counts)
    pure = pure_sum(rest)
    if pure is not None and pure <= epsilon:
        return float_up(mass)
    at = min(float_down(epsilon), 1e300) * INWARDS
    best = mass + (1 - mass) * min(_variation(rest), Fraction(_delta(rest, at)))
    aside = _without_samples(mass, rest)
    if aside is not None and aside[0] < best:
        best = min(best, aside[0] + (1 - aside[0]) * Fraction(_delta(aside[1], at)))
    return min(1.0, float_up(best))


def _delta(rest: Counts, at: float) -> float:
    """The least delta of a plan of finite losses."""
    pure = pure_sum(rest)
    if pure is not None and pure <= Fraction(at):
        return 0.0
    inner = renyi.delta_bound(lambda c: cumulant(rest, c), at)
    return min(inner, max(_exact_delta(*case, at) for case in cases(rest)))


def _largest_loss(counts: dict[contour.Part, int], direction: Direction) -> float:
    """A bound on the loss in one direction: a unit added to a sample is missed with probability 1 - rate."""
    total = 0.0
    for event, count in counts.items():
        bounds = [math.inf]
        if isinstance(event, mixtures.Mixture):
            bounds.append(mixtures.largest(event))
        elif (epsilon := conversions.pure_epsilon(event)) is not None:
            bounds.append(float_up(epsilon))
        if isinstance(event, events.PoissonSubsampled) and direction == "add" and event.rate < 1:
            bounds.append(-math.log1p(-float(event.rate)))
        total += float_up(Fraction(count)) * min(bounds)
    return total * (1 + 1e-13)


def _exact_delta(counts: dict[contour.Part, int], direction: Direction, epsilon: float) -> float:
    """delta in one direction from the exact curve; 1 where there is none."""
    if _largest_loss(counts, direction) <= epsilon:
        return 0.0
    plan = contour.make_plan(counts, direction)
    if plan is None:
        return 1.0
    closed = _closed_form(plan)
    if closed is not None:
        return closed[0](epsilon)
    try:
        return contour.Contour(plan, epsilon).delta(epsilon)
    except contour.DoesNotFit:
        return 1.0


Curve = Callable[[float], float]


def _closed_form(plan: contour.Plan) -> tuple[Curve, Curve] | None:
    """(delta of epsilon, epsilon of delta) for plans that need no quadrature."""
    if plan.ranged:
        return _single_range(plan)
    if plan.sampled:
        return _single_sample(plan)
    if not plan.factors:
        return (lambda e: gdp.delta(plan.mu, e)), (lambda d: gdp.epsilon(plan.mu, d))
    if plan.mu2:
        return None
    if len(plan.factors) == 1 and plan.factors[0].family == "laplace" and plan.factors[0].count == 1:
        top = plan.factors[0].epsilon * (1 + 2.0**-51)
        return (
            lambda e: max(0.0, -math.expm1((e - top) / 2)) * (1 + 1e-14) + 4 * LEAST,
            lambda d: max(0.0, top + 2 * math.log1p(-d * (1 - 1e-14)) * (1 - 1e-14)),
        )
    law = atoms.enumerate_atoms([(f.epsilon, f.family, f.size, f.count) for f in plan.factors])
    return None if law is None else (law.delta, law.epsilon)


def _single_range(plan: contour.Plan) -> tuple[Curve, Curve] | None:
    """One bounded-range release of e alone: the worst t is (e + epsilon) / 2 in the theorem of `ranges`.

    delta(epsilon) = (1 - exp(-(e - epsilon) / 2))^2 / (1 - exp(-e)).
    """
    if plan.mu2 or plan.factors or plan.sampled or plan.ranged != ((plan.ranged[0][0], 1),):
        return None
    top = float_up(plan.ranged[0][0]) * (1 + 2.0**-51)
    scale = -math.expm1(-top) * (1 - 1e-15)

    def delta(epsilon: float) -> float:
        share = math.expm1(-max(0.0, top - epsilon) / 2)
        return share * (share / scale) * (1 + 1e-14) + 4 * LEAST

    def epsilon(target: float) -> float:
        root = math.sqrt(target * scale) * (1 - 1e-14)
        return max(0.0, top + 2 * math.log1p(-root) * (1 - 1e-14)) if root < 1 else 0.0

    return delta, epsilon


def _single_sample(plan: contour.Plan) -> tuple[Curve, Curve] | None:
    """One Poisson-sampled release alone, from the curve D of its event (Balle, Barthe, Gaboardi 2018).

    Removing: q D(log(1 + (e^epsilon - 1) / q)). Adding, with a = 1 - e^epsilon (1 - q) above 0:
    a D(log(q e^epsilon / a)). Both follow from P(S) - e^epsilon Q(S) with the mixture written out.
    """
    if plan.mu2 or plan.factors or len(plan.sampled) > 1 or plan.sampled[0][1] > 1:
        return None
    event = plan.sampled[0][0]
    if isinstance(event, mixtures.Mixture):
        law = mixtures.atoms(event)
        return None if law is None else (law.delta, law.epsilon)
    single: Counts = {event.event: 1}
    inner = contour.make_plan(single, "remove")
    base = None if inner is None else _closed_form(inner)
    rate = float(event.rate)
    if base is None or rate < 1e-12:
        return None
    removing = plan.direction == "remove" or not isinstance(event, events.PoissonSubsampled)

    def delta(epsilon: float) -> float:
        if removing:
            share, level = rate, math.log1p(math.expm1(epsilon) / rate) if epsilon < 700 else epsilon
        else:
            share = 1 - math.exp(min(epsilon, 700.0)) * (1 - rate)
            if share <= 0:
                return 4e-16
            level = epsilon + math.log(rate / share)
        # What rounding does to the level is undone downwards: D is decreasing.
        blur = 1e-15 * (4 + level + (0 if removing else 1 / share))
        return min(1.0, (share + 4e-16 * (not removing)) * base[0](max(0.0, level - blur)) * (1 + 1e-14))

    def epsilon(target: float) -> float:
        if delta(0.0) <= target:
            return 0.0
        low, high = 0.0, 1.0
        while delta(high) > target:
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
        while high - low > 1e-12 * high + 1e-300:
            middle = (low + high) / 2
            low, high = (low, middle) if delta(middle) <= target else (middle, high)
        return high

    return delta, epsilon
