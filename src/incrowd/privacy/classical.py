"""The composition theorems of the textbooks, for comparison with the exact figure.

Each turns every release into an (epsilon, delta) pair first. Releases without a finite epsilon get equal
parts of some share of the target delta, and the theorem keeps the rest; the best of a few shares counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from incrowd.errors import InvalidInput
from incrowd.privacy import accountant, conversions, events
from incrowd.privacy.amounts import Real, read, read_probability
from incrowd.privacy.guarantee import Guarantee, read_guarantee


@dataclass(frozen=True)
class Row:
    """One theorem and the epsilon it gives; inf where it does not apply."""

    method: str
    epsilon: float
    source: str


def compare(guarantee: Guarantee, delta: Real = 1e-6) -> list[Row]:
    """The same plan by five theorems, the last exact.

    >>> from incrowd.privacy import laplace
    >>> [f"{row.method} {row.epsilon:.4g}" for row in compare(laplace(0.01) * 1000, 1e-6)]
    ['basic 10', 'advanced 1.763', 'optimal homogeneous 1.365', 'zCDP 1.469', 'exact 1.363']
    """
    read_guarantee(guarantee)
    target = read_probability(delta, "delta")
    if not 0 < target < 1:
        raise InvalidInput("delta must lie between 0 and 1 to compare composition theorems.")
    counts = dict(guarantee.events)
    return [
        Row("basic", basic(counts, target), "Dwork, Kenthapadi, McSherry, Mironov, Naor 2006"),
        Row("advanced", advanced(counts, target), "Dwork, Rothblum, Vadhan 2010"),
        Row("optimal homogeneous", optimal(counts, target), "Kairouz, Oh, Viswanath 2015"),
        Row("zCDP", concentrated(counts, target), "Bun, Steinke 2016; Canonne, Kamath, Steinke 2020"),
        Row("exact", guarantee.epsilon(target), "this program's accountant"),
    ]


Pairs = list[tuple[Fraction, int]]
SHARES = tuple(Fraction(n, 20) for n in (2, 10, 18))
"""Shares of delta that are tried for composition itself."""


def _pairs(counts: accountant.Counts, delta: Fraction) -> Pairs | None:
    """Each release as (epsilon, count) within delta altogether; None where that cannot be."""
    endless = sum(n for event, n in counts.items() if conversions.pure_epsilon(event) is None)
    mass = sum((conversions.delta_mass(event) * n for event, n in counts.items()), Fraction(0))
    if mass > delta or (endless and mass == delta):
        return None
    pairs: Pairs = []
    for event, count in counts.items():
        epsilon = conversions.pure_epsilon(event)
        if epsilon is None:
            single = accountant.epsilon({event: 1}, (delta - mass) / endless)
            if not math.isfinite(single):
                return None
            epsilon = read(single, "epsilon")
        pairs.append((epsilon, count))
    return pairs


def _splits(counts: accountant.Counts, delta: Fraction) -> Iterator[tuple[Pairs, Fraction]]:
    """The releases as pairs, and the delta kept for composition, for several ways to split delta."""
    whole = not any(conversions.pure_epsilon(e) is None or conversions.delta_mass(e) for e in counts)
    for share in (Fraction(1),) if whole else SHARES:
        pairs = _pairs(counts, delta * (1 - share))
        if pairs is not None:
            yield pairs, delta * share


def basic(counts: accountant.Counts, delta: Fraction) -> float:
    """Epsilons add."""
    pairs = _pairs(counts, delta)
    return math.inf if pairs is None else float(sum(e * n for e, n in pairs)) * (1 + 1e-15)


def advanced(counts: accountant.Counts, delta: Fraction) -> float:
    """sqrt(2 ln(1/d) sum e^2) + sum e (exp(e) - 1), d the part of delta kept for it."""
    best = math.inf
    for pairs, kept in _splits(counts, delta):
        if all(e < 300 for e, _ in pairs):
            squares = float(sum(e * e * n for e, n in pairs))
            drift = sum(n * float(e) * math.expm1(float(e)) for e, n in pairs)
            best = min(
                best,
                (math.sqrt(2 * (math.log(kept.denominator) - math.log(kept.numerator)) * squares) + drift)
                * (1 + 1e-14),
            )
    return best


def optimal(counts: accountant.Counts, delta: Fraction) -> float:
    """The exact composition of releases of which only epsilon is known."""
    best = math.inf
    for pairs, kept in _splits(counts, delta):
        merged: accountant.Counts = {}
        for epsilon, count in pairs:
            event = events.Pure(epsilon)
            merged[event] = merged.get(event, 0) + count
        best = min(best, accountant.epsilon(merged, kept))
    return best


def concentrated(counts: accountant.Counts, delta: Fraction) -> float:
    """Rhos add; then the tight conversion."""
    total = Fraction(0)
    for event, count in counts.items():
        if isinstance(event, events.PoissonSubsampled):
            return math.inf
        rho = conversions.rho(event)
        if rho is None:
            return math.inf
        total += rho * count
    mass, _ = accountant.finite_part(counts)
    if mass >= delta:
        return math.inf
    return accountant.epsilon({events.ZeroConcentrated(total): 1}, (delta - mass) / (1 - mass))
