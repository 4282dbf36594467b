"""PostgreSQL: the tables of one database, read in place with the rights of an ordinary role.

All statements of a question run in one read-only transaction and see one snapshot, under fixed settings and a
timeout for each (`postgres_snapshot`). Meanwhile the relations are locked, and their definitions are those
that were checked when they were opened (`postgres_relations`). Nothing is created on the server: where DuckDB
uses a view, the statement here contains a query. Results are streamed, because DECLARE CURSOR would rule out
parallel plans.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg
import pyarrow as pa
from sqlglot import exp

from incrowd.backends.backend import Progress, Snapshot
from incrowd.backends.postgres_reading import reader, refuse_alike
from incrowd.backends.postgres_relations import Relation, checked, columns, oid_of, unchanged
from incrowd.backends.postgres_session import settle
from incrowd.backends.postgres_snapshot import Moment, Moments, RedefinedError, table_of
from incrowd.backends.postgres_sql import DIALECT
from incrowd.backends.recent import recent
from incrowd.backends.sources import one_url, out_of_time, projection, public_types, timeout_of
from incrowd.backends.totality import Prover
from incrowd.backends.translation import translate
from incrowd.backends.trees import statement_text
from incrowd.catalog import Catalog
from incrowd.catalog.types import arrow_type, column_type
from incrowd.errors import BackendError, CatalogError, IncrowdError
from incrowd.query.typed import fold

_CHUNK = 10_000
_REDEFINED = "definition has changed since it was opened; open the curator again, which checks the new one."
_SPENT = "the question, and what was paid for it stays spent; ask again."
_READABLE = """
SELECT oid, relname FROM pg_catalog.pg_class
WHERE relkind IN ('r', 'p', 'v', 'm') AND pg_table_is_visible(oid) AND has_table_privilege(oid, 'SELECT')
  AND relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname ~ '^(pg_|information_schema)')
