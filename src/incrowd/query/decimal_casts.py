"""CAST(x AS DECIMAL(p, s)), the same on every engine: a float64 rounded to s digits after the point."""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.casts import cast
from incrowd.query.combining import as_float
from incrowd.query.functions.numbers import rounded_at
from incrowd.query.sql import number
from incrowd.query.typed import Typed, double, guarded

MOST_DIGITS = 18


def decimal(inner: Typed, to: exp.DataType) -> Typed:
    """A number or text rounded to the digits of DECIMAL(p, s), in float64; NULL where it has more than p - s
    digits before the point, for which engines raise.
    """
    digits = [
        number(parameter.this) for parameter in to.expressions if isinstance(parameter, exp.DataTypeParam)
    ]
    precision, scale = (*(int(digit) for digit in digits if digit is not None), 0)[:2] if digits else (18, 3)
    if not (1 <= precision <= 38 and 0 <= scale <= min(precision, MOST_DIGITS)):
        raise QueryError(
            f"CAST to {to.sql()} is not possible here; DECIMAL(p, s) has up to 38 digits, and up to "
            f"{MOST_DIGITS} of them after the point."
        )
    value = as_float(cast(inner, "float"), "CAST")
    rounded = rounded_at(value, scale)
    most = 10.0 ** (precision - scale)
    inside = value.low is not None and value.high is not None and max(-value.low, value.high) + 1 < most
    if inside:
        return rounded
    tests = exp.And(
        this=exp.LT(this=rounded.sql.copy(), expression=double(most)),
        expression=exp.GT(this=rounded.sql.copy(), expression=double(-most)),
    )
    low = None if rounded.low is None else max(rounded.low, -most)
    high = None if rounded.high is None else min(rounded.high, most)
    return rounded.but(sql=guarded(tests, rounded.sql), nullable=True, low=low, high=high)
