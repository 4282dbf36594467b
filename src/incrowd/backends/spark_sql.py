"""Spark's dialect, for sessions with `SETTINGS`.

Under these settings nothing raises: values that do not fit become NULL, and whole numbers wrap around. Sums
must not wrap around, so they are built from parts that cannot.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from sqlglot import exp

from incrowd.backends.translation import (
    Dialect,
    bit_count,
    call,
    case,
    case_table,
    number,
    reads_float,
    within_int64,
)
from incrowd.errors import BackendError
from incrowd.query.pattern_reading import read

PLACE = "__place"
"""The column that identifies a row of a table: unique, and the same at every read."""
SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "false",
    # Names are already folded, in ASCII letters only, as the planner compares them.
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    # Whether a row is read must not depend on a footer's statistics, which come from other rows too.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.session.timeZone": "UTC",
    # Otherwise all folder names together decide the type of a folder column.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Otherwise a text such as ${env:HOME} would be replaced.
    "spark.sql.variable.substitute": "false",
}
"""The settings under which the constructs of this dialect have the right meaning."""
_Type = exp.DataType.Type
_LIMB = 21
MOST = 2**63 - 1
_LARGEST_PLACE = 2**31 - 1


def _type(node: exp.Expr) -> exp.Expr:
    if node.this == _Type.INT128:
        # Only the bounds of sums have 128 bits, and sums stop at the ends of 64 bits here.
        bound = node.parent.this if isinstance(node.parent, exp.Cast) else None
        if not isinstance(bound, exp.Literal | exp.Neg) or abs(int(bound.name)) > MOST:
            raise BackendError("A number of more than 64 bits is not known on Spark; use DuckDB.")
        return exp.DataType.build("BIGINT")
    if node.this == _Type.TIMESTAMP:
        return exp.DataType.build("TIMESTAMP_NTZ", dialect="spark")
    return node


def _cte(node: exp.Expr) -> exp.Expr:
    # Drop the MATERIALIZED hint: Spark has none, and stored tables re-read identically.
    node.set("materialized", None)
    return node


def _real(value: float) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")


def _try_cast(node: exp.Expr) -> exp.Expr:
    """For a float, the nearest whole number, halves to even. For text, NULL if it names no day."""
    if reads_float(node):
        nearest = exp.cast(call("RINT", node.this), "BIGINT")
        return case((within_int64(node.this), nearest))
    # Without `safe`, sqlglot writes a plain cast.
    return exp.TryCast(this=node.this.copy(), to=node.args["to"].copy(), safe=True)


def _matches(node: exp.Expr) -> exp.Expr:
    # $ would also match before a line break at the end.
    return exp.paren(
        exp.RegexpLike(
            this=node.this.copy(), expression=exp.Literal.string(rf"\A(?:{node.expression.name})\z")
        )
    )


def _found(node: exp.Expr) -> exp.Expr:
    pattern = exp.Literal.string(read(node.expression.name).written("spark"))
    return exp.paren(exp.RegexpLike(this=node.this.copy(), expression=pattern))


def _bounded(node: exp.Expr) -> bool:
    """True if the statement casts the result to an integer; it then keeps it within 64 bits."""
    return type(node.parent) is exp.Cast and node.parent.to.this == _Type.BIGINT


def _floor(node: exp.Expr) -> exp.Expr:
    """FLOOR or CEIL as a float; Spark's own returns an integer. Infinity and NaN stay as they are."""
    down = isinstance(node, exp.Floor)
    if down and _bounded(node):
        return call("FLOOR", node.this)
    value, near = exp.paren(node.this), call("RINT", node.this)
    beyond = (exp.GT if down else exp.LT)(this=near, expression=value)
    step = case((beyond, _real(1.0)), default=_real(0.0))
    return exp.paren((exp.Sub if down else exp.Add)(this=near.copy(), expression=step))


def _trunc(node: exp.Expr) -> exp.Expr:
    """The value minus its remainder modulo 1, which is exact for floats."""
    if _bounded(node):
        return exp.paren(node.this)
    rest = exp.Mod(this=exp.paren(node.this.copy()), expression=_real(1.0))
    # The remainder of infinity is NaN; infinity must stay infinity.
    kept = call("NANVL", rest, _real(0.0))
    return exp.paren(exp.Sub(this=exp.paren(node.this.copy()), expression=kept))


def _sum(node: exp.Expr) -> exp.Expr:
    """A sum of 64-bit integers that does not wrap around: exact within 64 bits, else the nearest end.

    Each integer is split into three parts, x = 2^42 high + 2^21 middle + low with 0 <= middle, low < 2^21.
    Their sums H, M, L are exact for up to 2^41 rows. With carries, top = H + (M + L // 2^21) // 2^21, the sum
    is 2^42 top plus less than 2^42. It is within 64 bits if -2^21 <= top < 2^21, and then 2^42 H + 2^21 M +
    L, computed modulo 2^64, is the sum itself. The bounds that statements compare sums with are far below the
    ends.
    """
    value = exp.cast(node.this, "BIGINT")
    masked = [
        exp.BitwiseAnd(this=part, expression=_whole(2**_LIMB - 1)) for part in (_down(value), value.copy())
    ]
    high, middle, low = (exp.Sum(this=limb) for limb in (_down(value, 2), *masked))
    carried = exp.Add(this=middle.copy(), expression=_down(low))
    top = exp.paren(exp.Add(this=high.copy(), expression=_down(carried)))
    parts = [
        exp.Mul(this=high, expression=_whole(4**_LIMB)),
        exp.Mul(this=middle, expression=_whole(2**_LIMB)),
    ]
    exact = exp.Add(this=exp.Add(this=parts[0], expression=parts[1]), expression=low)
    return case(
        (exp.GTE(this=top, expression=_whole(2**_LIMB)), _whole(MOST)),
        (exp.LT(this=top.copy(), expression=_whole(-(2**_LIMB))), _whole(-MOST)),
        default=exact,
    )


def _down(value: exp.Expr, limbs: int = 1) -> exp.Expr:
    """The value divided by a power of 2^21, rounded down."""
    return call("SHIFTRIGHT", value, number(limbs * _LIMB))


def _whole(value: int) -> exp.Expr:
    return exp.cast(number(value), "BIGINT")


def _plain_division(node: exp.Expr) -> exp.Expr:
    """Division without sqlglot's own guards."""
    kind = type(node)
    flags = {"typed": True, "safe": False} if kind is exp.Div else {}
    return kind(this=node.this.copy(), expression=node.expression.copy(), **flags)


def _extract(node: exp.Expr) -> exp.Expr:
    """A part of a date as a whole number; weeks are those of ISO 8601, and Sunday is 0."""
    part = node.name.upper()
    if part in ("DOW", "DAYOFWEEK"):
        return exp.paren(exp.Sub(this=call("DAYOFWEEK", node.expression), expression=number(1)))
    if part == "MICROSECOND":
        # Spark's own are a decimal, and only those of a timestamp in the session's zone, which is UTC, count.
        return call("PMOD", call("UNIX_MICROS", node.expression), number(60_000_000))
    return call({"WEEK": "WEEKOFYEAR"}.get(part, part), node.expression)


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = exp.Literal.string(node.args["unit"].name.upper())
    truncated = call("DATE_TRUNC", unit, exp.cast(node.this, "TIMESTAMP_NTZ", dialect="spark"))
    # The result is a timestamp in the session's time zone, which is UTC.
    return exp.cast(truncated, "TIMESTAMP_NTZ", dialect="spark")


def _cased(node: exp.Expr) -> exp.Expr:
    """UPPER or LOWER: Spark's own for plain ASCII, where all engines agree; otherwise the shared table.

    The table maps letter by letter. Spark's own function turns some letters into two.
    """
    upper, text = isinstance(node, exp.Upper), node.this
    letters = (string.ascii_lowercase, string.ascii_uppercase)
    table = [
        one + two for one, two in zip(letters if upper else letters[::-1], case_table(upper), strict=True)
    ]
    plain = exp.EQ(this=call("OCTET_LENGTH", text), expression=call("LENGTH", text))
    mapped = call("TRANSLATE", text, *(exp.Literal.string(letters) for letters in table))
    return case((plain, call("UPPER" if upper else "LOWER", text)), default=mapped)


def _slice(node: exp.Expr) -> exp.Expr:
    """Limit places to 32 bits, since larger ones would wrap around in Spark."""
    for key in ("start", "length", "expression"):
        place = node.args.get(key)
        if isinstance(place, exp.Literal) and int(place.name) > _LARGEST_PLACE:
            node.set(key, number(_LARGEST_PLACE))
    return node


def _window(node: exp.Expr) -> exp.Expr:
    """ROW_NUMBER() over a whole table becomes (file, row index): unique and stable across reads."""
    if not node.args.get("partition_by"):
        return exp.column(PLACE, quoted=True)
    return node


def _same(node: exp.Expr) -> exp.Expr:
    return node


DIALECT = Dialect(
    "spark",
    {
        exp.DataType: _type,
        exp.CTE: _cte,
        exp.TryCast: _try_cast,
        exp.RegexpFullMatch: _matches,
        exp.RegexpLike: _found,
        exp.Floor: _floor,
        exp.Ceil: _floor,
        exp.Trunc: _trunc,
        exp.Sum: _sum,
        exp.Div: _plain_division,
        exp.IntDiv: _plain_division,
        exp.Lower: _cased,
        exp.Upper: _cased,
        exp.Trim: lambda node: call("BTRIM", node.this, node.expression),
        exp.Anonymous: lambda node: bit_count(node, "Spark"),
        exp.Contains: lambda node: call("CONTAINS", node.this, node.expression),
        exp.StrPosition: lambda node: call("LOCATE", node.args["substr"], node.this),
        exp.SplitPart: _same,
        exp.StartsWith: lambda node: call("STARTSWITH", node.this, node.expression),
        exp.Substring: _slice,
        exp.Left: _slice,
        exp.Right: _slice,
        exp.Extract: _extract,
        exp.TimestampTrunc: _truncate,
        exp.DateTrunc: _truncate,
        exp.DateDiff: lambda node: call("DATEDIFF", node.this, node.expression),
        exp.Window: _window,
        # Spark's ROUND rounds halves away from zero, through exact decimals.
        **dict.fromkeys((exp.Round, exp.RowNumber), _same),
    },
)