ORDER BY relname
"""


class Postgres:
    """The tables of a catalog in one PostgreSQL database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._url = one_url(catalog)
        self._timeout = timeout_of(catalog)
        self._relations = self._opened()
        self._tables: dict[str, exp.Query] = {}
        for name, relation in self._relations.items():
            refuse_alike(catalog, name, relation.columns)
            read = reader(relation.columns)
            types = {column: facts.type for column, facts in relation.columns.items()}
            self._tables[fold(name)] = projection(catalog, name, table_of(relation), types, read, DIALECT)
        self._prover = Prover(
            "postgres",
            {_place_of(relation): _types(relation) for relation in self._relations.values()},
            [
                _place_of(relation)
                for name, relation in self._relations.items()
                if catalog.tables[name].private
            ],
        )
        for name, query in self._tables.items():
            self._prover.read(name, query)
        self._once = {fold(name) for name, relation in self._relations.items() if relation.once}
        self._translated = recent(lambda tree: translate(tree, DIALECT, self._tables, self._once))
        self._moments = Moments(self._url, self._timeout)

    def _opened(self) -> dict[str, Relation]:
        """The relations of the catalog's tables, each checked to be safe to read."""
        failed = ""
        try:
            with psycopg.connect(self._url, connect_timeout=10) as connection:
                _refuse_encoding(connection)
                oids = {name: oid_of(connection, name, self._place(name)) for name in self._catalog.tables}
                settle(connection, self._timeout)
                return {name: checked(connection, name, oid) for name, oid in oids.items()}
        except psycopg.Error as error:
            failed = _failed(error)
        # Raised outside the handler, so that the new error does not carry the old one as its context.
        raise CatalogError(f"sources: the database cannot be reached: {failed}")

    @staticmethod
    def describe(url: str) -> dict[str, dict[str, str]]:
        """The tables and views on the role's search path that it may read, with their column types."""
        failed = ""
        try:
            with psycopg.connect(url, connect_timeout=10) as connection:
                readable = connection.execute(_READABLE).fetchall()
                settle(connection, 60)
                return {
                    name: {column: facts.type for column, facts in columns(connection, oid).items()}
                    for oid, name in readable
                }
        except psycopg.Error as error:
            failed = _failed(error)
        raise CatalogError(f"The database cannot be reached: {failed}")

    def _place(self, name: str) -> tuple[str, ...]:
        """The table's name in the database, with its schema if the catalog names one."""
        if self._catalog.tables[name].path is not None:
            raise CatalogError(f"tables.{name}.path: PostgreSQL has tables and no files; use table.")
        return tuple((self._catalog.tables[name].table or name).split("."))

    def public_types(self, table: str) -> Mapping[str, str]:
        """The column types of a public table."""
        types = {name: column.type for name, column in self._relations[table].columns.items()}
        return public_types(self._catalog, table, types)

    def refresh(self, tables: Iterable[str]) -> None:
        """Refuse tables whose definition has changed since it was checked at the opening."""
        changed, failed = "", ""
        try:
            with self._moments.checking() as connection:
                for name in tables:
                    if not unchanged(connection, [self._relations[name]]):
                        changed = name
        except psycopg.Error as error:
            failed = type(error).__name__
        if failed:
            raise BackendError(_unreachable(failed))
        if changed:
            raise CatalogError(f"tables.{changed}: its {_REDEFINED}")

    def version(self, tables: Iterable[str]) -> str:
        """A hash of the server's row counters (inserted, updated, deleted).

        The counters lag behind by some seconds, or as long as their writer goes on without a pause. For
        views, and on servers that do not count, a hash of the snapshot, which any write changes.
        """
        with self._moment(tables, CatalogError) as moment:
            return moment.version

    @contextlib.contextmanager
    def snapshot(self, tables: Iterable[str]) -> Iterator[Snapshot]:
        """These tables at one moment. CatalogError if a definition has changed since the opening."""
        with self._moment(tables, CatalogError) as moment:

            def run(tree: exp.Query, progress: Progress | None) -> pa.Table:
                self.prove(tree)
                return self._run_at(moment, tree, progress)

            yield Snapshot(moment.version, run)

    @contextlib.contextmanager
    def _moment(self, tables: Iterable[str], redefined: type[IncrowdError]) -> Iterator[Moment]:
        """A moment of tables. BackendError if the database cannot be reached."""
        failure: IncrowdError | None = None
        with contextlib.ExitStack() as stack:
            read = {name: self._relations[name] for name in tables}
            try:
                moment = stack.enter_context(self._moments.moment(read))
            except RedefinedError as error:
                failure = redefined(f"tables.{error}: its {_REDEFINED}")
            except psycopg.Error as error:
                failure = BackendError(_unreachable(type(error).__name__))
            if failure is not None:
                raise failure
            yield moment

    def statement(self, tree: exp.Query) -> str:
        """The statement in PostgreSQL's dialect."""
        return statement_text(self._translated(tree), DIALECT.name)

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the statement raise."""
        self._prover.prove(self._translated(tree))

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement."""
        self.prove(tree)
        return self._run(tree, progress)

    def _run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement that is already proven total."""
        with self._moment(self._read_by(tree), BackendError) as moment:
            return self._run_at(moment, tree, progress)

    def _run_at(self, moment: Moment, tree: exp.Query, progress: Progress | None) -> pa.Table:
        """The result of a proven statement at a moment."""
        text, began = self.statement(tree), time.monotonic()
        read = [self._relations[name] for name in self._read_by(tree)]
        failed = ""
        if progress is not None:
            progress(0.0)
        try:
            result = _streamed(moment.rows, text)
            # Check again afterwards: a schema's name cannot be locked.
            if unchanged(moment.checks, read):
                if progress is not None:
                    progress(1.0)
                return result
            failed = f"A table's {_REDEFINED}"
        except psycopg.errors.QueryCanceled:
            late = time.monotonic() - began >= self._timeout
            failed = out_of_time(self._timeout) if late else f"Somebody at the database stopped {_SPENT}"
        except psycopg.Error as error:
            # The server's message may quote a row, and the type of a data error also depends on rows.
            kind = "" if isinstance(error, psycopg.DataError) else f" ({type(error).__name__})"
            failed = f"The database could not finish the question{kind}."
            if moment.lost:
                failed = f"The database closed its connection{kind} and could not finish {_SPENT}"
        except (pa.ArrowException, ValueError, OverflowError):
            failed = "The database could not finish the question."
        # Raised outside the handlers, so that the new error does not carry the old one as its context.
        raise BackendError(failed)

    def _read_by(self, tree: exp.Query) -> list[str]:
        """The tables that a statement reads."""
        names = {fold(table.name) for table in tree.find_all(exp.Table)}
        return [name for name in self._relations if fold(name) in names]

    def close(self) -> None:
        """Close the connections."""
        self._moments.close()


def _place_of(relation: Relation) -> str:
    return f"{relation.schema}.{relation.name}"


def _types(relation: Relation) -> dict[str, str]:
    """The types of a relation's columns, with the maximum length of texts."""
    return {
        name: column.type if column.length is None else f"{column.type}({column.length})"
        for name, column in relation.columns.items()
    }


