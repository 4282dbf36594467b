"""Permute-and-flip: never worse than the exponential mechanism at the same epsilon.

Definition (McKenna, Sheldon 2020). Go through the candidates in random order. At candidate i toss a coin that
falls heads with probability p_i = exp(-rate (max u - u_i)). Choose the first candidate that gets heads.

*All coins at once.* The order is independent of the coins, so toss all of them first. The first heads in a
uniformly random order is uniformly distributed over the set of heads. That set is never empty, as the best
candidate has p = 1. Coins after the first heads do not matter. So: toss all, choose uniformly among heads.
With H the number of heads among the others, P(i) = p_i E[1 / (1 + H)], and E[1 / (1 + H)] is the integral
over t in [0, 1] of the product over j != i of (1 - p_j t).

Theorem. With rate = epsilon / (2 D) it is epsilon-differentially private, and with rate = epsilon / D when
utilities are monotone. Proof: it has the law of the argmax of u_i + E_i with independent exponential E_i of
that rate (Ding, Kifer, Steinke, Wang, Wu, Zhang 2021). Fix the other E_j. Candidate i wins when E_i exceeds a
threshold T = max over j of (u_j + E_j) - u_i, which moves by at most 2 D between neighbours (D when all
utilities move the same way), and P(E_i > T + c) >= exp(-rate c) P(E_i > T) for every real T and c >= 0. It is
not bounded-range.

Accuracy: its expected utility is at least that of the exponential mechanism on every input (same paper,
Theorem 3), and up to twice as close to the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms.parameters import (
    confidence_level,
    counted,
    float_above,
)
from incrowd.mechanisms.selection.utilities import Selection, candidates, gaps_below_best
from incrowd.noise import Source, bernoulli_exp, uniform
from incrowd.noise.readings import Number
from incrowd.privacy import Guarantee, pure


@dataclass(frozen=True, eq=False, repr=False)
class PermuteAndFlip(Selection):
    """Chooses one candidate; pure epsilon-differential privacy.

    >>> PermuteAndFlip(epsilon=2.0).probabilities([0, 1]).round(3).tolist()
    [0.184, 0.816]
    """

    @property
    def privacy(self) -> Guarantee:
        """What one choice guarantees."""
        return pure(self.exact_epsilon)

    def release(self, utilities: Any, source: Source | None = None) -> int:
        """The index of the chosen candidate."""
        scores = candidates(utilities, "PermuteAndFlip")
        left = _survivors(scores, float(self.rate), source)
        best = Fraction(scores.max().item())
        rest = [self.rate * (best - Fraction(scores[i].item())) - n for i, n in left]
        heads = np.flatnonzero(bernoulli_exp(rest, source=source))
        return left[int(heads[uniform(len(heads), source=source)])][0]

    def probabilities(self, utilities: Any) -> NDArray[np.float64]:
        """The probability of each candidate.

        The integrand is a polynomial of degree k - 1, which Gauss-Legendre quadrature with k / 2 nodes takes
        exactly; all terms are positive, so rounding stays near 1e-15.
        """
        gaps = gaps_below_best(candidates(utilities, "PermuteAndFlip"))
        heads = np.exp([-float(self.rate * gap) for gap in gaps])
        nodes, weights = np.polynomial.legendre.leggauss(len(gaps) // 2 + 1)
        misses = 1 - heads[:, None] * (nodes[None, :] + 1) / 2
        return np.asarray(heads * (_products_of_others(misses) @ (weights / 2)), dtype=np.float64)

    def halfwidth(self, confidence: Number, candidates: int = 2) -> float:
        """How far below the best the chosen utility may lie, with this confidence, among so many candidates.

        A union bound over the coins of rivals that far below is beaten by the exponential mechanism's own
        bound only through the coins of the best: with k - 1 rivals at heads probability x, one of them is
        chosen with probability 1 - (1 - (1 - x)^k) / (k x) at worst, which is solved for x.
        """
        failure = 1 - float(confidence_level(confidence))
        rivals = counted(candidates, "candidates") - 1
        if rivals == 0 or _chance_of_a_rival(1.0, rivals) <= failure:
            return 0.0
        low, high = 0.0, 1.0  # the logarithm is taken of the lower end, so the answer errs upwards
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if _chance_of_a_rival(middle, rivals) <= failure else (low, middle)
        return float_above(Fraction(-math.log(low)) / self.rate) * (1 + 1e-9)


def _survivors(scores: NDArray[Any], rate: float, source: Source | None) -> list[tuple[int, int]]:
    """The candidates that pass a first coin exp(-n), each with its n, a whole number at most rate * gap.

    A coin exp(-x) is a coin exp(-n) and then one exp(-(x - n)). Whole exponents are few, so the first coins
    are tossed many at a time, and what survives them is a handful, for which x - n is worked out exactly.
    """
    if scores.dtype.kind == "f":
        gaps = scores.max() - scores
    else:  # exact modulo 2^64, where the difference lies
        whole_scores = scores.astype(np.uint64)
        gaps = (whole_scores[scores.argmax()] - whole_scores).astype(np.float64)
    with np.errstate(over="ignore"):
        # Rounded down by far more than the errors of these few operations.
        floors = np.minimum(gaps * rate * (1 - 1e-9), 500.0).astype(np.int64)
    left: list[tuple[int, int]] = []
    for n in np.unique(floors).tolist():
        places = np.flatnonzero(floors == n)
        kept = np.asarray(bernoulli_exp(n, size=places.size, source=source))
        left += [(place, n) for place in places[kept].tolist()]
    return left


def _products_of_others(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row the product of all other rows, without division (a row may hold 0)."""
    before = np.ones_like(rows)
    after = np.ones_like(rows)
    before[1:] = np.cumprod(rows[:-1], axis=0)
    after[:-1] = np.cumprod(rows[:0:-1], axis=0)[::-1]
    return np.asarray(before * after, dtype=np.float64)


def _chance_of_a_rival(heads: float, rivals: int) -> float:
    """The probability that the best is not chosen among rivals with this chance of heads each.

    P(best) = E[1 / (1 + H)] for H ~ Bin(rivals, heads), which is (1 - (1 - heads)^k) / (k heads),
    k = rivals + 1.
    """
    many = rivals + 1
    if many * heads < 1e-4:
        return rivals * heads / 2  # H / (1 + H) <= H / 2, and the quotient below would cancel
    all_tails = -math.expm1(many * math.log1p(-heads)) if heads < 1 else 1.0
    return 1 - all_tails / (many * heads)
