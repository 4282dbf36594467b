"""What a mechanism may be given: numbers read exactly and checked, and exactly one calibration.

Arithmetic with parameters stays rational, and only what is shown becomes a float again, rounded towards the
safe side. What is said about data (a sensitivity, a bound, a grid, a scale of noise) counts at the exact
binary value of a float; what is said about privacy (epsilon, delta, rho, shares of them) counts as the
decimal that was written (`incrowd.noise.readings`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from incrowd.errors import InvalidInput
from incrowd.noise.readings import binary, decimal, shown, whole

_SMALLEST, _LARGEST = Fraction(math.ulp(0.0)), Fraction(sys.float_info.max)
"""What is said about data must be within the range of floats."""
_LEAST_AMOUNT, _MOST_AMOUNT, _LEAST_SHARE = Fraction(1, 10**100), 10**100, Fraction(1, 10**300)
"""What is said about privacy lies well within it, so that formulas can work with it."""
MOST_COUNTED = 2**53
"""The most that a number of records, groups, candidates or questions may be: a float counts no further."""
DECIMALS = frozenset({"epsilon", "delta", "rho", "share", "values", "q"})
"""The parameters of mechanisms that count as the decimal that was written."""


def positive(value: object, name: str, secret: bool = False) -> Fraction:
    """The exact value of a number above zero."""
    number = _above_zero(binary(value, name, secret), value, name, secret)
    # Whether a secret is extreme must not decide whether an error is raised.
    if not secret and not _SMALLEST <= number <= _LARGEST:
        raise InvalidInput(f"{name} must be within the range of floats, not {shown(value)}.")
    return number


def amount(value: object, name: str) -> Fraction:
    """A privacy parameter above zero, as the decimal that was written.

    >>> amount(0.1, "epsilon")
    Fraction(1, 10)
    """
    number = _above_zero(decimal(value, name), value, name)
    if not _LEAST_AMOUNT <= number <= _MOST_AMOUNT:
        raise InvalidInput(f"{name} must lie between 1e-100 and 1e+100, not at {shown(value)}.")
    return number


def delta_amount(value: object) -> Fraction:
    """A delta strictly between 0 and 1, as the decimal that was written."""
    return share_of_epsilon(value, "delta")


def share_of_epsilon(value: object, name: str = "share") -> Fraction:
    """A share strictly between 0 and 1, as the decimal that was written."""
    return _between(decimal(value, name), value, name)


def probability(value: object, name: str) -> Fraction:
    """The exact value of a number strictly between 0 and 1."""
    return _between(binary(value, name), value, name)


def _above_zero(number: Fraction, value: object, name: str, secret: bool = False) -> Fraction:
    if number <= 0:
        raise InvalidInput(f"{name} must be above zero{'' if secret else f', not {shown(value)}'}.")
    return number


def _between(number: Fraction, value: object, name: str) -> Fraction:
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, not {shown(value)}.")
    if number < _LEAST_SHARE:
        raise InvalidInput(f"{name} must be at least 1e-300, not {shown(value)}.")
    return number


def counted(value: object, name: str, least: int = 1, secret: bool = False) -> int:
    """A number of things: whole, at least `least`, and, unless it is secret, no more than a float counts."""
    return whole(value, name, least, secret, most=None if secret else MOST_COUNTED)


def chosen(value: object, words: Sequence[str], name: str) -> None:
    """Refuse what is not one of a few words; asks nothing of what is no text."""
    if type(value) is not str or value not in words:
        offered = " or ".join(f'"{word}"' for word in words)
        raise InvalidInput(f"{name} must be {offered}, not {shown(value)}.")


def is_whole_type(value: object) -> bool:
    """Whether a number was written as an integer (1 or Fraction(1), not 1.0)."""
    if isinstance(value, Fraction):
        return value.denominator == 1
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def one_calibration(mechanism: str, ways: tuple[tuple[str, ...], ...], amounts: Mapping[str, object]) -> str:
    """The first name of the one complete way in which a mechanism was calibrated.

    `ways` lists the parameters that go together, `amounts` holds every parameter with its value or None.
    """
    names = {name for name, value in amounts.items() if value is not None}
    for way in ways:
        if names == set(way):
            return way[0]
    offered = ", or ".join(" with ".join(f"{name}=" for name in way) for way in ways)
    listed = " and ".join(f"{name}=" for name in amounts if name in names) or "none"
    raise InvalidInput(f"{mechanism} takes exactly one calibration, {offered}; this call gives {listed}.")


def float_above(number: Fraction) -> float:
    """The least float that is not below the number (infinity past the largest)."""
    try:
        near = number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0.0)
    return math.nextafter(near, math.inf) if Fraction(near) < number else near


def float_below(number: Fraction) -> float:
    """The greatest float that is not above the number."""
    return -float_above(-number)


def root_above(number: Fraction, bits: int = 80) -> Fraction:
    """A rational at or above the square root, within a relative 2^-bits of it."""
    if number == 0:
        return Fraction(0)
    shift = max(0, bits - (number.numerator.bit_length() - number.denominator.bit_length()) // 2 + 1)
    scaled = (number.numerator << (2 * shift)) // number.denominator
    return Fraction(math.isqrt(scaled) + 1, 1 << shift)


def root_below(number: Fraction, bits: int = 80) -> Fraction:
    """A rational at or below the square root, within a relative 2^-bits of it."""
    shift = max(0, bits - (number.numerator.bit_length() - number.denominator.bit_length()) // 2 + 1)
    scaled = (number.numerator << (2 * shift)) // number.denominator
    return Fraction(math.isqrt(scaled), 1 << shift)


def log2_floor(number: Fraction) -> int:
    """The largest k with 2^k at most the (positive) number.

    >>> log2_floor(Fraction(1, 3)), log2_floor(Fraction(8))
    (-2, 3)
    """
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if Fraction(2) ** guess <= number else guess - 1


def confidence_level(value: object) -> Fraction:
    """A confidence strictly between 0 and 1."""
    level = probability(value, "confidence")
    if 1 - level < Fraction(1, 10**300):
        raise InvalidInput("confidence is too close to 1 to be told from certainty.")
    return level


def failure_each(confidence: object, count: int) -> float:
    """How often one of `count` independent errors may fall outside so that all stay inside together.

    1 - confidence^(1/count), rounded down.
    """
    level = confidence_level(confidence)
    failure = float_below(1 - level)
    if count > 1:
        failure = -math.expm1(math.log1p(-failure) / count) * (1 - 1e-12)
    return failure
