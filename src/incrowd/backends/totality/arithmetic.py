"""Rules for numbers: literals, arithmetic, roundings, roots, logarithms, choices between numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from sqlglot import exp

from incrowd.backends.totality.intervals import (
    Result,
    absolute,
    added,
    divided,
    mapped,
    multiplied,
    negated,
    whole_corners,
    whole_quotient,
)
from incrowd.backends.totality.shifts import shifted
from incrowd.backends.totality.values import (
    LARGEST,
    NUMBERS,
    Kind,
    Value,
    as_double,
    calendar_only,
    constant,
    double,
    ends,
    integer,
    no_value,
    numeric,
    text,
)
from incrowd.backends.totality.walk import Environment, NotTotalError, Rule, Walk, parts_of

_LARGEST_EXP = 700.0
"""EXP overflows beyond 709, and vanishes below -745."""


_LARGEST_DECIMAL = 10**131000
"""Decimals have at most 131,072 digits, so the largest ones cannot be rounded up."""


def literal(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """A constant as it is written. Decimals differ between engines and are refused."""
    parts_of(node, "this", "is_string")
    if node.is_string:
        return text(len(node.name)).but(null=False)
    if not (node.name.isascii() and node.name.isdigit()):
        raise NotTotalError(node, "decimals without a cast are not known")
    value = int(node.name)
    bits = next((width for width in (32, 64, 128) if value <= ends(width)[1]), 0)
    if bits in (32, 64) or (bits == 128 and walk.engine.sum_bits == 128):
        return constant(Kind.INTEGER, value, bits)
    if walk.engine.name == "postgres":
        return constant(Kind.NUMERIC, value)
    raise NotTotalError(node, "it is too large")


def number(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """An operand that must be a number."""
    value = walk.value(node, known)
    if value.kind not in NUMBERS:
        raise NotTotalError(node, "it is no number")
    return value


def fitting(node: exp.Expr, low: int, high: int, bits: int, null: bool = True) -> Value:
    """A whole number of `bits` bits; refused unless all of its values fit."""
    least, most = ends(bits)
    if low < least or high > most:
        raise NotTotalError(node, f"it may leave {bits} bits")
    return integer(bits, low, high, null)


def checked(walk: Walk, node: exp.Expr, result: Result) -> Value:
    """A float; refused if the engine checks floats and could raise on it."""
    if walk.engine.checks_floats:
        if result.by_zero:
            raise NotTotalError(node, "it may divide by zero")
        if result.overflows:
            raise NotTotalError(node, "it may overflow")
        if result.vanishes:
            raise NotTotalError(node, "it may vanish")
    return result.value


def negative(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """-x."""
    parts_of(node, "this")
    value = number(walk, node.this, known)
    if value.kind is Kind.INTEGER and not value.empty:
        return fitting(node, -int(value.high), -int(value.low), value.bits, value.null)
    return negated(value)


_WHOLE: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_REAL: dict[type[exp.Expr], Callable[[Value, Value], Result]] = {
    exp.Add: added,
    exp.Sub: lambda one, two: added(one, negated(two)),
    exp.Mul: multiplied,
}


def arithmetic(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """x + y, x - y and x * y. If one side is a CASE, try branch by branch when the whole is not proven."""
    parts_of(node, "this", "expression")
    moved = shifted(walk, node, known)
    if moved is not None:
        return moved
    if isinstance(node, exp.Sub) and walk.engine.name == "postgres":
        sides = [walk.value(side, known) for side in (node.this, node.expression)]
        if all(side.kind is Kind.DATE and calendar_only(side) for side in sides):
            return integer(32, -4_000_000, 4_000_000)
    try:
        return _arithmetic(walk, node, known)
    except NotTotalError:
        return _by_branches(walk, node, known)


def _arithmetic(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    one, two = number(walk, node.this, known), number(walk, node.expression, known)
    null = one.null or two.null
    if one.kind is Kind.INTEGER and two.kind is Kind.INTEGER:
        bits = max(one.bits, two.bits)
        if one.empty or two.empty:
            return no_value(integer(bits))
        low, high = whole_corners(one, two, _WHOLE[type(node)])
        return fitting(node, *_of_quotient(walk, node, known, low, high), bits, null)
    if isinstance(node, exp.Sub) and one.kind is two.kind is Kind.DOUBLE and _is_fraction(walk, node):
        return double(0.0, 1.0).but(nan=one.nan or one.infinite, null=null)
    if Kind.DOUBLE in (one.kind, two.kind):
        return checked(walk, node, _REAL[type(node)](as_double(one), as_double(two)))
    raise NotTotalError(node, "arithmetic of decimals is not known")


def _of_quotient(walk: Walk, node: exp.Expr, known: Environment, low: int, high: int) -> tuple[int, int]:
    """x * (y // x) lies between 0 and y, or at both ends of it, whichever way the quotient is rounded."""
    if not isinstance(node, exp.Mul):
        return low, high
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        quotient = other.unnest()
        whole = isinstance(quotient, exp.IntDiv) or (
            isinstance(quotient, exp.Div) and walk.engine.integer_slash
        )
        if whole and walk.keys.of(quotient.expression) == walk.keys.of(one):
            top, by = walk.value(quotient.this, known), walk.value(one, known)
            if top.kind is by.kind is Kind.INTEGER and top.low >= 0 and by.low > 0:
                return max(low, 0), min(high, int(top.high))
    return low, high


def _is_fraction(walk: Walk, node: exp.Expr) -> bool:
    """True for x - FLOOR(x) and CEIL(x) - x, which lie between 0 and 1."""
    one, two = node.this.unnest(), node.expression.unnest()
    if isinstance(two, exp.Floor):
        return walk.keys.of(two.this) == walk.keys.of(one)
    return isinstance(one, exp.Ceil) and walk.keys.of(one.this) == walk.keys.of(two)


def _by_branches(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """op(x, CASE ...) equals a CASE with op(x, ...) in each branch, where its test holds for x too."""
    for place, other in (("expression", "this"), ("this", "expression")):
        inner = node.args[place].unnest()
        if isinstance(inner, exp.Case):
            results = [no_value(walk.value(inner, known))]
            for result, environment in walk.branches(inner, known):
                if result is not None:
                    branch = type(node)(**{place: result.copy(), other: node.args[other].copy()})
                    results.append(_arithmetic(walk, branch, environment))
            return walk.united(node, results)
    return _arithmetic(walk, node, known)


def division(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """x / y and x // y."""
    parts_of(node, "this", "expression", "typed", "safe")
    one, two = number(walk, node.this, known), number(walk, node.expression, known)
    if one.kind is two.kind is Kind.INTEGER and (isinstance(node, exp.IntDiv) or walk.engine.integer_slash):
        bits = max(one.bits, two.bits)
        if two.may_be_zero and walk.engine.division_by_zero:
            raise NotTotalError(node, "it may divide by zero")
        if one.empty or two.empty or (two.low == two.high == 0):
            return no_value(integer(bits))
        return fitting(node, *whole_quotient(one, two), bits)
    if isinstance(node, exp.IntDiv):
        raise NotTotalError(node, "it is no division of whole numbers")
    if Kind.NUMERIC in (one.kind, two.kind):
        raise NotTotalError(node, "arithmetic of decimals is not known")
    return checked(walk, node, divided(as_double(one), as_double(two)))


def remainder(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """x % c, for a constant c other than zero."""
    parts_of(node, "this", "expression")
    one, two = number(walk, node.this, known), number(walk, node.expression, known)
    if two.low != two.high or two.may_be_zero or one.kind is not two.kind:
        raise NotTotalError(node, "its divisor is no constant")
    if one.kind is Kind.INTEGER:
        return integer(max(one.bits, two.bits), -abs(two.low), abs(two.low))
    if one.kind is Kind.DOUBLE:
        return double(-float(abs(two.low)), float(abs(two.low))).but(nan=one.nan or one.infinite)
    raise NotTotalError(node, "arithmetic of decimals is not known")


_ROUNDED: dict[type[exp.Expr], Callable[[float], float]] = {
    exp.Floor: lambda value: float(math.floor(value)),
    exp.Ceil: lambda value: float(math.ceil(value)),
    exp.Trunc: lambda value: float(math.trunc(value)),
    exp.Rint: lambda value: float(round(value)),
}


def rounding(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """FLOOR, CEIL, TRUNC, ROUND and RINT of a float; FLOOR of a decimal."""
    parts_of(node, "this")
    value = walk.value(node.this, known)
    if value.form == "decimal" and isinstance(node, exp.Round) and walk.engine.name == "spark":
        # Spark returns NULL if the result has one digit too many.
        return value
    if value.kind is Kind.NUMERIC and isinstance(node, exp.Floor | exp.Round):
        if value.most > _LARGEST_DECIMAL:
            raise NotTotalError(node, "it may have one digit too many")
        if value.empty:
            return value
        return value.but(low=math.floor(value.low), high=math.ceil(value.high), zero=True, tiny=0)
    if value.kind is not Kind.DOUBLE:
        raise NotTotalError(node, "it is no float")
    if isinstance(node, exp.Round):
        low, high = _ROUNDED[exp.Floor], _ROUNDED[exp.Ceil]
        if value.empty:
            return value
        return value.but(low=low(float(value.low)), high=high(float(value.high)), tiny=1.0, zero=True)
    rounded = mapped(value, _ROUNDED[type(node)], 1.0)
    if isinstance(node, exp.Floor) and walk.engine.name == "spark":
        # Spark's FLOOR returns a 64-bit integer, and the nearest end for floats beyond 64 bits.
        if not rounded.within(-(2.0**63), math.nextafter(2.0**63, 0)):
            raise NotTotalError(node, "it may leave 64 bits")
        return no_value(integer(64)) if rounded.empty else integer(64, int(rounded.low), int(rounded.high))
    return rounded


def magnitude(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """ABS."""
    parts_of(node, "this")
    value = absolute(number(walk, node.this, known))
    if value.kind is Kind.INTEGER and not value.empty:
        return fitting(node, int(value.low), int(value.high), value.bits, value.null)
    return value


def root(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """SQRT of a number that is not below zero."""
    value = _float_argument(walk, node, known)
    if value.below or (not value.empty and value.low < 0):
        raise NotTotalError(node, "it may be the root of a negative number")
    if value.empty:
        return value
    zero, tiny = value.may_be_zero, math.sqrt(min(float(value.least), LARGEST))
    return value.but(low=math.sqrt(value.low), high=math.sqrt(value.high), tiny=tiny, zero=zero)


def logarithm(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """LN of a number above zero."""
    value = _float_argument(walk, node, known)
    if value.below or (not value.empty and (value.low < 0 or value.may_be_zero)):
        raise NotTotalError(node, "it may be the logarithm of zero, or of a negative number")
    # Next to 1, logarithms other than zero are about 2^-53.
    return double(-746.0, 711.0, 2.0**-60).but(above=value.above, nan=value.nan)


def exponential(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """EXP of a number of modest size."""
    value = _float_argument(walk, node, known)
    if not value.within(-_LARGEST_EXP, _LARGEST_EXP):
        raise NotTotalError(node, "it may overflow")
    if value.empty:
        return value
    # Engines' libraries differ in the last bits.
    low, high = math.exp(value.low) * (1 - 1e-9), math.exp(value.high) * (1 + 1e-9)
    return double(low, high, low)


def _float_argument(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    parts_of(node, "this")
    value = number(walk, node.this, known)
    if value.kind is not Kind.DOUBLE:
        raise NotTotalError(node, "it is no float")
    return value


def instead_of_nan(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """NANVL(x, y): y where x is NaN."""
    parts_of(node, "this", "expression")
    one, two = number(walk, node.this, known), number(walk, node.expression, known)
    return walk.united(node, [one.but(nan=False), two])


def bits_of(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """x & y, x | y, XOR, ~x and x >> c of whole numbers, in two's complement: none raises on any engine."""
    parts_of(node, "this", "expression")
    one = number(walk, node.this, known)
    two = one if isinstance(node, exp.BitwiseNot) else number(walk, node.expression, known)
    if one.kind is not Kind.INTEGER or two.kind is not Kind.INTEGER or max(one.bits, two.bits) > 64:
        raise NotTotalError(node, "its operands are not known")
    bits = max(one.bits, two.bits)
    if isinstance(node, exp.BitwiseRightShift):
        if two.low != two.high or not 0 <= two.low < one.bits:
            raise NotTotalError(node, "it does not shift by a known number of places")
        if one.empty:
            return one
        return integer(one.bits, int(one.low) >> int(two.low), int(one.high) >> int(two.low))
    if one.empty or two.empty:
        return no_value(integer(bits))
    if isinstance(node, exp.BitwiseNot):
        return integer(bits, ~int(one.high), ~int(one.low))
    if isinstance(node, exp.BitwiseAnd):
        tops = [int(side.high) for side in (one, two) if side.low >= 0]
        return integer(bits, 0, min(tops)) if tops else integer(bits)
    if min(one.low, two.low) < 0:
        return integer(bits)
    return integer(bits, 0, 2 ** max(int(one.high), int(two.high)).bit_length() - 1)


def counted_bits(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """BIT_COUNT of a whole number; on PostgreSQL, of its 64 bits as a bit string."""
    parts_of(node, "this", "expressions")
    if isinstance(node, exp.Anonymous) and (
        str(node.this).upper() != "BIT_COUNT" or len(node.expressions) != 1
    ):
        raise NotTotalError(node)
    inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    if walk.engine.name == "postgres":
        if not isinstance(inner, exp.Cast) or inner.to.sql("postgres") != "BIT(64)":
            raise NotTotalError(node)
        parts_of(inner, "this", "to")
        inner = inner.this
    value = number(walk, inner, known)
    if value.kind is not Kind.INTEGER or value.bits > 64:
        raise NotTotalError(node, "it is no whole number")
    return integer(64 if walk.engine.name == "postgres" else 32, 0, 64)


def numeric_of(value: Value) -> Value:
    """A whole number as a decimal."""
    return no_value(numeric(0, 0)) if value.empty else value.but(kind=Kind.NUMERIC, bits=0)


ARITHMETIC: dict[type[exp.Expr], Rule] = {
    exp.Literal: literal,
    exp.Neg: negative,
    **dict.fromkeys(_WHOLE, arithmetic),
    exp.Div: division,
    exp.IntDiv: division,
    exp.Mod: remainder,
    **dict.fromkeys((exp.Floor, exp.Ceil, exp.Trunc), rounding),
    exp.Abs: magnitude,
    exp.Sqrt: root,
    exp.Ln: logarithm,
    exp.Exp: exponential,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), bits_of),
    exp.BitwiseRightShift: bits_of,
    exp.BitwiseCount: counted_bits,
    exp.Anonymous: counted_bits,
}
