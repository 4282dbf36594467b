"""Randomized response: each person reports the truth or, by chance, something else.

Theorem (Warner 1965; Kairouz, Oh, Viswanath 2014 for k answers). Report the truth with probability
p = e^eps / (e^eps + k - 1) and each other answer with probability q = 1 / (e^eps + k - 1). For any two truths
and any report the ratio of the two probabilities is p/q = e^eps, 1 or q/p, so a report is eps-differentially
private for the one who gives it, with no trusted party; attained, so tight. The coin version (toss a coin;
heads: the truth; tails: a second coin's answer) keeps the truth with 3/4, which is eps = ln 3.

Estimation. Of n reports, R_c name answer c, and n_c people truly hold it. E[R_c] = n_c p + (n - n_c) q, so
(R_c - n q) / (p - q) is unbiased, with variance (n_c p (1 - p) + (n - n_c) q (1 - q)) / (p - q)^2. For k = 2
that is n p q / (p - q)^2, a standard deviation of (e^(eps/2) / (e^eps - 1)) sqrt(n) whatever the truth.

Its tail (Chernoff 1952). For s > 0, P(R_c - E R_c >= d) <= exp(n_c f(1 - p, -s) + (n - n_c) f(q, s) - s d),
f(x, s) = ln(1 + x (e^s - 1)) - s x; the lower tail has the signs of s changed in both f. The exponent is
linear in n_c, so the larger of its ends, n_c = 0 and n_c = n, bounds it for every truth. As f(x,
s) <= s^2 / 8, this is never above Hoeffding's bound, and far below it where a report is almost surely the
truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.mechanisms.mechanism import Mechanism
from incrowd.mechanisms.parameters import (
    amount,
    confidence_level,
    counted,
    float_above,
    float_below,
    one_calibration,
    positive,
    probability,
)
from incrowd.mechanisms.records import listed, read_floats
from incrowd.noise import Source, bernoulli, categorical, uniform
from incrowd.noise.readings import (
    Number,
    shown,
    whole,
)
from incrowd.privacy import Guarantee, randomized_response
from incrowd.privacy.amounts import float_up

_MOST_CATEGORIES = 10_000_000
_LEAST_ALPHA = 1e-12


@dataclass(frozen=True)
class Estimate:
    """Unbiased counts of each answer, and intervals that each hold the true count with `confidence`."""

    counts: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    reports: int
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedResponse(Mechanism):
    """Randomised answers among `categories` possibilities, numbered from 0 (0 and 1 for no and yes).

    Give epsilon, or the probability of reporting the truth.

    >>> coin = RandomizedResponse(truth=0.75)
    >>> round(coin.privacy.epsilon(), 6), coin.expected_error(10_000)
    (1.098612, 86.60254037844386)
    >>> RandomizedResponse(epsilon=1.0).sample_size(alpha=0.01, epsilon=1.0)
    9207
    """

    epsilon: Number | None = None
    _: KW_ONLY
    categories: int = 2
    truth: Number | None = None

    def __post_init__(self) -> None:
        ways = {"epsilon": self.epsilon, "truth": self.truth}
        one_calibration("RandomizedResponse", (("epsilon",), ("truth",)), ways)
        many = whole(self.categories, "categories", least=2, most=_MOST_CATEGORIES)
        kept = self.exact_truth
        if kept is None:
            if not Fraction(1, 10**9) <= self.exact_epsilon <= 700:
                raise InvalidInput(
                    "epsilon must lie between 1e-9 and 700 for randomized response, not "
                    f"{shown(self.epsilon)}."
                )
        elif kept * many <= 1:
            raise InvalidInput(
                f"truth must be above 1/{many}, the chance of a guess among {many} answers, not "
                f"{shown(self.truth)}."
            )
        elif not Fraction(1, 10**9) <= kept - Fraction(1, many) or 1 - kept < Fraction(1, 10**300):
            raise InvalidInput(f"truth must be further from 1 and from 1/{many} than {float(kept)}.")

    @cached_property
    def exact_truth(self) -> Fraction | None:
        """The exact probability of the truth where it is given, else None."""
        return None if self.truth is None else probability(self.truth, "truth")

    @cached_property
    def exact_epsilon(self) -> Fraction:
        """The epsilon of one report; for a given truth p, ln(p (k - 1) / (1 - p)), rounded up."""
        kept = self.exact_truth
        if kept is None:
            return amount(self.epsilon, "epsilon")
        return Fraction(_log_above(kept * (self.categories - 1) / (1 - kept)))

    @cached_property
    def _epsilon(self) -> float:
        return float_up(self.exact_epsilon)

    @property
    def keep(self) -> float:
        """The probability of reporting the truth."""
        if self.exact_truth is not None:
            return float(self.exact_truth)
        return 1 / (1 + (self.categories - 1) * math.exp(-self._epsilon))

    @property
    def stray(self) -> float:
        """The probability of reporting anything but the truth, to full precision however small it is."""
        if self.exact_truth is not None:
            return float(1 - self.exact_truth)
        return (self.categories - 1) * self.other

    @property
    def log_odds(self) -> float:
        """ln(p / (1 - p)) for the probability p of reporting the truth; finite where p rounds to 1."""
        if self.exact_truth is not None:
            return math.log(self.exact_truth) - math.log(1 - self.exact_truth)
        return self._epsilon - math.log(self.categories - 1)

    @property
    def other(self) -> float:
        """The probability of reporting any one answer that is not the truth."""
        if self.exact_truth is not None:
            return float((1 - self.exact_truth) / (self.categories - 1))
        return 1 / (math.exp(self._epsilon) + self.categories - 1)

    @property
    def gap(self) -> float:
        """p - q, by how much the truth is likelier than another answer, to full precision."""
        if self.exact_truth is not None:
            return float(self.exact_truth - (1 - self.exact_truth) / (self.categories - 1))
        return -math.expm1(-self._epsilon) / (1 + (self.categories - 1) * math.exp(-self._epsilon))

    @property
    def privacy(self) -> Guarantee:
        """What one report guarantees to the one who gives it."""
        return randomized_response(self.exact_epsilon, self.categories)

    def release(self, value: Any, source: Source | None = None) -> Any:
        """Randomise one answer or an array of answers, each independently.

        What is no answer (missing, out of range, not whole) is reported as a uniformly drawn one. That is
        private as well: 1/k lies between q and p, so no two probabilities of a report differ by more than
        before. Reports are whole numbers whatever the records are; an array of truth values, a type that the
        program chose, gives truth values.
        """
        answers = self._given(value)
        size = answers.shape or None
        # Only the distance from the truth is drawn: 0 keeps it, and the others are alike by symmetry.
        if self.exact_truth is None:
            distance = categorical(
                [1] + [0] * (self.categories - 1), rate=self.exact_epsilon, size=size, source=source
            )
        else:
            kept = bernoulli(self.exact_truth, size=size, source=source)
            moved = uniform(self.categories - 1, size=size, source=source)
            distance = np.where(kept, 0, 1 + np.asarray(moved))
        reports = np.asarray((answers + np.asarray(distance)) % self.categories, dtype=np.int64)
        if (none := answers < 0).any():
            drawn = uniform(self.categories, size=int(none.sum()), source=source)
            reports = reports.copy()
            reports[none] = drawn
        if isinstance(value, np.ndarray) and value.dtype.kind == "b":
            reports = reports.astype(np.bool_)
        return reports.item() if reports.ndim == 0 else reports

    def probabilities(self) -> NDArray[np.float64]:
        """The matrix of P(report = column | truth = row)."""
        many = self.categories
        matrix = np.full((many, many), self.other)
        np.fill_diagonal(matrix, self.keep)
        return matrix

    def estimate(self, reports: Any, confidence: Number = 0.95) -> Estimate:
        """Unbiased counts of every answer from the reports, each with an exact interval.

        R_c is the sum of two binomials, Bin(n_c, p) + Bin(n - n_c, q), stochastically increasing in n_c. The
        interval is every n_c that neither one-sided test at half the error rejects, so it covers with at
        least the stated confidence for every n (Clopper and Pearson's argument).
        """
        answers = self._answers(reports, "report").ravel()
        level = confidence_level(confidence)
        n = int(answers.size)
        seen = np.bincount(answers, minlength=self.categories)
        failure = float_below((1 - level) / 2)
        counts = np.asarray((seen - n * self.other) / self.gap, dtype=np.float64)
        lows = [self._bound(int(r), n, failure, upper=False) for r in seen]
        highs = [self._bound(int(r), n, failure, upper=True) for r in seen]
        return Estimate(counts, np.array(lows, float), np.array(highs, float), n, float(level))

    def expected_error(self, reports: int) -> float:
        """The standard deviation of an estimated count (for more than two answers, the worst over truths)."""
        n = counted(reports, "reports", least=0)
        p, q = self.keep, self.other
        if self.exact_truth is None and self.categories == 2:
            return math.exp(self._epsilon / 2) / math.expm1(self._epsilon) * math.sqrt(n)
        return math.sqrt(n * max(p * self.stray, q * (1 - q))) / self.gap

    def tail(self, error: Number, reports: int) -> float:
        """A bound on P(|estimated - true| >= error), whatever the truth (see above)."""
        n = counted(reports, "reports")
        distance = float(positive(error, "error")) * self.gap * (1 - 1e-12)
        upper, lower = (self._exponent(n, distance, up) for up in (True, False))
        return min(1.0, (math.exp(upper) + math.exp(lower)) * (1 + 1e-9))

    def halfwidth(self, confidence: Number, reports: int = 1) -> float:
        """The error of an estimated count of `reports` reports that `tail` allows with this confidence.

        Each side may fail half as often: the least d with n f - s d <= -ln(2 / failure) for some s.
        """
        n = counted(reports, "reports")
        needed = math.log(2 / float_below(1 - confidence_level(confidence)))
        ends = (self._reach(n, needed, up) for up in (True, False))
        return max(ends) / self.gap * (1 + 1e-12)

    @staticmethod
    def sample_size(
        alpha: Number, epsilon: Number, confidence: Number | None = None, categories: int = 2
    ) -> int:
        """The fewest reports for which an estimated *share* errs by at most alpha.

        Without a confidence, alpha bounds the standard deviation; with one, the error itself with that
        confidence (`halfwidth`).
        """
        one = RandomizedResponse(epsilon, categories=categories)
        width = float(positive(alpha, "alpha"))
        if width < _LEAST_ALPHA:
            raise InvalidInput(
                f"alpha must be at least {_LEAST_ALPHA:g}, not {shown(alpha)}: nobody has so many reports."
            )
        if confidence is None:
            return math.ceil((one.expected_error(1) / width) ** 2)
        needed = math.log(2 / float_below(1 - confidence_level(confidence)))
        distance = width * one.gap * (1 - 1e-12)
        rates = (-one._exponent(1, distance, up) for up in (True, False))
        return max(1, math.ceil(needed / min(rates) * (1 + 1e-12)))

    def _exponent(self, n: int, distance: float, upper: bool) -> float:
        """The least exponent of the bound on one tail."""
        spread = self._spread(upper)
        return _least(lambda s: n * spread(s) - s * distance)

    def _reach(self, n: int, needed: float, upper: bool) -> float:
        """The least distance at which that exponent is -needed."""
        spread = self._spread(upper)
        return _least(lambda s: (n * spread(s) + needed) / s)

    def _spread(self, upper: bool) -> Callable[[float], float]:
        """What a report adds to the exponent, the more of those who hold the answer and those who do not."""
        q, stray, sign = self.other, self.stray, 1 if upper else -1
        return lambda s: max(_cumulants(q, sign * s), _cumulants(stray, -sign * s))

    def _bound(self, seen: int, n: int, failure: float, *, upper: bool) -> int:
        """The largest (or least) number of true holders that the tail test does not reject, by bisection."""
        inside, outside = (0, n + 1) if upper else (n, -1)

        def kept(holders: int) -> bool:
            return self._tail(seen, holders, n - holders, lower=upper) >= failure

        if not kept(inside):
            return inside
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            if kept(middle):
                inside = middle
            else:
                outside = middle
        return inside

    def _tail(self, seen: int, first: int, second: int, *, lower: bool) -> float:
        """P(A + B <= seen) or P(A + B >= seen) for independent A ~ Bin(first, p) and B ~ Bin(second, q).

        Sums over the values of A within 12 standard deviations; what is left out is added, and a relative
        10^-9 for rounding, so a bound that is read off this tail errs towards a wider interval.
        """
        from scipy.special import betainc

        p, q = self.keep, self.other
        spread = 12 * math.sqrt(first * p * self.stray) + 40
        a = np.arange(max(0, math.floor(first * p - spread)), min(first, math.ceil(first * p + spread)) + 1)
        # From each mass to the next: scipy.stats has them ready, but takes a second to import.
        growth = np.log((first - a[:-1]) / (a[:-1] + 1.0)) + self.log_odds
        logs = np.append(0.0, np.cumsum(growth))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        # P(B >= k) is the regularised incomplete beta function I_q(k, second - k + 1).
        if lower:
            k = np.clip(seen - a, 0, max(second - 1, 0)).astype(np.float64)
            tails = np.where(seen - a < 0, 0.0, betainc(second - k, k + 1, 1 - q) if second else 1.0)
            tails = np.where(seen - a >= second, 1.0, tails)
        else:
            k = np.clip(seen - a, 1, max(second, 1)).astype(np.float64)
            tails = np.where(seen - a <= 0, 1.0, betainc(k, max(second, 1) - k + 1, q))
            tails = np.where(seen - a > second, 0.0, tails)
        return float(weights @ tails) * (1 + 1e-9) + 1e-12

    def _given(self, value: Any) -> NDArray[np.int64]:
        """Answers as numbers from 0 on, -1 for what is none.

        Refused is only what the program got wrong: text, lists in lists, masked arrays.
        """
        complaint = f"Each answer must be a whole number from 0 to {self.categories - 1}."
        if isinstance(value, np.ma.MaskedArray):
            raise InvalidInput(complaint)
        items: NDArray[Any] = np.asarray(value, dtype=object)
        if isinstance(value, np.ndarray):
            items = value
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            answers = listed(value, complaint)
            items = np.empty(len(answers), dtype=object)
            items[:] = answers
        numbers = read_floats(items.ravel(), complaint).reshape(items.shape)
        valid = (numbers >= 0) & (numbers < self.categories) & (numbers == np.floor(numbers))
        return np.where(valid, numbers, -1).astype(np.int64)

    def _answers(self, value: Any, what: str) -> NDArray[np.int64]:
        if isinstance(value, np.ma.MaskedArray):
            raise InvalidInput(
                f"Each {what} must be a whole number; fill the gaps of the masked array first."
            )
        try:
            array = np.asarray(value)
        except Exception:
            raise InvalidInput(f"Each {what} must be a whole number.") from None
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind == "b" and self.categories == 2:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or bool(((array < 0) | (array >= self.categories)).any()):
            raise InvalidInput(f"Each {what} must be a whole number from 0 to {self.categories - 1}.")
        return array.astype(np.int64)


def _log_above(ratio: Fraction) -> float:
    """ln of a rational above 1, rounded up past any error of the library's logarithm (taken as 3 ulp)."""
    value = math.log(float_above(ratio)) if ratio > 2 else math.log1p(float_above(ratio - 1))
    return value + 4 * math.ulp(value)


def _cumulants(x: float, s: float) -> float:
    """f(x, s) = ln(1 + x (e^s - 1)) - s x, rounded up past the errors of its two terms."""
    grown = math.log1p(x * math.expm1(s))
    return min(grown - s * x + 1e-15 * (abs(grown) + abs(s) * x), s * s / 8 * (1 + 1e-15))


def _least(bound: Callable[[float], float]) -> float:
    """About the least value at s > 0 of a bound that holds for every s and falls, then rises, with it."""
    low, high = math.log(1e-15), math.log(700.0)
    best = math.inf
    for _ in range(60):  # golden section: to a part in 10^11 of s, and the bound is flat there
        third = (high - low) * 0.381966
        left, right = bound(math.exp(low + third)), bound(math.exp(high - third))
        best = min(best, left, right)
        low, high = (low, high - third) if left < right else (low + third, high)
    return best
