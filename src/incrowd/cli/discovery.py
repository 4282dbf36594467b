"""Reads the names, columns and types of the tables in files or a database. It keeps no row."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import duckdb

_LOOKED_AT = 20_000
"""How many rows are read to tell ids from numbers."""
_CSV = {".csv", ".tsv", ".txt"}
_PARQUET = {".parquet", ".pq"}
_DUCKDB = {".duckdb", ".db", ".ddb"}


@dataclass(frozen=True)
class TableFile:
    """A table, its columns with the engine's types, and the source that a catalog would name."""

    name: str
    columns: Mapping[str, str]
    source_name: str
    source: Mapping[str, object]
    guessed: bool = False
    """Whether the types were guessed from rows."""


def read_tables(files: Sequence[str], root: Path) -> list[TableFile]:
    """The tables of all files, or of the database at a URL; paths in their sources start from `root`."""
    from incrowd.catalog.addresses import is_url
    from incrowd.catalog.names import fold

    tables: list[TableFile] = []
    if any(map(is_url, files)):
        if len(files) > 1:
            raise InvalidInput("Give one database alone: the tables of a catalog are on one engine.")
        from incrowd.backends import describe

        (url,) = files
        return [TableFile(name, columns, "main", {"url": url}) for name, columns in describe(url).items()]
    for file in map(Path, files):
        if not file.exists():
            raise InvalidInput(f"There is no file {file}.")
        if file.is_dir():
            raise InvalidInput(f"{file} is a folder; name the files in it.")
        source = "main" if len(files) == 1 else _name(file)
        kind = _kind(file)
        path = os.path.relpath(file.resolve(), root.resolve())
        for name, columns in _describe(file, kind).items():
            tables.append(TableFile(name, columns, source, {kind: path}, kind == "csv"))
    names = [fold(table.name) for table in tables]
    again = next((table.name for table in tables if names.count(fold(table.name)) > 1), None)
    if again is not None:
        raise InvalidInput(f"Two tables are called {again}; rename one of the files.")
    return tables


def _kind(file: Path) -> str:
    endings = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in (".gz", ".zst")]
    ending = endings[-1] if endings else ""
    for kind, known in (("csv", _CSV), ("parquet", _PARQUET), ("duckdb", _DUCKDB)):
        if ending in known:
            return kind
    raise InvalidInput(f"{file} is no table that can be read here; give a .csv, .parquet or .duckdb file.")


def _name(file: Path) -> str:
    """A table name from a file's name.

    >>> _name(Path("data/2024 visits.csv.gz"))
    't_2024_visits'
    """
    word = re.sub(r"\W+", "_", file.name.partition(".")[0]).strip("_") or "table"
    return f"t_{word}" if word[0].isdigit() else word


def _padded(engine: duckdb.DuckDBPyConnection, path: str, types: dict[str, str]) -> dict[str, str]:
    """The CSV columns whose numbers begin with zeros, as ids and zip codes do: they are text."""
    from incrowd.backends.trees import quoted
    from incrowd.catalog import column_type

    tests = ", ".join(
        f"COALESCE(BOOL_OR(regexp_matches({quoted(name)}, '^[+-]?0[0-9]')), FALSE)" for name in types
    )
    rows = f"(SELECT * FROM read_csv({path}, header = true, all_varchar = true) LIMIT {_LOOKED_AT})"
    (padding,) = engine.execute(f"SELECT {tests} FROM {rows}").fetchall()
    return {
        name: "VARCHAR"
        for name, padded in zip(types, padding, strict=True)
        if padded and column_type(types[name]) == "integer"
    }


def _describe(file: Path, kind: str) -> dict[str, dict[str, str]]:
    """Table -> column -> type."""
    import duckdb

    from incrowd.backends.trees import constant

    path = constant(str(file))
    try:
        with duckdb.connect(":memory:") as engine:
            engine.execute("SET enable_progress_bar = false")
            if kind == "duckdb":
                engine.execute(f"ATTACH {path} AS given (READ_ONLY)")
                rows = engine.execute(
                    "SELECT table_name, column_name, data_type FROM information_schema.columns "
                    "WHERE table_catalog = 'given' AND table_schema = 'main' ORDER BY 1, ordinal_position"
                ).fetchall()
                tables: dict[str, dict[str, str]] = {}
                for table, column, engine_type in rows:
                    tables.setdefault(table, {})[column] = engine_type
                if not tables:
                    raise InvalidInput(f"{file} holds no tables.")
                return tables
            reader = "read_parquet" if kind == "parquet" else "read_csv"
            header = ", header = true" if kind == "csv" else ""
            described = engine.execute(f"DESCRIBE SELECT * FROM {reader}({path}{header})").fetchall()
            types = {name: engine_type for name, engine_type, *_ in described}
            return {_name(file): types if kind == "parquet" else types | _padded(engine, path, types)}
    except duckdb.Error:
        # The engine's own words quote rows of the file.
        raise InvalidInput(f"{file} cannot be read as a {kind} file; check that it is one.") from None
