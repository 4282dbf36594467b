"""Records as keys: which records are the same key, and how the key is written, decided by each record alone.

Python finds 1, 1.0 and True equal, also 0.0 and -0.0, and a text and NumPy's text. Two simple rules would
both fail. If equal keys were written as the first of them was, one record would choose how the key of others
is shown. If they were counted apart, a dictionary would keep one of the counts and lose the others. So every
key has one spelling that follows from its value:

- a number is an int if it is whole and fits into 64 bits, else a float if it is exactly one, else an int, a
  decimal or a fraction; NaN is one key;
- text and bytes are plain;
- tuples and frozensets hold such keys.

Objects of other types (a date, a class of the program) are told apart by type and `repr`, which must say all
that there is to say about the object.
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_WORD = 2**63
_DIGITS = 1000  # longer decimals are not turned into ints, which would take memory without bounds
_BITS = 10_000  # and longer ratios not into decimals


def identity(record: Any) -> tuple[Any, ...] | None:
    """What makes two records the same key; None for what cannot be a key (lists).

    >>> identity(1) == identity(True) == identity(1.0) != identity("1")
    True
    """
    spelling = _read(record)
    return None if spelling is None else spelling[0]


def spelled(record: Any) -> tuple[tuple[Any, ...], Any] | None:
    """The identity of a record as a key, and the one spelling that it has.

    >>> spelled(-0.0)[1], spelled(np.str_("a"))[1], spelled((True, 0.5))[1]
    (0, 'a', (1, 0.5))
    """
    return _read(record)


def is_hashable(record: Any) -> bool:
    """Whether a record can be a key (a tuple that holds a list cannot, though its type says so)."""
    try:
        hash(record)
    except Exception:  # whatever its class raises: no record may end a release
        return False
    return True


def order(identified: tuple[Any, ...]) -> str:
    """A text by which keys are put in order; it follows from the identity alone."""
    return f"({','.join(map(_text, identified))})"


def _text(part: Any) -> str:
    if isinstance(part, tuple):
        return order(part)
    if isinstance(part, int | Fraction):
        # One of thousands of digits has no decimal text: Python refuses to write it.
        return f"{part.numerator:x}/{part.denominator:x}"
    return repr(part)


def _read(record: Any) -> tuple[tuple[Any, ...], Any] | None:
    if not is_hashable(record):
        return None
    if isinstance(record, str):
        text = str.__str__(record)
        return ("text", text), text
    if isinstance(record, bytes):
        plain = bytes(record)
        return ("bytes", plain), plain
    if isinstance(record, tuple | frozenset):
        readings = [_read(item) for item in record]
        parts = [item for item in readings if item is not None]
        if isinstance(record, tuple):
            return ("tuple", *(name for name, _ in parts)), tuple(key for _, key in parts)
        parts.sort(key=lambda part: order(part[0]))
        return ("set", *(name for name, _ in parts)), frozenset(key for _, key in parts)
    number = _number(record)
    if number is None:
        return _object(record)
    return ("number", type(number), "nan" if number != number else number), number


def _object(record: Any) -> tuple[tuple[Any, ...], Any] | None:
    try:
        return (type(record), repr(record)), record
    except Exception:  # as for a hash
        return None


def _number(record: Any) -> Any:
    """A number in the one spelling that its value has; None for what is no number or has no such spelling."""
    if isinstance(record, bool | np.bool_ | numbers.Integral):
        return _whole(int(record))
    if isinstance(record, float | np.floating):
        near = float(record)
        return _float(near) if near != near or near == record else None
    if isinstance(record, Decimal):
        return _decimal(record)
    if isinstance(record, numbers.Rational):
        return _ratio(Fraction(int(record.numerator), int(record.denominator)))
    if isinstance(record, complex | np.complexfloating) and record.imag == 0:
        return _number(record.real)
    return None


def _whole(value: int) -> int | float:
    if abs(value) <= _WORD:
        return value
    try:
        return float(value) if float(value) == value else value
    except OverflowError:
        return value


def _float(value: float) -> int | float:
    if math.isnan(value):
        return math.nan
    return int(value) if abs(value) <= _WORD and value.is_integer() else value


def _ratio(value: Fraction) -> Any:
    if value.denominator == 1:
        return _whole(value.numerator)
    try:
        if float(value) == value:
            return float(value)
    except OverflowError:
        pass
    top, bottom = value.numerator, value.denominator
    places = bottom.bit_length()
    if top.bit_length() + 4 * places < _BITS and 10**places % bottom == 0:
        digits = str(abs(top) * 10**places // bottom)
        return _decimal(Decimal((int(top < 0), tuple(map(int, digits)), -places)))
    return value


def _decimal(value: Decimal) -> Any:
    if value.is_nan():
        return math.nan
    near = float(value)
    if value.is_infinite() or (math.isfinite(near) and value == Decimal(near)):
        return _float(near)
    if value.adjusted() < _DIGITS and value == int(value):
        return int(value)
    sign, digits, exponent = value.as_tuple()
    kept = len(digits)
    while digits[kept - 1] == 0:
        kept -= 1
    return Decimal((sign, digits[:kept], int(exponent) + len(digits) - kept))
