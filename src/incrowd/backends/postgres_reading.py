"""Reads columns of a PostgreSQL table in a type that statements compute with, never with an error.

A column that identifies units is read so that two values never become one. Otherwise two people would be one
unit and could contribute more than the guarantee allows. A value may become NULL; its row then belongs to
nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from incrowd.backends.postgres_relations import Column
from incrowd.backends.sources import Read, source_column
from incrowd.backends.translation import call, case
from incrowd.catalog import Catalog, column_type
from incrowd.catalog.types import Kind
from incrowd.errors import CatalogError, QueryError

LONGEST = 1_000_000
"""Text is cut off after this many characters, since functions raise on much longer text. A longer text that
identifies a unit becomes NULL instead, since two units may differ only in the part that is cut off.
"""
_C = exp.to_identifier("C", quoted=True)


def refuse_alike(catalog: Catalog, table: str, columns: Mapping[str, Column]) -> None:
    """Refuse a column that identifies units if different values of it count as equal."""
    declared = catalog.tables[table]
    types = {name: column.type for name, column in columns.items()}
    for name in declared.unit.columns if declared.unit is not None else ():
        where = f"tables.{table}.columns.{name}"
        column = columns[source_column(name, types, where)]
        spelled = _spelled(column, declared.columns[name].type)
        if spelled is not None:
            raise CatalogError(f"{where}: {spelled}, so that a unit would have several spellings; {_MEND}.")


_MEND = 'use a column of type text with a deterministic collation, such as "C", and declare it as text'


def _spelled(column: Column, declared: str) -> str | None:
    """Why a value of a column may have several spellings; None if it has only one."""
    if not column.deterministic:
        return "its collation calls different texts equal"
    if column.type == "bpchar":
        return "bpchar without a length ignores spaces at the end of a value"
    if column_type(column.type) == "text" and declared not in ("text", "date"):
        return f"different texts are the same {declared}"
    return None


def reader(columns: Mapping[str, Column]) -> Read:
    """The function that reads the columns of one table."""

    def read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
        stored = column_type(engine_type)
        if stored == "decimal":
            return _decimal(column, kind, identifies)
        if stored == "text":
            text = _collated(exp.cast(column, "TEXT"))
            length = columns[column.name].length
            short = engine_type in ("uuid", "enum") or (length is not None and length <= LONGEST)
            if kind != "text" or short:
                return text, "text"
            return (_whole_text if identifies else _cut)(text), "text"
        if stored == "timestamp":
            zoned = "with time zone" in engine_type
            utc = exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC"))
            return (utc if zoned else exp.cast(column, "TIMESTAMP")), "timestamp"
        if stored in ("boolean", "date"):
            return exp.cast(column, stored.upper()), stored
        raise QueryError(f"{engine_type} is not understood.")

    return read


def _collated(text: exp.Expr) -> exp.Expr:
    """Text in collation C, so that comparisons, keys and letters do not follow the server's locale."""
    return exp.Collate(this=text, expression=_C.copy())


def _short(text: exp.Expr) -> exp.Expr:
    # PostgreSQL counts bytes without reading a long text, and most texts are also short in bytes.
    return exp.LTE(this=call("OCTET_LENGTH", text), expression=exp.Literal.number(str(LONGEST)))


def _cut(text: exp.Expr) -> exp.Expr:
    return case((_short(text), text), default=call("LEFT", text, exp.Literal.number(str(LONGEST))))


def _whole_text(text: exp.Expr) -> exp.Expr:
    fits = exp.LTE(this=call("LENGTH", text), expression=exp.Literal.number(str(LONGEST)))
    return case((_short(text), text), (fits, text))


def _decimal(column: exp.Column, kind: str, owns: bool) -> tuple[exp.Expr, Kind]:
    if kind == "integer":
        return _whole(column, owns), "integer"
    if kind == "text":
        return _digits(column), "text"
    return _float(column), "float"


def _numeric(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "DECIMAL")


def _whole(column: exp.Column, exact: bool) -> exp.Expr:
    """A numeric as the nearest 64-bit integer, or with `exact` only if it is a whole number.

    NULL beyond 64 bits, and for NaN, which is above all numbers.
    """
    ends = (_numeric(str(-(2**63))), _numeric(str(2**63 - 1)))
    rounded = call("ROUND", column)
    inside: exp.Expr = exp.Between(this=rounded, low=ends[0], high=ends[1])
    if exact:
        inside = exp.and_(inside, exp.EQ(this=column.copy(), expression=rounded.copy()))
    # The largest numerics cannot be rounded up: the result would have one digit too many.
    modest = exp.Between(this=column.copy(), low=_numeric("-1e20"), high=_numeric("1e20"))
    return case((modest, case((inside, exp.cast(rounded.copy(), "BIGINT")))))


def _digits(column: exp.Column) -> exp.Expr:
    """A numeric as text without trailing zeros, so that a number has one text; NULL if it is not finite."""
    ends = (_numeric("-Infinity"), _numeric("Infinity"))
    after = exp.GT(this=column.copy(), expression=ends[0])
    before = exp.LT(this=column.copy(), expression=ends[1])
    text = exp.cast(call("TRIM_SCALE", column), "TEXT")
    return _collated(case((exp.and_(after, before), text)))


def _float(column: exp.Column) -> exp.Expr:
    """A numeric as a float. CASE guards the cast, which raises on numbers too large or too near zero."""
    size = exp.Abs(this=column.copy())
    tiny = exp.LT(this=size, expression=_numeric("1e-200"))
    normal = exp.LTE(this=size.copy(), expression=_numeric("1e200"))
    infinite = [exp.cast(exp.Literal.string(end), "DOUBLE") for end in ("-Infinity", "Infinity")]
    return case(
        (tiny, exp.cast(exp.Literal.string("0"), "DOUBLE")),
        (normal, exp.cast(column, "DOUBLE")),
        (exp.LT(this=column.copy(), expression=_numeric("0")), infinite[0]),
        (exp.LT(this=column.copy(), expression=_numeric("NaN")), infinite[1]),
    )
