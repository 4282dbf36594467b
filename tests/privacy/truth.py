"""delta(epsilon) of compositions to 25 digits or more, by other routes than the library takes.

Discrete losses are enumerated; Laplace releases are split into atoms and sums of uniforms (Irwin-Hall);
plans with Gaussian noise are inverted on a contour in multiple precision with the textbook forms of each
moment; sampled releases are integrated directly. A plan here is a list of (kind, parameters, count).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np

from incrowd.privacy import Guarantee, compose, gaussian, laplace, pure, randomized_response

mp.mp.dps = 40
Part = tuple[str, tuple[float, ...], int]
Plan = list[Part]


def guarantee(plan: Plan) -> Guarantee:
    """The library's object for the same plan."""
    make: dict[str, Callable[..., Guarantee]] = {
        "gaussian": gaussian,
        "laplace": laplace,
        "pure": pure,
        "chain": lambda e, s: laplace(e, steps=int(s)),
        "categories": lambda e, k: randomized_response(e, int(k)),
    }
    return compose(*(make[kind](*values) * count for kind, values, count in plan))


def exact(value: float) -> mp.mpf:
    """A float as the decimal it is read as."""
    return mp.mpf(repr(value))


def atoms(kind: str, values: tuple[float, ...]) -> list[tuple[mp.mpf, mp.mpf]]:
    """(loss, mass under P) of a discrete event, from its mass functions."""
    e = exact(values[0])
    if kind == "pure":
        p = mp.exp(e) / (1 + mp.exp(e))
        return [(e, p), (-e, 1 - p)]
    if kind == "categories":
        k = int(values[1])
        total = mp.exp(e) + k - 1
        return [(e, mp.exp(e) / total), (mp.mpf(0), (k - 2) / total), (-e, 1 / total)]
    s = int(values[1])
    r = mp.exp(-e / s)
    inner = [(e * (s - 2 * x) / s, (1 - r) / (1 + r) * r**x) for x in range(1, s)]
    return [(e, 1 / (1 + r)), *inner, (-e, r**s / (1 + r))]


