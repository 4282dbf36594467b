"""Parquet and CSV files as pieces of a table.

Parquet files are grouped by their schemas. A column named by folders such as `zip=01234` is text until the
catalog says otherwise. CSV is read once, into a private copy (`strict_csv`, `copies`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.backends import strict_csv
from incrowd.backends.arrow_columns import readable
from incrowd.backends.copies import Copies
from incrowd.backends.duckdb_pieces import Piece, described, piece_select
from incrowd.backends.duckdb_running import stoppable
from incrowd.backends.trees import constant, quoted, text_of
from incrowd.catalog import Catalog
from incrowd.errors import CatalogError
from incrowd.query.typed import fold

_FILE = "__file"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OPTIONS = "hive_partitioning = false, can_have_nan = true"
"""The minimum and maximum in a footer leave out NaN. An engine that trusts them may drop a comparison or skip
rows because of other rows: one more row would then decide whether everybody's NaN is below 1.
"""


def parquet_pieces(connection: duckdb.DuckDBPyConnection, files: Sequence[str], table: str) -> list[Piece]:
    """Parquet files grouped by schema, each group with the columns that its folders name."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file in files:
        groups.setdefault((_schema(file, table), tuple(sorted(_folders(file, table)))), []).append(file)
    return [_parquet_piece(connection, held, folders) for (_, folders), held in groups.items()]


def _parquet_piece(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], folders: Sequence[str]
) -> Piece:
    listed = ", ".join(constant(_literal(connection, file)) for file in files)
    plain = f"read_parquet([{constant(_literal(connection, files[0]))}], {_OPTIONS})"
    types = {**described(connection, plain), **_nanoseconds(files[0])}
    own = {fold(column) for column in types}
    added = [folder for folder in folders if fold(folder) not in own]
    if not added:
        return Piece(f"read_parquet([{listed}], {_OPTIONS})", types, tuple(files))
    scan = f"read_parquet([{listed}], {_OPTIONS}, filename = '{_FILE}')"
    columns = ", ".join(f"{_folder_value(folder)} AS {quoted(folder)}" for folder in added)
    return Piece(
        f"(SELECT *, {columns} FROM {scan}) AS folders",
        {**types, **dict.fromkeys(added, "VARCHAR")},
        tuple(files),
    )


def _literal(connection: duckdb.DuckDBPyConnection, file: str) -> str:
    """A pattern that matches this file alone. The engine expands wildcards in file names."""
    if not set(file) & set("*?[]{}\\"):
        return file
    pattern = re.sub(r"[*?\[]", r"[\g<0>]", file)
    if connection.execute("SELECT file FROM glob(?)", [pattern]).fetchall() != [(file,)]:
        raise CatalogError(
            f"The name of {Path(file).name} or of its folder is read as a wildcard; rename it."
        )
    return pattern


def _nanoseconds(file: str) -> dict[str, str]:
    """Columns stored as INT96. They hold nanoseconds, which the engine does not report."""
    stored = pq.ParquetFile(file).schema
    columns = [stored.column(place) for place in range(len(stored))]
    return {column.name: "TIMESTAMP_NS" for column in columns if column.physical_type == "INT96"}


