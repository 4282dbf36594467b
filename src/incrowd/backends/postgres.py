"""PostgreSQL: the tables of one database, read in place with the rights of an ordinary role.

Each statement runs in a read-only transaction of its own at one snapshot, under a time-out. Nothing is
created on the server: what DuckDB does by a view is a query in the statement here. Results are streamed
rather than read through DECLARE CURSOR, which would rule out parallel plans.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql as composed
from psycopg_pool import ConnectionPool
from sqlglot import exp

from incrowd.backends.backend import Progress
from incrowd.backends.postgres_sql import DIALECT
from incrowd.backends.sources import one_url, projection, public_types, timeout_of
from incrowd.backends.translation import case, translate
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError, QueryError
from incrowd.query.typed import Kind, fold

_CHUNK = 10_000
_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int64(),
    "int4": pa.int64(),
    "int8": pa.int64(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_SETTINGS = (
    # Tables are named with their schemas. Else whoever may create an operator could put it in place of ours.
    "SET search_path = pg_catalog, pg_temp",
    # In any other encoding there is text that cannot be sent, and an error where a row holds it.
    "SET client_encoding = 'UTF8'",
    "SET TIME ZONE 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET standard_conforming_strings = on",
    # Statements here are long and their costs overestimated: compiling them takes longer than it saves.
    "SET jit = off",
)
_COLUMNS = """
SELECT a.attname, format_type(COALESCE(NULLIF(t.typbasetype, 0), t.oid), NULL), t.typtype
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_PLACE = """
WITH RECURSIVE below (oid) AS (
  SELECT %(oid)s::oid UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN below ON i.inhparent = below.oid)
SELECT n.nspname, c.relname,
  (SELECT bool_and(p.relkind IN ('r', 'p', 'm')) FROM below JOIN pg_class AS p ON p.oid = below.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = %(oid)s::oid
"""
_READABLE = """
SELECT oid, relname FROM pg_class
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(oid) AND has_table_privilege(oid, 'SELECT')
  AND relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname ~ '^(pg_|information_schema)')
ORDER BY relname
"""
_CHANGES = """
SELECT c.relkind::text, COALESCE(
  (SELECT string_agg(concat_ws(' ', p.oid, p.relfilenode, pg_stat_get_tuples_inserted(p.oid),
     pg_stat_get_tuples_updated(p.oid), pg_stat_get_tuples_deleted(p.oid)), ',' ORDER BY p.oid)
   FROM pg_class AS p
   WHERE p.oid = c.oid OR p.oid IN (SELECT relid FROM pg_partition_tree(c.oid))), '')
FROM pg_class AS c WHERE c.oid = %s::oid
"""


