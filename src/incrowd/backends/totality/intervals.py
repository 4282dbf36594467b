"""Interval arithmetic: the range of a result from the ranges of its operands.

Rounding to the nearest float is monotone, so the ends of a result are the results at the ends, computed in
the same arithmetic. A `Result` also says whether a float can overflow or vanish, at which PostgreSQL raises:

- It overflows if the result is infinite and no operand is.
- It vanishes if a product or quotient is zero and the left operand is not (nor the right one of a product,
  nor is the divisor infinite).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from incrowd.backends.totality.values import LARGEST, SMALLEST, Kind, Number, Value


@dataclass(frozen=True)
class Result:
    """The values of a result, and the faults at which an engine that checks floats could raise."""

    value: Value
    overflows: bool = False
    vanishes: bool = False
    by_zero: bool = False


def _kept(value: Value, low: float, high: float) -> Result:
    """A value between two ends. Ends that overflowed become the largest float."""
    over = math.isinf(low) or math.isinf(high)
    above, below = value.above or high == math.inf, value.below or low == -math.inf
    finite = value.but(low=max(low, -LARGEST), high=min(high, LARGEST), above=above, below=below)
    return Result(finite, over)


def added(one: Value, two: Value) -> Result:
    """The sum of two floats.

    A float of magnitude t or more is a multiple of ulp(t), so a sum of two is a multiple of the smaller ulp,
    and no sum vanishes. If one operand is at least m in magnitude, then either the other is at least m / 2,
    and the sum is a multiple of ulp(m / 2), or the sum is at least m / 2.
    """
    nan = one.nan or two.nan or (one.above and two.below) or (one.below and two.above)
    value = Value(Kind.DOUBLE, 1, 0, 0, one.below or two.below, one.above or two.above, nan)
    if one.empty or two.empty:
        return Result(value)
    tiny = min(math.ulp(float(operand.least)) for operand in (one, two))
    for operand in (one, two):
        if not operand.may_be_zero:
            tiny = max(tiny, math.ulp(float(operand.least) / 2))
    value = value.but(tiny=tiny if math.isfinite(tiny) else SMALLEST)
    return _kept(value, float(one.low) + float(two.low), float(one.high) + float(two.high))


def negated(value: Value) -> Value:
    """The values of -x."""
    flipped = value if value.empty else value.but(low=-value.high, high=-value.low)
    return flipped.but(below=value.above, above=value.below)


def multiplied(one: Value, two: Value) -> Result:
    """The product of two floats."""
    far = one.infinite or two.infinite
    nan = one.nan or two.nan or (one.infinite and two.may_be_zero) or (two.infinite and one.may_be_zero)
    value = Value(Kind.DOUBLE, 1, 0, 0, far, far, nan)
    if one.empty or two.empty:
        return Result(value)
    corners = [float(a) * float(b) for a in (one.low, one.high) for b in (two.low, two.high)]
    small = float(one.least) * float(two.least)
    zero = one.may_be_zero or two.may_be_zero or small == 0
    kept = _kept(value.but(zero=zero, tiny=_tiny(small)), min(corners), max(corners))
    return Result(kept.value, kept.overflows, small == 0)


def divided(one: Value, two: Value) -> Result:
    """The quotient of two floats."""
    if two.may_be_zero:
        anything = Value(Kind.DOUBLE, -LARGEST, LARGEST, 0, True, True, True, tiny=SMALLEST)
        return Result(anything, True, True, True)
    far = one.infinite
    nan = one.nan or two.nan or (one.infinite and two.infinite)
    value = Value(Kind.DOUBLE, 1, 0, 0, far, far, nan)
    if one.empty:
        return Result(value)
    if two.empty:
        return Result(value.but(low=0.0, high=0.0))
    least, most = float(two.least), float(two.most)
    divisors = [least, most] if two.low >= 0 else [-least, -most] if two.high <= 0 else [least, -least]
    corners = [float(a) / b for a in (one.low, one.high) for b in divisors]
    if two.infinite:
        corners.append(0.0)
    small = float(one.least) / most
    zero = one.may_be_zero or two.infinite or small == 0
    kept = _kept(value.but(zero=zero, tiny=_tiny(small)), min(corners), max(corners))
    return Result(kept.value, kept.overflows, small == 0)


def _tiny(small: float) -> float:
    return small if 0 < small < math.inf else SMALLEST if small == 0 else LARGEST


def mapped(value: Value, function: Callable[[float], float], tiny: float = SMALLEST) -> Value:
    """A monotone function of a float that keeps infinities and NaN."""
    if value.empty:
        return value
    return value.but(low=function(float(value.low)), high=function(float(value.high)), tiny=tiny, zero=True)


def absolute(value: Value) -> Value:
    """The magnitude of a number."""
    far = value.infinite
    if value.empty:
        return value.but(below=False, above=far)
    low: Number = 0 if value.low <= 0 <= value.high else min(abs(value.low), abs(value.high))
    return value.but(low=low, high=value.most, below=False, above=far)


def whole_corners(one: Value, two: Value, operation: Callable[[int, int], int]) -> tuple[int, int]:
    """The exact ends of a sum, difference or product of whole numbers."""
    corners = [operation(int(a), int(b)) for a in (one.low, one.high) for b in (two.low, two.high)]
    return min(corners), max(corners)


def whole_quotient(one: Value, two: Value) -> tuple[int, int]:
    """The ends of a quotient of whole numbers, truncated or rounded down, for divisors other than zero."""
    divisors = {int(two.low), int(two.high), 1, -1} - {0}
    inside = [divisor for divisor in divisors if two.low <= divisor <= two.high]
    quotients = [int(a) // b for a in (one.low, one.high) for b in inside]
    quotients += [-(int(a) // -b) for a in (one.low, one.high) for b in inside]
    if one.low <= 0 <= one.high:
        quotients.append(0)
    return min(quotients), max(quotients)


def summed(value: Value, rows: int) -> tuple[int, int]:
    """The ends of a sum of at most `rows` whole numbers."""
    if value.empty:
        return 0, 0
    return min(0, int(value.low)) * rows, max(0, int(value.high)) * rows
