"""What one event is worth in each currency: pure epsilon, the mass of delta, rho of zCDP, mu of GDP.

Each figure is an exact rational at or above the truth, so that sums of them stay upper bounds.

THEOREM (rho). For `Pure`, `Laplace`, `DiscreteLaplace` and two-way `RandomizedResponse` the least rho is the
Kullback-Leibler divergence of the pair, that is, the order alpha -> 1 decides. Proof: with t = alpha - 1 and
w = (t + 1/2)^2, the moment M(t) = E_P exp(t * loss) is an entire function of w of order 1/2 whose zeros are
all real and negative (shown below), so by Hadamard M is M(0) times a product of 1 + w / v_k, v_k > 0, and
log M is concave in w. As alpha (alpha - 1) = w - 1/4, every secant from w = 1/4 is at most the tangent there:
log M <= alpha (alpha - 1) * KL, which is KL-zCDP. The zeros:
  pure                 M ~ cosh u,                                u = (t + 1/2) epsilon: u = i (k + 1/2) pi.
  Laplace              M ~ cosh u + (epsilon / 2) sinh(u) / u:    u = i v with v cot v = -epsilon / 2, a
                       Sturm-Liouville problem, all v real.
  discrete Laplace     M ~ 2 cosh(s v) + (1 - r) sinh((s - 1) v) / sinh v, v = u / s, r = e^(-epsilon/s): at
                       v = i pi j / s its sign is (-1)^j for j = 0 .. s, so as a polynomial of degree s in
                       cosh v it has s roots cos(phi) in (-1, 1); cosh v = cos(phi) only on v in iR.
  k categories         M ~ cosh u + g, g = (k - 2) exp(-epsilon / 2) / 2: the same while g <= 1; beyond, a
                       bracketed search over alpha.

THEOREM (rho of bounded range). For `BoundedRange(e)` the least rho is the largest Kullback-Leibler divergence
of its pairs, log((exp(e) - 1) / e) - 1 + e / (exp(e) - 1), about e^2 / 8 for small e and below it always.
Proof. Q/P lies in [exp(-t), exp(e - t)] with mean 1 under P, and its negative powers are convex, so the pair
of two outcomes is the worst for each t. There log M(c) = c t + log(p + (1 - p) exp(-c e)) with
1 - p = (exp(t) - 1) / (exp(e) - 1), and its largest value over t is, by calculus,

    L(c) = f(c + 1) - f(c) - f(1),   f(x) = x log(sinh(x e / 2) / (x e / 2)).

By the product for sinh, f'(x) is a sum over b of g(x^2), g(w) = log(1 + b w) + 2 - 2 / (1 + b w), for
b = (e / (2 pi k))^2, k = 1, 2, ... Each g is concave and 0 at 0, so
g((1 + s)^2) - g(s^2) <= g(1 + 2 s) <= (1 + 2 s) g(1). The integral over s in (0, c) is L(c) <= c (c + 1)
f'(1), and f'(1) = L'(0) is the divergence stated, attained as alpha -> 1. The bound holds for the t of every
release whatever came before, which is what a filter needs.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.privacy import events
from incrowd.privacy.amounts import precisely, root_up, short_up

_SMALL = Fraction(1, 10**8)


def pure_epsilon(event: events.Event) -> Fraction | None:
    """The least epsilon of the event once its mass of delta is set aside; None where there is none."""
    match event:
        case events.Gaussian() | events.ZeroConcentrated():
            return None
        case events.Threshold():
            return Fraction(0)
        case events.PoissonUnits():
            # P <= (1 - q + q e^e)^r R, Q >= (1 - q + q e^-e)^s R, and the first factor is the larger.
            base = pure_epsilon(event.event)
            return None if base is None else event.units * amplified(base, event.rate)
        case events.WithoutReplacement():
            base = pure_epsilon(event.event)
            return None if base is None else event.records * amplified(base, event.rate)
        case events.PoissonSubsampled() | events.PoissonGroup():
            base = pure_epsilon(event.event)
            return None if base is None else amplified(base, event.rate)
        case _:
            return event.epsilon


@lru_cache(maxsize=4096)
def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """log(1 + rate (e^epsilon - 1)), rounded up; never above epsilon."""
    if rate == 1 or epsilon == 0 or epsilon > 10000:
        return epsilon
    if rate * epsilon < Fraction(1, 10**18):
        # The formula would cancel too many digits, but ln(1 + x) <= x and e^epsilon - 1 <= epsilon e^epsilon.
        return min(epsilon, precisely(lambda e, q: q * e * e.exp(), epsilon, rate))
    bound = precisely(lambda e, q: (1 + q * (e.exp() - 1)).ln(), epsilon, rate)
    return min(epsilon, bound)


def delta_mass(event: events.Event) -> Fraction:
    """The probability that the event tells its pair apart for sure."""
    if isinstance(event, (events.Approximate, events.Threshold)):
        return event.delta
    return Fraction(0)


def variation(event: events.Event) -> Fraction:
    """An upper bound on the total variation distance of the event's pair, that is, on delta at epsilon = 0.

    For a sampled event it is the rate times that of the event; for zCDP the bound of Pinsker, or that of
    Bretagnolle and Huber.
    """
    match event:
        case events.Threshold():
            return event.delta
        case events.Approximate():
            return event.delta + (1 - event.delta) * _tanh(event.epsilon / 2)
        case events.Gaussian():
            # 2 Phi(mu / 2) - 1 <= mu / sqrt(2 pi)
            return min(Fraction(1), event.mu * Fraction(39895, 100000))
        case events.ZeroConcentrated():
            far = precisely(lambda r: 1 - (-r).exp() / 2, min(event.rho, Fraction(100)))
            return min(far, Fraction(root_up(min(event.rho, Fraction(2)) / 2)), Fraction(1))
        case events.BoundedRange():
            return _tanh(event.epsilon / 4)
        case events.Laplace():
            half = min(event.epsilon / 2, Fraction(100))
            small = half < _SMALL
            return half if small else min(Fraction(1), precisely(lambda x: 1 - (-x).exp(), half))
        case events.RandomizedResponse() if event.epsilon < 10000:
            small = event.epsilon < _SMALL
            grown = event.epsilon * (1 + _SMALL) if small else precisely(lambda e: e.exp() - 1, event.epsilon)
            return short_up(grown / (grown + event.categories))
        case events.PoissonUnits():
            return min(Fraction(1), event.units * event.rate * variation(event.event))
        case events.WithoutReplacement():
            return min(Fraction(1), event.records * event.rate * variation(event.event))
        case events.PoissonSubsampled() | events.PoissonGroup():
            return event.rate * variation(event.event)
        case _:
            return _tanh(event.epsilon / 2)


def _tanh(x: Fraction) -> Fraction:
    """tanh(x), rounded up."""
    if x > 100:
        return Fraction(1)
    if x < _SMALL:
        return x
    return min(x, Fraction(1), precisely(lambda y: (y.exp() - (-y).exp()) / (y.exp() + (-y).exp()), x))


def rho(event: events.Event) -> Fraction | None:
    """The rho of zCDP of the event once its mass of delta is set aside.

    Poisson sampling can only lower the divergence of its event (quasi-convexity), and no rho below it holds
    for Gaussians at large orders.
    """
    match event:
        case events.ZeroConcentrated():
            return event.rho
        case events.Gaussian():
            return event.mu**2 / 2
        case events.Threshold():
            return Fraction(0)
        case events.BoundedRange():
            return _range_divergence(event.epsilon)
        case events.Pure() | events.Approximate():
            return _chain_divergence(event.epsilon, 1)
        case events.DiscreteLaplace():
            return _chain_divergence(event.epsilon, event.steps)
        case events.Laplace():
            return _laplace_divergence(event.epsilon)
        case events.RandomizedResponse():
            return _categories_rho(event.epsilon, event.categories)
        case _:
            base, epsilon = rho(whole(event)), pure_epsilon(event)
            if epsilon is None:
                return base
            amplified = _chain_divergence(epsilon, 1)
            return amplified if base is None else min(base, amplified)


def whole(event: events.OnSample) -> events.Sampled:
    """The event of a sampled one as it would be if everybody were in the sample."""
    base = event.event
    units: int = getattr(event, "units", getattr(event, "records", 1))
    match base:
        case events.Gaussian():
            return events.Gaussian(units * base.mu)
        case events.Laplace():
            return events.Laplace(units * base.epsilon)
        case events.DiscreteLaplace():
            return events.DiscreteLaplace(units * base.epsilon, units * base.steps)
        case _:
            return base if units == 1 else events.DiscreteLaplace(units * base.epsilon, units)


def mu(event: events.Event) -> Fraction | None:
    """The mu of GDP, for Gaussian events (sampled or not: sampling is dominated by its event)."""
    match event:
        case events.Gaussian():
            return event.mu
        case _:
            return mu(whole(event)) if isinstance(event, events.OnSample) else None


def _sinh_ratio(x: Decimal) -> Decimal:
    """x / sinh x, accurate to about 40 digits for every x in [0, 10000]."""
    if x < Decimal("1e-5"):
        square = x * x
        return 1 / (1 + square / 6 * (1 + square / 20 * (1 + square / 42 * (1 + square / 72))))
    return 2 * x / (x.exp() - (-x).exp())


@lru_cache(maxsize=4096)
def _chain_divergence(epsilon: Fraction, steps: int) -> Fraction:
    """epsilon - (x / sinh x)(1 - e^-epsilon) with x = epsilon / steps: E|X - s| - E|X| over the scale."""
    crude = min(epsilon**2 / 2, epsilon)
    if epsilon < Fraction(1, 10**8) or epsilon > 10000:
        return short_up(crude)
    return min(
        short_up(crude),
        precisely(lambda e, x: e - _sinh_ratio(x) * (1 - (-e).exp()), epsilon, epsilon / steps),
    )


@lru_cache(maxsize=4096)
def _range_divergence(epsilon: Fraction) -> Fraction:
    """log((e^epsilon - 1) / epsilon) - 1 + epsilon / (e^epsilon - 1)."""
    crude = min(epsilon**2 / 8, epsilon)
    if epsilon < Fraction(1, 10**5) or epsilon > 10000:
        return short_up(crude)

    def exact(e: Decimal) -> Decimal:
        grown = e.exp() - 1
        return (grown / e).ln() - 1 + e / grown

    return min(short_up(crude), precisely(exact, epsilon))


@lru_cache(maxsize=4096)
def _laplace_divergence(epsilon: Fraction) -> Fraction:
    """epsilon - 1 + e^-epsilon."""
    crude = min(epsilon**2 / 2, epsilon)
    if epsilon < Fraction(1, 10**8) or epsilon > 10000:
        return short_up(crude)
    return min(short_up(crude), precisely(lambda e: e - 1 + (-e).exp(), epsilon))


@lru_cache(maxsize=4096)
def _categories_rho(epsilon: Fraction, categories: int) -> Fraction:
    """sup over alpha of D_alpha / alpha for k-ary randomized response."""
    pure = _chain_divergence(epsilon, 1)
    if categories == 2 or epsilon < Fraction(1, 10**8) or epsilon > 100:
        return pure
    divergence = precisely(lambda e, k: e * (e.exp() - 1) / (e.exp() + k - 1), epsilon, Fraction(categories))
    shift = (categories - 2) * float(np.exp(-float(epsilon) / 2)) / 2
    if shift <= 0.999:
        return min(pure, divergence)
    # The secant slope of h(w) = log(cosh sqrt(w) + g) from w0, bracketed cell by cell: h increases in w. Up
    # to the first grid point the slope is at most h' <= sinh(u)/(2 u (cosh(v) + g)) for u above, v below.
    start = float(epsilon) / 2
    u = start * (1 + np.geomspace(1e-4, 1e4, 20001))
    h = np.logaddexp(u, -u) - np.log(2)
    h = np.logaddexp(h, np.log(shift))
    h0 = float(np.log(np.cosh(start) + shift))
    slopes = (h[1:] - h0 + 1e-15 * (1 + h[1:])) / (u[:-1] ** 2 - start**2)
    first = np.sinh(u[0]) / (2 * u[0] * (np.cosh(start) + shift))
    last = 1 / (u[-1] - start)  # h(w) - h0 <= u - start
    best = max(float(slopes.max()), float(first), float(last)) * (1 + 1e-9) * float(epsilon) ** 2
    return min(pure, max(divergence, short_up(Fraction(best))))
