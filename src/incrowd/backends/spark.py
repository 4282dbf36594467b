"""Spark: tables that outgrow one machine, as Parquet files or Parquet tables of Spark's catalog.

The engine does the work where the rows are: no function of Python's runs on them, and what comes back is the
aggregated groups. Statements run in a session of their own (`spark_session`), in Spark's words (`spark_sql`),
over files whose footers are known (`spark_files`).
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
import sqlglot
from sqlglot import exp

from incrowd.backends.backend import Progress
from incrowd.backends.sources import one_url, projection, public_types, source_column, timeout_of
from incrowd.backends.spark_columns import read
from incrowd.backends.spark_files import (
    File,
    Listing,
    Types,
    family,
    footers,
    listings,
    literal_path,
    stored_as,
)
from incrowd.backends.spark_session import open_session, sealed, tagging
from incrowd.backends.spark_sql import DIALECT, PLACE, SETTINGS
from incrowd.backends.totality import Prover
from incrowd.backends.translation import Written, translate
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError
from incrowd.query.sql import DIALECT as STATEMENTS
from incrowd.query.typed import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Result = TypeVar("Result")
_STORED = ("MANAGED", "EXTERNAL")
_PLACES = f"struct(_metadata.file_path, _metadata.row_index) AS `{PLACE}`"
"""Filters, pruning and the way that files are cut up do not change it, unlike numbers given on the way."""


_CHANGED = "The tables are not made as they were when they were opened; let the owner open them again."


@dataclass(frozen=True)
class Opened:
    """What was found when a table was opened, and holds as long as it is open."""

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    facts: Mapping[str, str]
    """What Spark's catalog says of it; nothing where it is only files."""
    types: Types
    """The types of columns as files store them; folders are text."""
    read: Types
    """Those that are read from files."""


