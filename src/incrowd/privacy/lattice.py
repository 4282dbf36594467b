"""Dominating pairs on a lattice of losses: the pessimistic grid for what has no closed form.

A loss between two lattice points moves its mass to both so that its P-mass and its Q-mass are kept. That is a
mean-preserving spread of Q/P under P, and delta(epsilon) = E_P[(1 - e^epsilon Q/P)_+] is the expectation of a
convex function of Q/P, so the pair on the lattice dominates, at an excess of variance of at most
spacing^2 / 4 ("connect the dots", Doroshenko et al. 2022). Lattices are kept for the next question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from incrowd.privacy import events, mixtures, ranges, sampling
from incrowd.privacy.sampling import Direction
from incrowd.privacy.transforms import Floats, Values

RELATIVE_ERROR = 1e-12
"""Quadrature and rounding of each mass; masses are raised by it."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """P-masses at losses spacing * (first + j), and the mass at an infinite loss."""

    spacing: float
    first: int
    mass: Floats
    infinite: float = 0.0

    def moments(self, c: float, size: int, count: int) -> tuple[Values, float]:
        """E exp((c + i y_k) loss) at y_k = 2 pi k / (size * spacing), k < count: one Fourier transform.

        exp(i y_k * spacing * j) = exp(2 pi i j k / size), so masses `size` apart may be folded together. The
        values are to be multiplied by the exponential of the second number returned.
        """
        from scipy.fft import ifft

        place = self.first + np.arange(len(self.mass))
        with np.errstate(divide="ignore"):
            exponent = np.log(self.mass) + c * self.spacing * place
        shift = float(exponent.max())
        weighted = np.exp(exponent - shift)
        start = self.first % size
        padded = np.zeros(-(-(start + len(weighted)) // size) * size)
        padded[start : start + len(weighted)] = weighted
        values = ifft(padded.reshape(-1, size).sum(axis=0)) * size
        return np.asarray(values[np.arange(count) % size], dtype=np.complex128), shift


def _settle(loss: Floats, mass: Floats, spacing: float, infinite: float = 0.0) -> Lattice:
    """Spread masses onto the lattice."""
    place = np.floor(loss / spacing)
    # A loss within rounding of a lattice point may fall on either side of it: `above` is then 0 or 1 nearly.
    above = np.clip(np.expm1(place * spacing - loss) / math.expm1(-spacing), 0.0, 1.0)
    first = int(place.min())
    index = place.astype(np.int64) - first
    size = int(index.max()) + 2
    total = np.bincount(index, weights=mass * (1 - above), minlength=size)
    total += np.bincount(index + 1, weights=mass * above, minlength=size)
    return Lattice(spacing, first, total * (1 + RELATIVE_ERROR), infinite)


OnSample = events.PoissonSubsampled | events.PoissonGroup | events.WithoutReplacement | mixtures.Mixture
"""What is run on a sample, several units at one split."""


@lru_cache(maxsize=24)
def sampled(event: OnSample, direction: Direction, spacing: float) -> Lattice:
    """A sampled event in one direction; for groups and without replacement both are alike."""
    if isinstance(event, mixtures.Mixture):
        loss, mass, infinite = mixtures.lattice_points(event, spacing)
        return _settle(loss, mass, spacing, infinite)
    if isinstance(event, events.PoissonSubsampled):
        loss, mass, infinite = sampling.lattice_points(event, direction, spacing)
        return _settle(loss, mass, spacing, infinite)
    plain = events.PoissonSubsampled(event.event, event.rate)
    loss, mass, infinite = sampling.lattice_points(plain, "remove", spacing)
    loss, mass = loss[loss > 0], mass[loss > 0] * (1 + RELATIVE_ERROR)
    back = mass * np.exp(-loss)
    rest = max(0.0, 1 - float(mass.sum() + back.sum()))
    both = np.concatenate([loss, -loss, [0.0]]), np.concatenate([mass, back, [rest]])
    return _settle(*both, spacing, 2 * infinite)


@lru_cache(maxsize=24)
def ranged(sizes: tuple[tuple[Fraction, int], ...], spacing: float) -> Lattice:
    """A block of bounded-range events, composed adaptively."""
    pair = ranges.worst_pair(sizes)
    assert pair is not None
    return _settle(*pair, spacing, ranges.ROUNDING * sum(count for _, count in sizes))


def fast_size(least: float) -> int:
    """A length of at least `least` that transforms quickly."""
    from scipy.fft import next_fast_len

    return int(next_fast_len(math.ceil(least)))
