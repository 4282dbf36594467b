"""Exact confidence bounds on a probability, from how often something happened. Knows nothing of privacy.

Theorem (Clopper, Pearson 1934). Let K be binomial with n trials and probability p. The number `at_least(K, n,
error)`, the p for which P(Bin(n, p) >= K) = error, exceeds the true p with probability at most `error`, for
every p and n; so does `at_most` from the other side. Both are quantiles of beta distributions.

Bounds are moved outwards by a part in 10^9, far above the rounding of the incomplete beta function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OUTWARDS = 1e-9


def at_least(hits: Any, trials: int, error: float) -> Floats:
    """Lower confidence bound on the probability; wrong with probability at most `error`.

    >>> at_least([0, 5, 10], 10, 0.05).round(4).tolist()
    [0.0, 0.2224, 0.7411]
    """
    from scipy.special import betaincinv

    seen = np.asarray(hits, dtype=np.float64)
    quantile = betaincinv(np.maximum(seen, 1), trials - np.maximum(seen, 1) + 1, error)
    return np.asarray(np.where(seen > 0, quantile * (1 - OUTWARDS), 0.0), dtype=np.float64)


def at_most(hits: Any, trials: int, error: float) -> Floats:
    """Upper confidence bound on the probability; wrong with probability at most `error`.

    >>> at_most([0, 5, 10], 10, 0.05).round(4).tolist()
    [0.2589, 0.7776, 1.0]
    """
    from scipy.special import betainccinv

    seen = np.asarray(hits, dtype=np.float64)
    fewer = np.minimum(seen, trials - 1)
    quantile = betainccinv(fewer + 1, trials - fewer, error)
    return np.asarray(
        np.where(seen < trials, np.minimum(quantile * (1 + OUTWARDS), 1.0), 1.0), dtype=np.float64
    )
