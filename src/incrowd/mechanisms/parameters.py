"""What a mechanism may be given: numbers taken at their exact value, and exactly one calibration.

A privacy parameter is a promise, so it is never rounded in the wrong direction by accident: every number is
turned into a `Fraction`, arithmetic stays rational, and only what is shown becomes a float again, rounded
towards the safe side. What is said about data (a sensitivity, a bound, a grid, a scale of noise) counts at
the exact binary value of the float, as the data do; epsilon, delta and rho count as the decimal that was
written, as they do in every budget (0.1 is one tenth).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import numpy as np

from incrowd.errors import InvalidInput

_KINDS = {bool: "a truth value", str: "text", bytes: "bytes", complex: "a complex number"}

Number = int | float | Fraction | Decimal


def exact(value: object, name: str, secret: bool = False) -> Fraction:
    """The exact value of a finite number; a `secret` one is never shown in a message.

    >>> exact(0.5, "epsilon")
    Fraction(1, 2)
    """
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Fraction | Decimal | np.integer | np.floating
    ):
        kind = _KINDS.get(type(value), f"a {type(value).__name__}")
        raise InvalidInput(f"{name} must be a number such as 0.5, not {kind}.")
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, np.floating):
        if value.dtype.itemsize > 8:
            raise InvalidInput(f"{name} must be an ordinary float, not a {value.dtype}.")
        value = float(value)
    # An int or a fraction is finite, also one that no float reaches.
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number{'' if secret else f', not {value}'}.")
    return Fraction(value)


def positive(value: object, name: str, secret: bool = False) -> Fraction:
    """The exact value of a number above zero."""
    number = exact(value, name, secret)
    if number <= 0:
        raise InvalidInput(f"{name} must be above zero{'' if secret else f', not {value}'}.")
    return number


def amount(value: object, name: str) -> Fraction:
    """A privacy parameter above zero, as the decimal that was written.

    >>> amount(0.1, "epsilon")
    Fraction(1, 10)
    """
    number = positive(value, name)
    return Fraction(repr(float(number))) if isinstance(value, float | np.floating) else number


def probability(value: object, name: str) -> Fraction:
    """The exact value of a number strictly between 0 and 1."""
    number = exact(value, name)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, not {value}.")
    return number


def whole(value: object, name: str, least: int = 1, secret: bool = False) -> int:
    """A whole number, at least `least`; a `secret` one is never shown in a message."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInput(f"{name} must be a whole number, {least} or more.")
    if value < least:
        raise InvalidInput(
            f"{name} must be a whole number, {least} or more{'' if secret else f', not {value}'}."
        )
    return int(value)


def is_whole_type(value: object) -> bool:
    """Whether a number was written as an integer (1 or Fraction(1), not 1.0)."""
    if isinstance(value, Fraction):
        return value.denominator == 1
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def one_calibration(mechanism: str, ways: tuple[tuple[str, ...], ...], given: Mapping[str, object]) -> str:
    """The first name of the one complete way in which a mechanism was calibrated.

    `ways` lists what may be given together, `given` holds every name with its value or None.
    """
    names = {name for name, value in given.items() if value is not None}
    for way in ways:
        if names == set(way):
            return way[0]
    offered = ", or ".join(" with ".join(f"{name}=" for name in way) for way in ways)
    got = " and ".join(f"{name}=" for name in given if name in names) or "none"
    raise InvalidInput(f"{mechanism} takes exactly one calibration, {offered}; this call gives {got}.")


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