class Spark:
    """The tables of a catalog in one Spark."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._timeout = timeout_of(catalog)
        self._session = open_session(one_url(catalog), SETTINGS)
        self._lock = threading.Lock()
        self._views = {name: f"incrowd_{place}" for place, name in enumerate(catalog.tables)}
        self._footers: dict[File, Types] = {}
        self._opened = {name: self._open(name) for name in catalog.tables}
        self._placed = {name for name, opened in self._opened.items() if self._has_places(opened)}
        self._tables = {fold(name): self._projection(name) for name in catalog.tables}
        self._written = Written(self._write)
        private = [view for name, view in self._views.items() if catalog.tables[name].private]
        self._prover = Prover(
            "spark", {self._views[name]: self._types(name) for name in self._views}, private
        )
        for name, query in self._tables.items():
            self._prover.read(name, query.sql(DIALECT.name))

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
            return Opened(paths, listed.folders, facts, types, self._wanted(name, types, listed))

        return sealed(opened, failed)

    def _place(self, name: str) -> str:
        """A table's name in Spark's catalog."""
        return self._catalog.tables[name].table or name

    def _quoted(self, name: str) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in self._place(name).split("."))

    # What tables are made of.

    def _facts(self, name: str) -> dict[str, str]:
        """What Spark's catalog says of a table. CatalogError where its rows are not Parquet files of its own.

        A statement reads its tables twice: what a view, another database or a source that computes its rows
        gives may differ between. And one line of a file of text can break all that follow it.
        """
        told = self._session.sql(f"DESCRIBE EXTENDED {self._quoted(name)}").collect()
        facts = {str(each["col_name"]): str(each["data_type"]) for each in told}
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
        return {each: text for each, text in facts.items() if each not in ("Statistics", "Last Access")}

    def _declared(self, name: str, types: Types, facts: Mapping[str, str]) -> Types:
        """The types of a table of Spark's catalog, which are those of its files; CatalogError if not."""
        declared = self._session.table(self._quoted(name)).schema.fields
        for field in declared:
            kind = field.dataType.simpleString().partition(" collate ")[0]
            if family(types.get(field.name, kind)) != family(kind) or "EXISTS_DEFAULT" in field.metadata:
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
        """Those of some columns that statements may read."""
        table = self._catalog.tables[name]
        wanted = {fold(each) for each in table.columns}
        return {each for each in columns if not table.private or fold(each) in wanted}

    def _wanted(self, name: str, types: Types, listed: Listing) -> Types:
        asked = self._asked(name, types)
        return {
            column: kind
            for column, kind in types.items()
            if column in asked and column not in listed.folders and column_type(kind) is not None
        }

    def _agreed(self, name: str, listed: Listing) -> Types:
        """The types of columns, the same in all files that have them; CatalogError where they differ."""
        self._footers.update(footers(self._session, listed.files, self._footers))
        files = [self._footers[each] for each in listed.files]
        folders = dict.fromkeys(listed.folders, "string")
        types: dict[str, str] = {}
        for each in files:
            types |= each
        spelled = {fold(each): each for each in self._catalog.tables[name].columns}
        for column in sorted(self._asked(name, types | folders)):
            where = f"tables.{name}.columns.{spelled.get(fold(column), column)}"
            kinds = {each[column] for each in files if column in each}
            if len(kinds) > 1:
                raise CatalogError(
                    f"{where}: some files hold it as {' and some as '.join(sorted(kinds))}; write them anew, "
                    "all alike."
                )
            if kinds and column in folders:
                raise CatalogError(f"{where}: it is both in files and the name of folders; rename one.")
            alike = {frozenset(other for other in each if fold(other) == fold(column)) for each in files} - {
                frozenset()
            }
            if len(alike) > 1:
                raise CatalogError(
                    f"{where}: files spell its name in different ways; write them anew, all alike."
                )
        return types | folders

    def _current(self, names: Iterable[str]) -> dict[str, Listing]:
        """The files of tables now; BackendError where one has become another table."""
        tables = {name: self._opened[name] for name in names}
        if any(opened.facts and self._facts(name) != opened.facts for name, opened in tables.items()):
            raise BackendError(_CHANGED)
        found = listings(self._session, {name: opened.paths for name, opened in tables.items()})
        for name, listed in found.items():
            opened, types = tables[name], self._agreed(name, listed)
            same = all(types.get(column, kind) == kind for column, kind in opened.read.items())
            if not same or (listed.files and listed.folders != opened.folders):
                raise BackendError(_CHANGED)
        return found

    def _frame(self, opened: Opened) -> DataFrame:
        """A table as it is now: files are listed anew, and columns stay what they were at the opening."""
        columns = (f"`{name.replace('`', '``')}` {stored_as(kind)}" for name, kind in opened.read.items())
        return self._session.read.schema(", ".join(columns)).parquet(*opened.paths)

    def _has_places(self, opened: Opened) -> bool:
        """Whether Spark knows which row of which file a row is."""
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
        origin = exp.Table(this=exp.to_identifier(self._views[name], quoted=True))
        made = projection(self._catalog, name, origin, self._opened[name].types, read, DIALECT)
        return made.select(exp.column(PLACE, quoted=True)) if name in self._placed else made

    def _types(self, name: str) -> dict[str, str]:
        """The types of a view's columns."""
        opened = self._opened[name]
        folders = dict.fromkeys(opened.folders, "string")
        stored = {column: stored_as(kind) for column, kind in opened.read.items()}
        return {**folders, **stored, PLACE: "struct"}

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return public_types(self._catalog, table, self._opened[table].types)

    # Questions.

    def refresh(self, tables: Iterable[str]) -> None:
        """Refuse tables that are not made as they were at the opening: other types, folders, definitions."""
        names, failure = list(tables), ""
        try:
            self._sealed(lambda: self._current(names))
        except BackendError as error:
            failure = str(error)
        if failure:
            raise CatalogError(failure)

    def version(self, tables: Iterable[str]) -> str:
        """Names, sizes and times of change of the files."""
        names = sorted(tables)
        seen = self._sealed(lambda: self._current(names))
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def statement(self, sql: str) -> str:
        """A statement in Spark's words."""
        return self._written(sql)

    def _write(self, sql: str) -> str:
        for window in sqlglot.parse_one(sql, read=STATEMENTS).find_all(exp.Window):
            select = window.find_ancestor(exp.Select)
            for table in select.find_all(exp.Table) if select is not None else ():
                if table.name in self._views and table.name not in self._placed:
                    raise BackendError(
                        f"Spark does not number the rows of {table.name}, each of which is a unit; ask "
                        "without the join, or let the owner declare Parquet files, with path."
                    )
        return translate(sql, DIALECT, self._tables)

    def prove(self, sql: str) -> None:
        """BackendError unless no row can make the statement raise."""
        self._prover.prove(self.statement(sql))

    def run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        self.prove(sql)
        return self._run(sql, progress)

    def _run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The same of a statement that is known to be total."""
        text = self.statement(sql)
        if progress is not None:
            progress(0.0)
        names = [name for name, view in self._views.items() if f"`{view}`" in text]
        found = self._limited(lambda: self._answered(text, names))
        if progress is not None:
            progress(1.0)
        return found

    def _answered(self, text: str, names: Sequence[str]) -> pa.Table:
        before = self._current(names)
        self._attach(names)
        found = self._session.sql(text).toArrow()
        # A statement reads files twice, to weigh people and to sum: both must see the same rows.
        if self._current(names) != before:
            raise BackendError(
                "The files of the tables changed while the question ran; ask again when they are at rest."
            )
        return found

    def _limited(self, work: Callable[[], Result]) -> Result:
        """Work that is stopped when its time is over."""
        tag = f"incrowd-{secrets.token_hex(8)}"
        add, remove, stop = tagging(self._session)
        done, late = threading.Event(), threading.Event()

        def watch() -> None:
            if done.wait(self._timeout):
                return
            late.set()
            # Again until it ends: a plan may be in the making, with nothing to stop yet.
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
        """Work whose errors tell nothing of rows, and that finds no fault with the owner's file any more."""

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

        found = sealed(judged, failed)
        if found is None:
            raise BackendError(_CHANGED)
        return found

    def close(self) -> None:
        """Let go of the views. Spark inside this process ends with the process, since others may use it."""
        with contextlib.suppress(Exception):
            for view in self._views.values():
                self._session.catalog.dropTempView(view)
            if hasattr(self._session, "client"):
                self._session.stop()