def _refuse_encoding(connection: psycopg.Connection[Any]) -> None:
    """Refuse encodings other than UTF8: letters differ there, and some text cannot be read."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CatalogError(
            f"sources: the database keeps its text in {encoding}; copy it into a database whose encoding is "
            "UTF8."
        )


def _streamed(connection: psycopg.Connection[Any], text: str) -> pa.Table:
    """The rows of a query in chunks, as columns."""
    names: list[str] = []
    types: list[pa.DataType] = []
    chunks: list[pa.Table] = []
    held: list[tuple[Any, ...]] = []

    def flush() -> None:
        columns = list(zip(*held, strict=True)) or [()] * len(names)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        chunks.append(pa.Table.from_arrays(arrays, names=names))
        held.clear()

    with connection.cursor(binary=True) as cursor:
        for row in cursor.stream(text.encode(), size=_CHUNK):
            if not names:
                names, types = _described(connection, cursor)
            held.append(row)
            if len(held) >= _CHUNK:
                flush()
        if not names:
            # Without a row there are no column names yet. LIMIT 0 returns them at no cost.
            cursor.execute(f"SELECT * FROM ({text}) AS nothing LIMIT 0".encode())
            names, types = _described(connection, cursor)
    if held or not chunks:
        flush()
    return pa.concat_tables(chunks)


def _described(
    connection: psycopg.Connection[Any], cursor: psycopg.Cursor[Any]
) -> tuple[list[str], list[pa.DataType]]:
    described = cursor.description or []
    kinds = [connection.adapters.types.get(column.type_code) for column in described]
    names = [kind.name if kind is not None else "text" for kind in kinds]
    return [column.name for column in described], [arrow_type(column_type(name) or "text") for name in names]


def _unreachable(failure: str) -> str:
    return (
        f"The database cannot be reached ({failure}); see that it runs, that it lets the role in and that it "
        "gives a statement time to begin, then ask again."
    )


_NOT_CONNECTED = {
    "password|authentication|pg_hba|role .* does not exist|not permitted to log in": (
        "the server refuses the role or its password; mend the URL"
    ),
    "database .* does not exist": "the server has no such database; mend the URL, or create it",
    "resolve|translate|name or service": (
        "no server has the name of its host; mend the URL, and write letters of a password such as @ / # ? "
        "and : as %40 %2F %23 %3F and %3A"
    ),
    "refused|no such file": "no server answers at its host and port; start it, or mend the URL",
    "timeout|timed out": "the server does not answer; see that it runs and that the network lets you through",
    "starting up|shutting down|recovery": "the server is being started or stopped; try again in a moment",
    "too many|slots": "the server has no connection to spare; try again, or let it have more",
    "ssl|certificate": "no encrypted connection comes about; see sslmode in the URL",
}
"""What the driver says where there is no connection, and how we say it: its words may quote a password."""


def _failed(error: psycopg.Error) -> str:
    """What the driver or the server says, without anything of the URL."""
    if error.sqlstate is not None:
        lines = str(error).strip().splitlines()
        line = lines[0] if lines else type(error).__name__
        return line if line.endswith(".") else line + "."
    if isinstance(error, psycopg.ProgrammingError):
        return "its URL is not understood; write postgresql://role@host/database, special letters as %20."
    said = str(error)
    meanings = (meant for words, meant in _NOT_CONNECTED.items() if re.search(words, said, re.IGNORECASE))
    return next(meanings, "see that its URL is right, that it runs and that it lets the role in") + "."