def misleading(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> set[str]:
    """Files whose footers may make the engine skip rows that match.

    Old writers ordered text by signed bytes, and 96-bit timestamps by bytes. They kept the minimum and
    maximum in older fields of the footer, which the engine trusts: one `é` in a block of `b` would hide every
    `b`.
    """
    listed = ", ".join(constant(_literal(connection, file)) for file in files)
    try:
        rows = connection.execute(
            f"SELECT DISTINCT file_name FROM parquet_metadata([{listed}]) WHERE stats_min_value IS NULL "
            "AND stats_min IS NOT NULL OR stats_max_value IS NULL AND stats_max IS NOT NULL "
            "OR type = 'INT96' AND (stats_min_value IS NOT NULL OR stats_max_value IS NOT NULL)"
        ).fetchall()
        return {file for (file,) in rows}
    except duckdb.ConversionException:
        # The engine raises at a minimum or maximum beyond the calendar, so look at files one by one.
        parts = [misleading(connection, [file]) for file in files] if len(files) > 1 else [set(files)]
        return set().union(*parts)


def _folder_value(name: str) -> str:
    """SQL for the text after the = in a folder's name."""
    pattern = constant(rf"[/\\]{re.escape(name)}=([^/\\]*)[/\\]")
    return f"NULLIF(TRY(url_decode(regexp_extract({_FILE}, {pattern}, 1))), '{_NO_VALUE}')"


def _folders(file: str, table: str) -> dict[str, str | None]:
    """The columns that a file's folders name, and their values."""
    pairs = [folder.partition("=") for folder in Path(file).parts[:-1] if "=" in folder]
    values = {name: None if value == _NO_VALUE else _decoded(value) for name, _, value in pairs}
    if len({fold(name) for name in values}) < len(pairs):
        raise CatalogError(f"tables.{table}: two folders above a file name the same column; rename one.")
    return values


def _decoded(value: str) -> str | None:
    """A folder's value without its %-escapes; None if they are not valid text."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None


def _schema(file: str, table: str) -> str:
    """A file's columns and types, from its footer alone."""
    failure = ""
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        failure = type(error).__name__
    if failure:
        raise CatalogError(f"tables.{table}: {Path(file).name} is not a Parquet file ({failure}).")
    if len({fold(column) for column in schema.names}) < len(schema.names):
        raise CatalogError(
            f"tables.{table}: two columns of {Path(file).name} have the same name in SQL; rename one."
        )
    return str(schema.remove_metadata())


def parquet_copy(copies: Copies, file: str, wanted: Collection[str] | None, table: str) -> str:
    """A copy of a Parquet file in which timestamps that would make the engine raise are NULL.

    It has only the wanted columns (by folded name; None for all).
    """

    def write(place: Path) -> None:
        source = pq.ParquetFile(file)
        names = [column for column in source.schema_arrow.names if wanted is None or fold(column) in wanted]
        own = {fold(column) for column in source.schema_arrow.names}
        folders = {name: value for name, value in _folders(file, table).items() if fold(name) not in own}
        schema = _readable(source.schema_arrow.empty_table().select(names), folders).schema
        with pq.ParquetWriter(place, schema) as target:
            for batch in source.iter_batches(columns=names):
                target.write_table(_readable(pa.Table.from_batches([batch]), folders))

    try:
        return str(copies.copy(file, f"parquet {sorted(wanted or ())}", write))
    except (pa.ArrowException, OSError):
        pass
    raise unreadable(file, table)


def _readable(table: pa.Table, folders: Mapping[str, str | None]) -> pa.Table:
    table.validate(full=True)
    sound = pa.table([readable(column) for column in table.columns], names=table.column_names)
    for name, value in folders.items():
        sound = sound.append_column(name, pa.array([value] * table.num_rows, pa.string()))
    return sound


def unreadable(file: str, table: str) -> CatalogError:
    """The error for a file that is not well-formed."""
    return CatalogError(
        f"tables.{table}: {Path(file).name} is not well-formed (damaged pages, or text that is not UTF-8); "
        "write it anew."
    )


def csv_piece(
    connection: duckdb.DuckDBPyConnection, catalog: Catalog, copies: Copies, files: Sequence[str], table: str
) -> Piece:
    """CSV files, read from copies that already have the declared types."""
    headers = {file: strict_csv.read_header(file, table) for file in files}
    everywhere = {fold(name) for header in headers.values() for name in header.names}
    paths = []
    for file, header in headers.items():
        _refuse_records(catalog, table, file, header)
        piece = Piece("__csv", dict.fromkeys(header.names, "VARCHAR"))
        select = text_of(piece_select(catalog, table, piece, everywhere))
        paths.append(_csv_copy(connection, copies, file, header, table, select))
    return copied(connection, paths)


def _refuse_records(catalog: Catalog, table: str, file: str, header: strict_csv.Header) -> None:
    """Refuse a first line that names no declared column. It may be a person's record, so do not quote it."""
    declared = {fold(column) for column in catalog.tables[table].columns}
    if declared and declared.isdisjoint(fold(column) for column in header.names):
        raise CatalogError(
            f"tables.{table}: the first line of {Path(file).name} must name the columns, and names none of "
            "those that are declared."
        )


def copied(connection: duckdb.DuckDBPyConnection, copies: Sequence[Path]) -> Piece:
    """Copies that already have the declared types."""
    listed = ", ".join(constant(_literal(connection, str(path))) for path in copies)
    origin = f"read_parquet([{listed}], {_OPTIONS}, union_by_name = true)"
    return Piece(origin, described(connection, origin))


def write_rows(connection: duckdb.DuckDBPyConnection, select: str, place: Path) -> None:
    """Write the rows of a query to a Parquet file."""
    copying = f"COPY ({select}) TO {constant(str(place))} (FORMAT parquet, USE_TMP_FILE false)"
    stoppable(connection, lambda: connection.execute(copying))


def _csv_copy(
    connection: duckdb.DuckDBPyConnection,
    copies: Copies,
    file: str,
    header: strict_csv.Header,
    table: str,
    select: str,
) -> Path:
    failures: list[Exception] = []

    def write(place: Path) -> None:
        schema = pa.schema([(name, pa.string()) for name in header.names])
        batches = _kept(strict_csv.batches(file, header, table), failures)
        connection.register("__csv", pa.RecordBatchReader.from_batches(schema, batches))
        try:
            write_rows(connection, select, place)
        finally:
            connection.unregister("__csv")

    try:
        return copies.copy(file, select, write)
    except duckdb.Error:
        pass
    if failures:
        # Our own message names the rule and no row; the engine's message may quote a row.
        raise CatalogError(*failures[0].args)
    raise CatalogError(
        f"tables.{table}: {Path(file).name} cannot be read, or not be copied; see that the disk is not full."
    )


def _kept(batches: Iterator[pa.RecordBatch], failures: list[Exception]) -> Iterator[pa.RecordBatch]:
    """The batches. An error is also kept in `failures`, since the engine passes on only its message."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise
