"""Numbers that mean exactly what a person wrote, and sums that never round in our favour.

A float stands for its shortest decimal everywhere in this room: 0.1 is one tenth, not the binary number
5.6e-18 above it. So ten asks of 0.1 fit a budget of 1, and a printed figure says what was computed. Budgets
are counted in whole units of which `UNITS` make one; charges round up and capacities round down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from incrowd.errors import InvalidInput
from incrowd.noise.readings import Number, decimal, whole
from incrowd.noise.readings import is_number as is_number
from incrowd.noise.readings import items_of as items_of
from incrowd.noise.readings import plain as plain
from incrowd.noise.readings import shown as shown

Real = Number
"""What a caller may give as a number."""

UNITS = 720720 * 10**24
"""Units in one: decimals of 24 digits and equal shares among up to 16 are whole numbers of units."""

_MOST_BITS = 13_300
"""The most bits of a numerator or denominator: Python writes no more than 4,300 digits."""
_PRECISE = Context(prec=60)


def read(value: object, what: str) -> Fraction:
    """The exact number that `value` stands for: a float is the decimal that was written.

    >>> read(0.1, "epsilon")
    Fraction(1, 10)
    """
    return decimal(value, what)


def read_amount(value: object, what: str) -> Fraction:
    """A finite number that is zero or more."""
    amount = read(value, what)
    if amount < 0:
        raise InvalidInput(f"{what} must be zero or more, not {shown(value)}.")
    if max(amount.numerator, amount.denominator).bit_length() > _MOST_BITS:
        raise InvalidInput(f"{what} must lie between 1e-4000 and 1e+4000, not at {shown(value)}.")
    return amount


def read_probability(value: object, what: str) -> Fraction:
    """A number in [0, 1]."""
    amount = read_amount(value, what)
    if amount > 1:
        raise InvalidInput(f"{what} must be at most 1, not {shown(value)}.")
    return amount


def read_float(value: object, what: str) -> float:
    """A number that is zero or more, as a float that formulas can work with."""
    amount = read_amount(value, what)
    if amount > 10**300:
        raise InvalidInput(f"{what} must be at most 1e+300, not {shown(value)}.")
    return float(amount)


def read_count(value: object, what: str, least: int = 0, most: int | None = None) -> int:
    """A whole number that is `least` or more, and `most` at most."""
    return whole(value, what, least, most=10**4000 if most is None else most)


def float_up(amount: Fraction) -> float:
    """The least float that stands for at least `amount`.

    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    try:
        number = float(amount)
    except OverflowError:
        return math.inf
    if Fraction(repr(number)) < amount:
        number = math.nextafter(number, math.inf)
    return number


LEAST = math.ulp(0.0)
"""The least positive float: what a positive figure too small for a float is rounded up to."""


def root_up(amount: Fraction) -> float:
    """The square root, rounded up; the amount may lie outside the range of floats.

    >>> root_up(Fraction(1, 10**400)), root_up(Fraction(4))
    (1.0000000000000001e-200, 2.0)
    """
    shift = max(0, 64 + (amount.denominator.bit_length() - amount.numerator.bit_length()) // 2)
    scaled = math.ceil(amount * 4**shift)
    root = math.isqrt(scaled)
    return float_up(Fraction(root + (root * root < scaled), 2**shift))


def float_down(amount: Fraction) -> float:
    """The largest float that stands for at most `amount`."""
    return 0.0 - float_up(-amount)


def units_up(amount: Fraction) -> int:
    """Whole units that cover `amount`: what a charge is."""
    return math.ceil(amount * UNITS)


def units_down(amount: Fraction) -> int:
    """Whole units within `amount`: what a capacity is."""
    return math.floor(amount * UNITS)


def from_units(units: int) -> Fraction:
    """The amount that a number of units stands for."""
    return Fraction(units, UNITS)


def to_decimal(amount: Fraction) -> Decimal:
    """A 60-digit decimal; call it within `precisely`."""
    return Decimal(amount.numerator) / Decimal(amount.denominator)


def precisely(formula: Callable[..., Decimal], *arguments: Fraction) -> Fraction:
    """An upper bound on a smooth positive formula of rationals, found with 60 digits.

    `formula` uses only +, -, *, / and exp, each correctly rounded by `decimal`. It may cancel at most 20
    digits; the relative 1e-30 that is added covers that and every rounding.
    """
    with localcontext(_PRECISE):
        value = formula(*(to_decimal(argument) for argument in arguments))
        return short_up(Fraction(value) * (1 + Fraction(1, 10**30)))


@lru_cache(maxsize=4096)
def short_up(amount: Fraction) -> Fraction:
    """`amount` rounded up to 40 significant decimal digits, so that sums of many stay small."""
    context = Context(prec=40, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(amount.numerator), Decimal(amount.denominator)))