class Postgres:
    """The tables of a catalog in one PostgreSQL database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._url = one_url(catalog)
        self._timeout = timeout_of(catalog)
        try:
            with psycopg.connect(self._url, connect_timeout=10) as connection:
                _refuse_encoding(connection)
                self._oids = {name: self._found(connection, name) for name in catalog.tables}
                places = {name: _placed(connection, oid) for name, oid in self._oids.items()}
                self._types = {name: _columns(connection, oid) for name, oid in self._oids.items()}
        except psycopg.Error as error:
            raise CatalogError(f"sources: the database cannot be reached: {_first_line(error)}") from None
        self._tables = {
            fold(name): projection(catalog, name, origin, self._types[name], _read, DIALECT)
            for name, (origin, _) in places.items()
        }
        self._once = {fold(name) for name, (_, steady) in places.items() if not steady}
        self._pool = ConnectionPool(
            self._url, min_size=0, max_size=4, open=True, configure=self._configure, name="incrowd"
        )

    @staticmethod
    def describe(url: str) -> dict[str, dict[str, str]]:
        """The tables and views on the role's search path that it may read, with their columns' types."""
        found: dict[str, dict[str, str]] = {}
        try:
            with psycopg.connect(url, connect_timeout=10) as connection:
                for oid, name in connection.execute(_READABLE).fetchall():
                    found[name] = _columns(connection, oid)
        except psycopg.Error as error:
            raise CatalogError(f"The database cannot be reached: {_first_line(error)}") from None
        return found

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.autocommit = True
        for setting in (*_SETTINGS, f"SET statement_timeout = {self._timeout * 1000}"):
            connection.execute(setting.encode())
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

    def _place(self, name: str) -> tuple[str, ...]:
        """The table's name in the database: with its schema if it was given."""
        if self._catalog.tables[name].path is not None:
            raise CatalogError(f"tables.{name}.path: PostgreSQL has tables and no files; use table.")
        return tuple((self._catalog.tables[name].table or name).split("."))

    def _found(self, connection: psycopg.Connection[Any], name: str) -> int:
        place = composed.Identifier(*self._place(name)).as_string(connection)
        row = connection.execute("SELECT to_regclass(%s)::oid", (place,)).fetchone()
        if row is None or row[0] is None:
            raise CatalogError(
                f"tables.{name}: the database has no table {'.'.join(self._place(name))}, or its role may "
                "not see it; name it with its schema, as in table: public.people."
            )
        may = connection.execute("SELECT has_any_column_privilege(%s::oid, 'SELECT')", (row[0],)).fetchone()
        if not (may and may[0]):
            raise CatalogError(f"tables.{name}: the role of the URL may not read it; GRANT SELECT to it.")
        return int(row[0])

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return public_types(self._catalog, table, self._types[table])

    def refresh(self, tables: Iterable[str]) -> None:
        """Nothing: each statement looks at the tables as they are."""

    def version(self, tables: Iterable[str]) -> str:
        """The server's counters of rows inserted, updated and deleted; for views, of all transactions; a
        fresh mark for tables of other servers.

        The counters lag behind by some seconds at most.
        """
        mark = hashlib.sha256()
        try:
            with self._pool.connection() as connection:
                for name in sorted(tables):
                    mark.update(f"{name} {_changes(connection, self._oids[name])}\n".encode())
        except psycopg.Error as error:
            raise BackendError(f"The database cannot be reached ({type(error).__name__}).") from None
        return mark.hexdigest()

    def statement(self, sql: str) -> str:
        """A statement in PostgreSQL's words."""
        return translate(sql, DIALECT, self._tables, self._once)

    def run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        text = self.statement(sql)
        if progress is not None:
            progress(0.0)
        try:
            with self._pool.connection() as connection:
                found = _streamed(connection, text)
        except psycopg.errors.QueryCanceled:
            raise BackendError(
                f"The database stopped the question after {self._timeout} seconds; ask about fewer rows, or "
                "let the owner raise timeout of the source."
            ) from None
        except psycopg.Error as error:
            # The server's own words may hold values of rows, and the kind of a misfit tells of them too.
            kind = "" if isinstance(error, psycopg.DataError) else f" ({type(error).__name__})"
            raise BackendError(f"The database could not finish the question{kind}.") from None
        if progress is not None:
            progress(1.0)
        return found

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def _changes(connection: psycopg.Connection[Any], oid: int) -> str:
    row = connection.execute(_CHANGES, (oid,)).fetchone()
    kind, changes = row if row is not None else ("", "")
    if kind == "f":
        # Nobody here knows what changes elsewhere.
        changes = secrets.token_hex(16)
    elif kind not in ("r", "p", "m"):
        changes = str(connection.execute("SELECT pg_current_snapshot()::text").fetchone())
    return f"{kind} {changes}"


