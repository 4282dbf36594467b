"""Spark: tables that outgrow one machine, as Parquet files or Parquet tables of Spark's catalog.

Spark does the work where the rows are. No Python function runs on rows, and only aggregated groups come back.
Statements run in a session of their own (`spark_session`), in Spark's dialect (`spark_sql`), over files whose
footers were read before (`spark_files`).
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from sqlglot import exp

from incrowd.backends.backend import Progress
from incrowd.backends.copies import Copies
from incrowd.backends.recent import recent
from incrowd.backends.sources import one_url, projection, public_types, source_column, timeout_of
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
from incrowd.backends.spark_session import open_session, sealed, tagging
from incrowd.backends.spark_sql import DIALECT, PLACE, SETTINGS
from incrowd.backends.totality import Prover
from incrowd.backends.translation import translate
from incrowd.backends.trees import quoted, statement_text, text_of
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError
from incrowd.query.typed import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Result = TypeVar("Result")
_STORED = ("MANAGED", "EXTERNAL")
_PLACES = f"struct(_metadata.file_path, _metadata.row_index) AS `{PLACE}`"
"""A row's place does not change with filters, pruning or the way files are split. A row number computed
during the scan would.
"""


_CHANGED = "The tables are not made as they were when they were opened; let the owner open them again."
_MOVING = "The files of the tables changed while the question ran; ask again when they are at rest."


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


class Spark:
    """The tables of a catalog in one Spark."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._timeout = timeout_of(catalog)
        self._session = open_session(one_url(catalog), SETTINGS)
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._copies = Copies(catalog.copies)
        self._views = {name: f"incrowd_{place}" for place, name in enumerate(catalog.tables)}
        self._footers: dict[File, Types] = {}
        self._opened = {name: self._open(name) for name in catalog.tables}
        self._placed = {name for name, opened in self._opened.items() if self._has_places(opened)}
        self._tables = {fold(name): self._projection(name) for name in catalog.tables}
        self._translated = recent(self._translate)
        private = [view for name, view in self._views.items() if catalog.tables[name].private]
        self._prover = Prover(
            "spark", {self._views[name]: self._types(name) for name in self._views}, private
        )
        for name, query in self._tables.items():
            self._prover.read(name, query)
        self._whole = {name: self._read_before(name) for name in catalog.tables}
        self.refresh(catalog.tables)
        self._copies.sweep()

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

    # Files, types and views of tables.

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

    def _current(self, names: Iterable[str]) -> dict[str, Listing]:
        """The current files of tables. BackendError if the types or folders of a table have changed."""
        listed = self._listed(names)
        for name, listing in listed.items():
            opened, types = self._opened[name], self._agreed(name, listing)
            same = all(types.get(column, kind) == kind for column, kind in opened.read.items())
            same = same and all(types.get(column, NULLS) == NULLS for column in opened.empty)
            if not same or (listing.files and listing.folders != opened.folders):
                raise BackendError(_CHANGED)
        return listed

    def _listed(self, names: Iterable[str]) -> dict[str, Listing]:
        """The current files of tables, listed without reading them."""
        tables = {name: self._opened[name] for name in names}
        if any(opened.facts and self._facts(name) != opened.facts for name, opened in tables.items()):
            raise BackendError(_CHANGED)
        return listings(self._session, {name: opened.paths for name, opened in tables.items()})

    def _frame(self, opened: Opened) -> DataFrame:
        """The table with its current files and with the columns it had when it was opened."""
        return self._parquet(opened, opened.paths)

    def _parquet(self, opened: Opened, paths: Sequence[str]) -> DataFrame:
        columns = (f"{quoted(name, DIALECT.name)} {stored_as(kind)}" for name, kind in opened.read.items())
        return self._session.read.schema(", ".join(columns)).parquet(*paths)

    def _has_places(self, opened: Opened) -> bool:
        """True if Spark can name the file and the row index of each row."""
        try:
            return bool(self._frame(opened).selectExpr(_PLACES).columns)
        except Exception:
            return False

    def _attach(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                frame = self._frame(self._opened[name])
                if name in self._placed:
                    frame = frame.selectExpr("*", _PLACES)
                frame.createOrReplaceTempView(self._views[name])

    def _projection(self, name: str) -> exp.Query:
        columns = self._declared_columns(name, self._views[name])
        return columns.select(exp.column(PLACE, quoted=True)) if name in self._placed else columns

    def _declared_columns(self, name: str, view: str) -> exp.Select:
        origin = exp.Table(this=exp.to_identifier(view, quoted=True))
        opened = self._opened[name]
        types = {column: kind for column, kind in opened.types.items() if column not in opened.empty}
        empty = {fold(column) for column in opened.empty}
        return projection(self._catalog, name, origin, types, read, DIALECT, empty)

    def _types(self, name: str) -> dict[str, str]:
        """The types of a view's columns."""
        opened = self._opened[name]
        folders = dict.fromkeys(opened.folders, "string")
        stored = {column: stored_as(kind) for column, kind in opened.read.items()}
        return {**folders, **stored, PLACE: "struct"}

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return public_types(self._catalog, table, self._opened[table].types)

    # Every file is read whole before any question is paid for.

    def refresh(self, tables: Iterable[str]) -> None:
        """Refuse tables whose types, folders or definitions have changed since they were opened.

        Also refuse a table if one of its files cannot be read whole. A file is read once, and again after it
        has changed.
        """
        names = list(tables)
        with self._reading:
            listed = self._files(names)
            new = {name: files for name, listing in listed.items() if (files := self._unread(name, listing))}
            if not new:
                return
            sealed(
                lambda: self._read_whole(new, listed),
                lambda error: CatalogError(
                    f"tables.{next(iter(new))}: Spark cannot read its files ({error}); try again."
                ),
            )
            again = self._files(new)
            for name in new:
                if again[name] != listed[name]:
                    raise CatalogError(f"tables.{name}: its files changed while they were read; try again.")
                self._whole[name] = frozenset(file.mark for file in listed[name].files)
                with self._copies.user(name):
                    self._copies.remember(name, self._recipe(name), self._whole[name])

    def _files(self, names: Iterable[str]) -> dict[str, Listing]:
        """The current files of tables. CatalogError if the types or folders of a table have changed."""
        failure = ""
        try:
            return self._sealed(lambda: self._current(names))
        except BackendError as error:
            failure = str(error)
        raise CatalogError(failure)

    def _unread(self, name: str, listed: Listing) -> list[File]:
        """The files of a table that have not been read whole in their current state."""
        return [file for file in listed.files if file.mark not in self._whole[name]]

    def _read_before(self, name: str) -> frozenset[str]:
        """The marks of files that an earlier session read whole."""
        with self._copies.user(name):
            return self._copies.remembered(name, self._recipe(name))

    def _recipe(self, name: str) -> str:
        """How a table is read: the version of Spark, the stored types and the query."""
        query = text_of(self._tables[fold(name)], DIALECT.name)
        return f"{self._session.version} {self._opened[name].read} {query}"

    def _read_whole(self, new: Mapping[str, Sequence[File]], listed: Mapping[str, Listing]) -> None:
        """Read every declared column of new files in the way statements do. CatalogError if Spark raises.

        A damaged page or a number with too many digits raises in every statement. No value that is read here
        is kept.
        """
        texts = {}
        for name, files in new.items():
            opened, view = self._opened[name], f"{self._views[name]}_new"
            whole = len(files) == len(listed[name].files)
            (self._frame(opened) if whole else self._part(opened, files)).createOrReplaceTempView(view)
            columns = text_of(self._declared_columns(name, view), DIALECT.name)
            texts[name] = f"SELECT bit_xor(xxhash64(*)) FROM ({columns})"
        if failure := self._failure(" UNION ALL ".join(texts.values())):
            for name, text in texts.items():
                if len(texts) == 1 or (failure := self._failure(text)):
                    raise CatalogError(
                        f"tables.{name}: Spark cannot read one of its files whole ({failure}): a page is "
                        "damaged, its codec is unknown, or a number has more digits than its column's type; "
                        "write the file anew."
                    )

    def _failure(self, text: str) -> str:
        """The type of the error that a statement ends with; empty if it succeeds."""
        try:
            self._session.sql(text).collect()
        except Exception as error:
            return type(error).__name__
        return ""

    def _part(self, opened: Opened, files: Sequence[File]) -> DataFrame:
        """Some files of a table. Columns from folder names are NULL here, since no file holds them."""
        part = self._parquet(opened, [literal_path(file.path) for file in files])
        return part.selectExpr(
            "*", *(f"CAST(NULL AS STRING) AS {quoted(folder, DIALECT.name)}" for folder in opened.folders)
        )

    # Questions.

    def version(self, tables: Iterable[str]) -> str:
        """A hash of the names, sizes and modification times of the files."""
        names = sorted(tables)
        seen = self._sealed(lambda: self._current(names))
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def statement(self, tree: exp.Query) -> str:
        """The statement in Spark's dialect."""
        return statement_text(self._translated(tree), DIALECT.name)

    def _translate(self, tree: exp.Query) -> exp.Query:
        for window in tree.find_all(exp.Window):
            select = window.find_ancestor(exp.Select)
            for table in select.find_all(exp.Table) if select is not None else ():
                if table.name in self._views and table.name not in self._placed:
                    raise BackendError(
                        f"Spark does not number the rows of {table.name}, each of which is a unit; ask "
                        "without the join, or let the owner declare Parquet files, with path."
                    )
        return translate(tree, DIALECT, self._tables)

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the statement raise."""
        self._prover.prove(self._translated(tree))

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        self.prove(tree)
        return self._run(tree, progress)

    def _run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement that is already proven total."""
        text = self.statement(tree)
        if progress is not None:
            progress(0.0)
        names = [name for name, view in self._views.items() if f"`{view}`" in text]
        answer = self._limited(lambda: self._answered(text, names))
        if progress is not None:
            progress(1.0)
        return answer

    def _answered(self, text: str, names: Sequence[str]) -> pa.Table:
        """The result over files that were all read whole before and have not changed afterwards.

        A file that arrives after `refresh` is never part of an answer. Whether Spark can read it stays hidden
        too: the question ends with the same error if Spark raised at the file, read it without a fault, or
        did not see it.
        """
        before = self._listed(names)
        if any(self._unread(name, listed) for name, listed in before.items()):
            raise BackendError(_MOVING)
        self._attach(names)
        failure: Exception | None = None
        try:
            answer = self._session.sql(text).toArrow()
        except Exception as error:
            failure = error
        # A statement reads files twice, once to weigh people and once to sum; both must see the same rows.
        if self._listed(names) != before:
            raise BackendError(_MOVING)
        if failure is not None:
            raise failure
        return answer

    def _limited(self, work: Callable[[], Result]) -> Result:
        """The result of work that is stopped after the source's timeout."""
        tag = f"incrowd-{secrets.token_hex(8)}"
        add, remove, stop = tagging(self._session)
        done, late = threading.Event(), threading.Event()

        def watch() -> None:
            if done.wait(self._timeout):
                return
            late.set()
            # Repeat until the work ends: while Spark still plans, there is nothing to stop.
            while not done.is_set():
                with contextlib.suppress(Exception):
                    stop(tag)
                done.wait(0.5)

        def watched() -> Result:
            try:
                add(tag)
                threading.Thread(target=watch, daemon=True).start()
                return work()
            finally:
                done.set()
                with contextlib.suppress(Exception):
                    remove(tag)

        return self._sealed(watched, late)

    def _sealed(self, work: Callable[[], Result], late: threading.Event | None = None) -> Result:
        """The result of work. Its errors tell nothing of rows, and a CatalogError becomes a BackendError."""

        def failed(error: str) -> BackendError:
            if late is not None and late.is_set():
                return BackendError(
                    f"Spark stopped the question after {self._timeout} seconds; ask about fewer rows, or let "
                    "the owner raise timeout of the source."
                )
            return BackendError(f"Spark could not finish the question ({error}).")

        def judged() -> Result | None:
            try:
                return work()
            except CatalogError:
                return None

        outcome = sealed(judged, failed)
        if outcome is None:
            raise BackendError(_CHANGED)
        return outcome

    def close(self) -> None:
        """Drop the views. Spark inside this process keeps running, since others may use it."""
        self._copies.close()
        with contextlib.suppress(Exception):
            for view in self._views.values():
                self._session.catalog.dropTempView(view)
                self._session.catalog.dropTempView(f"{view}_new")
            if hasattr(self._session, "client"):
                self._session.stop()
