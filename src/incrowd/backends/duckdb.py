"""DuckDB: files (CSV, Parquet, DuckDB databases) and frames in memory.

Each table of the catalog becomes a view of its declared columns, cast to their declared types with
TRY_CAST: a value that does not fit is NULL and never an error, because an error that depends on a row is a
leak.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

from incrowd.backends.backend import Progress
from incrowd.backends.sources import source_column
from incrowd.backends.translation import keep_rows
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError
from incrowd.query.sql import DIALECT
from incrowd.query.typed import fold

_TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_DELIMITERS = ",;\t|"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _cast(column: str, engine_type: str, kind: str) -> str:
    """A source's column in the catalog's type; NULL where a value does not fit."""
    source = _quoted(column)
    wide = re.match(r"DECIMAL\((\d+),", engine_type)
    if wide and int(wide[1]) > 15 and kind in ("float", "decimal"):
        # Beyond 15 digits the engine's own conversion rounds twice; by way of text it rounds once.
        source = f"CAST({source} AS VARCHAR)"
    if kind == "timestamp" and ("WITH TIME ZONE" in engine_type or engine_type.startswith("TIMESTAMPTZ")):
        source = f"({source} AT TIME ZONE 'UTC')"
    if engine_type == "VARCHAR" and kind != "text":
        # Left bare, the cast is pushed into the reader of CSV files, which drops the row of a misfit.
        source = f"NULLIF({source}, '')"
    return source if engine_type == _TYPES[kind] else f"TRY_CAST({source} AS {_TYPES[kind]})"


def _csv(path: str, table: str) -> str:
    """A CSV file as text columns, named by its first line.

    Nothing is guessed from rows, because what they hold would then decide how all of them are read: every
    column is text, to be cast with TRY_CAST; the first line alone says which delimiter it is; a line that
    does not fit is left out.
    """
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline(1_000_000)
    delimiter = max(_DELIMITERS, key=first.count)
    names = next(csv.reader([first], delimiter=delimiter), [])
    if not names or any(not each for each in names) or len({fold(each) for each in names}) < len(names):
        raise CatalogError(
            f"tables.{table}: the first line of {Path(path).name} must name the columns, each by a name "
            "of its own."
        )
    columns = ", ".join(f"{_text(each)}: 'VARCHAR'" for each in names)
    return (
        f"read_csv({_text(path)}, auto_detect = false, header = true, delim = {_text(delimiter)}, quote "
        "= '\"', "
        f"escape = '\"', columns = {{{columns}}}, ignore_errors = true)"
    )


def _distinct(path: str, table: str) -> None:
    """Refuse a Parquet file two of whose columns have one name but for case: the engine would rename one."""
    names = pq.read_schema(path).names
    if len({fold(each) for each in names}) < len(names):
        raise CatalogError(
            f"tables.{table}: two columns of {Path(path).name} have the same name in SQL; rename one."
        )


class DuckDB:
    """The tables of a catalog in one DuckDB connection."""

    def __init__(self, catalog: Catalog, frames: Mapping[str, Any] | None = None) -> None:
        self._catalog = catalog
        self._frames = dict(frames or {})
        self._mark = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._once: set[str] = set()
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET preserve_insertion_order = false")
        # Units are often numbered densely: then a table indexed by number is twice as fast as a hash table.
        self._connection.execute("SET perfect_ht_threshold = 20")
        # A name that is no table of the catalog must never find a variable of this process.
        self._connection.execute("SET python_enable_replacements = false")
        attached: dict[str, str] = {}
        for name in catalog.tables:
            try:
                self._define(name, attached)
            except duckdb.Error as error:
                raise CatalogError(f"tables.{name}: the rows cannot be read: {_first_line(error)}") from None

    def _define(self, name: str, attached: dict[str, str]) -> None:
        table = self._catalog.tables[name]
        origin = self._origin(name, attached)
        found = {
            each[0]: each[1]
            for each in self._connection.execute(f"DESCRIBE SELECT * FROM {origin}").fetchall()
        }
        picked = []
        for column, declared in table.columns.items():
            there = source_column(column, found, f"tables.{name}.columns.{column}")
            picked.append(f"{_cast(there, found[there], declared.type)} AS {_quoted(column)}")
        if not table.private:
            # Undeclared columns of a public table are public too. They get the catalog's types all the
            # same: engines cast what is compared with an ENUM, say, and raise where a private row does not
            # fit.
            declared_names = {fold(each) for each in table.columns}
            for there, engine_type in found.items():
                kind = column_type(engine_type)
                if kind is not None and fold(there) not in declared_names:
                    picked.append(f"{_cast(there, engine_type, kind)} AS {_quoted(there)}")
        if not picked:
            raise CatalogError(f"tables.{name}: no column of the source has a type that is understood.")
        self._connection.execute(f"CREATE VIEW {_quoted(name)} AS SELECT {', '.join(picked)} FROM {origin}")

    def _origin(self, name: str, attached: dict[str, str]) -> str:
        table, source = self._catalog.tables[name], self._catalog.source_of(name)
        if source.kind == "frame":
            assert source.frame is not None
            if source.frame not in self._frames:
                raise CatalogError(f"sources: the frame {source.frame} of table {name} was not given.")
            hidden = f"frame_{source.frame}"
            self._connection.register(hidden, _sound(_arrow(self._frames[source.frame], name), name))
            return _quoted(hidden)
        if source.kind == "duckdb":
            (path,) = self._catalog.files(name)
            if path not in attached:
                attached[path] = f"source_{len(attached)}"
                self._connection.execute(f"ATTACH {_text(path)} AS {attached[path]} (READ_ONLY)")
            parts = (table.table or name).split(".")
            if self._is_view(attached[path], parts):
                self._once.add(fold(name))
            return ".".join([attached[path], *(_quoted(part) for part in parts)])
        if source.kind == "url":
            raise CatalogError(
                f"tables.{name}: DuckDB reads files and frames; no engine for "
                f"{str(source.url).split(':')[0]} is installed."
            )
        files = self._catalog.files(name)
        if source.kind == "parquet":
            for path in files:
                _distinct(path, name)
            listed = ", ".join(_text(path) for path in files)
            return f"read_parquet([{listed}], union_by_name = true)"
        return "(" + " UNION ALL BY NAME ".join(f"SELECT * FROM {_csv(path, name)}" for path in files) + ")"

    def _is_view(self, database: str, parts: list[str]) -> bool:
        """Whether a name is that of a view, whose rows may be others at each reading."""
        place = (fold(parts[0] if len(parts) > 1 else "main"), fold(parts[-1]))
        listed = self._connection.execute(
            "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = ?", [database]
        ).fetchall()
        return any((fold(schema), fold(view)) == place for schema, view in listed)

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return {
            each[0]: each[1]
            for each in self._connection.execute(f"DESCRIBE SELECT * FROM {_quoted(table)}").fetchall()
        }

    def version(self, tables: Iterable[str]) -> str:
        """File names, sizes and times of change; a mark of this object's own for frames.

        A digest of a frame would let whoever reads the ledger test guesses about its rows.
        """
        mark = hashlib.sha256()
        for name in sorted(tables):
            source = self._catalog.source_of(name)
            if source.kind == "frame":
                mark.update(f"{name} {self._mark}\n".encode())
                continue
            for path in self._catalog.files(name):
                seen = Path(path).stat()
                mark.update(f"{name} {path} {seen.st_size} {seen.st_mtime_ns}\n".encode())
        return mark.hexdigest()

    def run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The result of a statement, with progress reported while it runs."""
        sql = self._read_once(sql) if self._once else sql
        # Frames are registered with this one connection; DuckDB spreads one statement over the cores by
        # itself.
        with self._lock:
            before = self.version(self._catalog.tables)
            try:
                if progress is None:
                    found = self._connection.sql(sql).to_arrow_table()
                else:
                    found = _watched(self._connection, sql, progress)
            except duckdb.Error as error:
                # The engine's own words may hold values of rows.
                raise BackendError(
                    f"The database could not finish the question ({type(error).__name__})."
                ) from None
            # A statement reads files twice, to weigh people and to sum: both must see the same rows.
            if self.version(self._catalog.tables) != before:
                raise BackendError(
                    "The files of the tables changed while the question ran; ask again when they are at rest."
                )
            return found

    def _read_once(self, sql: str) -> str:
        tree = sqlglot.parse_one(sql, read=DIALECT)
        if any(fold(each.name) in self._once for each in tree.find_all(exp.Table)):
            keep_rows(tree)
        return tree.sql(DIALECT)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _watched(connection: duckdb.DuckDBPyConnection, sql: str, progress: Progress) -> pa.Table:
    """Run in a thread of its own and report the engine's progress meanwhile."""
    result: list[pa.Table] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")
            result.append(connection.sql(sql).to_arrow_table())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
        progress(max(0.0, min(1.0, connection.query_progress() / 100)))
    if failure:
        raise failure[0]
    progress(1.0)
    return result[0]


def _arrow(frame: Any, name: str) -> pa.Table:
    """A frame of any common kind as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if isinstance(frame, Mapping):
        return pa.table(dict(frame))
    raise CatalogError(
        f"tables.{name}: expected a data frame (pandas, polars or Arrow), not {type(frame).__name__}."
    )


def _sound(table: pa.Table, name: str) -> pa.Table:
    """The table, once its text is known to be text: else a question would fail by what one row holds."""
    folded = [fold(each) for each in table.column_names]
    if len(set(folded)) < len(folded):
        raise CatalogError(f"tables.{name}: two columns of the frame have one name in SQL; rename one.")
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise CatalogError(
            f"tables.{name}: the frame is malformed (text that is not UTF-8, say); repair it before opening."
        ) from None
    return table


def frame_types(frame: Any, name: str) -> dict[str, str]:
    """The column types of a frame."""
    schema = _arrow(frame, name).schema
    return {
        field.name: str(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in schema
    }


def _first_line(error: Exception) -> str:
    line = str(error).splitlines()[0]
    return line if line.endswith(".") else line + "."