def moment(kind: str, values: tuple[float, ...], z: mp.mpc) -> mp.mpc:
    """E_P exp(z * loss)."""
    if kind == "gaussian":
        return mp.exp(exact(values[0]) ** 2 / 2 * z * (z + 1))
    if kind == "laplace":
        e, a = exact(values[0]), z + 1
        return a / (2 * a - 1) * mp.exp(z * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
    return mp.fsum(m * mp.exp(z * x) for x, m in atoms(kind, values))


def cumulant(plan: Plan, c: np.ndarray) -> np.ndarray:
    """K(c) in floats, to place the contour."""
    total = np.zeros_like(c)
    for kind, values, count in plan:
        if kind == "gaussian":
            total += count * values[0] ** 2 / 2 * c * (c + 1)
        elif kind == "laplace":
            e = values[0]
            total += count * (c * e + np.log((c + 1 + c * np.exp(-(2 * c + 1) * e)) / (2 * c + 1)))
        else:
            loss = np.array([float(x) for x, _ in atoms(kind, values)])
            mass = np.array([float(m) for _, m in atoms(kind, values)])
            top = loss.max()
            total += count * (c * top + np.log(np.exp(np.outer(c, loss - top)) @ mass))
    return total


class GaussianTruth:
    """A plan with Gaussian noise: trapezoid sums whose aliases and cut are below 1e-17 of the answer."""

    def __init__(self, plan: Plan, epsilon: float, most_nodes: int = 1500) -> None:
        c = np.geomspace(0.05, 1e6, 300)
        with np.errstate(all="ignore"):
            exponent = np.nan_to_num(
                cumulant(plan, c) - c * epsilon - c * np.log1p(1 / c) - np.log1p(c), nan=np.inf, posinf=np.inf
            )
        least = exponent.min()
        target = least - 45
        gap = c[None, :] - c[:, None]
        with np.errstate(all="ignore"):
            right = np.where(gap > 0, (exponent[None, :] - target) / gap, np.inf).min(axis=1)
        period = np.where(exponent <= least + 4, np.maximum(-target / c, right), np.inf)
        best = int(np.argmin(period))
        self.c, self.period = mp.mpf(float(c[best])), mp.mpf(float(period[best]))
        mu = math.sqrt(sum(n * v[0] ** 2 for k, v, n in plan if k == "gaussian"))
        self.nodes = math.ceil(math.sqrt(2 * 50) / mu * float(self.period) / (2 * math.pi)) if mu else 10**9
        self.feasible = self.nodes <= most_nodes and math.isfinite(period[best])
        if self.feasible:
            self.values = [self._value(plan, k) for k in range(self.nodes + 1)]

    def _value(self, plan: Plan, k: int) -> mp.mpc:
        z = self.c + 2j * mp.pi * k / self.period
        product = 1 / (z * (z + 1))
        for kind, values, count in plan:
            product *= moment(kind, values, z) ** count
        return product * (1 if k == 0 else 2) / self.period

    def delta(self, epsilon: float) -> mp.mpf:
        """delta(epsilon)."""
        e = exact(epsilon)
        turn = mp.exp(-2j * mp.pi / self.period * e)
        power, total = mp.mpc(1), mp.mpf(0)
        for value in self.values:
            total += (value * power).real
            power *= turn
        return total * mp.exp(-self.c * e)


def discrete_delta(plan: Plan, epsilon: float) -> mp.mpf:
    """A plan of discrete losses by enumeration."""
    return mp.fsum(m * (1 - mp.exp(exact(epsilon) - x)) for x, m in _enumerate(plan) if x > exact(epsilon))


def _enumerate(plan: Plan) -> list[tuple[mp.mpf, mp.mpf]]:
    outcomes = [(mp.mpf(0), mp.mpf(1))]
    for kind, values, count in plan:
        one = atoms(kind, values)
        polynomial = [mp.mpf(1)]
        for _ in range(count):
            fresh = [mp.mpf(0)] * (len(polynomial) + len(one) - 1)
            for (i, a), (j, (_, m)) in itertools.product(enumerate(polynomial), enumerate(one)):
                fresh[i + j] += a * m
            polynomial = fresh
        top, step = one[0][0] * count, one[0][0] - one[1][0]
        outcomes = [(x + top - step * i, m * p) for x, m in outcomes for i, p in enumerate(polynomial)]
    return outcomes


def laplace_delta(scale: float, count: int, others: Plan, epsilon: float) -> mp.mpf:
    """`count` Laplace releases of one epsilon beside discrete ones: atoms and Irwin-Hall sums."""
    e = exact(scale)
    total = mp.mpf(0)
    with mp.workdps(60 + 2 * count):
        for shift, mass in _enumerate(others):
            level = exact(epsilon) - shift
            for top in range(count + 1):
                for bottom in range(count + 1 - top):
                    middle = count - top - bottom
                    ways = mp.factorial(count) / (
                        mp.factorial(top) * mp.factorial(bottom) * mp.factorial(middle)
                    )
                    weight = ways * mp.mpf(2) ** -(top + bottom) * mp.exp(-e * bottom)
                    rest = level - (top - bottom) * e
                    total += mass * weight * _middle(e, middle, rest)
    return total


def _middle(e: mp.mpf, m: int, level: mp.mpf) -> mp.mpf:
    """E over m inner losses of (1 - exp(level - sum))_+, the density being exp((l - e)/2)/4 on (-e, e)."""
    if m == 0:
        return max(mp.mpf(0), 1 - mp.exp(level))
    # sum = e (2 U - m), U a sum of m uniforms: weight (e/2)^m exp(e (U - m)).
    start = max(mp.mpf(0), (level / e + m) / 2)
    if start >= m:
        return mp.mpf(0)
    plain = _tail(e, m, start)
    tilted = _tail(-e, m, start)
    return (e / 2) ** m * mp.exp(-e * m) * (plain - mp.exp(level + e * m) * tilted)


def _tail(a: mp.mpf, m: int, start: mp.mpf) -> mp.mpf:
    """Integral of exp(a u) times the Irwin-Hall density over (start, m)."""
    total = mp.mpf(0)
    for i in range(m):
        low = max(start, mp.mpf(i))
        total += (-1) ** i * mp.binomial(m, i) * mp.exp(a * i) * _power(a, m - 1, low - i, mp.mpf(m - i))
    return total / mp.factorial(m - 1)


def _power(a: mp.mpf, n: int, low: mp.mpf, high: mp.mpf) -> mp.mpf:
    """Integral of v^n exp(a v) over (low, high)."""

    def primitive(v: mp.mpf) -> mp.mpf:
        return mp.exp(a * v) * mp.fsum(
            (-1) ** (n - j) * mp.factorial(n) / mp.factorial(j) * v**j / a ** (n - j + 1)
            for j in range(n + 1)
        )

    return primitive(high) - primitive(low)


def gaussian_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """The curve of a Gaussian pair."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def sampled_delta(mu: float, rate: float, beside: float, epsilon: float, direction: str) -> mp.mpf:
    """One Poisson-sampled Gaussian beside an ordinary one of `beside` (0: none), integrated directly."""
    m, q, e, other = exact(mu), exact(rate), exact(epsilon), exact(beside)

    def ratio(x: mp.mpf) -> mp.mpf:
        return 1 - q + q * mp.exp(m * x - m * m / 2)

    def integrand(x: mp.mpf) -> mp.mpf:
        w = ratio(x)
        loss, density = (mp.log(w), mp.npdf(x) * w) if direction == "remove" else (-mp.log(w), mp.npdf(x))
        inner = gaussian_delta(other, e - loss) if other else max(mp.mpf(0), 1 - mp.exp(e - loss))
        return density * inner

    points = [mp.mpf(x) / 2 for x in range(-26, 2 * (14 + math.ceil(mu)) + 1)]
    if not other:
        inside = (mp.exp(e if direction == "remove" else -e) - 1 + q) / q
        if inside > 0:
            points = sorted([*points, (mp.log(inside) + m * m / 2) / m])
        elif direction == "add":
            return mp.mpf(0)
    with mp.workdps(22):
        return mp.quad(integrand, points)


def mixture_delta(mu: float, rate: float, removed: int, added: int, epsilon: float) -> mp.mpf:
    """N(a mu, 1), a ~ Binomial(removed, rate), against N(-b mu, 1), b ~ Binomial(added, rate)."""
    m, q, e = exact(mu), exact(rate), exact(epsilon)

    def mixed(x: mp.mpf, count: int, sign: int) -> mp.mpf:
        return mp.fsum(
            mp.binomial(count, a)
            * q**a
            * (1 - q) ** (count - a)
            * mp.exp(sign * a * m * x - (a * m) ** 2 / 2)
            for a in range(count + 1)
        )

    def excess(x: mp.mpf) -> mp.mpf:
        return mixed(x, removed, 1) - mp.exp(e) * mixed(x, added, -1)

    with mp.workdps(30):
        low, high = mp.mpf(-40), mp.mpf(40)
        if excess(high) <= 0:
            return mp.mpf(0)
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        # Beyond `high` the integrand is a difference of normal densities.
        tail = mp.mpf(0)
        for count, sign, scale in ((removed, 1, mp.mpf(1)), (added, -1, -mp.exp(e))):
            for a in range(count + 1):
                share = mp.binomial(count, a) * q**a * (1 - q) ** (count - a)
                tail += scale * share * mp.ncdf(sign * a * m - high)
        return tail
