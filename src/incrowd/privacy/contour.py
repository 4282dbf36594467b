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
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.privacy import events, lattice, ranges, renyi, sampling, transforms
from incrowd.privacy.sampling import Direction
from incrowd.privacy.transforms import Floats, Values

UNIT_ROUNDOFF = 2.0**-53
SMOOTHING_TOLERANCE = 3e-8
"""The relative excess of epsilon that smoothing aims to stay below."""
LATTICE_TOLERANCE = 1.5e-7
"""The same for lattices."""
MOST_NODES = 2**18
MOST_LATTICE = 2**20
_NEGLIGIBLE = -60.0
"""The log of a node's share, relative to the middle one, below which it is bounded rather than computed."""
_GRID = np.geomspace(1e-3, 1e9, 241)


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

    mu2: float
    factors: tuple[Factor, ...]
    reach: Fraction
    """The sum of the largest losses of the factors."""
    sampled: tuple[tuple[events.PoissonSubsampled, int], ...]
    ranged: tuple[tuple[Fraction, int], ...]
    direction: Direction

    def cumulant(self, c: Floats) -> Floats:
        """K(c), close enough to choose a contour by."""
        total = self.mu2 / 2 * c * (c + 1)
        for factor in self.factors:
            moment = transforms.reduced_moment(factor.epsilon, factor.family, factor.size, c)
            total = total + factor.count * (c * factor.epsilon + np.log(moment))
        for event, count in self.sampled:
            total = total + count * np.minimum(
                sampling.cumulant(event, c, self.direction), renyi.event_cumulant(event, c)
            )
        for epsilon, count in self.ranged:
            total = total + count * np.minimum(float(epsilon) ** 2 / 8 * c * (c + 1), c * float(epsilon))
        return total


def make_plan(counts: dict[events.Event, int], direction: Direction) -> Plan | None:
    """The plan's parts; None where an event has no pair (zCDP)."""
    mu2 = Fraction(0)
    reach = Fraction(0)
    factors: dict[tuple[float, str, int], int] = {}
    sampled: list[tuple[events.PoissonSubsampled, int]] = []
    ranged: list[tuple[Fraction, int]] = []
    for event, count in counts.items():
        bounded = transforms.bounded_part(event)
        if bounded is not None:
            factors[bounded] = factors.get(bounded, 0) + count
            assert not isinstance(event, (events.Gaussian, events.ZeroConcentrated, events.Threshold))
            assert not isinstance(event, events.PoissonSubsampled)
            reach += event.epsilon * count
        elif isinstance(event, events.Gaussian):
            mu2 += event.mu**2 * count
        elif isinstance(event, events.PoissonSubsampled):
            sampled.append((event, count))
        elif isinstance(event, events.BoundedRange):
            ranged.append((event.epsilon, count))
        else:
            return None
    if ranged and ranges.worst_pair(tuple(ranged)) is None:
        for epsilon, count in ranged:
            key = (float(epsilon), "chain", 1)
            factors[key] = factors.get(key, 0) + count
            reach += epsilon * count
        ranged = []
    parts = tuple(Factor(*key, count) for key, count in factors.items())
    return Plan(float(mu2), parts, reach, tuple(sampled), tuple(ranged), direction)


