"""Spark: tables that outgrow one machine, as Parquet files or Parquet tables of Spark's catalog.

Spark does the work where the rows are. No Python function runs on rows, and only aggregated groups come back.
Statements run in a session of their own (`spark_session`), in Spark's dialect (`spark_sql`), over tables
whose files and types were checked before (`spark_tables`).

Spark computes a task again if its executor is lost or slow, perhaps after other tasks have used the first
result. The second is the same to the bit, or a unit could be weighed by one and summed by the other:

- files are those of the first reading, or the statement is refused at its end (`_answered`);
- a row that is a unit is known by its file and its position in it, never by a number drawn on the way;
- every value is a function of one row, and no function in a statement is random or knows the time;
- over rows there are only COUNT, MIN, MAX and SUM, and all sums are of whole numbers (`spark_sql`), so the
  order in which rows arrive from other tasks makes no difference;
- Spark itself takes one result of each task.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from incrowd.backends.backend import Progress, Snapshot
from incrowd.backends.copies import Copies
from incrowd.backends.recent import recent
from incrowd.backends.sources import one_url, out_of_time, public_types, timeout_of
from incrowd.backends.spark_files import File, Listing
from incrowd.backends.spark_session import open_session, sealed, stopped, tagging
from incrowd.backends.spark_sql import DIALECT, PLACE, SETTINGS
from incrowd.backends.spark_tables import CHANGED, SparkTables
from incrowd.backends.totality import Prover
from incrowd.backends.translation import translate
from incrowd.backends.trees import statement_text, text_of
from incrowd.catalog import Catalog
from incrowd.errors import BackendError, CatalogError
from incrowd.query.typed import fold

Result = TypeVar("Result")
_Listed = Mapping[str, Listing]
_PLACES = f"struct(_metadata.file_path, _metadata.row_index) AS `{PLACE}`"
"""A row's place does not change with filters, pruning or the way files are split. A row number computed
during the scan would.
"""


_STOPPED = (
    "Spark has stopped, as it does when its master gives it up; what was paid stays spent, so open the "
    "curator again, which starts Spark anew, and ask again."
)
_MOVING = "The files of the tables changed while the question ran; ask again when they are at rest."


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
        self._tables = SparkTables(catalog, self._session)
        self._placed = {name for name in catalog.tables if self._has_places(name)}
        self._queries = {fold(name): self._projection(name) for name in catalog.tables}
        self._translated = recent(self._translate)
        private = [view for name, view in self._views.items() if catalog.tables[name].private]
        self._prover = Prover(
            "spark", {view: self._types(name) for name, view in self._views.items()}, private
        )
        for name, query in self._queries.items():
            self._prover.read(name, query)
        self._whole = {name: self._read_before(name) for name in catalog.tables}
        self.refresh(catalog.tables)
        self._copies.sweep()

    def _has_places(self, name: str) -> bool:
        """True if Spark can name the file and the row index of each row."""
        try:
            return bool(self._tables.frame(name).selectExpr(_PLACES).columns)
        except Exception:
            return False

    def _attach(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                frame = self._tables.frame(name)
                if name in self._placed:
                    frame = frame.selectExpr("*", _PLACES)
                frame.createOrReplaceTempView(self._views[name])

    def _projection(self, name: str) -> exp.Query:
        columns = self._tables.declared_columns(name, self._views[name])
        return columns.select(exp.column(PLACE, quoted=True)) if name in self._placed else columns

    def _types(self, name: str) -> dict[str, str]:
        """The types of a view's columns."""
        return {**self._tables.stored_types(name), PLACE: "struct"}

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return public_types(self._catalog, table, self._tables[table].types)

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
            return self._sealed(lambda: self._tables.current(names))
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
        query = text_of(self._queries[fold(name)], DIALECT.name)
        return f"{self._session.version} {self._tables[name].read} {query}"

    def _read_whole(self, new: Mapping[str, Sequence[File]], listed: Mapping[str, Listing]) -> None:
        """Read every declared column of new files in the way statements do. CatalogError if Spark raises.

        A damaged page or a number with too many digits raises in every statement. No value that is read here
        is kept.
        """
        texts = {}
        for name, files in new.items():
            view = f"{self._views[name]}_new"
            whole = len(files) == len(listed[name].files)
            frame = self._tables.frame(name) if whole else self._tables.part(name, files)
            frame.createOrReplaceTempView(view)
            columns = text_of(self._tables.declared_columns(name, view), DIALECT.name)
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

    # Questions.

    def version(self, tables: Iterable[str]) -> str:
        """A hash of the names, sizes and modification times of the files."""
        return _version_of(self._current(tables))

    def _current(self, tables: Iterable[str]) -> dict[str, Listing]:
        names = sorted(tables)
        return self._sealed(lambda: self._tables.current(names))

    @contextlib.contextmanager
    def snapshot(self, tables: Iterable[str]) -> Iterator[Snapshot]:
        """These tables with the files that they have now; a statement is refused once they are others."""
        names = list(tables)
        self.refresh(names)
        listed = self._current(names)

        def run(tree: exp.Query, progress: Progress | None) -> pa.Table:
            self.prove(tree)
            return self._run(tree, progress, listed)

        yield Snapshot(_version_of(listed), run)

    def statement(self, tree: exp.Query) -> str:
        """The statement in Spark's dialect."""
        return statement_text(self._translated(tree), DIALECT.name)

    def _translate(self, tree: exp.Query) -> exp.Query:
        for window in tree.find_all(exp.Window):
            if window.args.get("partition_by"):
                continue
            select = window.find_ancestor(exp.Select)
            for table in select.find_all(exp.Table) if select is not None else ():
                if table.name in self._views and table.name not in self._placed:
                    raise BackendError(
                        f"Spark does not number the rows of {table.name}, each of which is a unit; ask "
                        "without the join, or let the owner declare Parquet files, with path."
                    )
        return translate(tree, DIALECT, self._queries)

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the statement raise."""
        self._prover.prove(self._translated(tree))

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        self.prove(tree)
        return self._run(tree, progress)

    def _run(
        self, tree: exp.Query, progress: Progress | None = None, listed: _Listed = MappingProxyType({})
    ) -> pa.Table:
        """The result of a statement that is already proven total; of tables in `listed`, over those files."""
        text = self.statement(tree)
        if progress is not None:
            progress(0.0)
        names = [name for name, view in self._views.items() if f"`{view}`" in text]
        answer = self._limited(lambda: self._answered(text, names, listed))
        if progress is not None:
            progress(1.0)
        return answer

    def _answered(self, text: str, names: Sequence[str], expected: _Listed) -> pa.Table:
        """The result over files that were all read whole before and have not changed afterwards.

        A file that arrives after `refresh` is never part of an answer. Whether Spark can read it stays hidden
        too: the question ends with the same error if Spark raised at the file, read it without a fault, or
        did not see it.
        """
        before = self._tables.listed(names)
        for name, listed in before.items():
            if self._unread(name, listed) or expected.get(name, listed) != listed:
                raise BackendError(_MOVING)
        self._attach(names)
        failure: Exception | None = None
        try:
            answer = self._session.sql(text).toArrow()
        except Exception as error:
            failure = error
        # A statement reads files twice, once to weigh people and once to sum; both must see the same rows.
        if self._tables.listed(names) != before:
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
            except BaseException:
                # Ctrl-C ends the waiting here and not the work there.
                with contextlib.suppress(Exception):
                    stop(tag)
                raise
            finally:
                done.set()
                with contextlib.suppress(Exception):
                    remove(tag)

        return self._sealed(watched, late)

    def _sealed(self, work: Callable[[], Result], late: threading.Event | None = None) -> Result:
        """The result of work. Its errors tell nothing of rows, and a CatalogError becomes a BackendError."""

        def failed(error: str) -> BackendError:
            if late is not None and late.is_set():
                return BackendError(out_of_time(self._timeout))
            if stopped(self._session):
                return BackendError(_STOPPED)
            return BackendError(f"Spark could not finish the question ({error}).")

        def judged() -> Result | None:
            try:
                return work()
            except CatalogError:
                return None

        outcome = sealed(judged, failed)
        if outcome is None:
            raise BackendError(CHANGED)
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


def _version_of(listed: _Listed) -> str:
    return hashlib.sha256(repr(listed).encode()).hexdigest()
