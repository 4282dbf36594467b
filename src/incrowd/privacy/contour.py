"""Composition by one quadrature: delta(epsilon) of a plan from the moments of its losses.

THEOREM. Let M(z) = E_P exp(z * loss) be the moment function of the composed pair (the product of its
events'), finite at c > 0. Then (1 - e^-v)_+ is the inverse Laplace transform of 1 / (z (z + 1)), so

    delta(epsilon) = 1/(2 pi) * integral over y of  G(y) exp(-(c + i y) epsilon),   G(y) = M(z) / (z (z + 1)),
    z = c + i y.

(1) Discretisation never understates. For nodes y_k = 2 pi k / T, Poisson summation gives the trapezoid sum
    over all k exactly: sum over m of exp(c T m) delta(epsilon + m T). Every term is positive, and the term
    m = 0 is the truth.
(2) Truncation. A Gaussian of total mu in the plan makes |G(y)| <= M(c) exp(-mu^2 y^2 / 2) / y^2, so what is
    left out beyond Y is at most exp(K(c) - c epsilon) exp(-mu^2 Y^2 / 2) / (pi Y), which is added. A plan
    without (enough) Gaussian noise gets a small Gaussian release of mu_0 on top: composing with one more
    release can only raise delta, and costs about mu_0^2 (c + 1) / 2 of epsilon, kept below the tolerance.
(3) Rounding. Each computed factor M_i(z) is within e_i M_i(c) of the true one, so the product is within
    |product| * expm1(sum n_i log1p(e_i M_i(c) / |M_i(z)|)); that sum over the nodes is added.

Hence what `Contour.delta` returns is at least delta(epsilon), for every choice of c, T, Y and mu_0; the
choices only decide how close it is. No history: a release that was run a million times is one factor to a
power. Events without closed form (bounded range, Poisson sampling) enter as dominating pairs on a lattice of
losses of spacing T / F, whose moments at all nodes are one fast Fourier transform of F numbers (`lattice`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.privacy import events, lattice, mixtures, ranges, renyi, sampling, transforms
from incrowd.privacy.amounts import LEAST, float_up, root_up
from incrowd.privacy.sampling import Direction
from incrowd.privacy.transforms import Floats, Values

UNIT_ROUNDOFF = 2.0**-53
SMOOTHING_TOLERANCE = 3e-8
"""The relative excess of epsilon that smoothing aims to stay below."""
LATTICE_TOLERANCE = 1e-7
"""The same for lattices."""
MIXTURE_TOLERANCE = 1e-5
"""The same for lattices of several units, whose points cost more."""
MOST_NODES = 2**18
MOST_LATTICE = 2**20
MOST_CELLS = 2**21
MOST_REPEATS = 10**15
_SMALL_RANGE = Fraction(1, 10**9)
_WIDEST = 1000.0
_LEAST_RATE = Fraction(1, 10**12)
_NEGLIGIBLE = 1e-11
"""The share of the sum below which nodes are bounded rather than kept."""
_GRID = np.geomspace(1e-3, 1e9, 181)
_LOG_PEAK = renyi.log_peak(_GRID)


@dataclass(frozen=True)
class Factor:
    """One kind of event of bounded loss, with a closed form: see `transforms.reduced_moment`."""

    epsilon: float
    family: str
    size: int
    count: int


@dataclass(frozen=True)
class Plan:
    """The finite part of a plan, sorted by how each event enters the contour, in one direction."""

    mu: float
    """The root of the sum of mu^2, rounded up."""
    mu2: float
    factors: tuple[Factor, ...]
    reach: Fraction
    """The sum of the largest losses of the factors."""
    sampled: tuple[tuple[lattice.OnSample, int], ...]
    ranged: tuple[tuple[Fraction, int], ...]
    direction: Direction

    def cumulant(self, c: Floats) -> Floats:
        """K(c), close enough to choose a contour by."""
        total = self.mu2 / 2 * c * (c + 1)
        for factor in self.factors:
            moment = transforms.reduced_moment(factor.epsilon, factor.family, factor.size, c)
            total = total + factor.count * (c * factor.epsilon + np.log(moment))
        for event, count in self.sampled:
            direction: Direction = self.direction
            if isinstance(event, mixtures.Mixture):
                total = total + count * mixtures.cumulant(event, c)
                continue
            if not isinstance(event, events.PoissonSubsampled):
                event, direction = events.PoissonSubsampled(event.event, event.rate), "remove"
            own = sampling.cumulant(event, c, direction)
            total = total + count * np.minimum(own, renyi.event_cumulant(event, c))
        for epsilon, count in self.ranged:
            total = total + count * np.minimum(float(epsilon) ** 2 / 8 * c * (c + 1), c * float(epsilon))
        return total

    def widest(self) -> float:
        """The widest range of losses that a lattice must hold."""
        spans = [2 * float(sum(e * n for e, n in self.ranged))]
        spans.extend(_widest(event) for event, _ in self.sampled)
        return max(spans)


def _widest(event: lattice.OnSample) -> float:
    """The range of losses of the event on its sample."""
    return mixtures.span(event) if isinstance(event, mixtures.Mixture) else sampling.span(event)


Part = events.Event | mixtures.Mixture
"""What a plan is made of once its direction, or its split, is chosen."""


def make_plan(counts: Mapping[events.Event, int] | Mapping[Part, int], direction: Direction) -> Plan | None:
    """The plan's parts; None where an event has no pair (zCDP)."""
    mu2 = Fraction(0)
    reach = Fraction(0)
    factors: dict[tuple[float, str, int], int] = {}
    sampled: list[tuple[lattice.OnSample, int]] = []
    ranged: list[tuple[Fraction, int]] = []
    for event, count in counts.items():
        bounded = None if isinstance(event, lattice.OnSample) else transforms.bounded_part(event)
        if bounded is not None:
            factors[bounded] = factors.get(bounded, 0) + count
            assert not isinstance(event, (events.Gaussian, events.ZeroConcentrated, events.Threshold))
            assert not isinstance(event, (lattice.OnSample, events.PoissonUnits))
            reach += event.epsilon * count
        elif isinstance(event, events.Gaussian):
            mu2 += event.mu**2 * count
        elif isinstance(event, lattice.OnSample) and getattr(event, "records", 1) == 1:
            sampled.append((event, count))
        elif isinstance(event, events.BoundedRange):
            ranged.append((event.epsilon, count))
        else:
            return None
    if (factors or sampled or ranged) and not all(_fits_floats(event, n) for event, n in counts.items()):
        return None
    # What is too long for the program, or too small for its rounding, counts as pure.
    small = sum(epsilon * count for epsilon, count in ranged) < _SMALL_RANGE
    alone = len(counts) == 1 and ranged and ranged[0][1] == 1
    if ranged and not alone and (small or ranges.worst_pair(tuple(ranged)) is None):
        for epsilon, count in ranged:
            key = (float(epsilon), "chain", 1)
            factors[key] = factors.get(key, 0) + count
            reach += epsilon * count
        ranged = []
    parts = tuple(Factor(*key, count) for key, count in factors.items())
    return Plan(root_up(mu2), float_up(mu2), parts, reach, tuple(sampled), tuple(ranged), direction)


