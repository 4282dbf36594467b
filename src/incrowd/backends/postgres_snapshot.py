"""One moment of a PostgreSQL database: every statement of a question sees the same rows.

A moment holds two transactions, because no single one can do both parts.

checks   READ COMMITTED: locks the relations, compares their definitions and reads the counters of changed
         rows. It sees definitions as they are now.
rows     REPEATABLE READ: runs the statements. It begins last, so its snapshot is later than the locks: no
         table can be rewritten, truncated or redefined under it.

The counters are read before the snapshot is taken, and the server counts a change only after it is visible.
So the rows contain every change that the version counts. The other order would record an answer for old rows
under the version of new ones, and it would be recalled for as long as these stay. Partitions that are
attached or truncated between two statements show in the second.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool
from sqlglot import exp

from incrowd.backends.postgres_relations import Relation, unchanged
from incrowd.backends.postgres_session import settle
from incrowd.backends.postgres_sql import DIALECT
from incrowd.backends.trees import text_of
from incrowd.errors import BackendError

Connection = psycopg.Connection[Any]
_MOST = 4
"""So many questions read the database at once."""
_CONNECTING = 10.0
"""Seconds after which a server that does not answer cannot be reached."""
_CHANGES = """
SELECT c.relkind::text, COALESCE(
  (SELECT string_agg(concat_ws(' ', p.oid, p.relfilenode, pg_stat_get_tuples_inserted(p.oid),
     pg_stat_get_tuples_updated(p.oid), pg_stat_get_tuples_deleted(p.oid)), ',' ORDER BY p.oid)
   FROM pg_class AS p
   WHERE p.oid = c.oid OR p.oid IN (SELECT relid FROM pg_partition_tree(c.oid))), '')
FROM pg_class AS c WHERE c.oid = %s::oid
"""
_COUNTED = """
SELECT NOT pg_is_in_recovery() AND current_setting('track_counts')::boolean,
  concat_ws(' ', pg_stat_get_db_stat_reset_time(d.oid), pg_stat_get_bgwriter_stat_reset_time())
FROM pg_database AS d WHERE d.datname = current_database()
"""
_STORED = ("r", "p", "m")


class RedefinedError(Exception):
    """A table's definition is no longer the one that was checked at the opening; says which table."""


@dataclass(frozen=True)
class Moment:
    """The rows of some relations at one moment, as long as its transactions last."""

    checks: Connection
    rows: Connection
    version: str

    @property
    def lost(self) -> bool:
        """True if the server has cut a connection."""
        return self.checks.broken or self.rows.broken


class Moments:
    """Opens moments of one database. Connections that the server has dropped are replaced before use."""

    def __init__(self, url: str, seconds: int) -> None:
        self._seconds = seconds
        # With a turn first, nobody holds one connection and waits for another.
        self._turns = threading.BoundedSemaphore(_MOST)
        self.checks = _pool(url, psycopg.IsolationLevel.READ_COMMITTED)
        self.rows = _pool(url, psycopg.IsolationLevel.REPEATABLE_READ)

    @contextlib.contextmanager
    def checking(self) -> Iterator[Connection]:
        """A transaction that sees definitions as they are now."""
        if not self._turns.acquire(timeout=self._seconds):
            raise BackendError(f"The database is busy with {_MOST} other questions; ask again later.")
        try:
            with _settled(self.checks, self._seconds) as connection:
                yield connection
        finally:
            self._turns.release()

    @contextlib.contextmanager
    def moment(self, read: Mapping[str, Relation]) -> Iterator[Moment]:
        """A moment of the relations of some tables; RedefinedError if one is not as it was."""
        with self.checking() as checks:
            for name, relation in read.items():
                if not (_lock(checks, relation) and unchanged(checks, [relation])):
                    raise RedefinedError(name)
            changes = _Changes(checks)
            counted = {name: changes.counted(read[name].oid) for name in sorted(read)}
            with _settled(self.rows, self._seconds) as rows:
                now = "" if all(counted.values()) else _snapshot_of(rows)
                lines = [f"{name} {counters or now}\n" for name, counters in counted.items()]
                version = hashlib.sha256("".join([changes.epoch, *lines]).encode()).hexdigest()
                yield Moment(checks, rows, version)

    def close(self) -> None:
        """Close the connections."""
        self.checks.close()
        self.rows.close()


class _Changes:
    """The server's counters of inserted, updated and deleted rows.

    A crash or `pg_stat_reset` sets them to zero, from where they could reach an earlier count again over
    other rows. So `epoch`, the times of the last resets, belongs to every version. A standby counts nothing,
    and neither does a server without `track_counts`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        counting, epoch = connection.execute(_COUNTED).fetchone() or (False, "")
        self._counting, self.epoch = bool(counting), str(epoch)

    def counted(self, oid: int) -> str:
        """A text that changes with the rows of a relation; empty if nothing counts them, as for views."""
        if not self._counting:
            return ""
        kind, changes = self._connection.execute(_CHANGES, (oid,)).fetchone() or ("", "")
        return f"{kind} {changes}" if kind in _STORED else ""


def _snapshot_of(connection: Connection) -> str:
    """The snapshot of a transaction: another one after any write in the database."""
    return f"snapshot {connection.execute('SELECT pg_current_snapshot()::text').fetchone()}"


def _pool(url: str, isolation: psycopg.IsolationLevel) -> ConnectionPool[Connection]:
    def configure(connection: Connection) -> None:
        connection.isolation_level = isolation
        connection.read_only = True
        # Behind a pooler, the next transaction may use a connection that has not prepared the statement.
        connection.prepare_threshold = None

    return ConnectionPool(
        url,
        min_size=0,
        max_size=_MOST,
        open=True,
        configure=configure,
        check=ConnectionPool.check_connection,
        timeout=_CONNECTING,
        name="incrowd",
    )


@contextlib.contextmanager
def _settled(pool: ConnectionPool[Connection], seconds: int) -> Iterator[Connection]:
    """A connection in a new transaction with fixed settings. Nothing raises when it is given back."""
    connection = pool.getconn()
    try:
        settle(connection, seconds)
        yield connection
    finally:
        with contextlib.suppress(psycopg.Error):
            connection.rollback()
        pool.putconn(connection)


def _lock(connection: Connection, relation: Relation) -> bool:
    """Lock a relation, and all relations that it reads, until the transaction ends.

    False if it is gone or may not be read any more.

    LOCK TABLE needs rights on the whole table. A statement that is prepared but not run takes the same locks
    and computes nothing.
    """
    table = text_of(table_of(relation), DIALECT.name)
    try:
        connection.execute(f"PREPARE incrowd AS SELECT 1 FROM {table}; DEALLOCATE incrowd".encode())
    except psycopg.ProgrammingError:
        return False
    return True


def table_of(relation: Relation) -> exp.Table:
    """A relation by the names of its schema and itself."""
    schema, table = (exp.to_identifier(part, quoted=True) for part in (relation.schema, relation.name))
    return exp.Table(this=table, db=schema)
