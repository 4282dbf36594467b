"""Runs a DuckDB statement so that Ctrl-C, a deadline or a failing callback ends it.

DuckDB notices a signal late or never while a statement runs. So a thread runs it, and the caller's thread
waits, counts the seconds and reports progress. Whatever ends the waiting also ends the statement, before the
connection is used again.

A thread that comes back from the engine when the interpreter has gone aborts the process. So statements that
still run when the interpreter exits (a second Ctrl-C ends the waiting for the first) are stopped there too.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import duckdb

from incrowd.backends.backend import Progress

Result = TypeVar("Result")


_TICK = 0.01
"""Seconds between two looks at a statement that was told to stop."""
_PATIENCE = 30.0
"""Seconds that an exit waits for statements that were told to stop."""


class OutOfTimeError(Exception):
    """A statement took longer than it may."""


def stoppable(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[], Result],
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """The result of work on a connection; OutOfTimeError if it takes longer than so many seconds."""
    statement = _Statement(connection, work)
    deadline = None if seconds is None else time.monotonic() + seconds
    if progress is not None:
        connection.execute("SET enable_progress_bar = true")  # counted, not printed
    try:
        statement.start()
        _wait(statement, deadline, progress)
    finally:
        statement.stop()
    result = statement.result()
    if progress is not None:
        progress(1.0)
    return result


class _Statement(Generic[Result]):
    """Work on a connection in a thread of its own.

    Whether it has ended is not asked of the thread: a Ctrl-C during `Thread.join` makes a thread that still
    runs count as ended, in Python 3.11 and 3.12.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], Result]) -> None:
        self.connection = connection
        self._work = work
        self._results: list[Result] = []
        self._failures: list[BaseException] = []
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="incrowd (run)")

    def start(self) -> None:
        _running.add(self)
        try:
            self._thread.start()
        except RuntimeError:  # no more threads are to be had
            _running.discard(self)
            raise

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:
            self._failures.append(error)
        _running.discard(self)
        self._woken.set()

    @property
    def ended(self) -> bool:
        return bool(self._results or self._failures)

    def wait(self, seconds: float) -> None:
        """Wait for the end, or so many seconds."""
        self._woken.wait(seconds)

    def stop(self, seconds: float = float("inf")) -> None:
        """Stop it if it still runs. It is told again until it ends: at first it may not have begun."""
        end = time.monotonic() + seconds
        while not self.ended and self._thread in threading.enumerate() and time.monotonic() < end:
            with contextlib.suppress(duckdb.Error, RuntimeError):
                self.connection.interrupt()
            time.sleep(_TICK)
        if self.ended:
            self._thread.join()

    def result(self) -> Result:
        """What came of it."""
        if self._failures:
            raise self._failures[0]
        return self._results[0]


def _wait(statement: _Statement[Result], deadline: float | None, progress: Progress | None) -> None:
    while not statement.ended:
        statement.wait(0.1)
        if deadline is not None and time.monotonic() > deadline and not statement.ended:
            raise OutOfTimeError
        if progress is not None:
            progress(max(0.0, min(1.0, statement.connection.query_progress() / 100)))


_running: set[_Statement[Any]] = set()
"""Statements that have not ended."""


def _stop_all() -> None:
    end = time.monotonic() + _PATIENCE
    for statement in list(_running):
        statement.stop(max(0.0, end - time.monotonic()))


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_running.clear)  # the threads are the parent's
