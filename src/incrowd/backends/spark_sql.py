"""Spark SQL's words for the constructs of a statement.

They hold in a session with `SETTINGS`: what does not fit is NULL there and whole numbers wrap around, so
nothing raises; what must not wrap, sums, is put together from parts that cannot.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from sqlglot import exp

from incrowd.backends.translation import Dialect, call, case, case_table, number, reads_float, within_int64

PLACE = "__place"
"""The column of a table that tells each of its rows from all others, the same whenever it is read."""
SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "false",
    # Names are folded already, and by ASCII letters alone, as the planner compares them.
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Else a text such as ${env:HOME} would be replaced.
    "spark.sql.variable.substitute": "false",
}
"""What a session must say for these words to mean what they must."""
_Type = exp.DataType.Type
_LIMB = 21
"""Sums of 21 bits, or of the 22 highest and signed ones, are below 2^63 for up to 2^41 rows."""
_LARGEST_PLACE = 2**31 - 1


def _type(node: exp.Expr) -> exp.Expr:
    if node.this == _Type.INT128:
        return exp.DataType.build("DECIMAL(38, 0)", dialect="spark")
    if node.this == _Type.TIMESTAMP:
        return exp.DataType.build("TIMESTAMP_NTZ", dialect="spark")
    return node


def _cte(node: exp.Expr) -> exp.Expr:
    # Spark keeps what it computes twice by itself (or does not); nothing here depends on that.
    node.set("materialized", None)
    return node


def _real(value: float) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")


def _try_cast(node: exp.Expr) -> exp.Expr:
    """Of a float: the nearest whole number, halves to the even one. Of text: NULL for a day that is none."""
    if reads_float(node):
        nearest = exp.cast(call("RINT", node.this), "BIGINT")
        return case((within_int64(node.this), nearest))
    # Without safe, the generator writes a plain cast.
    return exp.TryCast(this=node.this.copy(), to=node.args["to"].copy(), safe=True)


def _matches(node: exp.Expr) -> exp.Expr:
    # $ would also match before a line break at the end.
    return exp.paren(
        exp.RegexpLike(
            this=node.this.copy(), expression=exp.Literal.string(rf"\A(?:{node.expression.name})\z")
        )
    )


def _bounded(node: exp.Expr) -> bool:
    """Whether a statement casts the result to an integer: it then keeps it within 64 bits."""
    return type(node.parent) is exp.Cast and node.parent.to.this == _Type.BIGINT


def _floor(node: exp.Expr) -> exp.Expr:
    """As a float, as Spark's own is an integer. Infinity and NaN stay what they are."""
    down = isinstance(node, exp.Floor)
    if down and _bounded(node):
        return call("FLOOR", node.this)
    value, near = exp.paren(node.this), call("RINT", node.this)
    beyond = (exp.GT if down else exp.LT)(this=near, expression=value)
    step = case((beyond, _real(1.0)), default=_real(0.0))
    return exp.paren((exp.Sub if down else exp.Add)(this=near.copy(), expression=step))


def _trunc(node: exp.Expr) -> exp.Expr:
    """What is left without the remainder of a division by 1, which floats have exactly."""
    if _bounded(node):
        return exp.paren(node.this)
    rest = exp.Mod(this=exp.paren(node.this.copy()), expression=_real(1.0))
    # Infinity has the remainder NaN, and is to stay infinity.
    kept = call("NANVL", rest, _real(0.0))
    return exp.paren(exp.Sub(this=exp.paren(node.this.copy()), expression=kept))


def _sum(node: exp.Expr) -> exp.Expr:
    """A sum of 64-bit integers that cannot wrap around: of three parts of each, put together at the end.

    x = 2^42 (x >> 42) + 2^21 ((x >> 21) mod 2^21) + (x mod 2^21), with shifts that round down. Sums of
    DECIMAL say the same and take many times as long.
    """
    value = exp.cast(node.this, "BIGINT")
    mask = exp.cast(number(2**_LIMB - 1), "BIGINT")

    def shifted(by: int) -> exp.Expr:
        return call("SHIFTRIGHT", value, number(by)) if by else value.copy()

    limbs = [
        shifted(2 * _LIMB),
        *(exp.BitwiseAnd(this=shifted(by), expression=mask.copy()) for by in (_LIMB, 0)),
    ]
    total: exp.Expr | None = None
    for place, limb in zip((2, 1, 0), limbs, strict=True):
        part = exp.cast(exp.Sum(this=limb), "DECIMAL(38, 0)", dialect="spark")
        if place:
            factor = exp.cast(number(2 ** (place * _LIMB)), "DECIMAL(14, 0)", dialect="spark")
            part = exp.cast(exp.Mul(this=part, expression=factor), "DECIMAL(38, 0)", dialect="spark")
        total = part if total is None else exp.Add(this=total, expression=part)
    assert total is not None
    return exp.cast(exp.paren(total), "DECIMAL(38, 0)", dialect="spark")


