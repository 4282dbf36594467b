"""What the tests of samplers share: a test of fit with exact expectations, and a source with a script."""

from collections.abc import Callable, Iterable

import numpy as np
from scipy import special, stats

LEVEL = 1e-7
"""A test of fit fails by chance with about this probability."""


class Script:
    """A source that hands out the integers it was given, in order, whatever their type, and then stops."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count, dtype):
        assert len(self.left) >= count, "the script is at its end"
        head, self.left = self.left[:count], self.left[count:]
        return np.array(head, dtype=dtype)


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of observed against expected counts; cells expecting fewer than 100 are put together."""
    big = expected >= 100
    observed = np.append(counts[big], counts[~big].sum())
    wanted = np.append(expected[big], expected[~big].sum())
    if wanted[-1] < 20:  # too little for the approximation; tails are tested exactly elsewhere
        observed, wanted = observed[:-1], wanted[:-1]
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return float(special.gammaincc(max(wanted.size - 1, 1) / 2, statistic / 2))


def p_value(draws: np.ndarray, survival: Callable[[np.ndarray], np.ndarray], edges: Iterable[int]) -> float:
    """The smaller p-value of two tests on integer draws, doubled: chi-square between edges, exact tails.

    A cell holds edge < x <= next edge; survival(k) is P(X > k).
    """
    edges = np.unique(np.asarray(list(edges), dtype=np.int64))
    above = np.concatenate([[1.0], np.asarray(survival(edges)), [0.0]])
    expected = -np.diff(above) * draws.size
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    body = chi_square(counts, expected)
    return 2 * min(body, *(tail(draws, survival, int(edges[-1]) * j // 4) for j in (1, 2, 3, 4)), 0.5)


def tail(draws: np.ndarray, survival: Callable[[np.ndarray], np.ndarray], k: int) -> float:
    """The exact binomial p-value of how many draws lie beyond k, times the four tests that are made."""
    mass = float(np.asarray(survival(np.array([k])))[0])
    return 4 * float(stats.binomtest(int((draws > k).sum()), draws.size, min(max(mass, 0.0), 1.0)).pvalue)


def spread(scale: float, reach: float, cells: int = 60) -> list[int]:
    """Edges for a symmetric law: every integer where the scale is small, else evenly spaced."""
    most = max(int(reach * scale), 3)
    if 2 * most <= 4 * cells:
        return list(range(-most, most + 1))
    return [int(x) for x in np.linspace(-most, most, cells)]
