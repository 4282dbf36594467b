"""The values that an expression can take, whatever the rows hold: a type and a range.

A `Value` covers every value other than NULL that the engine can compute, and possibly more. Ends are exact:
whole numbers, fractions or floats, and days or microseconds since 1970 for dates and timestamps. For text,
`high` is the largest number of letters.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

Number = Any
"""An `int`, `float` or `Fraction`: they compare exactly with each other."""
MOST_ROWS = 2**41
"""No table, and no join of tables, has more rows than this: it would take decades to read them."""
LARGEST = math.nextafter(math.inf, 0.0)
SMALLEST = 5e-324
LONGEST = 2**32
"""No engine has longer texts."""


class Kind(Enum):
    """The types of expressions. OTHER stands for types that only columns of tables have."""

    BOOLEAN = auto()
    INTEGER = auto()
    NUMERIC = auto()
    DOUBLE = auto()
    TEXT = auto()
    DATE = auto()
    TIMESTAMP = auto()
    NULL = auto()
    OTHER = auto()


NUMBERS = (Kind.INTEGER, Kind.NUMERIC, Kind.DOUBLE)
TIMES = (Kind.DATE, Kind.TIMESTAMP)
_EPOCH = dt.date(1970, 1, 1)
DAY = 86_400_000_000
FIRST_DAY = (dt.date(1, 1, 1) - _EPOCH).days
LAST_DAY = (dt.date(9999, 12, 31) - _EPOCH).days


@dataclass(frozen=True)
class Value:
    """The values of an expression. `low` > `high` if none of them is finite or all are NULL."""

    kind: Kind
    low: Number = 0
    high: Number = 0
    bits: int = 0
    """The width of an INTEGER."""
    below: bool = False
    """True if -infinity may be among the values."""
    above: bool = False
    """True if +infinity may be among the values."""
    nan: bool = False
    zero: bool = True
    """False if zero is excluded although it is between the ends."""
    tiny: Number = 0
    """No value other than zero is closer to zero than this."""
    null: bool = True
    form: str = ""
    """For TEXT, the grammar that every value matches, if one is known. For OTHER, the engine's type."""

    def but(self, **changes: Any) -> Value:
        """A copy with some facts changed."""
        return replace(self, **changes)

    @property
    def empty(self) -> bool:
        """True if there is no finite value."""
        return self.low > self.high or (self.low == 0 == self.high and not self.zero)

    @property
    def may_be_zero(self) -> bool:
        """True if zero may be among the values."""
        return self.zero and self.low <= 0 <= self.high

    @property
    def infinite(self) -> bool:
        """True if an infinity may be among the values."""
        return self.below or self.above

    @property
    def least(self) -> Number:
        """The smallest magnitude of a finite value other than zero; infinity if there is none."""
        if self.empty or self.low == 0 == self.high:
            return math.inf
        return max(self.tiny, self.low if self.low > 0 else -self.high if self.high < 0 else 0)

    @property
    def most(self) -> Number:
        """The largest magnitude of a finite value."""
        return 0 if self.empty else max(abs(self.low), abs(self.high))

    def within(self, low: Number, high: Number) -> bool:
        """True if all values are finite and between two ends."""
        return not self.infinite and not self.nan and (self.empty or (low <= self.low and self.high <= high))


def boolean() -> Value:
    """A truth value."""
    return Value(Kind.BOOLEAN)


def integer(bits: int, low: Number | None = None, high: Number | None = None, null: bool = True) -> Value:
    """A whole number of `bits` bits, between two ends."""
    least, most = ends(bits)
    return Value(Kind.INTEGER, least if low is None else low, most if high is None else high, bits, null=null)


def ends(bits: int) -> tuple[int, int]:
    """The range of a signed integer.

    >>> ends(8)
    (-128, 127)
    """
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def double(low: float = -LARGEST, high: float = LARGEST, tiny: float = SMALLEST) -> Value:
    """A float64 between two ends, neither infinite nor NaN."""
    return Value(Kind.DOUBLE, low, high, tiny=tiny)


