"""Rules for casts.

Constants are read here, by the grammar in which the planner writes them. A cast of a row's value is total
only if it fails for no value in the range.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction

from sqlglot import exp

from incrowd.backends.totality.arithmetic import numeric_of
from incrowd.backends.totality.forms import DAY, MOMENT
from incrowd.backends.totality.values import (
    DAY as MICROSECONDS,
)
from incrowd.backends.totality.values import (
    FIRST_DAY,
    LAST_DAY,
    LONGEST,
    TIMES,
    Kind,
    Value,
    any_double,
    any_numeric,
    as_double,
    boolean,
    calendar_only,
    constant,
    double,
    ends,
    integer,
    no_value,
    text,
    time,
)
from incrowd.backends.totality.walk import Environment, NotTotalError, Rule, Walk, parts_of

_Type = exp.DataType.Type
_BITS = {_Type.INT: 32, _Type.BIGINT: 64, _Type.INT128: 128}
_TYPES: dict[object, Value] = {
    **{kind: integer(bits) for kind, bits in _BITS.items()},
    _Type.DOUBLE: any_double(),
    _Type.DECIMAL: any_numeric(),
    **dict.fromkeys((_Type.TEXT, _Type.VARCHAR), text()),
    _Type.BOOLEAN: boolean(),
    _Type.DATE: time(Kind.DATE),
    **dict.fromkeys((_Type.TIMESTAMP, _Type.TIMESTAMPNTZ), time(Kind.TIMESTAMP)),
}
_NUMBER = re.compile(r"[+-]?[0-9]{1,400}([.][0-9]{0,400})?([eE][+-]?[0-9]{1,3})?")
_CALENDAR = {
    Kind.DATE: time(Kind.DATE).but(low=FIRST_DAY, high=LAST_DAY, below=False, above=False),
    Kind.TIMESTAMP: time(Kind.TIMESTAMP).but(
        low=FIRST_DAY * MICROSECONDS, high=(LAST_DAY + 1) * MICROSECONDS - 1, below=False, above=False
    ),
}
_READ: dict[tuple[str, Kind], Value] = {
    ("integer", Kind.INTEGER): integer(64, -(2**63) + 1, 2**63 - 1),
    # 40 digits before and after the point, and two digits of exponent.
    ("float", Kind.DOUBLE): double(-1e139, 1e139, 1e-139),
    ("digits", Kind.INTEGER): integer(32, 0, 9999),
    (DAY, Kind.DATE): _CALENDAR[Kind.DATE],
    (MOMENT, Kind.TIMESTAMP): _CALENDAR[Kind.TIMESTAMP],
}
"""The values of a cast from text of a known form."""
_LONGEST_TEXT = {
    Kind.BOOLEAN: 5,
    Kind.INTEGER: 40,
    Kind.DATE: 10,
    Kind.TIMESTAMP: 40,
    # 131,072 digits before the point, and 16,383 after it.
    Kind.NUMERIC: 150_000,
}


def target_of(walk: Walk, node: exp.Expr) -> Value:
    """The type that a cast names, with all of its values."""
    to = node.args["to"]
    parts_of(to, "this", "expressions", "nested")
    target = _TYPES.get(to.this)
    if target is None or to.args.get("nested"):
        raise NotTotalError(node, "its type is not known")
    if target.kind is Kind.NUMERIC:
        digits = [parameter.name for parameter in to.expressions]
        if walk.engine.name != "postgres" or digits not in ([], ["39", "0"]):
            raise NotTotalError(node, "its type is not known")
    elif to.expressions:
        raise NotTotalError(node, "its type is not known")
    if to.this == _Type.INT128 and walk.engine.name != "duckdb":
        raise NotTotalError(node, "its type is not known")
    return target


def cast(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """CAST and TRY_CAST."""
    parts_of(node, "this", "to", "safe")
    target = target_of(walk, node)
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string and target.kind is not Kind.TEXT:
        return read(node, inner.name, target)
    value = walk.value(node.this, known)
    if value.kind is Kind.NULL:
        return no_value(target)
    tries = isinstance(node, exp.TryCast) and (bool(node.args.get("safe")) or walk.engine.name == "duckdb")
    if tries:
        return tried(walk, node, value, target)
    return converted(walk, node, value, target)


def read(node: exp.Expr, written: str, target: Value) -> Value:
    """The value of a constant text. Each engine reads the texts that pass here as Python does."""
    try:
        if target.kind is Kind.DOUBLE:
            if written not in ("Infinity", "-Infinity", "NaN") and not _NUMBER.fullmatch(written):
                raise NotTotalError(node, "the constant is not known")
            value = float(written.replace("Infinity", "inf"))
            if math.isinf(value) and not written.endswith("y"):
                raise NotTotalError(node, "the constant is too large")
            if value == 0 and re.search("[1-9]", written.lower().split("e")[0]):
                raise NotTotalError(node, "the constant is too close to zero")
            return constant(Kind.DOUBLE, value)
        if target.kind is Kind.INTEGER and re.fullmatch("-?[0-9]{1,40}", written):
            least, most = ends(target.bits)
            if least <= int(written) <= most:
                return constant(Kind.INTEGER, int(written), target.bits)
        if target.kind is Kind.NUMERIC:
            if written in ("NaN", "Infinity", "-Infinity"):
                return constant(Kind.NUMERIC, float(written))
            if _NUMBER.fullmatch(written):
                return constant(Kind.NUMERIC, Fraction(written))
        if target.kind is Kind.DATE and len(written) == 10:
            day = dt.date.fromisoformat(written)
            return constant(Kind.DATE, (day - dt.date(1970, 1, 1)).days).but(zero=True, tiny=0)
        if target.kind is Kind.TIMESTAMP and re.fullmatch(
            r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{6})?)?", written
        ):
            since = dt.datetime.fromisoformat(written) - dt.datetime(1970, 1, 1)
            micros = since // dt.timedelta(microseconds=1)
            return constant(Kind.TIMESTAMP, micros).but(zero=True, tiny=0)
    except ValueError:
        pass
    raise NotTotalError(node, "the constant is not known")


def tried(walk: Walk, node: exp.Expr, value: Value, target: Value) -> Value:
    """TRY_CAST: NULL for values that do not fit. `Engine.tries` leaves out types on which it raises."""
    if value.kind is Kind.OTHER:
        if target.kind not in walk.engine.tries.get(value.form, ()):
            raise NotTotalError(node, f"TRY_CAST of {value.form} may raise")
        return target
    if value.kind is Kind.TEXT:
        return value if target.kind is Kind.TEXT else target
    if target.kind is Kind.INTEGER and value.kind in (Kind.INTEGER, Kind.DOUBLE):
        if value.empty:
            return no_value(target)
        low, high = math.floor(value.low), math.ceil(value.high)
        return integer(target.bits, max(low, target.low), min(high, target.high))
    if walk.engine.name == "duckdb" and value.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
        return target
    return converted(walk, node, value, target)


def converted(walk: Walk, node: exp.Expr, value: Value, target: Value) -> Value:
    """CAST: total only if every value in range fits."""
    if target.kind is Kind.TEXT:
        return _as_text(walk, node, value)
    if value.kind is target.kind and target.kind is not Kind.INTEGER:
        return value
    if value.kind is Kind.TEXT:
        known = _READ.get((value.form, target.kind))
        if known is None or (value.form == "integer" and target.bits < 64):
            raise NotTotalError(node, "the text may be anything")
        return known
    if target.kind is Kind.INTEGER and value.kind in (Kind.INTEGER, Kind.NUMERIC, Kind.DOUBLE):
        least, most = ends(target.bits)
        # Engines round to nearest or truncate; the largest float below 2^63 is a whole number.
        if not value.within(least, most):
            raise NotTotalError(node, f"it may leave {target.bits} bits")
        if value.empty:
            return no_value(target)
        return integer(target.bits, math.floor(value.low), math.ceil(value.high), value.null)
    if target.kind is Kind.INTEGER and value.kind is Kind.OTHER:
        bits = _UNSIGNED.get(value.form, target.bits)
        if bits < target.bits:
            return integer(target.bits, 0, 2**bits - 1)
    if target.kind is Kind.NUMERIC and value.kind is Kind.INTEGER:
        return numeric_of(value)
    if target.kind is Kind.DOUBLE:
        if value.kind is Kind.INTEGER:
            return as_double(value)
        if value.kind is Kind.NUMERIC:
            if value.most > 10**300 or (not value.empty and value.least < Fraction(1, 10**300)):
                raise NotTotalError(node, "it may leave float64")
            return as_double(value)
        if value.kind is Kind.OTHER and value.form in ("real", "float"):
            return any_double()
        if value.kind is Kind.OTHER and value.form == "decimal" and walk.engine.name == "spark":
            return any_double()
    if target.kind in TIMES and value.kind in TIMES:
        if not calendar_only(value):
            raise NotTotalError(node, "it may leave the calendar")
        if value.empty:
            return no_value(target)
        low, high = _moments(value) if target.kind is Kind.TIMESTAMP else _days(value)
        return _CALENDAR[target.kind].but(low=low, high=high)
    raise NotTotalError(node, "the cast is not known")


def _moments(value: Value) -> tuple[int, int]:
    return int(value.low) * MICROSECONDS, int(value.high) * MICROSECONDS


def _days(value: Value) -> tuple[int, int]:
    return int(value.low) // MICROSECONDS, int(value.high) // MICROSECONDS


def _as_text(walk: Walk, node: exp.Expr, value: Value) -> Value:
    if value.kind is Kind.TEXT:
        return value
    if value.kind in TIMES and not calendar_only(value):
        raise NotTotalError(node, "it may leave the calendar")
    longest = _LONGEST_TEXT.get(value.kind)
    if longest is not None:
        return text(longest)
    if value.kind is Kind.OTHER and value.form in _PRINTED[walk.engine.name]:
        return text(_PRINTED[walk.engine.name][value.form])
    raise NotTotalError(node, "the cast is not known")


_UNSIGNED = {"utinyint": 8, "usmallint": 16, "uinteger": 32}
_PRINTED: dict[str, dict[str, int]] = {
    "duckdb": {"decimal": 60, "enum": LONGEST, "uuid": 36},
    "postgres": {"uuid": 36, "enum": 64, "name": 64, "character": LONGEST, "bpchar": LONGEST},
    "spark": {},
}
"""Column types whose values all have a text, with its largest length."""
CONVERSIONS: dict[type[exp.Expr], Rule] = {exp.Cast: cast, exp.TryCast: cast}
