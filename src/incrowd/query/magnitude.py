"""Arithmetic in float64 that no engine refuses: no result overflows float64 or underflows to zero.

On overflow most engines return infinity, but PostgreSQL raises, and an error that depends on a row is a leak.
So each number carries its *size* s, a bound known from the question alone: every finite value other than zero
lies between 2^-s and 2^s in magnitude. Sizes add under multiplication and division. An operand that could
lead beyond `LARGEST` is *tamed* first: beyond 2^200 it is infinite (of its sign), below 2^-200 zero. Results
beyond 2^200 mean nothing here anyway, as bounds end there, and infinity, NaN and zero make nobody raise.
"""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.query.growth import refuse_copies
from incrowd.query.typed import LARGE, Typed, double

LARGEST = 960
_TAMED = 200


def size_of(value: float) -> int:
    """The size of a constant.

    >>> size_of(3.0), size_of(0.001), size_of(0.0), size_of(float("inf"))
    (2, 10, 0, 0)
    """
    if value == 0 or not math.isfinite(value):
        return 0
    return abs(math.frexp(value)[1]) + 1 if value < 1 else math.frexp(value)[1]


def tame(typed: Typed) -> Typed:
    """The number with a size of at most 200."""
    if typed.size <= _TAMED:
        return typed
    refuse_copies(typed.sql, 4, typed.said)
    value = typed.sql if isinstance(typed.sql, exp.Column | exp.Cast) else exp.paren(typed.sql, copy=False)
    far, near = (double(math.ldexp(1.0, sign * _TAMED)) for sign in (1, -1))
    sql = exp.Case(
        ifs=[
            # NaN is above every number, and NaN times infinity is NaN.
            exp.If(
                this=exp.GT(this=exp.Abs(this=value.copy()), expression=far),
                true=exp.Mul(this=value.copy(), expression=double(math.inf)),
            ),
            exp.If(this=exp.LT(this=exp.Abs(this=value.copy()), expression=near), true=double(0.0)),
        ],
        default=value,
    )
    return typed.but(sql=exp.cast(sql, "DOUBLE", copy=False), size=_TAMED)


def multiplied(left: Typed, right: Typed) -> tuple[Typed, Typed, int]:
    """Both operands of a multiplication or division, tamed if need be, and the size of the result."""
    if left.size + right.size > LARGEST:
        left, right = (tame(operand) if _plain(operand) else operand for operand in (left, right))
    if left.size + right.size > LARGEST:
        left, right = tame(left), tame(right)
    return left, right, left.size + right.size


def added(left: Typed, right: Typed) -> tuple[Typed, Typed, int]:
    """The same for addition and subtraction.

    A float of size s is a multiple of 2^-(s + 52), and so is a sum of two: no sum vanishes unless it is zero.
    """
    if max(left.size, right.size) >= LARGE:
        left, right = (
            tame(operand) if operand.size >= LARGE or _plain(operand) else operand
            for operand in (left, right)
        )
    return left, right, max(left.size, right.size) + 53


def _plain(typed: Typed) -> bool:
    """Whether a number is a column or a constant. Taming names it four times, so others wait as long as can
    be: a chain would double with each step.
    """
    sql = typed.sql.this if isinstance(typed.sql, exp.Cast) else typed.sql
    return isinstance(sql, exp.Column | exp.Literal)


def rounded(sql: exp.Expr) -> exp.Expr:
    """A float rounded to 24 bits (Veltkamp), for functions whose last bits engines compute differently.

    Libraries agree on EXP and LN to within a unit or two in the last of 53 bits, so their results fall on the
    same 24 bits but for a chance of about 2^-27.
    """
    split = exp.paren(exp.Mul(this=exp.paren(sql), expression=double(2.0**29 + 1)))
    return exp.paren(
        exp.Sub(
            this=split, expression=exp.paren(exp.Sub(this=split.copy(), expression=exp.paren(sql.copy())))
        )
    )