def _fits_floats(event: Part, count: int) -> bool:
    """Whether a curve of such numbers can be drawn in floats; other bounds must do for what is beyond."""
    if isinstance(event, lattice.OnSample):
        inner = event.event if isinstance(event, mixtures.Mixture) else event
        wide = sampling.widest(inner.event)
        return wide > _LEAST_RATE and inner.rate > _LEAST_RATE and _fits_floats(inner.event, count)
    largest = count + max(getattr(event, "steps", 0), getattr(event, "categories", 0))
    amount: Fraction = getattr(event, "epsilon", getattr(event, "mu", Fraction(0)))
    return largest <= MOST_REPEATS and amount <= MOST_REPEATS


class DoesNotFit(Exception):  # noqa: N818 (caught by the accountant, never shown)
    """The plan needs a finer lattice than we lay; other bounds must do."""


class Contour:
    """The moments of a plan on one line Re z = c.

    `delta` is sound everywhere, and close from the epsilon it was made for down to `room` below. A rough line
    has fewer nodes and finds epsilon to about 1e-4.
    """

    def __init__(
        self,
        plan: Plan,
        epsilon: float,
        room: float | None = None,
        *,
        rough: bool = False,
        least_steepness: float = 0.0,
    ) -> None:
        self.made_for = epsilon
        self.reach = plan.reach
        choice = _choose(plan, epsilon, room)
        self.room = choice.room
        self.steepness = steepness = max(choice.steepness, least_steepness)
        self.c, self.period = choice.c, choice.period
        if plan.sampled or plan.ranged:
            self._lay_lattice(plan, epsilon, steepness)
        scale = max(epsilon, 1 / (steepness + 1))
        excess = (1e-4 if rough else SMOOTHING_TOLERANCE) * scale
        wanted = math.sqrt(2 * excess / (steepness + 1))
        own = math.sqrt(plan.mu2)
        self.smoothing = 0.0 if own >= wanted / 2 else wanted
        # Past this exponent the truncated part is below 1e-10 of the answer.
        depth = math.sqrt(2 * (choice.loss + 23 + max(0.0, math.log(self.c + 1))))
        spacing = 2 * math.pi / self.period
        mu = math.hypot(own, self.smoothing)
        if depth / mu > MOST_NODES * spacing:
            mu = depth / (MOST_NODES * spacing)
            self.smoothing = math.sqrt(max(0.0, mu * mu - plan.mu2))
            mu = math.hypot(own, self.smoothing)
        self.y = spacing * np.arange(max(16, math.ceil(depth / mu / spacing)) + 1)
        self._start(plan.mu2 + self.smoothing**2)
        for factor in plan.factors:
            self._times_factor(factor)
        self.lost = 0.0
        for grid, count in self._lattices(plan):
            moment, shift = grid.moments(self.c, self.size, len(self.y))
            # A transform of 2^20 numbers; the tilting exp(c * loss) rounds by its exponent.
            longest = self.step * max(-grid.first, grid.first + len(grid.mass))
            bound = np.full(len(self.y), UNIT_ROUNDOFF * (16 * 20 + 4 * self.c * longest))
            self._times(moment, bound, count)
            self.level += count * shift
            self.level_size += count * abs(shift)
            self.lost += count * grid.infinite
        self._drop_small()
        self._weigh()

    def _lay_lattice(self, plan: Plan, epsilon: float, steepness: float) -> None:
        """A spacing h whose added variance, h^2 / 6 a release, costs little epsilon: (c + 1) / 2 times it.

        It is a power of two so that lattices are found again.
        """
        repeats = sum(count for _, count in plan.sampled) + (1 if plan.ranged else 0)
        scale = max(epsilon, 1 / (steepness + 1))
        mixed = any(isinstance(event, mixtures.Mixture) for event, _ in plan.sampled)
        tolerance = MIXTURE_TOLERANCE if mixed else LATTICE_TOLERANCE
        fine = math.sqrt(12 * tolerance * scale / (repeats * (steepness + 1)))
        coarse = max(plan.widest() / MOST_CELLS, self.period / MOST_LATTICE)
        self.step = 2.0 ** math.floor(math.log2(max(fine, 2 * coarse)))
        if self.period < 64 * self.step or plan.widest() > _WIDEST:
            raise DoesNotFit("The losses are too wide for the lattice that this delta needs.")
        self.size = lattice.fast_size(self.period / self.step)
        self.period = self.size * self.step

    def _lattices(self, plan: Plan) -> list[tuple[lattice.Lattice, int]]:
        """What has no closed form, with its count."""
        lattices = [(lattice.sampled(event, plan.direction, self.step), n) for event, n in plan.sampled]
        if plan.ranged:
            lattices.append((lattice.ranged(plan.ranged, self.step), 1))
        return lattices

    def _start(self, mu2: float) -> None:
        """The Gaussian part: logs of M(z) / M(c) at the nodes, the bound on their error, and log M(c)."""
        self.z = self.c + 1j * self.y
        self.modulus = np.abs(self.z)
        self.log_value = np.zeros(len(self.y), dtype=complex)
        self.error = np.zeros(len(self.y))
        self.level = self.level_size = 0.0
        self._times_gaussian(mu2)
        edge = float(self.y[-1])
        self.truncated = math.exp(-mu2 * edge * edge / 2) / (math.pi * edge)

    def _times_gaussian(self, mu2: float) -> None:
        y, c = self.y, self.c
        self.log_value += mu2 / 2 * (1j * y * (2 * c + 1) - y * y)
        self.error += UNIT_ROUNDOFF * 2 * mu2 * self.modulus * (self.modulus + 1)
        self.level += mu2 / 2 * c * (c + 1)
        self.level_size += mu2 / 2 * c * (c + 1)

    def _times_factor(self, factor: Factor) -> None:
        moment = transforms.reduced_moment(factor.epsilon, factor.family, factor.size, self.z)
        turning = 8 * (self.modulus + 1) * factor.epsilon + 8 * self.y / (self.c + 0.5)
        self._times(moment, UNIT_ROUNDOFF * (32 + turning), factor.count)

    def _times(self, moment: Values, bound: Floats, count: int) -> None:
        """Times (moment / moment at c)^count, where moment is off by at most bound * (moment at c).

        What lies below its own bound is set to it; the true value is then within three times the bound.
        """
        top = float(moment[0].real)
        moment = moment / top
        size = np.abs(moment)
        small = size <= bound
        if small.any():
            moment, size = np.where(small, bound, moment), np.where(small, bound, size)
            bound = np.where(small, 3 * bound, bound)
        self.log_value += count * np.log(moment)
        self.error += count * np.log1p(bound / size)
        self.level += count * math.log(top)
        self.level_size += count * abs(math.log(top))

    def _drop_small(self) -> None:
        """Most nodes of a long plan are too small to matter; all that they could add is bounded and added."""
        size = np.exp(np.minimum(self.log_value.real + self.error, 1.0))
        size *= 2 / self.period / (self.modulus * np.abs(self.z + 1))
        order = np.argsort(size)
        below = np.cumsum(size[order])
        cut = int(np.searchsorted(below, _NEGLIGIBLE * below[-1]))
        if cut:
            self.truncated += float(below[cut - 1]) * (1 + 1e-9)
            kept = np.sort(order[cut:])
            self.y, self.z, self.modulus = self.y[kept], self.z[kept], self.modulus[kept]
            self.log_value, self.error = self.log_value[kept], self.error[kept]

    def _weigh(self) -> None:
        """The terms of the sum at epsilon = reach, and the bounds on their rounding."""
        # |M(z)| <= M(c): what lies above it is rounding, and cutting it brings it closer to the truth.
        value = np.exp(np.minimum(self.log_value.real, 0.0) + 1j * self.log_value.imag)
        self.weight = value / (self.z * (self.z + 1)) * (2 / self.period)
        self.weight[0] /= 2
        size = np.abs(self.weight)
        relative = np.expm1(np.minimum(self.error, 700.0)) + UNIT_ROUNDOFF * (64 + 2 * np.abs(self.log_value))
        self.rounding = float(size @ relative) * (1 + 1e-9)
        self.turn = UNIT_ROUNDOFF * 8 * float(size @ self.y)

    def extend(self, extra: Plan) -> None:
        """Compose with a plan of closed forms, on the same line: what was said of it stays true."""
        assert not extra.sampled and not extra.ranged
        if extra.mu2:
            self._times_gaussian(extra.mu2)
        for factor in extra.factors:
            self._times_factor(factor)
        self.reach += extra.reach
        self._weigh()

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta(epsilon)."""
        gap = float(self.reach - Fraction(epsilon))
        scale = self.level + self.c * gap
        if scale > 700:
            return 1.0
        turns = self.y * (gap / (2 * math.pi))
        turned = 2 * math.pi * (turns - np.rint(turns))
        total = float(self.weight.real @ np.cos(turned) - self.weight.imag @ np.sin(turned))
        slack = self.rounding + self.turn * (abs(gap) + abs(epsilon)) + self.truncated
        bound = math.exp(scale) * (total + slack)
        bound *= 1 + 4 * UNIT_ROUNDOFF * (8 + self.c * abs(gap) + self.level_size)
        return min(1.0, max(LEAST, bound) + self.lost)


@dataclass(frozen=True)
class Choice:
    """A line and a spacing of nodes, and what they were chosen by. Only closeness depends on them."""

    c: float
    period: float
    loss: float
    """The log of how far exp(K(c) - c epsilon) lies above its least over c."""
    steepness: float
    """The c of that least: about -d log(delta) / d epsilon."""
    room: float
    """How far below its epsilon the line stays close."""


def _choose(plan: Plan, epsilon: float, room: float | None) -> Choice:
    """The line with the fewest nodes among those near the best moment bound.

    The aliases of (1) at m = -1, -2, ... are below exp(-c T); those at m = 1, 2, ... are below
    exp(E(d) - (d - c) T) for every d > c, E(d) = K(d) - d epsilon + log_peak(d). Both should be 1e-10 of
    delta.
    """
    c = _GRID
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = plan.cumulant(c) - c * epsilon + _LOG_PEAK
    exponent = np.nan_to_num(exponent, nan=np.inf, posinf=np.inf)
    lowest = int(np.argmin(exponent))
    least = float(exponent[lowest])
    if not least < 5:
        raise DoesNotFit("The loss is so large that no moment bounds it.")
    near = np.flatnonzero(exponent <= least + 6)
    if room is None:
        room = min(0.01 * epsilon, 3 / float(c[lowest]))
    # delta itself is not far below its best moment bound.
    target = least - 25
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = c[None, :] - c[near, None]
        # At an epsilon lower by the room E(d) is higher by d times that.
        later = exponent + c * room - target
        right = np.where(gap > 0, later[None, :] / gap, np.inf).min(axis=1)
    period = np.maximum(-target / c[near], right)
    best = int(np.argmin(period))
    if not math.isfinite(period[best]):
        return Choice(float(c[lowest]), 60 / float(c[lowest]), 0.0, float(c[lowest]), room)
    place = near[best]
    loss = float(exponent[place]) - least
    return Choice(float(c[place]), float(period[best]), loss, float(c[lowest]), room)
