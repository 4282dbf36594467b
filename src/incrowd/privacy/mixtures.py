"""Several units under Poisson sampling: mixtures of noise, shifted by how many of them are in the sample.

THEOREM. Let a release, run on any two data sets that differ by a added or removed units, be dominated by
noise around a and around 0: Gaussian of mu a unit, or discrete Laplace of `steps` a unit (which covers every
pure release, see `DiscreteLaplace`, and Laplace noise, its limit). Run it on a Poisson sample of rate q, on
data sets of which one has r units and the other s units that they do not share. Then the pair is dominated by

    P: noise around +a, a ~ Binomial(r, q)          Q: noise around -b, b ~ Binomial(s, q).

Proof. Fix the sample of the shared units; mixing over it only helps. Let R be the release on it alone and
f any test, with R(f) = x. Given that a of the r units are in the sample, f has power at most G_a(x), the
largest that the noise around a against 0 allows at level x; so P(f) <= sum of Binomial(r, q)(a) G_a(x), and
likewise Q(f) >= 1 - sum of Binomial(s, q)(b) G_b(1 - x). Noise around a against noise around 0 has a monotone
likelihood ratio for every a, so the one test {X > t} of level x, randomised at t, attains all G_a(x) at once,
and all 1 - G_b(1 - x) as well. Hence P(f) - e^epsilon Q(f) is at most what this test reaches on the pair
stated. (For Gaussian noise and r = 0 or s = 0: Ganesh 2024, "Tight group-level DP guarantees".) More units
on either side only raise the first sum or lower the second bound, so r = s = k covers every split of k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.privacy import events, sampling
from incrowd.privacy.amounts import float_up
from incrowd.privacy.atoms import Atoms
from incrowd.privacy.transforms import Floats

MOST_SPLITS = 16
"""Groups of up to this many units are taken at each split; larger ones at the pair that covers all."""
MOST_POINTS = 2**14
_LAPLACE_STEPS = 1024


@dataclass(frozen=True)
class Mixture:
    """The pair above: `removed` units of the first data set against `added` ones of the second."""

    event: events.PoissonUnits
    removed: int
    added: int


def replaced(event: events.WithoutReplacement) -> Mixture | None:
    """Several replaced records in a sample of a fixed size; None where too many of all are in it.

    Each of k records, whatever the others, is in a sample of m of n with probability m / (n - k + 1) at most,
    so that Binomial(k, m / (n - k + 1)) records are not fewer; n is at least the rate's denominator.
    """
    k, size = event.records, event.rate.denominator
    if 4 * event.rate > 1 or 2 * k > size:
        return None
    units = events.PoissonUnits(event.event, event.rate * Fraction(size, size - k + 1), 2 * k)
    return Mixture(units, k, k) if fits(units) else None


def steps(event: events.Sampled) -> int:
    """How many steps of discrete Laplace noise a unit moves; 0 for Gaussian noise."""
    match event:
        case events.Gaussian():
            return 0
        case events.DiscreteLaplace():
            return event.steps
        case events.Laplace():
            return _LAPLACE_STEPS
        case _:
            return 1


def fits(event: events.PoissonUnits) -> bool:
    """Whether its points are few enough; if not, `PoissonGroup` bounds it."""
    return event.units * max(1, 2 * steps(event.event)) <= MOST_POINTS


def span(mixture: Mixture) -> float:
    """The range of losses on the sample, which is small where the rate is."""
    base = mixture.event.event
    if not isinstance(base, events.Gaussian):
        turned = Mixture(mixture.event, mixture.added, mixture.removed)
        return 2 * max(largest(mixture), largest(turned))
    mu = float_up(base.mu)
    ends = np.array([-sampling.REACH - mixture.added * mu, sampling.REACH + mixture.removed * mu])
    top, bottom = _gaussian_logs(mixture, ends)
    return 2 * float(np.abs(top - bottom).max())


def largest(mixture: Mixture) -> float:
    """A bound on the loss: P <= (1 - q + q e^e)^r R and Q >= (1 - q + q e^-e)^s R, rounded up."""
    base, rate = mixture.event.event, _rate(mixture)
    if isinstance(base, events.Gaussian):
        if mixture.removed or rate == 1:
            return math.inf
        return -mixture.added * math.log1p(-rate) * (1 + 1e-14)
    epsilon = float_up(base.epsilon)
    above = epsilon if epsilon > 700 else math.log1p(rate * math.expm1(epsilon))
    below = epsilon if rate == 1 else -math.log1p(rate * math.expm1(-epsilon))
    return (mixture.removed * above + mixture.added * below) * (1 + 1e-14)


def _log_binomial(count: int, rate: float) -> Floats:
    """Logs of Binomial(count, rate), from 0 to count."""
    stay = math.log1p(-rate) if rate < 1 else -math.inf
    return np.array(
        [
            math.log(math.comb(count, a)) + a * math.log(rate) + ((count - a) * stay if a < count else 0.0)
            for a in range(count + 1)
        ]
    )


def _rate(mixture: Mixture) -> float:
    """Rounded up: more units in the sample are easier to tell."""
    return min(1.0, float_up(mixture.event.rate))


def _loss(top: Floats, bottom: Floats) -> Floats:
    """log P/R - log Q/R, rounded up."""
    return np.asarray(top - bottom + 2e-15 * (np.abs(top) + np.abs(bottom)))


def _mixed(exponents: Floats, log_share: Floats) -> Floats:
    """log of the sum of shares times exp(exponents), one row for each number of units in the sample.

    The first row is 0. Where the sum is near 1 the shares' own sum of 1 is taken out: nothing cancels.
    """
    if len(exponents) == 1:
        return np.zeros(exponents.shape[1])
    change = np.exp(log_share[1:]) @ np.expm1(np.minimum(exponents[1:], 1.0))
    logs_of_sums = np.log1p(np.maximum(change, -0.5))
    far = np.flatnonzero((exponents.max(axis=0) >= 1) | (change < -0.5))
    if len(far):
        logs = exponents[:, far] + log_share[:, None]
        top = logs.max(axis=0)
        logs_of_sums[far] = top + np.log(np.exp(logs - top).sum(axis=0))
    return np.asarray(logs_of_sums)


def _gaussian_logs(mixture: Mixture, x: Floats) -> tuple[Floats, Floats]:
    """log P/R and log Q/R at x, R being noise around 0."""
    base = mixture.event.event
    assert isinstance(base, events.Gaussian)
    mu, rate = float_up(base.mu), _rate(mixture)
    ratios = []
    for count, sign in ((mixture.removed, 1.0), (mixture.added, -1.0)):
        a = mu * np.arange(count + 1)[:, None]
        ratios.append(_mixed(sign * a * x - a * a / 2, _log_binomial(count, rate)))
    return ratios[0], ratios[1]


def _chain(mixture: Mixture) -> tuple[Floats, Floats]:
    """Losses and P-masses of discrete Laplace noise: constant losses beyond the last units are one point."""
    base, rate, width = mixture.event.event, _rate(mixture), steps(mixture.event.event)
    assert not isinstance(base, events.Gaussian)
    step = float_up(base.epsilon) / width
    t = np.arange(-mixture.added * width, mixture.removed * width + 1)
    log_mass = math.log(math.tanh(step / 2)) - step * np.abs(t)
    # The ends hold all that lies beyond them as well: 1 / (1 + e^-step) of what lies at or beyond 0.
    log_mass[[0, -1]] = -step * np.abs(t[[0, -1]]) - math.log1p(math.exp(-step))
    ratios = []
    for count, sign in ((mixture.removed, 1), (mixture.added, -1)):
        shift = sign * width * np.arange(count + 1)
        exponents = step * (np.abs(t) - np.abs(t - shift[:, None]))
        ratios.append(_mixed(exponents, _log_binomial(count, rate)))
    return _loss(*ratios), np.exp(log_mass + ratios[0])


def atoms(mixture: Mixture) -> Atoms | None:
    """One release alone, where its losses are few."""
    if isinstance(mixture.event.event, (events.Gaussian, events.Laplace)):
        return None
    loss, mass = _chain(mixture)
    return Atoms(loss, mass, 1e-13, 4)


@lru_cache(maxsize=64)
def _moment_points(mixture: Mixture) -> tuple[Floats, Floats]:
    """Losses and logs of P-masses, to choose a contour by."""
    base = mixture.event.event
    if not isinstance(base, events.Gaussian):
        loss, mass = _chain(mixture)
        return loss, np.log(np.maximum(mass, 1e-320))
    spread = max(1.0, float_up(base.mu) * (mixture.removed + mixture.added))
    x = np.arange(-14.0 - spread, 300.0, 0.25 / spread)
    top, bottom = _gaussian_logs(mixture, x)
    return top - bottom, top - x * x / 2 + math.log(0.25 / spread / math.sqrt(2 * math.pi))


def cumulant(mixture: Mixture, c: Floats) -> Floats:
    """K(c), close enough to choose a contour by."""
    loss, log_mass = _moment_points(mixture)
    exponent = np.outer(c, loss) + log_mass
    top = exponent.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponent - top[:, None]).sum(axis=1)))


def lattice_points(mixture: Mixture, spacing: float) -> tuple[Floats, Floats, float]:
    """Losses, P-masses, and the P-mass moved to infinity; smooth between lattice losses."""
    base = mixture.event.event
    if not isinstance(base, events.Gaussian):
        return *_chain(mixture), 0.0
    mu = float_up(base.mu)
    low, high = -sampling.REACH - mixture.added * mu, sampling.REACH + mixture.removed * mu
    spread = max(1.0, mu * (mixture.removed + mixture.added))
    regular = np.linspace(low, high, math.ceil((high - low) * 200 * spread) + 1)
    x, weights = sampling.cells(np.unique(np.concatenate([regular, _marks(mixture, regular, spacing)])))
    top, bottom = _gaussian_logs(mixture, x)
    return _loss(top, bottom), weights * np.exp(top - x * x / 2) / math.sqrt(2 * math.pi), 1e-27


def _marks(mixture: Mixture, x: Floats, spacing: float) -> Floats:
    """Where the loss, which rises with x, is a multiple of the spacing: secants within cells of x."""
    top, bottom = _gaussian_logs(mixture, x)
    loss = np.maximum.accumulate(top - bottom)
    marks = spacing * np.arange(math.ceil(loss[0] / spacing), math.floor(loss[-1] / spacing) + 1)
    cell = np.clip(np.searchsorted(loss, marks, side="right") - 1, 0, len(x) - 2)
    left, right, below, above = x[cell], x[cell + 1], loss[cell] - marks, loss[cell + 1] - marks
    for _ in range(4):
        with np.errstate(divide="ignore", invalid="ignore"):
            place = left - below * (right - left) / (above - below)
        place = np.clip(np.nan_to_num(place, nan=0.0, posinf=0.0, neginf=0.0), left, right)
        value = np.subtract(*_gaussian_logs(mixture, place)) - marks
        lower = value < 0
        left, below = np.where(lower, place, left), np.where(lower, value, below)
        right, above = np.where(lower, right, place), np.where(lower, above, value)
    return place
