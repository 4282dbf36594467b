"""Numbers as exact fractions: the two ways to read a float, and the one sentence for what is not a number.

A parameter is a promise, so it is never rounded by accident: every reader returns a `Fraction`. An int, a
Fraction, a Decimal or a NumPy integer has one value. A float has two readings:

- `binary`, the exact value of its bits: 0.1 is 3602879701896397 / 2^55. For what is said about data (bounds,
  sensitivities, grids, scales of noise), because data count at that value too.
- `decimal`, the shortest decimal that names it: 0.1 is one tenth. For what is said about privacy (epsilon,
  delta, rho, shares of them), because ten asks of 0.1 must fit a budget of 1.

Both refuse truth values, text, complex numbers, NaN, infinities and everything that is not one number. A
NumPy array without dimensions is the number in it.

`incrowd.catalog` reads values of columns in its own way: it also takes dates and text, answers with the type
of the column, and names the line of the owner's file.
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.errors import InvalidInput

Number = int | float | Fraction | Decimal
"""What a caller may give as a number; NumPy scalars work too."""

NUMBERS = (float, Decimal, numbers.Rational, np.floating)
"""The types that count as numbers; of their subtypes only bool does not."""

_KINDS = {bool: "a truth value", np.bool_: "a truth value", str: "text", bytes: "bytes", type(None): "None"}
_LONGEST = 40
_LARGEST_EXPONENT = 10_000  # a Decimal such as 1E+999999999 would fill the memory as a fraction


def binary(value: object, name: str, secret: bool = False) -> Fraction:
    """The exact value of a finite number; a message never shows a `secret` one.

    >>> binary(0.5, "sensitivity"), binary(0.1, "sensitivity") == Fraction(1, 10)
    (Fraction(1, 2), False)
    """
    value = plain(value)
    _check(value, name, secret)
    return as_fraction(value)


def decimal(value: object, name: str) -> Fraction:
    """The decimal that a finite number was written as.

    >>> decimal(0.1, "epsilon"), decimal(np.float32(0.1), "epsilon")
    (Fraction(1, 10), Fraction(1, 10))
    """
    value = plain(value)
    _check(value, name)
    # The shortest text that names the float among those of its own precision.
    return Fraction(str(value)) if isinstance(value, float | np.floating) else as_fraction(value)


def whole(value: object, name: str, least: int = 1, secret: bool = False, *, most: int | None = None) -> int:
    """A whole number of an integer type, from `least` to `most`; a message never shows a `secret` one."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInput(f"{name} must be a whole number, {least} or more.")
    number = int(value)
    if most is not None and number > most:
        said = "" if secret else f", not {shown(number)}"
        raise InvalidInput(f"{name} must be a whole number of at most {shown(most)}{said}.")
    if number < least:
        raise InvalidInput(
            f"{name} must be a whole number, {least} or more{'' if secret else f', not {shown(number)}'}."
        )
    return number


def as_fraction(value: Any) -> Fraction:
    """The exact value of a number that is known to be finite, of any type in `NUMBERS`."""
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    return Fraction(value)


def shown(value: Any) -> str:
    """A value as text that a person can read: a number of many digits by its size, other things by kind.

    >>> shown(0.1), shown(10**5000), shown([1])
    ('0.1', 'about 2**16609', 'a list')
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, NUMBERS):
        return repr(value) if type(value) is str and len(value) <= _LONGEST else kind_of(value)
    try:
        if len(text := str(value)) <= _LONGEST:
            return text
    except ValueError:
        pass  # Python refuses to write an int of more than 4,300 digits
    if not _is_finite(value):
        return "no finite number"
    number = as_fraction(value)
    size = abs(number.numerator).bit_length() - number.denominator.bit_length()
    return f"about {'-' if number < 0 else ''}2**{size}"


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool) and _is_finite(value)


def plain(value: Any) -> Any:
    """What a NumPy array without dimensions holds; any other value as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def items_of(values: Any, complaint: str) -> list[Any]:
    """The items of what can be gone through; InvalidInput for what cannot, whatever that raises."""
    try:
        return list(plain(values))
    except Exception:
        raise InvalidInput(complaint) from None


def kind_of(value: object) -> str:
    """What a value is that is no number, in words; asks nothing of the value itself.

    >>> kind_of("x"), kind_of(None), kind_of([1])
    ('text', 'None', 'a list')
    """
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def _check(value: object, name: str, secret: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        raise InvalidInput(f"{name} must be a number such as 0.5, not {kind_of(value)}.")
    if not _is_finite(value):
        raise InvalidInput(f"{name} must be a finite number{'' if secret else f', not {value}'}.")
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise InvalidInput(f"{name} must lie between 1E-{_LARGEST_EXPONENT} and 1E+{_LARGEST_EXPONENT}.")


def _is_finite(value: Any) -> bool:
    """Whether a number is finite; an int or a fraction is, also one beyond all floats."""
    if isinstance(value, numbers.Rational):
        return True
    if isinstance(value, np.longdouble):  # math rounds it to a float, perhaps to an infinity
        return bool(np.isfinite(value))
    return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
