"""Exact composition of losses with few values: randomized response and short chains, by enumeration.

n equal events with values on a lattice stay on it, so a plan of a few kinds has a product of small supports;
all masses are positive, so nothing cancels. Convolving n = 2^k times to N values loses at most k N unit
round-offs of each mass (every doubling adds as many as there are terms, and doubles those before it).
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.privacy.transforms import Floats

MOST_LENGTH = 3000
MOST_ATOMS = 2**16


class Atoms:
    """The composed loss as values and masses."""

    def __init__(self, loss: Floats, mass: Floats, error: float, parts: int) -> None:
        self.error = error
        order = np.argsort(loss)
        self.loss, self.mass = loss[order], mass[order]
        # Losses are a sum of a product for each kind, every one within the largest loss.
        self.blur = 8e-16 * float(np.abs(loss).max(initial=0.0)) * parts

    def delta(self, epsilon: float) -> float:
        """E[(1 - exp(epsilon - loss))_+], rounded up."""
        first = int(np.searchsorted(self.loss, epsilon - self.blur))
        above = np.maximum(0.0, -np.expm1(epsilon - self.loss[first:])) + self.blur
        return min(1.0, float(self.mass[first:] @ above) * (1 + self.error) + 1e-290)

    def epsilon(self, delta: float) -> float:
        """The least epsilon (rounded up) with delta(epsilon) <= delta."""
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, float(self.loss[-1]) * (1 + 1e-12) + 2 * self.blur
        while high - low > 1e-14 * high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def enumerate_atoms(factors: list[tuple[float, str, int, int]]) -> Atoms | None:
    """Atoms of the composition of (epsilon, family, size, count), or None where there are too many."""
    number = 1
    for _, family, size, count in factors:
        if family == "laplace":
            return None
        length = count * (size if family == "chain" else 2) + 1
        number *= length
        if length > MOST_LENGTH or number > MOST_ATOMS:
            return None
    loss, mass = np.zeros(1), np.ones(1)
    error = 16.0
    for epsilon, family, size, count in factors:
        one_loss, one_mass = _repeat(epsilon, family, size, count)
        loss = np.add.outer(loss, one_loss).ravel()
        mass = np.multiply.outer(mass, one_mass).ravel()
        error += 16 + 2 * count.bit_length() * len(one_mass)
    return Atoms(loss, mass, (error + len(mass)) * 2.0**-53, len(factors))


def _repeat(epsilon: float, family: str, size: int, count: int) -> tuple[Floats, Floats]:
    """`count` equal events: losses epsilon * count down to -epsilon * count in equal steps."""
    if family == "chain":
        step = epsilon / size
        one = np.exp(-step * np.arange(size + 1)) * -math.expm1(-step)
        one[0], one[-1] = 1.0, math.exp(-epsilon)
        one /= 1 + math.exp(-step)
    else:
        low = math.exp(-epsilon)
        one = np.array([1.0, (size - 2) * low, low]) / (1 + (size - 1) * low)
    total, power, left = np.ones(1), one, count
    while left:
        if left & 1:
            total = np.convolve(total, power)
        left >>= 1
        if left:
            power = np.convolve(power, power)
    return epsilon * count - 2 * epsilon / (len(one) - 1) * np.arange(len(total)), total