def _plain_division(node: exp.Expr) -> exp.Expr:
    """Without the generator's own guards."""
    kind = type(node)
    flags = {"typed": True, "safe": False} if kind is exp.Div else {}
    return kind(this=node.this.copy(), expression=node.expression.copy(), **flags)


def _extract(node: exp.Expr) -> exp.Expr:
    """A part of a date as a whole number; weeks are those of ISO 8601, and Sunday is 0."""
    part = node.name.upper()
    if part in ("DOW", "DAYOFWEEK"):
        return exp.paren(exp.Sub(this=call("DAYOFWEEK", node.expression), expression=number(1)))
    return call({"WEEK": "WEEKOFYEAR"}.get(part, part), node.expression)


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = exp.Literal.string(node.args["unit"].name.upper())
    truncated = call("DATE_TRUNC", unit, exp.cast(node.this, "TIMESTAMP_NTZ", dialect="spark"))
    # It comes as a moment of the session's time zone, which is UTC.
    return exp.cast(truncated, "TIMESTAMP_NTZ", dialect="spark")


def _cased(node: exp.Expr) -> exp.Expr:
    """Spark's own for plain ASCII, which all engines agree on; else the shared table, letter by letter, since
    Spark's own makes two letters of some.
    """
    upper, text = isinstance(node, exp.Upper), node.this
    letters = (string.ascii_lowercase, string.ascii_uppercase)
    table = [
        one + two for one, two in zip(letters if upper else letters[::-1], case_table(upper), strict=True)
    ]
    plain = exp.EQ(this=call("OCTET_LENGTH", text), expression=call("LENGTH", text))
    mapped = call("TRANSLATE", text, *(exp.Literal.string(each) for each in table))
    return case((plain, call("UPPER" if upper else "LOWER", text)), default=mapped)


def _slice(node: exp.Expr) -> exp.Expr:
    """Places are 32-bit integers here, and larger ones would wrap around."""
    for key in ("start", "length", "expression"):
        place = node.args.get(key)
        if isinstance(place, exp.Literal) and int(place.name) > _LARGEST_PLACE:
            node.set(key, number(_LARGEST_PLACE))
    return node


def _row(node: exp.Expr) -> exp.Expr:
    """A row's number: any name that it alone has, at every reading, does."""
    return exp.column(PLACE, quoted=True)


def _same(node: exp.Expr) -> exp.Expr:
    return node


DIALECT = Dialect(
    "spark",
    {
        exp.DataType: _type,
        exp.CTE: _cte,
        exp.TryCast: _try_cast,
        exp.RegexpFullMatch: _matches,
        exp.Floor: _floor,
        exp.Ceil: _floor,
        exp.Trunc: _trunc,
        exp.Sum: _sum,
        exp.Div: _plain_division,
        exp.IntDiv: _plain_division,
        exp.Lower: _cased,
        exp.Upper: _cased,
        exp.Trim: lambda node: call("BTRIM", node.this, node.expression),
        exp.Contains: lambda node: call("CONTAINS", node.this, node.expression),
        exp.StartsWith: lambda node: call("STARTSWITH", node.this, node.expression),
        exp.Substring: _slice,
        exp.Left: _slice,
        exp.Right: _slice,
        exp.Extract: _extract,
        exp.TimestampTrunc: _truncate,
        exp.DateTrunc: _truncate,
        exp.DateDiff: lambda node: call("DATEDIFF", node.this, node.expression),
        exp.Window: _row,
        # Halves go away from zero, by way of exact decimals.
        **dict.fromkeys((exp.Round, exp.RowNumber), _same),
    },
)
