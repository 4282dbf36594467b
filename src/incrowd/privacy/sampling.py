"""Poisson sampling: the pairs ((1 - q) Q + q P, Q) and (Q, (1 - q) Q + q P) as numbers.

For a point where the base loss log(P/Q) is l, the sampled loss is log(1 - q + q e^l) where a unit is removed
and minus that where one is added. Two forms are made of it. *Moments* for real orders, by a quadrature of Q
whose error is below rounding: the trapezoid rule for the Gaussian (in a strip of half-width d the integrand
exceeds its real values by exp(d^2/2) at most, so the error is about exp(d^2/2 - 2 pi d / h)), Gauss-Legendre
for the Laplace middle, and the atoms themselves elsewhere. And *atoms on a lattice*: each point moves its
mass to the two lattice losses beside it so that both its P-mass and its Q-mass are kept, which makes a pair
that dominates (a mean-preserving spread of Q/P, and delta(epsilon) is an expectation of a convex function of
it).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from incrowd.privacy import events
from incrowd.privacy.amounts import LEAST, float_up
from incrowd.privacy.transforms import Floats

Direction = Literal["remove", "add"]

_FAR = 300.0
"""How many deviations the points for moments extend to the right."""
REACH = 11.0
"""On the lattice, Gaussian points beyond this many deviations (mass below 2e-28) get an infinite loss."""
MOST_STEPS = 2**20
_WIDEST = 10_000.0
"""No moments are computed for losses that span more than this, or next to nothing."""


def base_points(event: events.Sampled, direction: Direction) -> tuple[Floats, Floats]:
    """Base losses l and the logs of their Q-masses: the pair (P, Q) by quadrature, for moments."""
    match event:
        case events.Gaussian():
            mu = float(event.mu)
            spacing, high = (0.25, _FAR) if direction == "remove" else (0.1, 14 + mu)
            spacing /= max(1.0, mu)
            x = spacing * np.arange(-math.ceil(14 / spacing), math.ceil(high / spacing) + 1)
            return mu * x - mu * mu / 2, math.log(spacing / math.sqrt(2 * math.pi)) - x * x / 2
        case events.Laplace():
            epsilon = float(event.epsilon)
            nodes, weights = _legendre(math.ceil(8 * epsilon))
            middle = epsilon * nodes
            mass = np.log(epsilon * weights / 4) - (epsilon + middle) / 2
            return (
                np.concatenate([[-epsilon], middle, [epsilon]]),
                np.concatenate([[math.log(0.5)], mass, [math.log(0.5) - epsilon]]),
            )
        case _:
            loss, atom = atoms(event)
            return loss, np.log(np.maximum(atom, 1e-300))


@lru_cache(maxsize=64)
def _legendre(panels: int) -> tuple[Floats, Floats]:
    """A Gauss-Legendre rule on [-1, 1] in equal panels."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(-1, 1, panels + 1)
    half = (edges[1:] - edges[:-1]) / 2
    spread = (edges[:-1, None] + half[:, None] * (nodes + 1)).ravel()
    return spread, (half[:, None] * weights).ravel()


