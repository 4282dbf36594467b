"""Choosing an index with weights exp(rate * utility), exactly, without ever adding up rounded exponentials.

With x_i = rate (best - u_i) >= 0 the weights are w_i = exp(-x_i). Integers W_i, certified to be above w_i 2^k
by very little, are added up exactly. An index is proposed with probability W_i / sum(W). It is kept with
probability w_i 2^k / W_i, which is 1 but for rounding; otherwise another is proposed. So index i is chosen
with weight w_i exactly. A comparison that floats cannot decide needs one exponential in exact arithmetic,
never the sum of all.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.arguments import Parameter, Real, Size, as_float, draws, parameter, single
from incrowd.noise.compare import below, below_one
from incrowd.noise.exact import Bounds, exp_bounds
from incrowd.noise.source import Source, source_of
from incrowd.noise.uniform import draw_below, draw_one_below

Utilities = Sequence[Any] | NDArray[Any]


@overload
def categorical(
    utilities: Sequence[Real], rate: Real = 1, size: None = None, *, source: Source | None = None
) -> int: ...
@overload
def categorical(
    utilities: Utilities, rate: Real = 1, *, size: int | tuple[int, ...], source: Source | None = None
) -> NDArray[np.int64]: ...
@overload
def categorical(
    utilities: Utilities, rate: Real = 1, size: Size = None, *, source: Source | None = None
) -> Any: ...
def categorical(
    utilities: Utilities, rate: Real = 1, size: Size = None, *, source: Source | None = None
) -> Any:
    """Draw index i with probability proportional to exp(rate * utilities[i]), exactly.

    utilities: integers, floats at their exact values, or Fractions; a matrix (without a size) gives one draw
    for each row. rate: any finite real number, taken exactly. Without a size, a list gives a plain int.

    >>> categorical([0, 0, 10**6])
    2
    """
    if size is None and isinstance(utilities, list | tuple) and 0 < len(utilities) <= _SHORT:
        one = single(rate, "rate")
        if one is not None and (gaps := _plain_gaps(utilities, one)) is not None:
            return _draw_one(utilities, one, gaps, source_of(source))
    values = parameter(utilities, "utility")
    if values.shape is None or len(values.shape) > 2 or values.shape[-1] == 0:
        raise InvalidInput(
            "The utilities must be a list of at least one number, or a matrix with one row each draw."
        )
    speed = parameter(rate, "rate")
    if speed.shape is not None:
        raise InvalidInput("The rate must be a single number, not an array.")
    matrix = len(values.shape) == 2
    if matrix and size is not None:
        raise InvalidInput("A matrix of utilities gives one draw for each row; leave the size out.")
    rows = values.shape[0] if matrix else 1
    weights = _Weights(values, speed.exact(0), rows)
    if matrix:
        return weights.one_each(source_of(source))
    count, shape = draws(size)
    result = weights.many(count, source_of(source))
    return int(result[0]) if shape is None else result.reshape(shape)


_SHORT = 24
"""Up to so many candidates a single draw is quicker without arrays."""


def _plain_gaps(utilities: Sequence[Any], rate: Fraction) -> list[float] | None:
    """Return rate (best - utility) with the error of `_distances`, for plain floats or ints; else None."""
    kinds = set(map(type, utilities))
    speed = as_float(abs(rate))
    plain = kinds == {int} or (kinds == {float} and all(map(math.isfinite, utilities)))
    if not plain or not 2.0**-900 < speed < 2.0**900:
        return None
    best = max(utilities) if rate > 0 else min(utilities)
    try:
        return [abs(best - utility) * speed for utility in utilities]
    except OverflowError:  # integers beyond all floats
        return None


def _draw_one(utilities: Sequence[Any], rate: Fraction, gaps: list[float], source: Source) -> int:
    """Return one index as `_Weights` does, with the same bounds."""
    k = 61 - len(gaps).bit_length()
    weights = [math.exp(-min(x, 700.0)) * 2.0**k for x in gaps]
    above = [math.floor(weight * (1 + 2.0**-39)) + 1 for weight in weights]
    steps = list(accumulate(above))

    def exact(i: int, bits: int) -> tuple[int, int]:
        best = Fraction(max(utilities) if rate > 0 else min(utilities))
        return _keep_bounds(rate * (best - Fraction(utilities[i])), k, above[i], bits)

    while True:
        i = bisect_right(steps, draw_one_below(steps[-1], source))
        if below_one(weights[i] / above[i], 2.0**-39, partial(exact, i), source):
            return i


def _keep_bounds(x: Fraction, k: int, above: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits exp(-x) 2^k / above."""
    lo, hi = exp_bounds(x, bits + k)
    return lo // above, -(-hi // above)


