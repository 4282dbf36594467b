"""Spark: tables that outgrow one machine, as Parquet files or tables of Spark's catalog.

The engine does the work where the rows are: no function of Python's runs on them, and what comes back is the
aggregated groups. Statements run in a session of their own (`spark_session`), in Spark's words (`spark_sql`).
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from incrowd.backends.backend import Progress
from incrowd.backends.sources import one_url, projection, public_types, timeout_of
from incrowd.backends.spark_session import open_session, tagging
from incrowd.backends.spark_sql import DIALECT, PLACE, SETTINGS
from incrowd.backends.translation import call, translate
from incrowd.catalog import Catalog, column_type
from incrowd.errors import BackendError, CatalogError, QueryError
from incrowd.query.sql import DIALECT as STATEMENTS
from incrowd.query.typed import Kind, fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES = ("parquet", "orc", "csv", "json", "text", "avro")
"""Kinds of catalog tables whose rows are in the files that they list, and nowhere else."""
_STORED = ("MANAGED", "EXTERNAL")
_NAMES = {"timestamp_ntz": "timestamp", "timestamp": "timestamp with time zone"}
_COLLATED = "varchar"


class Spark:
    """The tables of a catalog in one Spark."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._timeout = timeout_of(catalog)
        self._session = open_session(one_url(catalog), SETTINGS)
        self._lock = threading.Lock()
        self._views = {name: f"incrowd_{place}" for place, name in enumerate(catalog.tables)}
        self._schemas = {}
        self._placed: set[str] = set()
        self._types: dict[str, dict[str, str]] = {}
        for name in catalog.tables:
            with self._opening(name):
                self._refuse_views(name)
                frame = self._frame(name)
                self._schemas[name] = frame.schema
                self._types[name] = {column: _named(kind) for column, kind in frame.dtypes}
                if self._has_places(frame):
                    self._placed.add(name)
        self._tables = {fold(name): self._projection(name) for name in catalog.tables}

    @contextlib.contextmanager
    def _opening(self, name: str) -> Iterator[None]:
        try:
            yield
        except CatalogError:
            raise
        except Exception as error:
            paths = self._catalog.patterns(name)
            place = f"files at {', '.join(paths)}" if paths else f"a table {self._place(name)} in its catalog"
            raise CatalogError(
                f"tables.{name}: Spark cannot read it ({type(error).__name__}); it needs {place}."
            ) from None

    def _place(self, name: str) -> str:
        """A table's name in Spark's catalog."""
        return self._catalog.tables[name].table or name

    def _quoted(self, name: str) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in self._place(name).split("."))

    def _frame(self, name: str) -> DataFrame:
        """A table as it is now: files are listed anew, and schemas stay what they were at the opening."""
        paths = self._catalog.patterns(name)
        if not paths:
            self._session.catalog.refreshTable(self._quoted(name))
            return self._session.table(self._quoted(name))
        reader = self._session.read
        if name in self._schemas:
            reader = reader.schema(self._schemas[name])
        return reader.parquet(*paths)

    def _has_places(self, frame: DataFrame) -> bool:
        """Whether Spark knows which row of which file a row is."""
        try:
            return bool(frame.selectExpr(_PLACES).columns)
        except Exception:
            return False

    def _attach(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                frame = self._frame(name)
                if name in self._placed:
                    frame = frame.selectExpr("*", _PLACES)
                frame.createOrReplaceTempView(self._views[name])

    def _projection(self, name: str) -> exp.Query:
        origin = exp.Table(this=exp.to_identifier(self._views[name], quoted=True))
        made = projection(self._catalog, name, origin, self._types[name], _read, DIALECT)
        return made.select(exp.column(PLACE, quoted=True)) if name in self._placed else made

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return public_types(self._catalog, table, self._types[table])

    def refresh(self, tables: Iterable[str]) -> None:
        """Nothing: each statement looks at the tables as they are."""

    def version(self, tables: Iterable[str]) -> str:
        """Names, sizes and times of change of the files; a fresh mark for tables that are not just files."""
        names = sorted(tables)
        paths = {name: self._paths(name) for name in names}
        unknown = [f"{name} {secrets.token_hex(16)}" for name, found in paths.items() if found is None]
        seen = self._seen([each for found in paths.values() for each in found or ()])
        return hashlib.sha256("\n".join([*names, *unknown, *seen]).encode()).hexdigest()

    def _paths(self, name: str) -> Iterable[str] | None:
        """Where all rows of a table are; None where they may lie elsewhere too."""
        return self._catalog.patterns(name) or self._table_files(name)

    def _seen(self, paths: list[str]) -> list[str]:
        """What the file system says of files; their content is a column of its own, and not read."""
        if not paths:
            return []
        reader = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        told = reader.load(paths).selectExpr("path", "length", "unix_micros(modificationTime)").collect()
        return sorted(str(tuple(each)) for each in told)

    def _refuse_views(self, name: str) -> None:
        """A statement reads its tables twice: what a view or another database gives may differ between."""
        if self._catalog.patterns(name):
            return
        facts = self._facts(name)
        if facts.get("Type") not in _STORED or facts.get("Provider", "").lower() == "jdbc":
            raise CatalogError(
                f"tables.{name}: {self._place(name)} is no stored table in Spark, and its rows may be others "
                "at each reading; name the table behind it, or Parquet files, with path."
            )

    def _facts(self, name: str) -> dict[str, str]:
        """What Spark's catalog says of a table."""
        told = self._session.sql(f"DESCRIBE EXTENDED {self._quoted(name)}").collect()
        return {each["col_name"]: str(each["data_type"]) for each in told}

    def _table_files(self, name: str) -> list[str] | None:
        """The files that are all of a catalog table's rows; None where they may lie elsewhere too."""
        if self._facts(name).get("Provider", "").lower() not in _FILES:
            return None
        return list(self._frame(name).inputFiles())

    def statement(self, sql: str) -> str:
        """A statement in Spark's words."""
        for window in sqlglot.parse_one(sql, read=STATEMENTS).find_all(exp.Window):
            select = window.find_ancestor(exp.Select)
            for table in select.find_all(exp.Table) if select is not None else ():
                if table.name in self._views and table.name not in self._placed:
                    raise BackendError(
                        f"Spark does not number the rows of {table.name}, each of which is a unit; ask "
                        "without the join, or let the owner declare Parquet files, with path."
                    )
        return translate(sql, DIALECT, self._tables)

    def run(self, sql: str, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        text = self.statement(sql)
        if progress is not None:
            progress(0.0)
        names = [name for name, view in self._views.items() if f"`{view}`" in text]
        with self._limited():
            paths = [each for name in names for each in self._paths(name) or ()]
            before = self._seen(paths)
            self._attach(names)
            found = self._session.sql(text).toArrow()
            after = self._seen(paths)
        # A statement reads files twice, to weigh people and to sum: both must see the same rows.
        if after != before:
            raise BackendError(
                "The files of the tables changed while the question ran; ask again when they are at rest."
            )
        if progress is not None:
            progress(1.0)
        return found

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """Work that is stopped when its time is over, and whose errors tell nothing of rows."""
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

        watcher = threading.Thread(target=watch, daemon=True)
        try:
            add(tag)
            watcher.start()
            yield
        except Exception as error:
            if late.is_set():
                raise BackendError(
                    f"Spark stopped the question after {self._timeout} seconds; ask about fewer rows, or let "
                    "the owner raise timeout of the source."
                ) from None
            # The engine's own words may hold values of rows.
            raise BackendError(f"Spark could not finish the question ({type(error).__name__}).") from None
        finally:
            done.set()
            with contextlib.suppress(Exception):
                remove(tag)

    def close(self) -> None:
        """Let go of the views. Spark inside this process ends with the process, since others may use it."""
        with contextlib.suppress(Exception):
            for view in self._views.values():
                self._session.catalog.dropTempView(view)
            if hasattr(self._session, "client"):
                self._session.stop()


_PLACES = f"struct(_metadata.file_path, _metadata.row_index) AS `{PLACE}`"
"""Filters, pruning and the way that files are cut up do not change it, unlike numbers given on the way."""


def _named(kind: str) -> str:
    return _COLLATED if kind.startswith("string collate") else _NAMES.get(kind, kind)


def _read(column: exp.Column, engine_type: str, kind: str, identifies: bool) -> tuple[exp.Expr, Kind]:
    """A column in a type that statements compute with."""
    found = column_type(engine_type)
    if found == "decimal":
        if kind != "integer":
            return exp.cast(column, "DOUBLE"), "float"
        whole = exp.Round(this=column.copy())
        # Without safe, the generator writes a cast that wraps around.
        return exp.TryCast(this=whole, to=exp.DataType.build("BIGINT"), safe=True), "integer"
    if found == "text":
        if engine_type == _COLLATED:
            # Comparisons and keys are of code points, whatever the table was made for.
            column = call("COLLATE", column, exp.Literal.string("UTF8_BINARY"))  # type: ignore[assignment]
        # Bytes that are no text would make whoever reads an answer raise.
        return call("TRY_VALIDATE_UTF8", column), "text"
    if found == "timestamp":
        if engine_type == "timestamp":
            return column, "timestamp"
        return exp.cast(column, "TIMESTAMP_NTZ", dialect="spark"), "timestamp"
    if found in ("boolean", "date"):
        return column, found  # type: ignore[return-value]
    raise QueryError(f"{engine_type} is not understood.")