def atoms(event: events.Sampled) -> tuple[Floats, Floats]:
    """Losses and Q-masses of an event with finitely many of them."""
    if isinstance(event, events.RandomizedResponse) and event.categories > 2:
        epsilon = float(event.epsilon)
        total = 1 + math.exp(-epsilon) * (event.categories - 1)
        low = math.exp(-epsilon) / total
        return np.array([-epsilon, 0.0, epsilon]), np.array([1 / total, (event.categories - 2) * low, low])
    steps = event.steps if isinstance(event, events.DiscreteLaplace) else 1
    assert not isinstance(event, events.Gaussian)
    epsilon = float(event.epsilon)
    if steps > MOST_STEPS:
        # A coarser chain: each of its steps covers `width` fine ones, the last perhaps fewer.
        width = -(-steps // MOST_STEPS)
        epsilon, steps = epsilon / steps * width * -(-steps // width), -(-steps // width)
    step = epsilon / steps
    x = np.arange(steps + 1)
    mass = np.exp(-step * x) * -math.expm1(-step)
    mass[0] = 1.0
    mass[-1] = math.exp(-epsilon)
    return step * (2 * x - steps), mass / (1 + math.exp(-step))


def sampled_loss(base: Floats, rate: float) -> Floats:
    """log(1 - q + q e^l), without overflow or cancellation."""
    rate = max(rate, LEAST)
    loss = np.log1p(rate * np.expm1(np.clip(base, -0.5 if rate > 0.5 else -1e9, 700.0)))
    loss = np.where(base > 700, base + math.log(rate), loss)
    if rate > 0.5:
        stay = math.log1p(-rate) if rate < 1 else -math.inf
        loss = np.where(base < -0.5, np.logaddexp(stay, math.log(rate) + base), loss)
    return np.asarray(loss)


def cumulant(event: events.PoissonSubsampled, c: Floats, direction: Direction) -> Floats:
    """An upper bound on K(c) = log E exp(c * loss) of the sampled pair; inf where none is proven here."""
    return _cumulant(event, np.ascontiguousarray(c).tobytes(), direction)


@lru_cache(maxsize=128)
def _cumulant(event: events.PoissonSubsampled, orders: bytes, direction: Direction) -> Floats:
    c = np.frombuffer(orders)
    best = np.full_like(c, np.inf)
    rate = float(event.rate)
    if direction == "add" and rate < 1:
        best = c * -math.log1p(-rate) * (1 + 1e-14)
    if not 1 / _WIDEST**9 < widest(event.event) < _WIDEST:
        return best
    base, log_mass = base_points(event.event, direction)
    proven = c <= _proven_order(event.event, direction)
    if len(base) > 20000 or not proven.any():
        return best
    loss = sampled_loss(base, rate)
    exponent = np.outer(c[proven] + 1, loss) if direction == "remove" else np.outer(-c[proven], loss)
    exponent += log_mass
    top = exponent.max(axis=1)
    exponent -= top[:, None]
    best[proven] = np.minimum(
        best[proven], top + np.log(np.exp(exponent).sum(axis=1)) + 1e-13 * (1 + np.abs(top))
    )
    return best


def _proven_order(event: events.Sampled, direction: Direction) -> float:
    """The largest c up to which the points for moments are exact to rounding."""
    match event:
        case events.Gaussian():
            # Removing: the integrand peaks at or before (c + 1) mu, which must lie well within the points;
            # off the axis it exceeds its values there by exp(d^2 / 2) at most: 1e-20 with d = 2 / max(1, mu).
            # Adding: |w| is at least cos(angle / 2) times its value on the axis, so that cos(mu d / 2)^-c
            # comes in: 1e-18 with d = 1 / max(1, mu) up to this order.
            mu = float(event.mu)
            return (_FAR - 9) / mu - 1 if direction == "remove" else 150.0 / max(1.0, mu * mu)
        case events.Laplace():
            # Panels of half-length 1/8 and the ellipse that reaches 1 off the axis: 16^-48 exp(c + 1).
            return 75.0
        case _:
            return math.inf


def widest(event: events.Sampled) -> float:
    """How wide a range of losses the event's points span, at most."""
    if isinstance(event, events.Gaussian):
        return float_up(event.mu) * (2 * REACH + float_up(event.mu))
    return 2 * float_up(event.epsilon)


def span(event: events.PoissonSubsampled | events.PoissonGroup | events.WithoutReplacement) -> float:
    """The range of losses on the sample, which is small where the rate is."""
    base = event.event
    if isinstance(base, events.Gaussian):
        mu = float_up(base.mu)
        ends = np.array([mu * -REACH - mu * mu / 2, mu * (REACH + mu) - mu * mu / 2])
    else:
        ends = np.array([-1.0, 1.0]) * float_up(base.epsilon)
    low, high = sampled_loss(np.clip(ends, -1e9, 1e9), float(event.rate)) if event.rate < 1 else ends
    return 2 * float(max(high, -low))


def lattice_points(
    event: events.PoissonSubsampled, direction: Direction, spacing: float
) -> tuple[Floats, Floats, float]:
    """Losses, P-masses, and the P-mass moved to infinity; smooth between lattice losses."""
    rate = float(event.rate)
    lost = 0.0
    match event.event:
        case events.Gaussian():
            base, mass = _gaussian_cells(float(event.event.mu), rate, spacing)
            lost = 1e-27
        case events.Laplace():
            base, mass = _laplace_cells(float(event.event.epsilon), rate, spacing)
        case _:
            base, mass = atoms(event.event)
    loss = sampled_loss(base, rate)
    if direction == "remove":
        return loss, mass * np.exp(loss), lost
    return -loss, mass, lost


def cells(edges: Floats) -> tuple[Floats, Floats]:
    """Three Gauss-Legendre points a cell: a relative error of 5e-7 w^6 (f^(6) / f), below 1e-12 for our w."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    half = (edges[1:] - edges[:-1]) / 2
    return (edges[:-1, None] + half[:, None] * (nodes + 1)).ravel(), (half[:, None] * weights).ravel()


def _lattice_edges(low: float, high: float, rate: float, spacing: float) -> Floats:
    """Base losses in (low, high) whose sampled loss is a multiple of the spacing."""
    ends = sampled_loss(np.array([low, high]), rate)
    marks = spacing * np.arange(math.ceil(ends[0] / spacing), math.floor(ends[1] / spacing) + 1)
    inside = np.expm1(marks) / rate
    marks = marks[inside > -1]
    # e^l = 1 + (e^loss - 1) / q
    base = np.log1p(inside[inside > -1])
    return base[(base > low) & (base < high)]


def _gaussian_cells(mu: float, rate: float, spacing: float) -> tuple[Floats, Floats]:
    # Removing and adding share these points: the lattice of losses is symmetric.
    low, high = -REACH, REACH + mu
    marks = (
        _lattice_edges(mu * low - mu * mu / 2, mu * high - mu * mu / 2, rate, spacing) + mu * mu / 2
    ) / mu
    regular = np.linspace(low, high, math.ceil((high - low) * 100 * max(1.0, mu)) + 1)
    x, weights = cells(np.unique(np.concatenate([regular, marks])))
    return mu * x - mu * mu / 2, weights * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _laplace_cells(epsilon: float, rate: float, spacing: float) -> tuple[Floats, Floats]:
    marks = _lattice_edges(-epsilon, epsilon, rate, spacing)
    regular = np.linspace(-epsilon, epsilon, math.ceil(40 * max(1.0, epsilon)) + 1)
    middle, weights = cells(np.unique(np.concatenate([regular, marks])))
    mass = np.exp(-(epsilon + middle) / 2) / 4 * weights
    return (
        np.concatenate([[-epsilon], middle, [epsilon]]),
        np.concatenate([[0.5], mass, [0.5 * math.exp(-epsilon)]]),
    )
