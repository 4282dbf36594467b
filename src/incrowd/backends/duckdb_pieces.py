"""A DuckDB table as pieces that are read separately, so that no file decides how another is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import duckdb
import sqlglot
from sqlglot import exp

from incrowd.backends.duckdb_columns import DIALECT, reading
from incrowd.backends.sources import projection
from incrowd.catalog import Catalog
from incrowd.query.typed import fold


@dataclass(frozen=True)
class Piece:
    """Some rows of a table: SQL for FROM, and the engine's types of the columns."""

    origin: str
    types: Mapping[str, str]
    files: tuple[str, ...] = ()
    collated: bool = False


def piece_select(catalog: Catalog, table: str, piece: Piece, everywhere: Collection[str]) -> exp.Select:
    """The query that reads one piece of a table as the catalog declares it."""
    origin = sqlglot.parse_one(f"SELECT * FROM {piece.origin}", read="duckdb").args["from_"].this
    read = reading(piece.collated)
    select = projection(catalog, table, origin, piece.types, read, DIALECT, everywhere)
    spelled = {fold(name): name for name in (*piece.types, *catalog.tables[table].columns)}
    for column in select.expressions:
        column.set("alias", exp.to_identifier(spelled[column.alias], quoted=True))
    return select


def described(connection: duckdb.DuckDBPyConnection, origin: str) -> dict[str, str]:
    """The column names and engine types of an item of FROM."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {origin}").fetchall()
    return {name: kind for name, kind, *_ in rows}
