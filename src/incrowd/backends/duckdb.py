"""DuckDB: files (CSV, Parquet, DuckDB databases) and frames in memory.

Each table of the catalog becomes a view of its declared columns in their declared types. A value that does
not fit becomes NULL, never an error, because an error that depends on a row is a leak. Files are read once
before any question: a file that cannot be read whole is refused when the curator is opened, or when a changed
file is checked again, and never in the middle of a question that was paid for.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from incrowd.backends.backend import Progress, Snapshot
from incrowd.backends.contents import State
from incrowd.backends.copies import Copies, changed, digest
from incrowd.backends.duckdb_database import table_piece
from incrowd.backends.duckdb_files import (
    copied,
    csv_piece,
    misleading,
    parquet_copy,
    parquet_pieces,
    unreadable,
    write_rows,
)
from incrowd.backends.duckdb_pieces import Piece, described, piece_select
from incrowd.backends.duckdb_running import OutOfTimeError, stoppable
from incrowd.backends.duckdb_spill import ENCRYPTED
from incrowd.backends.frames import open_frame, sound
from incrowd.backends.private_folders import PrivateFolder
from incrowd.backends.sources import memory_of, out_of_time, source_column, timeout_of
from incrowd.backends.totality import PIECE, Prover
from incrowd.backends.trees import constant, digest_of, quoted, statement_text, text_of
from incrowd.catalog import Catalog
from incrowd.errors import BackendError, CatalogError
from incrowd.query.sql import DIALECT
from incrowd.query.typed import fold

_SETTINGS = (
    "SET TimeZone = 'UTC'",
    # In a notebook or a prompt DuckDB draws a bar of its own; progress is for the caller's callback.
    "SET enable_progress_bar = false",
    "SET enable_progress_bar_print = false",
    "SET preserve_insertion_order = false",
    # Units are often numbered densely; a table indexed by number is then twice as fast as a hash table.
    "SET perfect_ht_threshold = 20",
    # A name that is no table of the catalog must never resolve to a variable of this process.
    "SET python_enable_replacements = false",
    *ENCRYPTED,
)


_Seen = Mapping[str, tuple[State, ...]]
"""By table, its files as they were when they were looked at; none for frames."""


class DuckDB:
    """The tables of a catalog in one DuckDB connection."""

    def __init__(self, catalog: Catalog, frames: Mapping[str, Any] | None = None) -> None:
        self._catalog = catalog
        self._frames = dict(frames or {})
        self._mark = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._copies = Copies(catalog.copies)
        self._seen: dict[str, tuple[State, ...]] = {}
        self._attached: dict[str, str] = {}
        self._prover = Prover(
            "duckdb", private=[name for name, table in catalog.tables.items() if table.private]
        )
        self._timeout = timeout_of(catalog)
        self._spill = PrivateFolder(catalog.copies)
        self._connection = duckdb.connect(":memory:", config={"temp_directory": str(self._spill.path)})
        for setting in _SETTINGS:
            self._connection.execute(setting)
        memory = memory_of(catalog)
        if memory is not None:
            self._connection.execute(f"SET memory_limit = '{memory}B'")
        self.refresh(catalog.tables)
        self._frames.clear()  # their rows are copied

    def refresh(self, tables: Iterable[str]) -> None:
        """Check tables whose files changed again. CatalogError if one cannot be read any more."""
        with self._lock:
            self._look_again(tables)

    def _look_again(self, tables: Iterable[str]) -> None:
        others = [name for name in tables if not self._at_rest(name)]
        for name in others:
            now = self._files_now(name)
            failure = ""
            try:
                with self._copies.user(name):
                    self._define(name)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                failure = type(error).__name__
            if failure:
                raise CatalogError(
                    f"tables.{name}: the rows cannot be read ({failure}); see that the files are whole, that "
                    "no other program writes to them, and that the disk is not full."
                )
            if self._files_now(name) != now:
                raise changed(name)
            self._seen[name] = now
        if others:
            self._copies.sweep()

    def _at_rest(self, name: str) -> bool:
        """True if a table's files and their copies are those that were checked."""
        try:
            same = name in self._seen and self._files_now(name) == self._seen[name]
        except (CatalogError, OSError):
            return False
        return same and all(self._copies.whole(copy) for copy in self._copies.used_by(name))

    def _files_now(self, name: str) -> tuple[State, ...]:
        """The files of a table as they are now; none for frames."""
        if self._catalog.source_of(name).kind in ("frame", "url"):
            return ()
        with contextlib.suppress(OSError):
            return tuple(map(self._copies.state, self._catalog.files(name)))
        raise CatalogError(f"tables.{name}: a file changed while it was looked at; try again.")

    def _define(self, name: str) -> None:
        pieces = self._pieces(name)
        select = " UNION ALL BY NAME ".join(map(text_of, self._selects(name, pieces)))
        self._connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {select}")
        bare = [replace(piece, origin=PIECE) for piece in pieces]
        selects = zip(self._selects(name, bare), bare, strict=True)
        kinds = {(digest_of(tree), *piece.types.items()): (tree, piece.types) for tree, piece in selects}
        self._prover.view(name, kinds.values())

    def _selects(self, name: str, pieces: Sequence[Piece], others: Sequence[Piece] = ()) -> list[exp.Select]:
        """The queries that read pieces as the catalog declares; `others` are more pieces of the table."""
        everywhere = {fold(column) for piece in (*pieces, *others) for column in piece.types}
        return [piece_select(self._catalog, name, piece, everywhere) for piece in pieces]

    def _pieces(self, name: str) -> list[Piece]:
        source = self._catalog.source_of(name)
        if source.kind == "parquet":
            return self._parquet(name)
        if source.kind == "csv":
            return [csv_piece(self._connection, self._catalog, self._copies, self._catalog.files(name), name)]
        if source.kind == "url":
            raise CatalogError(
                f"tables.{name}: DuckDB reads files and frames; no engine for "
                f"{str(source.url).split(':')[0]} is installed."
            )
        piece = self._frame(name) if source.kind == "frame" else self._database_table(name)
        if not self._readable(name, [piece]):
            raise unreadable("its source", name)
        return [piece]

    def _frame(self, name: str) -> Piece:
        table, frame = self._catalog.tables[name], self._catalog.source_of(name).frame
        if frame not in self._frames:
            raise CatalogError(f"sources: the frame {frame} of table {name} was not given.")
        held = open_frame(self._frames[frame], name)
        for column in table.columns:
            where = f"tables.{name}.columns.{column}"
            if column in held.left_out:
                raise CatalogError(f"{where}: {held.left_out[column]}.")
            source_column(column, held.types, where)
        # Registered under the table's name: tables that share a frame may want different columns of it.
        self._connection.register(f"frame_{name}", sound(held.table, name, self._wanted(name)))
        origin = quoted(f"frame_{name}")
        return Piece(origin, described(self._connection, origin))

    def _wanted(self, name: str) -> set[str] | None:
        """The folded names of the columns that may be read; None for all columns of a public table."""
        table = self._catalog.tables[name]
        return {fold(column) for column in table.columns} if table.private else None

    def _database_table(self, name: str) -> Piece:
        table = self._catalog.tables[name]
        (path,) = self._catalog.files(name)
        attached = self._attach(path)
        units = () if table.unit is None else table.unit.columns
        piece, computed = table_piece(self._connection, attached, name, table.table or name, units)
        return self._view(name, path, piece) if computed else replace(piece, files=(path,))

    def _attach(self, path: str) -> str:
        """Attach a database in its current state and return the name it has then."""
        name = f"source_{digest(repr(self._copies.state(path)))}"
        before = self._attached.get(path)
        if before not in (None, name):
            self._connection.execute(f"DETACH {before}")
        self._connection.execute(f"ATTACH IF NOT EXISTS {constant(path)} AS {name} (READ_ONLY)")
        self._attached[path] = name
        return name

    def _view(self, name: str, path: str, piece: Piece) -> Piece:
        """A copy of a view's rows, computed once.

        A view may return different rows each time. And a filter that is pushed into a view may raise on rows
        that the view itself leaves out.
        """
        (select,) = self._selects(name, [piece])
        recipe = f"view {self._catalog.tables[name].table or name} {self._catalog.tables[name].columns}"
        try:
            place = self._copies.copy(path, recipe, partial(write_rows, self._connection, text_of(select)))
            return copied(self._connection, [place])
        except duckdb.Error:
            pass
        raise CatalogError(
            f"tables.{name}: the database cannot compute all of its rows; use expressions that cannot fail "
            "(TRY_CAST, say), or store its rows as a table."
        )

    def _parquet(self, name: str) -> list[Piece]:
        """The files, or copies of those with values at which the engine would raise or skip rows."""
        files = self._catalog.files(name)
        pieces = parquet_pieces(self._connection, files, name)
        old = misleading(self._connection, files)
        chosen = [self._parquet_copy(name, file) if file in old else file for file in files]
        if old:
            pieces = parquet_pieces(self._connection, chosen, name)
        if self._readable(name, pieces):
            return pieces
        for place, file in enumerate(chosen):
            alone = parquet_pieces(self._connection, [file], name)
            if file in files and not self._readable(name, alone, pieces):
                chosen[place] = self._parquet_copy(name, file)
        pieces = parquet_pieces(self._connection, chosen, name)
        if not self._readable(name, pieces):
            raise unreadable("one of its files", name)
        return pieces

    def _parquet_copy(self, name: str, file: str) -> str:
        return parquet_copy(self._copies, file, self._wanted(name), name)

    def _readable(self, name: str, pieces: Sequence[Piece], others: Sequence[Piece] = ()) -> bool:
        """True if every value can be read as declared. Files that were read before are not read again.

        No value that is read is kept, and the same statement reads all columns whatever they hold.
        """
        for piece, tree in zip(pieces, self._selects(name, pieces, others), strict=True):
            recipe = f"read {piece.types} {self._catalog.tables[name].columns}"
            files = [self._copies.state(file) for file in piece.files]
            if files and all(self._copies.seen(file, recipe) for file in files):
                continue
            select = text_of(tree)
            columns = ", ".join(quoted(column) for column in described(self._connection, f"({select}) AS t"))
            try:
                stoppable(
                    self._connection,
                    self._connection.sql(f"SELECT BIT_XOR(HASH({columns})) FROM ({select}) AS t").fetchall,
                )
            except duckdb.Error:
                return False
            for file in files:
                self._copies.note(file, recipe)
        return True

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        return described(self._connection, quoted(table))

    def version(self, tables: Iterable[str]) -> str:
        """A hash of what the files hold, and of folders that name columns. Frames have a random mark instead.

        It is the same after `touch`, for other names of files, and for copies of them (`contents`). A digest
        of a frame would let readers of the ledger test guesses about its rows.
        """
        with self._lock:
            return self._version({name: self._files_now(name) for name in tables})

    def _version(self, seen: _Seen) -> str:
        mark = hashlib.sha256()
        for name in sorted(seen):
            for line in sorted(map(_content, seen[name])) or [self._mark]:
                mark.update(f"{name} {line}\n".encode("utf-8", "surrogateescape"))
        return mark.hexdigest()

    @contextlib.contextmanager
    def snapshot(self, tables: Iterable[str]) -> Iterator[Snapshot]:
        """These tables with the files that they have now.

        A statement is refused once a file is another, even if a question in between has checked that one.
        """
        names = list(tables)
        with self._lock:
            self._look_again(names)
            seen = {name: self._seen[name] for name in names}

        def run(tree: exp.Query, progress: Progress | None) -> pa.Table:
            self.prove(tree)
            return self._run(tree, progress, seen)

        yield Snapshot(self._version(seen), run)

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the statement raise."""
        self._prover.prove(tree)

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement, with progress reported while it runs."""
        self.prove(tree)
        return self._run(tree, progress)

    def _run(
        self, tree: exp.Query, progress: Progress | None = None, seen: _Seen = MappingProxyType({})
    ) -> pa.Table:
        """The result of a statement that is already proven total; of tables in `seen`, over those files."""
        failure, sql = "", statement_text(tree, DIALECT)
        read = {fold(table.name) for table in tree.find_all(exp.Table)}
        # Frames are registered with this one connection. DuckDB itself runs one statement on all cores.
        with self._lock:
            self._refuse_changes(read, seen)
            try:
                answer = stoppable(
                    self._connection,
                    lambda: self._connection.sql(sql).to_arrow_table(),
                    seconds=self._timeout,
                    progress=progress,
                )
            except OutOfTimeError:
                failure = out_of_time(self._timeout)
            except duckdb.Error as error:
                failure = f"The database could not finish the question ({type(error).__name__})."
            if failure:
                # Raised outside the handlers: the engine's message may quote a row, so drop it.
                raise BackendError(failure)
            # A statement reads files twice, to weigh people and to sum; both must see the same rows.
            self._refuse_changes(read, seen)
            return answer

    def _refuse_changes(self, read: Collection[str], seen: _Seen) -> None:
        """Refuse a statement that reads a table whose files have changed since they were checked."""
        for name in self._catalog.tables:
            if fold(name) not in read:
                continue
            if not self._at_rest(name) or seen.get(name, self._seen[name]) != self._seen[name]:
                raise BackendError(
                    "The files of the tables changed while the question ran; ask again when they are at rest."
                )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._copies.close()
        self._spill.close()


def _content(file: State) -> str:
    """A text for what a file holds, and for the folders above it that name columns."""
    return f"{file.word} {[part for part in Path(file.path).parts[:-1] if '=' in part]}"
