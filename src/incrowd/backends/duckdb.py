"""DuckDB: files (CSV, Parquet, DuckDB databases) and frames in memory.

Each table of the catalog becomes a view of its declared columns, cast to their declared types with TRY_CAST: a value
that does not fit is NULL and never an error, because an error that depends on a row is a leak.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from incrowd.backends.backend import Progress
from incrowd.catalog import Catalog
from incrowd.errors import BackendError, CatalogError

_TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DECIMAL(38, 9)",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class DuckDB:
    """The tables of a catalog in one DuckDB connection."""

    def __init__(self, catalog: Catalog, frames: Mapping[str, Any] | None = None) -> None:
        self._catalog = catalog
        self._frames = dict(frames or {})
        self._versions: dict[str, str] = {}
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET preserve_insertion_order = false")
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
        folded = {each.casefold(): each for each in found}
        picked = []
        for column, declared in table.columns.items():
            there = folded.get(column.casefold())
            if there is None:
                raise CatalogError(
                    f"tables.{name}.columns.{column}: the source has no such column; it has {', '.join(found)}."
                )
            source = _quoted(there)
            if declared.type == "timestamp" and "WITH TIME ZONE" in found[there]:
                source = f"({source} AT TIME ZONE 'UTC')"
            kind = _TYPES[declared.type]
            value = source if found[there] == kind else f"TRY_CAST({source} AS {kind})"
            picked.append(f"{value} AS {_quoted(column)}")
        if not table.private:
            # Undeclared columns of a public table are public too.
            declared_names = {each.casefold() for each in table.columns}
            picked += [_quoted(each) for each in found if each.casefold() not in declared_names]
        self._connection.execute(f"CREATE VIEW {_quoted(name)} AS SELECT {', '.join(picked)} FROM {origin}")

    def _origin(self, name: str, attached: dict[str, str]) -> str:
        table, source = self._catalog.tables[name], self._catalog.source_of(name)
        if source.kind == "frame":
            assert source.frame is not None
            if source.frame not in self._frames:
                raise CatalogError(f"sources: the frame {source.frame} of table {name} was not given.")
            hidden = f"frame_{source.frame}"
            self._connection.register(hidden, _arrow(self._frames[source.frame], name))
            return _quoted(hidden)
        if source.kind == "duckdb":
            (path,) = self._catalog.files(name)
            if path not in attached:
                attached[path] = f"source_{len(attached)}"
                self._connection.execute(f"ATTACH {_text(path)} AS {attached[path]} (READ_ONLY)")
            parts = (table.table or name).split(".")
            return ".".join([attached[path], *(_quoted(part) for part in parts)])
        if source.kind == "url":
            raise CatalogError(
                f"tables.{name}: DuckDB reads files and frames; no engine for {str(source.url).split(':')[0]} is installed."
            )
        listed = ", ".join(_text(path) for path in self._catalog.files(name))
        if source.kind == "parquet":
            return f"read_parquet([{listed}], union_by_name = true)"
        # Everything is read as text and cast with TRY_CAST: guessed types would depend on the rows.
        return f"read_csv([{listed}], all_varchar = true, header = true, union_by_name = true, ignore_errors = true, null_padding = true)"

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return {
            each[0]: each[1]
            for each in self._connection.execute(f"DESCRIBE SELECT * FROM {_quoted(table)}").fetchall()
        }

    def version(self, tables: Iterable[str]) -> str:
        """File names, sizes and times of change; a digest of the contents for frames."""
        mark = hashlib.sha256()
        for name in sorted(tables):
            source = self._catalog.source_of(name)
            if source.kind == "frame":
                if name not in self._versions:
                    self._versions[name] = _frame_digest(_arrow(self._frames[str(source.frame)], name))
                mark.update(f"{name} {self._versions[name]}\n".encode())
                continue
            for path in self._catalog.files(name):
                seen = Path(path).stat()
                mark.update(f"{name} {path} {seen.st_size} {seen.st_mtime_ns}\n".encode())
        return mark.hexdigest()

    def run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The result of a statement, with progress reported while it runs."""
        # Frames are registered with this one connection; DuckDB spreads one statement over the cores by itself.
        with self._lock:
            try:
                if progress is None:
                    return self._connection.sql(sql).to_arrow_table()
                return _watched(self._connection, sql, progress)
            except duckdb.Error as error:
                # The engine's own words may hold values of rows.
                raise BackendError(
                    f"The database could not finish the question ({type(error).__name__})."
                ) from None

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


def frame_types(frame: Any, name: str) -> dict[str, str]:
    """The column types of a frame."""
    schema = _arrow(frame, name).schema
    return {
        field.name: str(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in schema
    }


def _frame_digest(table: pa.Table) -> str:
    mark = hashlib.sha256()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    mark.update(sink.getvalue())
    return mark.hexdigest()


def _first_line(error: Exception) -> str:
    line = str(error).splitlines()[0]
    return line if line.endswith(".") else line + "."
