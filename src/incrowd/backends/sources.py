"""The SELECT that reads a table as the catalog declares it: each column is cast to its declared type.

A value that does not fit becomes NULL, never an error. On read-only databases we create no views: this SELECT
replaces the table in each statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from incrowd.backends.translation import Dialect, rewritten
from incrowd.catalog import Catalog
from incrowd.catalog.types import SQL_TYPES, VALUE_TYPES, Kind, column_type, is_wide, kind_of
from incrowd.errors import CatalogError, QueryError
from incrowd.query.casts import cast
from incrowd.query.typed import Typed, fold

Read = Callable[[exp.Column, str, str, bool], tuple[exp.Expr, Kind]]
"""Reads a column of one of the engine's types for a declared type: returns the engine's SQL and its kind. Not
called for integers and floats, which are the same everywhere. The last argument says whether the column
identifies units: then no two values may be read as one, and values that cannot be told apart become NULL.
"""
TIMEOUT = 600
"""Seconds that a statement may take unless the source says otherwise."""
_SOURCE = "__source"


def projection(
    catalog: Catalog,
    table: str,
    origin: exp.Expr,
    types: Mapping[str, str],
    read: Read,
    dialect: Dialect,
    elsewhere: Collection[str] = (),
) -> exp.Select:
    """The query that reads a table: declared columns under their folded names, in their declared types.

    `types` are the engine's types of the source's columns. Undeclared columns of a public table are public
    too and keep their types. A declared column that is missing here is NULL if its name is in `elsewhere`,
    the columns of the table's other files.
    """
    declared = catalog.tables[table]
    picked: dict[str, exp.Expr] = {}
    here = {fold(column) for column in types}
    for column, facts in declared.columns.items():
        if fold(column) not in here and fold(column) in elsewhere:
            picked[fold(column)] = rewritten(exp.cast(exp.null(), SQL_TYPES[facts.type]), dialect)
            continue
        where = f"tables.{table}.columns.{column}"
        there = source_column(column, types, where)
        identifies = declared.unit is not None and column in declared.unit.columns
        if identifies:
            refuse_merging(types[there], facts.type, where)
        try:
            picked[fold(column)] = _picked(there, types[there], facts.type, read, dialect, identifies)
        except QueryError:
            raise CatalogError(
                f"{where}: a column of type {types[there]} cannot be read as {facts.type}; "
                "declare it otherwise."
            ) from None
    if not declared.private:
        for there, engine_type in types.items():
            kind = column_type(engine_type)
            if kind is not None and fold(there) not in picked:
                picked[fold(there)] = _picked(there, engine_type, kind, read, dialect)
    if not picked:
        raise CatalogError(f"tables.{table}: no column of the source has a type that is understood.")
    names = [exp.alias_(sql, name, quoted=True) for name, sql in picked.items()]
    return exp.select(*names).from_(origin)


def source_column(column: str, types: Mapping[str, str], where: str) -> str:
    """The source's name of a column: the same spelling, or else the only one that differs in case."""
    if column in types:
        return column
    alike = [name for name in types if fold(name) == fold(column)]
    if not alike:
        raise CatalogError(f"{where}: the source has no such column; it has {', '.join(types)}.")
    if len(alike) > 1:
        raise CatalogError(
            f"{where}: the source has {' and '.join(alike)}; write the name as it is written there."
        )
    return alike[0]


def refuse_merging(engine_type: str, declared: str, where: str) -> None:
    """Refuse a column that identifies units if two of its values could be read as one.

    Two units that are read as one are bounded as one. Adding the second then also changes the contribution of
    the first, by up to twice the bound. A value that is read as NULL does no harm: its rows belong to nobody
    and are left out.
    """
    stored = column_type(engine_type)
    fine = "ns" in re.split(r"[^a-z]+", engine_type.lower())
    if stored is not None and (fine or declared not in VALUE_TYPES[stored].distinct_as):
        reason = "nanoseconds" if fine else stored
        raise CatalogError(
            f"{where}: it identifies units, but different values of a column of type {engine_type} "
            f"({reason}) could be read as the same {declared}; keep ids as integers or text in the source."
        )


def _picked(
    column: str, engine_type: str, declared: str, read: Read, dialect: Dialect, identifies: bool = False
) -> exp.Expr:
    kind = kind_of(declared)
    there = exp.column(exp.to_identifier(column, quoted=True))
    source: exp.Expr
    held: Kind
    stored = column_type(engine_type)
    if stored == "integer":
        narrow = exp.TryCast if is_wide(engine_type) else exp.Cast
        source, held = narrow(this=there, to=exp.DataType.build("BIGINT")), "integer"
    elif stored == "float":
        source, held = exp.cast(there, "DOUBLE"), "float"
    else:
        source, held = read(there, engine_type, kind, identifies)
    placed = exp.column(_SOURCE, quoted=True)
    converted = cast(Typed(placed, held, said=column, integral=held == "integer"), kind)
    sql = rewritten(converted.sql, dialect)
    if isinstance(sql, exp.Column):
        return source
    for place in list(sql.find_all(exp.Column)):
        place.replace(exp.paren(source.copy()))
    return sql


def public_types(catalog: Catalog, table: str, types: Mapping[str, str]) -> dict[str, str]:
    """The catalog's types of a public table's columns."""
    declared = {fold(name): column.type for name, column in catalog.tables[table].columns.items()}
    kinds = {name: declared.get(fold(name)) or column_type(kind) for name, kind in types.items()}
    return {name: kind_of(kind) for name, kind in kinds.items() if kind is not None}


def timeout_of(catalog: Catalog) -> int:
    """The number of seconds that a statement over these tables may take."""
    return max(catalog.source_of(name).timeout or TIMEOUT for name in catalog.tables)


def memory_of(catalog: Catalog) -> int | None:
    """The number of bytes that an engine may take for these tables; None to leave it to the engine."""
    return max(
        (source.memory for name in catalog.tables if (source := catalog.source_of(name)).memory), default=None
    )


def out_of_time(seconds: int) -> str:
    """The sentence for a statement that took too long: the same for all engines, rows and statements."""
    return (
        f"The database stopped the question after {seconds} seconds, and its price stays spent; ask about "
        "fewer rows, or let the owner raise timeout of the source."
    )


def one_url(catalog: Catalog) -> str:
    """The URL of a catalog whose tables are all in one database."""
    urls: dict[str, str] = {}
    for name in catalog.tables:
        source = catalog.source_of(name)
        if source.url is None:
            raise CatalogError(
                f"tables.{name}: its source is {source.kind}, and other tables are in a database; put all "
                "tables of a catalog on one engine, or write one catalog for each."
            )
        urls.setdefault(source.url, name)
    if len(urls) > 1:
        first, second = list(urls.values())[:2]
        raise CatalogError(
            f"tables.{second}: it is in another database than {first}; write one catalog for each database."
        )
    return next(iter(urls))
