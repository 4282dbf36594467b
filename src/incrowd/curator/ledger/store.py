"""How the ledger reaches its database: durable commits, one writer at a time, errors in plain words.

SQLite runs in WAL mode with synchronous FULL, so a commit that returned has reached the disk; it is carried
into the main file at once. A writer takes the lock when its transaction begins, so what it read cannot change
before it writes. PostgreSQL gets the same from a lock on the head's row, which every writer takes first, and
from settings of its own for each session. Nothing here knows what an entry means.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from incrowd.curator.ledger import schema
from incrowd.curator.ledger.places import (
    BACKUP_MARK,
    BRING_BACK,
    FOUND_ONE,
    NAME_BACKUP,
    SIDE_FILES,
    What,
    check_backup,
    check_file,
    check_free,
    settle,
)
from incrowd.errors import LedgerError

PATIENCE = 300.0
"""Seconds that a writer waits for its turn. Waiting is cheap; a refusal that is no refusal is not."""

_Inode = tuple[int, int] | None
Founding = Callable[[Connection], None]
_MEMORY = "in memory"
# A server or role may have other defaults: commits that do not wait for the disk, waits that end too soon or
# never. A curator that froze, or whose machine vanished, must not keep the lock from the others for ever.
_SESSION = {
    "synchronous_commit": "on",
    "statement_timeout": "0",
    "lock_timeout": f"'{PATIENCE:.0f}s'",
    "idle_in_transaction_session_timeout": f"'{PATIENCE:.0f}s'",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_CREATION_LOCK = 0x1C20D  # any fixed number: the key of PostgreSQL's advisory lock while tables are made


class Store:
    """A database with the ledger's tables in it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._file = Path(name) if self.is_sqlite and name != _MEMORY else None
        self._opened: tuple[_Inode, ...] = ()

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file or in memory."""
        return self.dialect == "sqlite"

    @property
    def dialect(self) -> str:
        """Which kind of database it is: sqlite or postgresql."""
        return self.engine.dialect.name

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its beginning and is on disk when this returns."""
        # Threads queue here: SQLite's own waiting is polling, and an in-memory ledger has one connection.
        with self._own_process(), self._lock:
            with self._transaction(incrowd_write=True) as connection:
                yield connection
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Carry what was written into the main file, so that a lost log or a copy without it lacks nothing.

        The write is durable without it, so a checkpoint that must wait for a reader is left to the next one.
        """
        if self._file is None:
            return
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error:
            return
        finally:
            raw.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger throughout."""
        shared = isinstance(self.engine.pool, StaticPool)
        turn = self._lock if shared else contextlib.nullcontext()
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._own_process(), turn, self._transaction(incrowd_write=False, **options) as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, **options: Any) -> Iterator[Connection]:
        with self._plain_words(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def _own_process(self) -> Iterator[None]:
        # A connection must not be used on both sides of a fork; the child forgets its parent's.
        if self._pid != os.getpid():
            if isinstance(self.engine.pool, StaticPool):
                raise LedgerError("A ledger in memory cannot be shared with another process; give it a file.")
            self.engine.dispose(close=False)
            self._lock = threading.RLock()
            self._pid = os.getpid()
            # Its parent may end, which takes the files beside it away; new ones are made.
            self._opened = self._opened[:1]
        if _inodes(self._file)[: len(self._opened)] != self._opened:
            raise LedgerError(
                f"The ledger {self.name} was moved, deleted or replaced while in use, or a file beside it "
                "(-wal, -shm) was, so what is written would be lost and nothing can be asked; bring it back "
                "and open it again."
            )
        yield

    def mark(self, application: int) -> None:
        """Say in the file's header what it is."""
        with self._plain_words():
            raw = self.engine.raw_connection()
            raw.cursor().execute(f"PRAGMA application_id={application}")
            raw.close()

    def hold_on(self) -> None:
        """Remember which files were opened. A process would go on writing deleted ones, and lose the spend.

        SQLite keeps the files beside the ledger while a connection to it is open, and the pool keeps one.
        """
        self._opened = _inodes(self._file)

    @contextlib.contextmanager
    def _plain_words(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise LedgerError(self._sentence(error)) from error

    def _sentence(self, error: Exception) -> str:
        if getattr(error, "connection_invalidated", False):
            # Where the commit itself was lost, nobody here can know whether it was carried out.
            return f"The ledger {self.name} lost its connection; see what is left, and ask again."
        said = str(getattr(error, "orig", None) or error).strip().splitlines()[0].lower()
        for words, meaning in _MEANINGS.items():
            if re.search(words, said):
                return f"The ledger {self.name} {meaning}."
        return f"The ledger {self.name} failed ({said.rstrip('.')}); nothing can be asked until it is mended."

    def close(self) -> None:
        """Let go of the database's connections."""
        self._opened = self._opened[:1]
        self.engine.dispose()


_READ_ONLY = (
    "cannot be written; let the curator write the file, those beside it (-wal, -shm) and their folder"
)
_MEANINGS = {
    "file is not a database": "is not a ledger, or no longer one; restore it from a copy, or name its path",
    "malformed": "is damaged; restore it from a copy, and never start an empty one in its place",
    "unable to open": "cannot be opened; its folder must exist and be writable",
    "readonly": _READ_ONLY,
    "read-only transaction": "is read-only; name the server that takes writes, and a role that may",
    "read-only": _READ_ONLY,
    "must be owner": "lacks a trigger that its tables' owner alone can put back; open it once as that role",
    "permission denied": "cannot be written; give the curator's role the right to write its tables",
    "locked|lock timeout": "stayed locked by another process; end that process and ask again",
    "disk i/o error": "could not be read or written; make room on its disk, or mend it, and ask again",
    "full": "could not be written, since the disk is full; make room and ask again",
    "starting up|shutting down|recovery mode": "is being started or stopped; ask again in a moment",
    "connection refused": "cannot be reached; start its server",
    "password authentication failed": "refuses the role or its password; mend the URL",
    'database ".*" does not exist': "has no such database; create it first",
    "no schema has been selected": "has no schema to write in; create it, or mend the search path",
    "no such table": "lacks a table; restore it from a copy",
}


def _inodes(file: Path | None) -> tuple[_Inode, ...]:
    """What lies at the place of a ledger and of its log; None for what is not there."""
    if file is None:
        return ()
    return tuple(_inode(file.with_name(file.name + suffix)) for suffix in ("", "-wal", "-shm"))


def _inode(file: Path) -> _Inode:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def connect(where: str | Path, *, backup: bool = False) -> Store:
    """The store at a path or URL; LedgerError if there is no ledger, or a backup and not `backup`."""
    url = _url(where)
    if url.get_backend_name() == "sqlite":
        file = Path(url.database or "")
        if backup:
            check_backup(file)
        else:
            check_file(file)
        store = Store(_file_engine(file), str(file))
    else:
        store = _server(url)
    with _closed_if_refused(store):
        _prepare_connections(store)
        # Somebody else's database must not be touched, so look before the first write.
        with store.reading() as connection:
            _require_ledger(store, connection, backup)
        if store.is_sqlite and not backup:
            _write_ahead(store)
            _close_to_the_world(Path(store.name))
    store.hold_on()
    return store


def found(where: str | Path | None, first: Founding) -> Store:
    """A new store at a path or URL; in memory, for a session, where it is None.

    `first` writes the first rows, within the transaction that makes the tables. A ledger that is there
    already is an error.
    """
    if where is None:
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        store = Store(engine, _MEMORY)
        _prepare_connections(store)
        _make(store, first)
        return store
    url = _url(where)
    if url.get_backend_name() == "sqlite":
        found_file(Path(url.database or ""), first)
    else:
        store = _server(url)
        with _closed_if_refused(store):
            _prepare_connections(store)
            _make(store, first)
        store.close()
    return connect(where)


def found_file(file: Path, first: Founding, *, application: int = 0) -> None:
    """A new ledger in a file that appears as a whole or not at all."""
    what: What = "backup" if application == BACKUP_MARK else "ledger"
    check_free(file, what)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    store = Store(_file_engine(draft), str(file))
    try:
        _create_private(draft, file, what)
        _prepare_connections(store)
        _write_ahead(store)
        _make(store, first)
        store.mark(application)
        store.close()
        settle(draft, file, what)
    except BaseException:
        store.close()
        for suffix in ("", *SIDE_FILES):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
        raise


def _create_private(draft: Path, file: Path, what: What) -> None:
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        raise LedgerError(
            f"The {what} {file} cannot be opened; its folder must exist and be writable."
        ) from None


def _make(store: Store, first: Founding) -> None:
    with store.writing() as connection:
        if not store.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
        _require_no_tables(store, connection)
        schema.metadata.create_all(connection)
        first(connection)


def require_free(where: str | Path) -> str:
    """What messages call a path or URL; LedgerError if anything of a ledger is there."""
    url = _url(where)
    if url.get_backend_name() == "sqlite":
        check_free(Path(url.database or ""))
        return str(url.database)
    store = _server(url)
    try:
        _prepare_connections(store)
        with store.reading() as connection:
            _require_no_tables(store, connection)
    finally:
        store.close()
    return store.name


def _require_no_tables(store: Store, connection: Connection) -> None:
    present = set(inspect(connection).get_table_names())
    ours = {table.name for table in schema.metadata.sorted_tables}
    if ours & present:
        raise LedgerError(
            f"There are tables of a ledger in {store.name} already, and one is founded in a free place "
            "only; open it, or name another place under ledger: in the owner's file."
        )


def _file_engine(file: Path) -> Engine:
    # Readers do not wait for each other, so there may be as many connections as threads.
    url = URL.create("sqlite", database=str(file))
    return create_engine(url, connect_args={"timeout": PATIENCE}, max_overflow=-1)


def _server(url: URL) -> Store:
    name = url.difference_update_query(["password", "sslpassword"]).render_as_string(hide_password=True)
    try:
        # A writer that waited for the head's lock must see what was committed meanwhile.
        engine = create_engine(
            url, pool_pre_ping=True, pool_timeout=PATIENCE, isolation_level="READ COMMITTED"
        )
    except ModuleNotFoundError:
        raise LedgerError(f"The ledger {name} needs a driver; run pip install 'incrowd[postgres]'.") from None
    return Store(engine, name)


@contextlib.contextmanager
def _closed_if_refused(store: Store) -> Iterator[None]:
    try:
        yield
    except LedgerError:
        store.close()
        raise


def _close_to_the_world(file: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        place = file.with_name(file.name + suffix)
        with contextlib.suppress(OSError):
            place.chmod(place.stat().st_mode & 0o770)


def _url(where: str | Path) -> URL:
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(Path(where).absolute()))
    try:
        url = make_url(where)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise LedgerError("The ledger's URL is not understood; write postgresql://host/database.") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise LedgerError(
            "The ledger is kept in SQLite or PostgreSQL; write a path or postgresql://host/database."
        )
    if url.get_backend_name() == "sqlite" and not url.database:
        raise LedgerError("The ledger's URL names no file; write sqlite:///path/to/file, or just the path.")
    return url


def _require_ledger(store: Store, connection: Connection, backup: bool) -> None:
    """LedgerError unless the tables are there, in the format that this version knows."""
    present = set(inspect(connection).get_table_names())
    ours = {table.name for table in schema.metadata.sorted_tables}
    if schema.head.name not in present:
        if ours & present or (present and store.is_sqlite):
            raise LedgerError(f"The database {store.name} is not a ledger; name another path.")
        if backup:
            raise LedgerError(f"There is no backup at {store.name}; {NAME_BACKUP}.")
        raise LedgerError(f"There is no ledger at {store.name}; {BRING_BACK}, or, {FOUND_ONE}.")
    if store.is_sqlite and not backup and _is_backup(connection):
        raise LedgerError(f"{store.name} is a backup of a ledger; {BRING_BACK}.")
    version = connection.scalar(select(schema.head.c.version))
    if version is not None and version != schema.VERSION:
        newer = version > schema.VERSION
        raise LedgerError(
            f"The ledger {store.name} was written by {'a newer' if newer else 'an older'} Incrowd (format "
            f"{version}, this one knows {schema.VERSION}); {'upgrade Incrowd' if newer else 'use that one'}."
        )
    if version is None or not ours <= present:
        raise LedgerError(f"The ledger {store.name} lacks parts that it once had; {BRING_BACK}.")


def _is_backup(connection: Connection) -> bool:
    return connection.exec_driver_sql("PRAGMA application_id").scalar() == BACKUP_MARK


def _prepare_connections(store: Store) -> None:
    engine = store.engine
    if not store.is_sqlite:

        @event.listens_for(engine, "connect")
        def _durable(raw: Any, _record: Any) -> None:
            with raw.cursor() as cursor:
                for setting, value in _SESSION.items():
                    cursor.execute(f"SET {setting} TO {value}")
            raw.commit()

        return

    @event.listens_for(engine, "connect")
    def _settings(raw: Any, _record: Any) -> None:
        raw.isolation_level = None  # transactions are begun below, not by the driver
        for setting in ("synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1", "trusted_schema=OFF"):
            raw.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A file that was overwritten in place shows only once no page is remembered from before.
        connection.exec_driver_sql("PRAGMA shrink_memory")
        write = connection.get_execution_options().get("incrowd_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _write_ahead(store: Store) -> None:
    """Turn on the write-ahead log. The switch takes a lock that SQLite does not wait for, so we do."""
    deadline = time.monotonic() + PATIENCE
    with store._plain_words():
        while True:
            raw = store.engine.raw_connection()
            try:
                mode = raw.cursor().execute("PRAGMA journal_mode=WAL").fetchone()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                mode = None
            finally:
                raw.close()
            if mode is not None:
                break
            time.sleep(0.01)
    if mode[0] != "wal":
        raise LedgerError(
            f"The ledger {store.name} must lie on a local disk: no write-ahead log is possible there."
        )
