"""The tables of a catalog in Spark: where their files are, and how their columns are stored and read.

A table is checked when it is opened, and again whenever its files may have changed. Nothing here runs a
statement over its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from incrowd.backends.sources import projection, source_column
from incrowd.backends.spark_columns import read
from incrowd.backends.spark_files import (
    NULLS,
    File,
    Listing,
    Types,
    agreed,
    family,
    footers,
    listings,
    literal_path,
    stored_as,
)
from incrowd.backends.spark_session import sealed
from incrowd.backends.spark_sql import DIALECT
from incrowd.backends.trees import quoted
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError
from incrowd.query.typed import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.backends.spark_session import Session

CHANGED = "The tables are not made as they were when they were opened; let the owner open them again."
_STORED = ("MANAGED", "EXTERNAL")


@dataclass(frozen=True)
class Opened:
    """The facts about a table that are read when it is opened and must hold as long as it is open."""

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    facts: Mapping[str, str]
    """The description in Spark's catalog; empty for a table that is only files."""
    types: Types
    """The types of all columns, as files store them. Columns from folder names are text."""
    read: Types
    """The types of the columns that are read from files."""
    empty: frozenset[str]
    """Columns that have no value in any file."""


class SparkTables:
    """The tables of a catalog in one session."""

    def __init__(self, catalog: Catalog, session: Session) -> None:
        self._catalog = catalog
        self._session = session
        self._footers: dict[File, Types] = {}
        self._opened = {name: self._open(name) for name in catalog.tables}

    def __getitem__(self, name: str) -> Opened:
        return self._opened[name]

    def _open(self, name: str) -> Opened:
        def failed(error: str) -> CatalogError:
            paths = self._catalog.patterns(name)
            place = f"files at {', '.join(paths)}" if paths else f"a table {self._place(name)} in its catalog"
            return CatalogError(f"tables.{name}: Spark cannot read it ({error}); it needs {place}.")

        def opened() -> Opened:
            paths = self._catalog.patterns(name)
            facts = {} if paths else self._facts(name)
            paths = paths or (literal_path(facts["Location"]),)
            listed = listings(self._session, {name: paths})[name]
            if not listed.files and not facts:
                raise failed("no files")
            types = self._agreed(name, listed)
            if facts:
                types = self._declared(name, types, facts)
            wanted = self._wanted(name, types, listed)
            empty = frozenset(column for column in self._asked(name, types) if types[column] == NULLS)
            return Opened(paths, listed.folders, facts, types, wanted, empty)

        return sealed(opened, failed)

    def _place(self, name: str) -> str:
        """The table's name in Spark's catalog."""
        return self._catalog.tables[name].table or name

    def _quoted(self, name: str) -> str:
        return ".".join(quoted(part, DIALECT.name) for part in self._place(name).split("."))

    def _facts(self, name: str) -> dict[str, str]:
        """A table's description in Spark's catalog. CatalogError unless its rows are its own Parquet files.

        A statement reads its tables twice, and a view, another database or a source that computes its rows
        may return different rows each time. In a text file, one line can break all lines after it.
        """
        told = self._session.sql(f"DESCRIBE EXTENDED {self._quoted(name)}").collect()
        facts = {str(row["col_name"]): str(row["data_type"]) for row in told}
        if facts.get("Type") not in _STORED or facts.get("Provider", "").lower() != "parquet":
            raise CatalogError(
                f"tables.{name}: {self._place(name)} is no stored table in Spark of Parquet files, and its "
                "rows may be others at each reading; name the table behind it, or Parquet files, with path."
            )
        if "# Partition Information" in facts:
            raise CatalogError(
                f"tables.{name}: {self._place(name)} is kept in folders, whose names Spark's catalog may "
                "read as other values; name the files in them, with path."
            )
        return {key: text for key, text in facts.items() if key not in ("Statistics", "Last Access")}

    def _declared(self, name: str, types: Types, facts: Mapping[str, str]) -> Types:
        """The types of a table in Spark's catalog. CatalogError if the types in its files differ."""
        declared = self._session.table(self._quoted(name)).schema.fields
        for field in declared:
            kind = field.dataType.simpleString().partition(" collate ")[0]
            stored = types.get(field.name, NULLS)
            if (stored != NULLS and family(stored) != family(kind)) or "EXISTS_DEFAULT" in field.metadata:
                raise CatalogError(
                    f"tables.{name}: {self._place(name)} has a column {field.name} of another type than its "
                    "files, or with a default that is not in them; write them anew."
                )
        unit = self._catalog.tables[name].unit
        for column in unit.columns if unit is not None else ():
            there = source_column(column, facts, f"tables.{name}.columns.{column}")
            if " collate " in facts[there]:
                raise CatalogError(
                    f"tables.{name}.columns.{column}: it identifies units but has a collation, under which "
                    "different texts are equal; keep ids in a column without one."
                )
        return {field.name: family(field.dataType.simpleString()) for field in declared} | dict(types)

    def _asked(self, name: str, columns: Iterable[str]) -> set[str]:
        """The columns among `columns` that statements may read."""
        table = self._catalog.tables[name]
        wanted = {fold(column) for column in table.columns}
        return {column for column in columns if not table.private or fold(column) in wanted}

    def _wanted(self, name: str, types: Types, listed: Listing) -> Types:
        asked = self._asked(name, types)
        return {
            column: kind
            for column, kind in types.items()
            if column in asked and column not in listed.folders and column_type(kind) is not None
        }

    def _agreed(self, name: str, listed: Listing) -> Types:
        """The types of columns. CatalogError if two files store a column with different types."""
        self._footers.update(footers(self._session, listed.files, self._footers))
        files = [self._footers[file] for file in listed.files]
        folders = dict.fromkeys(listed.folders, "string")
        types: dict[str, str] = {}
        for types_of_file in files:
            types |= types_of_file
        spelled = {fold(column): column for column in self._catalog.tables[name].columns}
        for column in sorted(self._asked(name, types | folders)):
            where = f"tables.{name}.columns.{spelled.get(fold(column), column)}"
            kinds = agreed(footer[column] for footer in files if column in footer)
            if len(kinds) > 1:
                raise CatalogError(
                    f"{where}: some files hold it as {' and some as '.join(sorted(kinds))}; write them anew, "
                    "all alike."
                )
            if kinds and column in folders:
                raise CatalogError(f"{where}: it is both in files and the name of folders; rename one.")
            for kind in kinds:
                types[column] = kind
            spellings = {
                frozenset(other for other in footer if fold(other) == fold(column)) for footer in files
            } - {frozenset()}
            if len(spellings) > 1:
                raise CatalogError(
                    f"{where}: files spell its name in different ways; write them anew, all alike."
                )
        return types | folders

    def current(self, names: Iterable[str]) -> dict[str, Listing]:
        """The current files of tables. BackendError if the types or folders of a table have changed."""
        listed = self.listed(names)
        for name, listing in listed.items():
            opened, types = self._opened[name], self._agreed(name, listing)
            same = all(types.get(column, kind) == kind for column, kind in opened.read.items())
            same = same and all(types.get(column, NULLS) == NULLS for column in opened.empty)
            if not same or (listing.files and listing.folders != opened.folders):
                raise BackendError(CHANGED)
        return listed

    def listed(self, names: Iterable[str]) -> dict[str, Listing]:
        """The current files of tables, listed without reading them."""
        tables = {name: self._opened[name] for name in names}
        if any(opened.facts and self._facts(name) != opened.facts for name, opened in tables.items()):
            raise BackendError(CHANGED)
        return listings(self._session, {name: opened.paths for name, opened in tables.items()})

    def frame(self, name: str) -> DataFrame:
        """The table with its current files and with the columns it had when it was opened."""
        return self._parquet(name, self._opened[name].paths)

    def part(self, name: str, files: Sequence[File]) -> DataFrame:
        """Some files of a table. Columns from folder names are NULL here, since no file holds them."""
        part = self._parquet(name, [literal_path(file.path) for file in files])
        folders = (quoted(folder, DIALECT.name) for folder in self._opened[name].folders)
        return part.selectExpr("*", *(f"CAST(NULL AS STRING) AS {folder}" for folder in folders))

    def _parquet(self, name: str, paths: Sequence[str]) -> DataFrame:
        stored = self._opened[name].read.items()
        columns = (f"{quoted(column, DIALECT.name)} {stored_as(kind)}" for column, kind in stored)
        return self._session.read.schema(", ".join(columns)).parquet(*paths)

    def declared_columns(self, name: str, view: str) -> exp.Select:
        """The query that reads a table, by the name of its view, as the catalog declares it."""
        origin = exp.Table(this=exp.to_identifier(view, quoted=True))
        opened = self._opened[name]
        types = {column: kind for column, kind in opened.types.items() if column not in opened.empty}
        empty = {fold(column) for column in opened.empty}
        return projection(self._catalog, name, origin, types, read, DIALECT, empty)

    def stored_types(self, name: str) -> dict[str, str]:
        """The types in which Spark reads a table's columns."""
        opened = self._opened[name]
        folders = dict.fromkeys(opened.folders, "string")
        stored = {column: stored_as(kind) for column, kind in opened.read.items()}
        return {**folders, **stored}
