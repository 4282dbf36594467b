"""POWER, CBRT and the functions made of them: x ^ c and c ^ x for a constant c.

Theorem. On every row and engine the result is a number, or NULL where there is none.

- x ^ n for n = 1 to 8 is a product, and x ^ (n / 2) for odd n the same of a root. Both are exact steps of
  float64 that all engines take alike, and `multiplied` keeps every step where none overflows.
- All other powers are EXP(c * LN(x)), which is computed for x > 0 alone, is 0 where the exponent is at most
  -600 and NULL from 600 on, and is rounded once, to 24 bits. Libraries differ by a unit in the last place of
  LN, and c * LN(x) is at most 600 in size, so what they disagree about is below 2^-43 of the result: they
  round it to the same 24 bits but for a chance of about 2^-18, and in the usual range (c * LN(x) below 20)
  of 2^-23.
- Whole exponents take the sign of x into account; the others are NULL below zero. Zero to a negative
  exponent is a division by zero, which is NULL.
"""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.signature import Function, as_number, one
from incrowd.query.magnitude import multiplied, rounded
from incrowd.query.typed import Typed, double, guarded

LARGEST_EXP = 600.0
"""EXP is NULL from here on: its result is larger than any bound."""
_MOST_FACTORS = 8
_MOST_EXPONENT = 1_000.0
_LEAST_EXPONENT = 1e-3
_MOST_BOUND = 2.0**200
"""Numbers beyond this may have become infinite."""
_SLACK = 1e-6
"""How far rounding to 24 bits moves a result, at most, as a part of it."""
_ONE = Typed(double(1.0), "integer", 1.0, 1.0, False, size=1)


def exponential(value: Typed) -> Typed:
    """EXP of a float64: 0 from -600 down, NULL from 600 up and for NaN."""
    small = value.high is not None and value.high < LARGEST_EXP
    high = math.exp(value.high) * (1 + _SLACK) if small and value.high is not None else None
    low = 0.0 if small else None
    if low is not None and value.low is not None and value.low > -LARGEST_EXP:
        low = math.exp(value.low) * (1 - _SLACK)
    ends = (double(-LARGEST_EXP), double(LARGEST_EXP))
    below = exp.If(this=exp.LTE(this=value.sql.copy(), expression=ends[0]), true=double(0.0))
    inside = exp.If(
        this=exp.LT(this=value.sql.copy(), expression=ends[1]), true=rounded(exp.Exp(this=value.sql.copy()))
    )
    sql = exp.Case(ifs=[below, inside])
    return Typed(sql, "float", low, high, not small or value.nullable, size=900)