class _Weights:
    """The weights of every row: estimates, and integers certified to be above them.

    Error bound: x has a relative error of at most 2^-50, so exp(-x) one of at most 1.01 700 2^-50 + 2^-49,
    below 2^-40, up to x = 700. Beyond, x is cut off: w_i 2^k is below 2^-900 there, and so is its estimate.
    """

    def __init__(self, values: Parameter, rate: Fraction, rows: int) -> None:
        self._values = values
        self._rate = rate
        self._columns = values.shape[-1] if values.shape else 1
        self._best, x = _distances(values, rate, (rows, self._columns))
        # sum(W) < 2^62, so it is added up exactly
        self._k = 61 - self._columns.bit_length()
        weight = np.exp(-np.minimum(x, 700.0)) * 2.0**self._k
        above = np.floor(weight * (1 + 2.0**-39)) + 1.0
        self._keep = weight / above
        self._above = above.astype(np.int64)
        self._cumulative = np.cumsum(self._above, axis=1)

    def many(self, count: int, source: Source) -> NDArray[np.int64]:
        """Return `count` indices drawn from the first row."""
        steps = self._cumulative[0]
        total = steps[-1:].astype(np.uint64)
        result = np.empty(count, dtype=np.int64)
        pending = np.arange(count)
        row = np.zeros(count, dtype=np.int64)
        while pending.size:
            index = np.searchsorted(steps, draw_below(total, pending.size, source), side="right")
            keep = self._accept(row[: pending.size], index, source)
            result[pending[keep]] = index[keep]
            pending = pending[~keep]
        return result

    def one_each(self, source: Source) -> NDArray[np.int64]:
        """Return one index for each row."""
        totals = self._cumulative[:, -1].astype(np.uint64)
        result = np.empty(totals.size, dtype=np.int64)
        pending = np.arange(totals.size)
        while pending.size:
            point = draw_below(totals[pending], pending.size, source)
            index = (self._cumulative[pending] <= point[:, None]).sum(axis=1)
            keep = self._accept(pending, index, source)
            result[pending[keep]] = index[keep]
            pending = pending[~keep]
        return result

    def _accept(self, row: NDArray[np.int64], index: NDArray[np.int64], source: Source) -> NDArray[np.bool_]:
        """Keep each proposal with probability w 2^k / W, known to within 2^-39 by the bound above."""

        def exact(i: int) -> Bounds:
            r, c = int(row[i]), int(index[i])
            best = self._values.exact(r * self._columns + int(self._best[r]))
            x = self._rate * (best - self._values.exact(r * self._columns + c))
            return partial(_keep_bounds, x, self._k, int(self._above[r, c]))

        return below(self._keep[row, index], 2.0**-39, exact, source)


def _distances(
    values: Parameter, rate: Fraction, shape: tuple[int, int]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return where each row is best, and rate (best - utility) with a relative error below 2^-50.

    A difference of floats is rounded once; one of 64-bit integers is exact modulo 2^64, where it lies, and is
    rounded once as it becomes a float. Other numbers, and rates at the edge of float64, are computed exactly.
    """
    if values.approx.size == 0:
        return np.zeros(shape[0], dtype=np.intp), np.zeros(shape)
    speed = as_float(abs(rate))
    utilities = values.values
    assert isinstance(utilities, np.ndarray)
    table = utilities.reshape(shape)
    best = table.argmax(axis=1) if rate >= 0 else table.argmin(axis=1)
    if table.dtype == object or not 2.0**-900 < speed < 2.0**900:
        exact = [
            as_float(rate * (values.exact(r * shape[1] + int(best[r])) - values.exact(r * shape[1] + c)))
            for r in range(shape[0])
            for c in range(shape[1])
        ]
        return best, np.array(exact).reshape(shape)
    numbers = table.astype(np.float64 if table.dtype.kind == "f" else np.uint64)
    top = numbers[np.arange(shape[0]), best][:, None]
    with np.errstate(over="ignore"):
        gap = top - numbers if rate >= 0 else numbers - top
        return best, gap.astype(np.float64) * speed