def any_double() -> Value:
    """A float64 of which nothing is known."""
    return double().but(below=True, above=True, nan=True)


def numeric(low: Number, high: Number) -> Value:
    """A decimal number of any length between two ends."""
    return Value(Kind.NUMERIC, low, high)


def any_numeric() -> Value:
    """A decimal number of which nothing is known."""
    return Value(Kind.NUMERIC, -(10**140000), 10**140000, below=True, above=True, nan=True)


def text(high: Number = LONGEST, form: str = "") -> Value:
    """A text of at most `high` letters."""
    return Value(Kind.TEXT, 0, high, form=form)


def time(kind: Kind) -> Value:
    """A date or timestamp of which nothing is known."""
    far = 2**32 if kind is Kind.DATE else 2**64
    return Value(kind, -far, far, below=True, above=True)


def constant(kind: Kind, value: Number, bits: int = 0) -> Value:
    """One known number, day or timestamp."""
    if isinstance(value, float) and not math.isfinite(value):
        nothing = Value(kind, 1, 0, bits, null=False)
        return nothing.but(nan=value != value, above=value > 0, below=value < 0)
    return Value(kind, value, value, bits, zero=value == 0, tiny=abs(value), null=False)


def other(name: str) -> Value:
    """A value of a type that expressions do not compute in."""
    return Value(Kind.OTHER, form=name)


def no_value(like: Value) -> Value:
    """NULL of a type."""
    return like.but(low=1, high=0, below=False, above=False, nan=False, null=True)


def calendar_only(value: Value) -> bool:
    """True if a date or timestamp is in the years 1 to 9999, including all of the last day."""
    if value.kind is Kind.DATE:
        return value.within(FIRST_DAY, LAST_DAY)
    return value.within(FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)


def as_double(value: Value) -> Value:
    """A number as a float64, rounded to nearest: the ends round like the values between them."""
    if value.kind is Kind.DOUBLE or value.empty:
        return value.but(kind=Kind.DOUBLE, bits=0)
    low, high = (float(max(min(end, LARGEST), -LARGEST)) for end in (value.low, value.high))
    tiny = 1.0 if value.kind is Kind.INTEGER else float(value.tiny)
    return value.but(kind=Kind.DOUBLE, bits=0, low=low, high=high, tiny=tiny)


def hull(one: Value, two: Value) -> Value | None:
    """The values of either; None if engines have no common type for both, or one that is not known here."""
    if one.kind is Kind.NULL or two.kind is Kind.NULL:
        return (two if one.kind is Kind.NULL else one).but(null=True)
    if one.kind is not two.kind:
        if one.kind not in NUMBERS or two.kind not in NUMBERS:
            return None
        if Kind.DOUBLE in (one.kind, two.kind):
            one, two = as_double(one), as_double(two)
        else:
            one, two = (value.but(kind=Kind.NUMERIC, bits=0) for value in (one, two))
    if one.kind is Kind.OTHER and one.form != two.form:
        return None
    filled = [value for value in (one, two) if not value.empty] or [one]
    return Value(
        one.kind,
        min(value.low for value in filled),
        max(value.high for value in filled),
        max(one.bits, two.bits),
        one.below or two.below,
        one.above or two.above,
        one.nan or two.nan,
        any(value.zero for value in filled),
        min(value.least if value.least != math.inf else LARGEST for value in filled),
        one.null or two.null,
        one.form if one.form == two.form else "",
    )


def meet(one: Value, two: Value) -> Value:
    """The values that are in both ranges; both are of one type."""
    return one.but(
        low=max(one.low, two.low),
        high=min(one.high, two.high),
        below=one.below and two.below,
        above=one.above and two.above,
        nan=one.nan and two.nan,
        zero=one.zero and two.zero,
        tiny=max(one.tiny, two.tiny),
        null=one.null and two.null,
        form=two.form or one.form,
    )