class Contour:
    """The moments of a plan on one line Re z = c, ready for `delta` near the epsilon it was made for."""

    def __init__(self, plan: Plan, epsilon: float) -> None:
        self.plan = plan
        self.c, self.period, level = _choose(plan, epsilon)
        if plan.sampled or plan.ranged:
            self._lay_lattice(epsilon)
        wanted = math.sqrt(2 * SMOOTHING_TOLERANCE * max(epsilon, 1e-9) / (self.c + 1))
        own = math.sqrt(plan.mu2)
        self.smoothing = 0.0 if own >= wanted / 2 else wanted
        # Past this exponent the truncated part is below 1e-10 of the answer.
        depth = math.sqrt(2 * (level + 23 + max(0.0, math.log(self.c + 1))))
        spacing = 2 * math.pi / self.period
        mu = math.hypot(own, self.smoothing)
        if depth / mu > MOST_NODES * spacing:
            mu = depth / (MOST_NODES * spacing)
            self.smoothing = math.sqrt(max(0.0, mu * mu - plan.mu2))
            mu = math.hypot(own, self.smoothing)
        count = max(16, math.ceil(depth / mu / spacing))
        self.y = spacing * np.arange(count + 1)
        self.mu2 = plan.mu2 + self.smoothing**2
        self._evaluate()

    def _lay_lattice(self, epsilon: float) -> None:
        """A spacing h whose added variance, h^2 / 6 a release, costs little epsilon: (c + 1) / 2 times it.

        It is a power of two so that lattices are found again.
        """
        repeats = sum(count for _, count in self.plan.sampled) + (1 if self.plan.ranged else 0)
        fine = math.sqrt(12 * LATTICE_TOLERANCE * max(epsilon, 1e-9) / (repeats * (self.c + 1)))
        self.step = 2.0 ** math.floor(math.log2(max(fine, self.period / MOST_LATTICE)))
        self.size = lattice.fast_size(self.period / self.step)
        self.period = self.size * self.step

    def _evaluate(self) -> None:
        """G(y_k) / M(c) at the nodes, K(c), and the bound on their rounding."""
        c, y = self.c, self.y
        z = c + 1j * y
        size = np.abs(z)
        log_value = self.mu2 / 2 * (1j * y * (2 * c + 1) - y * y)
        error = UNIT_ROUNDOFF * 2 * self.mu2 * size * (size + 1)
        levels = [self.mu2 / 2 * c * (c + 1)]
        self.lost = 0.0
        for factor in self.plan.factors:
            moment = transforms.reduced_moment(factor.epsilon, factor.family, factor.size, z)
            bound = UNIT_ROUNDOFF * (32 + 8 * (size + 1) * factor.epsilon + 8 * y / (c + 0.5))
            log_value, error = _multiply(log_value, error, moment, bound, factor.count)
            levels.append(factor.count * math.log(moment[0].real))
        for grid, count in self._lattices():
            moment = grid.moments(c, self.size, len(y))
            # A transform of 2^20 numbers; the tilting exp(c * loss) rounds by its exponent.
            longest = self.step * max(-grid.first, grid.first + len(grid.mass))
            bound = np.full(len(y), UNIT_ROUNDOFF * (16 * 20 + 4 * c * longest))
            log_value, error = _multiply(log_value, error, moment, bound, count)
            levels.append(count * math.log(moment[0].real))
            self.lost += count * grid.infinite
        edge = float(y[-1])
        self.truncated = math.exp(-self.mu2 * edge * edge / 2) / (math.pi * edge)
        # Most nodes of a long plan are too small to matter; what they could add is bounded and added.
        kept = log_value.real + error > _NEGLIGIBLE
        scale = 2 / self.period / (size * np.abs(z + 1))
        self.truncated += math.exp(_NEGLIGIBLE) * float(scale[~kept].sum()) * (1 + 1e-12)
        self.y, z, log_value, error = y[kept], z[kept], log_value[kept], error[kept]
        self.weight = np.exp(log_value) / (z * (z + 1)) * (2 / self.period)
        self.weight[0] /= 2
        self.level = sum(levels)
        self.level_error = 4 * UNIT_ROUNDOFF * sum(abs(part) for part in levels)
        modulus = np.abs(self.weight)
        relative = np.expm1(np.minimum(error, 700.0)) + UNIT_ROUNDOFF * (64 + 2 * np.abs(log_value))
        self.rounding = float(modulus @ relative) * (1 + 1e-9)
        self.turn = UNIT_ROUNDOFF * 4 * float(modulus @ self.y)

    def _lattices(self) -> list[tuple[lattice.Lattice, int]]:
        """What has no closed form, with its count."""
        plan = self.plan
        found = [(lattice.sampled(event, plan.direction, self.step), n) for event, n in plan.sampled]
        if plan.ranged:
            found.append((lattice.ranged(plan.ranged, self.step), 1))
        return found

    def delta(self, epsilon: float, gap: float) -> float:
        """An upper bound on delta(epsilon); `gap` is the plan's reach minus epsilon, found exactly."""
        total = float((self.weight * np.exp(1j * self.y * gap)).real.sum())
        scale = self.level + self.c * gap
        if scale > 700:
            return 1.0
        slack = self.rounding + self.turn * (abs(gap) + abs(epsilon)) + self.truncated
        bound = math.exp(scale) * (total + slack)
        bound *= 1 + 4 * UNIT_ROUNDOFF * (8 + self.c * abs(gap)) + self.level_error
        return min(1.0, max(0.0, bound) + self.lost)


def _multiply(
    log_value: Values, error: Floats, moment: Values, bound: Floats, count: int
) -> tuple[Values, Floats]:
    """Times (moment / moment at c)^count, where moment is off by at most bound * (moment at c).

    What lies below its own bound is set to it; the true value is then within three times the bound.
    """
    moment = moment / moment[0].real
    small = np.abs(moment) <= bound
    moment = np.where(small, bound, moment)
    off = np.log1p(np.where(small, 3.0, bound / np.abs(moment)))
    return log_value + count * np.log(moment), error + count * off


def _choose(plan: Plan, epsilon: float) -> tuple[float, float, float]:
    """c, the period T, and the log of how far exp(K(c) - c epsilon) lies above its least over c.

    Only closeness depends on them.

    The aliases of (1) at m = -1, -2, ... are below exp(-c T); those at m = 1, 2, ... are below
    exp(E(d) - (d - c) T) for every d > c, E(d) = K(d) - d epsilon + log_peak(d). Both should be 1e-10 of
    delta.
    """
    c = _GRID
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = plan.cumulant(c) - c * epsilon + renyi.log_peak(c)
    exponent = np.nan_to_num(exponent, nan=np.inf, posinf=np.inf)
    least = float(exponent.min())
    # delta itself is not far below its best moment bound.
    target = least - 25
    left = -target / c
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = c[None, :] - c[:, None]
        right = np.where(gap > 0, (exponent[None, :] - target) / gap, np.inf).min(axis=1)
    period = np.where(exponent <= least + 6, np.maximum(left, right), np.inf)
    best = int(np.argmin(period))
    if not math.isfinite(period[best]):
        best = int(np.argmin(exponent))
        return float(c[best]), 60 / float(c[best]), 0.0
    return float(c[best]), float(period[best]), float(exponent[best] - least)
