"""The types of values: what the owner, engines, SQL and Arrow call each of them, in one table.

A column has a `Type`, which the owner declares; statements compute with its `Kind`. The two differ at either
end: a decimal is computed with as a float, and NULL alone has a kind but is no column's type. Only names of
types are read here, never data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import pyarrow as pa

Type = Literal["integer", "float", "decimal", "text", "boolean", "date", "timestamp"]
Kind = Literal["integer", "float", "text", "boolean", "date", "timestamp", "null"]


@dataclass(frozen=True)
class ValueType:
    """A type of values, by all of its names."""

    name: Type | Literal["null"]
    kind: Kind
    """The kind that statements compute with."""
    sql: str
    """The SQL type that carries its values in a statement."""
    arrow: str
    """The Arrow type of a result's column, by its alias in pyarrow."""
    family: Literal["number", "time", ""] = ""
    """Numbers and times have an order, and columns of them bounds."""
    engine_names: str = ""
    """A pattern of the names that engines and data frames have for it, in lower case and without parameters.
    """
    wide_names: frozenset[str] = frozenset()
    """The names of engines' types with values that the SQL type cannot hold."""
    cast_names: tuple[str, ...] = ()
    """The names, in sqlglot, of the types to which an analyst may cast to get it."""
    distinct_as: frozenset[Type] = frozenset()
    """The declared types under which different stored values stay different."""
    example_bounds: str = ""
    """Bounds that an owner might declare."""


VALUE_TYPES: Mapping[str, ValueType] = {
    value_type.name: value_type
    for value_type in (
        ValueType(
            "integer",
            kind="integer",
            sql="BIGINT",
            arrow="int64",
            family="number",
            engine_names=r"u?(tiny|small|big|huge)?int|u?integer|bignum"
            r"|u?int(8|16|32|64|128)|int[248]|long|short|byte|(big|small)?serial",
            wide_names=frozenset({"ubigint", "hugeint", "uhugeint", "bignum", "uint64"}),
            cast_names=("BIGINT", "INT", "SMALLINT", "TINYINT"),
            distinct_as=frozenset({"integer", "text"}),
            example_bounds="[0, 120]",
        ),
        ValueType(
            "float",
            kind="float",
            sql="DOUBLE",
            arrow="float64",
            family="number",
            engine_names=r"float|double|double precision|real|(half_?)?float(4|8|16|32|64)?",
            cast_names=("DOUBLE", "FLOAT"),
            example_bounds="[0.0, 100.0]",
        ),
        ValueType(
            "decimal",
            kind="float",
            sql="DOUBLE",
            # Its digits may be more than a float holds.
            arrow="string",
            family="number",
            engine_names=r"decimal|numeric|number|decimal(32|64|128|256)",
            distinct_as=frozenset({"integer", "text"}),
            example_bounds="[0, 100000]",
        ),
        ValueType(
            "text",
            kind="text",
            sql="TEXT",
            arrow="string",
            engine_names=r"(var|bp)?char|character( varying)?|n?varchar|(large_)?(string|utf8)|string_view"
            r"|text|str|uuid|enum|category",
            cast_names=("TEXT", "VARCHAR"),
            distinct_as=frozenset({"integer", "text", "date"}),
        ),
        ValueType(
            "boolean",
            kind="boolean",
            sql="BOOLEAN",
            arrow="bool",
            engine_names=r"bool(ean)?(\[pyarrow\])?|logical",
            cast_names=("BOOLEAN",),
            distinct_as=frozenset({"boolean", "integer", "text"}),
        ),
        ValueType(
            "date",
            kind="date",
            sql="DATE",
            arrow="date32",
            family="time",
            engine_names=r"date(32|64)?",
            cast_names=("DATE",),
            distinct_as=frozenset({"date", "timestamp", "text"}),
            example_bounds="[2000-01-01, 2030-12-31]",
        ),
        ValueType(
            "timestamp",
            kind="timestamp",
            sql="TIMESTAMP",
            arrow="timestamp[us]",
            family="time",
            engine_names=r"timestamp(tz)?(_s|_ms|_ns)?|timestamp with(out)? time zone|datetime(64)?",
            cast_names=("TIMESTAMP", "TIMESTAMPNTZ"),
            distinct_as=frozenset({"timestamp", "text"}),
            example_bounds="[2000-01-01 00:00:00, 2030-12-31 23:59:59]",
        ),
        ValueType("null", kind="null", sql="TEXT", arrow="string"),
    )
}
"""Every type of values by its name."""
TYPES: tuple[Type, ...] = get_args(Type)
NUMERIC: frozenset[str] = frozenset(name for name, one in VALUE_TYPES.items() if one.family == "number")
TIMES: frozenset[str] = frozenset(name for name, one in VALUE_TYPES.items() if one.family == "time")
SQL_TYPES: Mapping[str, str] = {name: one.sql for name, one in VALUE_TYPES.items()}
"""The SQL type that carries the values of a type or kind."""


def column_type(engine_type: str) -> Type | None:
    """The catalog's type for a type name that an engine or a data frame reports; None if it is not known.

    >>> column_type("BIGINT"), column_type("DECIMAL(18,2)"), column_type("timestamp[us, tz=UTC]")
    ('integer', 'decimal', 'timestamp')
    >>> column_type("STRUCT(a INTEGER)") is None, column_type("INTEGER[]") is None
    (True, True)
    """
    word = engine_type.strip().lower()
    # An array of integers is not an integer: only parameters in brackets may be dropped.
    if re.search(r"\[\]|\[\d+\]$|^(list|struct|map|union|array|dictionary)\b", word):
        return None
    word = re.sub(r"\s*[(\[<].*[)\]>]\s*", " ", word).strip()
    for name in TYPES:
        if re.fullmatch(VALUE_TYPES[name].engine_names, word):
            return name
    return None


def kind_of(declared: str) -> Kind:
    """The kind that statements compute with for a column of a declared type.

    >>> kind_of("decimal"), kind_of("date")
    ('float', 'date')
    """
    return VALUE_TYPES[declared].kind


def is_wide(engine_type: str) -> bool:
    """True if an engine's type has values that the SQL type of its kind cannot hold.

    >>> is_wide("UBIGINT"), is_wide("UINTEGER")
    (True, False)
    """
    return any(engine_type.lower() in one.wide_names for one in VALUE_TYPES.values())


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type in which values of a type or kind come back, whatever the engine calls theirs.

    >>> arrow_type("integer"), arrow_type("float"), arrow_type("decimal")
    (DataType(int64), DataType(double), DataType(string))
    """
    import pyarrow as pa

    return pa.type_for_alias(VALUE_TYPES[name].arrow)
