"""Bits of 64-bit integers: &, |, XOR, ~, shifts and BIT_COUNT.

Every engine has these operators on two's complement, and none raises, but for shifts to the left: DuckDB
refuses numbers below zero and bits that are lost, where others wrap around. x << c is x * 2^c where that
fits, and NULL elsewhere. Shifts take constants from 0 to 63, for beyond them each engine has a rule of its
own. Floats have no bits: `ROUND` or CAST makes them whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.casts import as_whole
from incrowd.query.functions.signature import Function, one, whole_constant
from incrowd.query.typed import Typed, guarded, literal, said

_MOST = 2**63 - 1
_MOST_LISTED = 6
"""Masks of up to so many bits list the values that pass through them."""


def _whole(node: exp.Expr, typed: Typed) -> Typed:
    """A whole number in 64 bits; NULL beyond."""
    if typed.kind == "null":
        return typed.but(sql=exp.cast(exp.null(), "BIGINT"), kind="integer")
    if typed.kind != "integer":
        raise QueryError(
            f"{said(node)} needs whole numbers, but {typed.said or 'one of them'} is of type {typed.kind}; "
            "CAST it AS BIGINT."
        )
    sql = exp.paren(as_whole(typed)) if typed.integral else as_whole(typed)
    far = not typed.integral and not (typed.bounded and max(abs(_low(typed)), abs(_high(typed))) < 2.0**63)
    return typed.but(sql=exp.cast(sql, "BIGINT"), integral=True, nullable=typed.nullable or far)


def _low(typed: Typed) -> int:
    return -(2**63) if typed.low is None else max(math.floor(typed.low), -(2**63))


def _high(typed: Typed) -> int:
    return _MOST if typed.high is None else min(math.ceil(typed.high), _MOST)


def _made(sql: exp.Expr, low: int, high: int, nullable: bool, values: tuple[int, ...] | None = None) -> Typed:
    wide = low == -(2**63) or high == _MOST
    least, most = (None, None) if wide else (float(low), float(high))
    return Typed(sql, "integer", least, most, nullable, values, integral=True, size=64)


def _and_ends(one: Typed, two: Typed) -> tuple[int, int]:
    """x & y is no larger than either that is not below zero."""
    tops = [_high(side) for side in (one, two) if _low(side) >= 0]
    return (0, min(tops)) if tops else (-(2**63), _MOST)


def _or_ends(one: Typed, two: Typed) -> tuple[int, int]:
    """Two numbers that are not below zero have no higher bit together than the larger."""
    if min(_low(one), _low(two)) < 0:
        return -(2**63), _MOST
    return 0, 2 ** max(_high(one), _high(two)).bit_length() - 1


_ENDS: dict[type[exp.Expr], Callable[[Typed, Typed], tuple[int, int]]] = {
    exp.BitwiseAnd: _and_ends,
    exp.BitwiseOr: _or_ends,
    exp.BitwiseXor: _or_ends,
}


def _combined(node: exp.Expr, arguments: list[Typed]) -> Typed:
    left, right = _whole(node, arguments[0]), _whole(node, arguments[1])
    low, high = _ENDS[type(node)](left, right)
    values = None
    if isinstance(node, exp.BitwiseAnd):
        masks = [int(side.constant) for side in arguments if side.constant is not None]
        values = _below(masks[0]) if masks and masks[0] >= 0 else None
    sql = exp.paren(type(node)(this=left.sql, expression=right.sql))
    return _made(sql, low, high, left.nullable or right.nullable, values)


def _below(mask: int) -> tuple[int, ...] | None:
    """Every value that passes through a mask; None if they are many."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    if len(bits) > _MOST_LISTED:
        return None
    return tuple(
        sorted(sum(some) for count in range(len(bits) + 1) for some in itertools.combinations(bits, count))
    )


def _complement(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value = _whole(node, one(node, arguments))
    sql = exp.paren(exp.BitwiseNot(this=exp.paren(value.sql)))
    return _made(sql, ~_high(value), ~_low(value), value.nullable)


def _places(node: exp.Expr, typed: Typed) -> int:
    places = whole_constant(node, typed, "The number of places")
    if not 0 <= places <= 63:
        raise QueryError(f"{said(node)} must shift by a constant from 0 to 63.")
    return places


def _right(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value, places = _whole(node, arguments[0]), _places(node, arguments[1])
    sql = exp.paren(exp.BitwiseRightShift(this=value.sql, expression=exp.Literal.number(str(places))))
    return _made(sql, _low(value) >> places, _high(value) >> places, value.nullable)


def _left(node: exp.Expr, arguments: list[Typed]) -> Typed:
    value, places = _whole(node, arguments[0]), _places(node, arguments[1])
    if places == 63:
        # Only 0 stays within 64 bits.
        naught = exp.EQ(this=value.sql, expression=literal(0))
        return _made(guarded(naught, literal(0)), 0, 0, True)
    most = _MOST >> places
    inside = exp.And(
        this=exp.GTE(this=value.sql.copy(), expression=literal(0)),
        expression=exp.LTE(this=value.sql.copy(), expression=literal(most)),
    )
    sql = guarded(inside, exp.Mul(this=value.sql, expression=literal(1 << places)))
    sure = _low(value) >= 0 and _high(value) <= most
    ends = max(_low(value), 0) << places, min(max(_high(value), 0), most) << places
    return _made(sql, *ends, not sure or value.nullable)


def bit_count(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """BIT_COUNT(x): how many bits are set."""
    value = _whole(node, one(node, arguments))
    sql = exp.cast(exp.Anonymous(this="BIT_COUNT", expressions=[value.sql]), "BIGINT")
    most = 64 if _low(value) < 0 else _high(value).bit_length()
    return _made(sql, 0, most, value.nullable, tuple(range(most + 1)))


BITS: dict[type[exp.Expr], Function] = {
    **dict.fromkeys(_ENDS, _combined),
    exp.BitwiseNot: _complement,
    exp.BitwiseRightShift: _right,
    exp.BitwiseLeftShift: _left,
}
