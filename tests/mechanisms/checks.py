"""Exact and statistical checks of a privacy claim, shared by the tests of this folder."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

# A released frequency that follows its law fails a check this often; tests run a few dozen of them.
FAILURE = 1e-8


def smallest_epsilon(p: ArrayLike, q: ArrayLike) -> float:
    """The largest |ln p - ln q| over outcomes: the epsilon of the pair."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    if ((p == 0) != (q == 0)).any():
        return math.inf
    alive = p > 0
    return float(np.abs(np.log(p[alive]) - np.log(q[alive])).max())


def smallest_delta(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """sup over events of P - e^epsilon Q: the delta of the pair, in the worse direction."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    return float(
        max(
            np.maximum(p - math.exp(epsilon) * q, 0).sum(),
            np.maximum(q - math.exp(epsilon) * p, 0).sum(),
        )
    )


def surprise(outcomes: Iterable[int] | np.ndarray, probabilities: ArrayLike) -> float:
    """The chi-square p-value of outcomes 0..k-1 against their stated probabilities.

    Cells that expect under 12 are pooled (with the mass that no cell holds), so the approximation is safe.
    """
    expected = np.append(np.asarray(probabilities, float), 0.0)
    expected[-1] = max(0.0, 1 - expected.sum())
    seen = np.bincount(np.asarray(outcomes), minlength=len(expected)).astype(float)
    assert len(seen) == len(expected), "an outcome outside the stated support"
    expected *= seen.sum()
    order = np.argsort(expected)
    small = order[: np.searchsorted(np.cumsum(expected[order]), 12.0) + 1]
    if expected[small].sum() < 12:
        small = order
    big = np.setdiff1d(order, small)
    e = np.append(expected[big], expected[small].sum())
    s = np.append(seen[big], seen[small].sum())
    keep = e > 0
    assert not s[~keep].any(), "an outcome of probability zero"
    e, s = e[keep], s[keep]
    if len(e) < 2:
        return 1.0
    return float(chi2.sf(((s - e) ** 2 / e).sum(), len(e) - 1))
