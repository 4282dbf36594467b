"""Reads a column of one of DuckDB's types for a declared type. No value raises.

Nothing else in a column's type, such as a collation or a time zone, changes the meaning of a statement.
"""

from __future__ import annotations

import re

from sqlglot import exp

from incrowd.backends.sources import Read
from incrowd.backends.translation import Dialect, call
from incrowd.catalog import column_type
from incrowd.catalog.types import SQL_TYPES, Kind
from incrowd.errors import QueryError

NULLS = '"NULL"'
"""DuckDB's type of a column that holds only NULL."""
_DOUBLE_DIGITS = 15
_BINARY = exp.to_identifier("binary", quoted=True)


def _same(node: exp.Expr) -> exp.Expr:
    return node


DIALECT = Dialect("duckdb", {exp.TryCast: _same, exp.RegexpFullMatch: _same, exp.Lower: _same})
"""The constructs in a column's cast that are not the same on all engines."""


def reading(collated: bool) -> Read:
    """The function that reads columns; `collated` says that text may have its own collation."""

    def read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
        if engine_type == NULLS:
            return exp.cast(exp.null(), SQL_TYPES[kind]), kind  # type: ignore[return-value]
        stored = column_type(engine_type)
        if stored == "decimal":
            return _decimal(column, engine_type, kind, identifies)
        if stored == "text":
            text = column if engine_type == "VARCHAR" else _try(column, "VARCHAR")
            if collated:
                # A cast keeps the collation, under which spellings in different people's rows are equal.
                text = exp.Collate(this=text, expression=_BINARY.copy())
            return (_plainly_written(text) if identifies and kind == "integer" else text), "text"
        if stored == "timestamp":
            return _timestamp(column, engine_type), "timestamp"
        if stored in ("boolean", "date"):
            return column, stored
        raise QueryError(f"{engine_type} is not understood.")

    return read


def _plainly_written(text: exp.Expr) -> exp.Expr:
    """The text if it is the only spelling of a whole number, else NULL: 7 and 007 may be two people."""
    pattern = exp.Literal.string("0|-?[1-9][0-9]*")
    start = exp.Left(this=exp.paren(text.copy()), expression=exp.Literal.number("100"))
    return exp.Case(ifs=[exp.If(this=exp.RegexpFullMatch(this=start, expression=pattern), true=text)])


def _try(sql: exp.Expr, kind: str) -> exp.Expr:
    return exp.TryCast(this=sql, to=exp.DataType.build(kind, dialect="duckdb"))


def _decimal(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    text = exp.cast(column, "VARCHAR")
    if kind == "text":
        return text, "text"
    if kind == "integer":
        whole = _try(column, "BIGINT")
        if identifies:
            # Rounding would make one id of two.
            test = exp.RegexpFullMatch(this=text, expression=exp.Literal.string("-?[0-9]+([.]0*)?"))
            whole = exp.Case(ifs=[exp.If(this=test, true=whole)])
        return whole, "integer"
    digits = re.match(r"DECIMAL\((\d+),", engine_type)
    # Beyond 15 digits the engine's own conversion rounds twice; a conversion through text rounds once.
    wide = digits is None or int(digits[1]) > _DOUBLE_DIGITS
    return _try(text if wide else column, "DOUBLE"), "float"


def _timestamp(column: exp.Column, engine_type: str) -> exp.Expr:
    """The column as a timestamp in UTC, NULL beyond the calendar. The session's time zone is UTC."""
    if engine_type == "TIMESTAMP":
        return column
    if engine_type == "TIMESTAMPTZ_NS":
        # DuckDB has no casts from this type yet.
        return _try(call("TRY", exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC"))), "TIMESTAMP")
    return _try(column, "TIMESTAMP")
