"""Reads columns of Parquet files in Spark types that statements compute with. No value raises.

Timestamps and dates come from `spark_files` as the stored integers. A column that identifies units is read so
that two values never become one: a value is read exactly or becomes NULL, which is nobody.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.backends.translation import call, case, number
from incrowd.catalog import column_type
from incrowd.catalog.types import Kind
from incrowd.errors import QueryError

_ENDS = (2**63 - 1) // 1000
"""The last millisecond, on either side of 1970, whose microseconds fit into 64 bits."""
_CANONICAL = r"\A(?:0|-?[1-9][0-9]*)\z"
"""Texts of whole numbers in which each number has one spelling."""


def read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    """A column in a type that statements compute with, and its kind."""
    stored = column_type(engine_type)
    if stored == "decimal":
        return _decimal(column, kind, identifies)
    if stored == "text":
        return _text(column, kind, identifies)
    if stored == "timestamp":
        return _moment(column, engine_type), "timestamp"
    if stored == "date":
        return call("DATE_FROM_UNIX_DATE", column), "date"
    if stored == "boolean":
        return column, "boolean"
    raise QueryError(f"{engine_type} is not understood.")


def _decimal(column: exp.Column, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    # Without `safe`, sqlglot writes a cast that wraps around.
    if kind == "text":
        return plain_digits(column), "text"
    if kind != "integer":
        return exp.cast(column, "DOUBLE"), "float"
    rounded = exp.Round(this=column.copy())
    whole = exp.TryCast(this=rounded, to=exp.DataType.build("BIGINT"), safe=True)
    if not identifies:
        return whole, "integer"
    return case((exp.EQ(this=rounded.copy(), expression=column.copy()), whole)), "integer"


def plain_digits(column: exp.Column) -> exp.Expr:
    """A decimal with all digits of its type. Spark itself writes small ones with an exponent, as 1.5E-7."""
    text = exp.cast(column, "STRING", dialect="spark")
    mark, nothing = exp.Literal.string("E-"), exp.Literal.string("")
    digits = call("SUBSTRING_INDEX", text, mark, number(1))
    for sign in (".", "-"):
        digits = call("REPLACE", digits, exp.Literal.string(sign), nothing)
    places = exp.TryCast(
        this=call("SUBSTRING_INDEX", text, mark, number(-1)), to=exp.DataType.build("INT"), safe=True
    )
    zeros = call("REPEAT", exp.Literal.string("0"), exp.Sub(this=places, expression=number(1)))
    minus = case((exp.LT(this=column.copy(), expression=number(0)), exp.Literal.string("-")), default=nothing)
    small = call("CONCAT", minus, exp.Literal.string("0."), zeros, digits)
    return case((call("CONTAINS", text, mark), small), default=text)


def _text(column: exp.Column, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    # Bytes that are not valid text would make the reader of an answer raise.
    text = call("TRY_VALIDATE_UTF8", column)
    if not identifies or kind in ("text", "date"):
        return text, "text"
    if kind != "integer":
        raise QueryError(f"Different texts are the same {kind}.")
    canonical = exp.RegexpLike(
        this=exp.Left(this=text.copy(), expression=number(100)), expression=exp.Literal.string(_CANONICAL)
    )
    return case((exp.paren(canonical), text)), "text"


def _moment(column: exp.Column, engine_type: str) -> exp.Expr:
    """A timestamp without a time zone; for types with a zone, the time in UTC."""
    if engine_type == "timestamp[ns, int96]":
        return exp.cast(column, "TIMESTAMP_NTZ", dialect="spark")
    micros: exp.Expr = column
    if engine_type.startswith("timestamp[ms"):
        fits = exp.Between(this=column.copy(), low=number(-_ENDS), high=number(_ENDS))
        micros = case((fits, exp.Mul(this=column.copy(), expression=number(1000))))
    elif engine_type.startswith("timestamp[ns"):
        # Round to the nearest microsecond, halves away from 1970, as DuckDB does.
        rest = exp.Mod(this=column.copy(), expression=number(1000))
        up = exp.GTE(this=rest, expression=number(500)), number(1)
        down = exp.LTE(this=rest.copy(), expression=number(-500)), number(-1)
        whole = exp.IntDiv(this=column.copy(), expression=number(1000))
        micros = exp.Add(this=whole, expression=case(up, down, default=number(0)))
    return exp.cast(call("TIMESTAMP_MICROS", micros), "TIMESTAMP_NTZ", dialect="spark")
