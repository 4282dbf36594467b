"""Arithmetic on ranges: what the results can be if the operands can be what they are.

Rounding to the nearest float is monotone, so the ends of a result are the results at the ends, computed in
the same arithmetic. A `Result` says too whether a float can overflow or vanish, which makes PostgreSQL raise:

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
    """The values of a result, and what an engine that checks floats could raise on."""

    value: Value
    overflows: bool = False
    vanishes: bool = False
    by_zero: bool = False


def _kept(value: Value, low: float, high: float) -> Result:
    """Ends that overflowed, put back to the largest float."""
    over = math.isinf(low) or math.isinf(high)
    above, below = value.above or high == math.inf, value.below or low == -math.inf
    made = value.but(low=max(low, -LARGEST), high=min(high, LARGEST), above=above, below=below)
    return Result(made, over)


def added(one: Value, two: Value) -> Result:
    """The sum of two floats.

    A float of magnitude t or more is a multiple of ulp(t), so a sum of two is a multiple of the smaller ulp,
    and no sum vanishes. If one operand is at least m in magnitude, then either the other is at least m / 2,
    and the sum is a multiple of ulp(m / 2), or the sum is at least m / 2.
    """
    nan = one.nan or two.nan or (one.above and two.below) or (one.below and two.above)
    made = Value(Kind.DOUBLE, 1, 0, 0, one.below or two.below, one.above or two.above, nan)
    if one.empty or two.empty:
        return Result(made)
    tiny = min(math.ulp(float(each.least)) for each in (one, two))
    for each in (one, two):
        if not each.may_be_zero:
            tiny = max(tiny, math.ulp(float(each.least) / 2))
    made = made.but(tiny=tiny if math.isfinite(tiny) else SMALLEST)
    return _kept(made, float(one.low) + float(two.low), float(one.high) + float(two.high))


def negated(value: Value) -> Value:
    """The same with the other sign."""
    flipped = value if value.empty else value.but(low=-value.high, high=-value.low)
    return flipped.but(below=value.above, above=value.below)


def multiplied(one: Value, two: Value) -> Result:
    """The product of two floats."""
    far = one.infinite or two.infinite
    nan = one.nan or two.nan or (one.infinite and two.may_be_zero) or (two.infinite and one.may_be_zero)
    made = Value(Kind.DOUBLE, 1, 0, 0, far, far, nan)
    if one.empty or two.empty:
        return Result(made)
    corners = [float(a) * float(b) for a in (one.low, one.high) for b in (two.low, two.high)]
    small = float(one.least) * float(two.least)
    zero = one.may_be_zero or two.may_be_zero or small == 0
    kept = _kept(made.but(zero=zero, tiny=_tiny(small)), min(corners), max(corners))
    return Result(kept.value, kept.overflows, small == 0)


def divided(one: Value, two: Value) -> Result:
    """The quotient of two floats."""
    if two.may_be_zero:
        anything = Value(Kind.DOUBLE, -LARGEST, LARGEST, 0, True, True, True, tiny=SMALLEST)
        return Result(anything, True, True, True)
    far = one.infinite
    nan = one.nan or two.nan or (one.infinite and two.infinite)
    made = Value(Kind.DOUBLE, 1, 0, 0, far, far, nan)
    if one.empty:
        return Result(made)
    if two.empty:
        return Result(made.but(low=0.0, high=0.0))
    least, most = float(two.least), float(two.most)
    divisors = [least, most] if two.low >= 0 else [-least, -most] if two.high <= 0 else [least, -least]
    corners = [float(a) / b for a in (one.low, one.high) for b in divisors]
    if two.infinite:
        corners.append(0.0)
    small = float(one.least) / most
    zero = one.may_be_zero or two.infinite or small == 0
    kept = _kept(made.but(zero=zero, tiny=_tiny(small)), min(corners), max(corners))
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
    """The ends of a sum, difference or product of whole numbers, exactly."""
    corners = [operation(int(a), int(b)) for a in (one.low, one.high) for b in (two.low, two.high)]
    return min(corners), max(corners)


def whole_quotient(one: Value, two: Value) -> tuple[int, int]:
    """The ends of a quotient of whole numbers, cut off or rounded down; the divisor is not zero."""
    divisors = {int(two.low), int(two.high), 1, -1} - {0}
    inside = [each for each in divisors if two.low <= each <= two.high]
    found = [int(a) // b for a in (one.low, one.high) for b in inside]
    found += [-(int(a) // -b) for a in (one.low, one.high) for b in inside]
    if one.low <= 0 <= one.high:
        found.append(0)
    return min(found), max(found)


def summed(value: Value, rows: int) -> tuple[int, int]:
    """The ends of a sum of at most so many whole numbers."""
    if value.empty:
        return 0, 0
    return min(0, int(value.low)) * rows, max(0, int(value.high)) * rows