def power(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """x ^ c and c ^ x."""
    if len(arguments) != 2:
        raise QueryError("POWER takes two numbers, as in POWER(x, 2).")
    base, exponent = arguments
    if exponent.constant is not None:
        return _to_constant(as_number(node, base), exponent.constant)
    if base.constant is None or not 0 < base.constant < math.inf:
        raise QueryError(
            "POWER takes a constant exponent, as in POWER(x, 1.5), or a positive constant base, as in "
            "POWER(2, x)."
        )
    steepness = math.log(base.constant)
    if steepness == 0:
        return _always_one(as_number(node, exponent))
    if abs(steepness) < 1e-12:
        raise QueryError("The base of POWER is too close to 1; write 1.")
    return exponential(_times(as_number(node, exponent), steepness))


def _to_constant(value: Typed, exponent: float) -> Typed:
    if exponent == 0:
        return _always_one(value)
    if not _LEAST_EXPONENT <= abs(exponent) <= _MOST_EXPONENT:
        raise QueryError(
            f"The exponent of POWER must be 0, or between {_LEAST_EXPONENT:g} and {_MOST_EXPONENT:g} in size."
        )
    twice = abs(exponent) * 2
    if not twice.is_integer() or abs(exponent) > _MOST_FACTORS:
        return _through_logarithm(value, exponent)
    whole = abs(exponent).is_integer()
    positive = _product(value if whole else _root(value), int(abs(exponent) if whole else twice))
    return positive if exponent > 0 else _inverse(positive)


def _always_one(value: Typed) -> Typed:
    there = exp.Not(this=exp.Is(this=exp.paren(value.sql), expression=exp.null()))
    return Typed(guarded(there, double(1.0)), "integer", 1.0, 1.0, value.nullable, (1,), size=1)


def _product(value: Typed, count: int) -> Typed:
    """value ^ count, by squaring what is squared already."""
    low, high = _whole_power_ends(value, count)
    result: Typed | None = None
    square, rest = value.but(sql=exp.paren(value.sql)), count
    while True:
        if rest % 2:
            result = square if result is None else _multiply(result, square)
        rest //= 2
        if not rest:
            break
        square = _multiply(square, square)
    assert result is not None
    return result.but(low=low, high=high, kind=value.kind, values=None, integral=False, said="")


def _multiply(left: Typed, right: Typed) -> Typed:
    left, right, size = multiplied(left, right)
    sql = exp.paren(exp.Mul(this=left.sql.copy(), expression=right.sql.copy()))
    return Typed(sql, left.kind, None, None, left.nullable or right.nullable, size=size)


def _whole_power_ends(value: Typed, count: int) -> tuple[float | None, float | None]:
    """The ends of value ^ count; none where float64 may be left."""
    if not _is_tame(value):
        return None, None
    assert value.low is not None and value.high is not None
    if max(abs(value.low), abs(value.high)) >= 1e300 ** (1 / count):
        return None, None
    ends = sorted((_steps(value.low, count), _steps(value.high, count)))
    return (0.0 if count % 2 == 0 and value.low <= 0 <= value.high else ends[0]), ends[1]


def _is_tame(value: Typed) -> bool:
    """True if both ends are known and no value between them counts as infinite."""
    ends = (value.low, value.high)
    return all(end is not None and abs(end) < _MOST_BOUND for end in ends)


def _steps(value: float, count: int) -> float:
    """A power by the very multiplications of `_product`: rounding is monotone, so ends stay ends."""
    result, square, rest = None, value, count
    while rest:
        if rest % 2:
            result = square if result is None else result * square
        rest //= 2
        square = square * square if rest else square
    assert result is not None
    return result


def _root(value: Typed) -> Typed:
    """SQRT, which every engine rounds correctly; NULL below zero."""
    test = exp.GTE(this=value.sql.copy(), expression=double(0.0))
    sure = value.low is not None and value.low >= 0
    low = high = None
    if value.high is not None and value.high < _MOST_BOUND:
        low, high = math.sqrt(max(value.low or 0.0, 0.0)), math.sqrt(max(value.high, 0.0))
    sql = guarded(test, exp.Sqrt(this=value.sql.copy()))
    return Typed(sql, "float", low, high, not sure or value.nullable, size=value.size // 2 + 1)


def _inverse(value: Typed) -> Typed:
    """1 / value, NULL for zero."""
    left, right, size = multiplied(_ONE, value)
    low = high = None
    apart = False
    if right.low is not None and right.high is not None and (right.low > 0 or right.high < 0):
        low, high = sorted((1 / right.low, 1 / right.high))
        apart = math.isfinite(low) and math.isfinite(high)
    sql = exp.Div(
        this=left.sql.copy(),
        expression=exp.Nullif(this=right.sql.copy(), expression=double(0.0)),
        typed=False,
        safe=False,
    )
    ends = (low, high) if apart else (None, None)
    return Typed(exp.paren(sql), "float", *ends, not apart or value.nullable, size=size)


def _times(value: Typed, constant: float) -> Typed:
    """value * constant, where no engine overflows."""
    left, right, size = multiplied(
        value, Typed(double(constant), "float", constant, constant, False, size=60)
    )
    ends: list[float | None] = [None if end is None else end * constant for end in (value.low, value.high)]
    low, high = ends if constant > 0 else reversed(ends)
    sql = exp.paren(exp.Mul(this=exp.paren(left.sql.copy()), expression=right.sql))
    return Typed(sql, "float", low, high, value.nullable, size=size)


def _through_logarithm(value: Typed, exponent: float) -> Typed:
    """EXP(exponent * LN(x)), for numbers below zero too if the exponent is whole."""
    zero = double(0.0)
    whole = exponent.is_integer()
    above = exp.GT(this=value.sql.copy(), expression=zero)
    ifs = [exp.If(this=above, true=_positive_power(value, exponent))]
    if whole:
        mirrored = value.but(sql=exp.paren(exp.Neg(this=exp.paren(value.sql.copy()))))
        result = _positive_power(mirrored, exponent)
        below = exp.LT(this=value.sql.copy(), expression=zero.copy())
        ifs.append(exp.If(this=below, true=_negated(result) if exponent % 2 else result))
    if exponent > 0:
        naught = exp.EQ(this=value.sql.copy(), expression=zero.copy())
        ifs.append(exp.If(this=naught, true=double(0.0)))
    low, high, sure = _real_power_ends(value, exponent, whole)
    return Typed(exp.Case(ifs=ifs), "float", low, high, not sure or value.nullable, size=900)


def _positive_power(value: Typed, exponent: float) -> exp.Expr:
    """EXP(exponent * LN(x)) for x > 0."""
    # Logarithms other than zero are at least 2^-54 in size, and at most 745.
    return exponential(_times(Typed(exp.Ln(this=value.sql.copy()), "float", size=60), exponent)).sql


def _negated(sql: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Neg(this=exp.paren(sql)))


def _real_power_ends(value: Typed, exponent: float, whole: bool) -> tuple[float | None, float | None, bool]:
    """The ends of value ^ exponent, and whether it has a value on every row."""
    if not _is_tame(value):
        return None, None, False
    assert value.low is not None and value.high is not None
    crosses = value.low <= 0 <= value.high
    if exponent < 0 and crosses:
        return None, None, False
    ends = [_signed(end, exponent, whole) for end in (value.low, value.high)]
    if any(end is None or abs(end) >= math.exp(LARGEST_EXP - 1) for end in ends):
        return None, None, False
    low, high = _outwards(*sorted(end for end in ends if end is not None))
    if crosses and whole and exponent % 2 == 0:
        low = 0.0
    return low, high, whole or value.low >= 0


def _signed(end: float, exponent: float, whole: bool) -> float | None:
    """An end to a power; None if it leaves float64. Numbers below zero have whole powers only."""
    try:
        size = math.pow(abs(end) if whole else max(end, 0.0), exponent)
    except (OverflowError, ValueError):  # math.pow: ValueError for zero to a negative power
        return None
    return -size if end < 0 and whole and exponent % 2 else size


def _outwards(low: float, high: float) -> tuple[float, float]:
    """Ends with room for what rounding to 24 bits, and powers that vanish, move a value by."""
    least = math.exp(-LARGEST_EXP + 1)
    return low - abs(low) * _SLACK - least * (low != 0), high + abs(high) * _SLACK + least * (high != 0)


def cube_root(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """CBRT: the cube root, of the sign of its argument."""
    value = as_number(node, one(node, arguments))
    zero = double(0.0)
    mirrored = value.but(sql=exp.paren(exp.Neg(this=exp.paren(value.sql.copy()))))
    sql = exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=value.sql.copy(), expression=zero), true=_positive_power(value, 1 / 3)),
            exp.If(
                this=exp.LT(this=value.sql.copy(), expression=zero.copy()),
                true=_negated(_positive_power(mirrored, 1 / 3)),
            ),
            exp.If(this=exp.EQ(this=value.sql.copy(), expression=zero.copy()), true=double(0.0)),
        ]
    )
    low = high = None
    if value.low is not None and value.high is not None and _is_tame(value):
        low, high = _outwards(*(math.copysign(abs(end) ** (1 / 3), end) for end in (value.low, value.high)))
    # Infinity has no cube root here, nor has NaN.
    nullable = value.nullable or not value.bounded or value.kind == "float"
    return Typed(sql, "float", low, high, nullable, size=900)


def squared(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """SQUARE(x)."""
    return _product(as_number(node, one(node, arguments)), 2)


POWERS: dict[type[exp.Expr], Function] = {exp.Pow: power, exp.Cbrt: cube_root}