def _refuse_encoding(connection: psycopg.Connection[Any]) -> None:
    """In other encodings letters are not what they are elsewhere, and some text cannot be read at all."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CatalogError(
            f"sources: the database keeps its text in {encoding}; copy it into a database whose encoding is "
            "UTF8."
        )


def _placed(connection: psycopg.Connection[Any], oid: int) -> tuple[exp.Table, bool]:
    """A table by its full name, and whether it has the same rows at each reading of one statement."""
    row = connection.execute(_PLACE, {"oid": oid}).fetchone()
    assert row is not None
    schema, table = (exp.to_identifier(each, quoted=True) for each in row[:2])
    return exp.Table(this=table, db=schema), bool(row[2])


def _columns(connection: psycopg.Connection[Any], oid: int) -> dict[str, str]:
    rows = connection.execute(_COLUMNS, (oid,)).fetchall()
    return {each[0]: "enum" if each[2] == "e" else each[1] for each in rows}


def _streamed(connection: psycopg.Connection[Any], text: str) -> pa.Table:
    """The rows of a query in chunks, as columns."""
    names: list[str] = []
    types: list[pa.DataType] = []
    chunks: list[pa.Table] = []
    held: list[tuple[Any, ...]] = []

    def flush() -> None:
        columns = list(zip(*held, strict=True)) or [()] * len(names)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        chunks.append(pa.Table.from_arrays(arrays, names=names))
        held.clear()

    with connection.cursor(binary=True) as cursor:
        for row in cursor.stream(text.encode(), size=_CHUNK):
            if not names:
                names, types = _described(connection, cursor)
            held.append(row)
            if len(held) >= _CHUNK:
                flush()
        if not names:
            # No row came, and so no names; asking for none of the rows costs nothing.
            cursor.execute(f"SELECT * FROM ({text}) AS nothing LIMIT 0".encode())
            names, types = _described(connection, cursor)
    if held or not chunks:
        flush()
    return pa.concat_tables(chunks)


def _described(
    connection: psycopg.Connection[Any], cursor: psycopg.Cursor[Any]
) -> tuple[list[str], list[pa.DataType]]:
    described = cursor.description or []
    kinds = [connection.adapters.types.get(each.type_code) for each in described]
    names = [kind.name if kind is not None else "text" for kind in kinds]
    return [each.name for each in described], [_ARROW.get(name, pa.string()) for name in names]


def _read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    """A column in a type that statements compute with."""
    found = column_type(engine_type)
    if found == "decimal":
        return (_whole(column), "integer") if kind == "integer" else (_float(column), "float")
    if found == "text":
        text = exp.cast(column, "TEXT")
        # Comparisons, keys and letters must not follow the server's locale.
        return exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True)), "text"
    if found == "timestamp":
        zoned = "with time zone" in engine_type
        utc = exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC"))
        return (utc if zoned else column), "timestamp"
    if found in ("boolean", "date"):
        return column, found  # type: ignore[return-value]
    raise QueryError(f"{engine_type} is not understood.")


def _numeric(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "DECIMAL")


def _whole(column: exp.Column) -> exp.Expr:
    """A numeric as a 64-bit integer; NULL beyond, and for NaN, which is above all numbers."""
    ends = (_numeric(str(-(2**63))), _numeric(str(2**63 - 1)))
    inside = exp.Between(this=column.copy(), low=ends[0], high=ends[1])
    return case((inside, exp.cast(column, "BIGINT")))


def _float(column: exp.Column) -> exp.Expr:
    """A numeric as a float; casts of what is too large, or too close to zero, would raise."""
    size = exp.Abs(this=column.copy())
    tiny = exp.LT(this=size, expression=_numeric("1e-200"))
    normal = exp.LTE(this=size.copy(), expression=_numeric("1e200"))
    infinite = [exp.cast(exp.Literal.string(each), "DOUBLE") for each in ("-Infinity", "Infinity")]
    return case(
        (tiny, exp.cast(exp.Literal.string("0"), "DOUBLE")),
        (normal, exp.cast(column, "DOUBLE")),
        (exp.LT(this=column.copy(), expression=_numeric("0")), infinite[0]),
        (exp.LT(this=column.copy(), expression=_numeric("NaN")), infinite[1]),
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    return line if line.endswith(".") else line + "."
