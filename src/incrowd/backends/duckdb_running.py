"""Runs a DuckDB statement so that Ctrl-C, a deadline or a failing callback ends it.

DuckDB notices a signal late or never while a statement runs. So a thread runs it, and the caller's thread
waits, counts the seconds and reports progress. Whatever ends the waiting also ends the statement, before the
connection is used again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import duckdb

from incrowd.backends.backend import Progress

Result = TypeVar("Result")


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
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    deadline = None if seconds is None else time.monotonic() + seconds
    if progress is not None:
        connection.execute("SET enable_progress_bar = true")  # counted, not printed
    thread.start()
    try:
        _wait(thread, connection, deadline, progress)
    finally:
        _end(thread, connection)
    if failures:
        raise failures[0]
    if progress is not None:
        progress(1.0)
    return results[0]


def _wait(
    thread: threading.Thread,
    connection: duckdb.DuckDBPyConnection,
    deadline: float | None,
    progress: Progress | None,
) -> None:
    while thread.is_alive():
        thread.join(0.1)
        if deadline is not None and time.monotonic() > deadline and thread.is_alive():
            raise OutOfTimeError
        if progress is not None:
            progress(max(0.0, min(1.0, connection.query_progress() / 100)))


def _end(thread: threading.Thread, connection: duckdb.DuckDBPyConnection) -> None:
    """Stop the statement if it still runs. It is told again until it ends: at first it may not have begun."""
    while thread.is_alive():
        with contextlib.suppress(duckdb.Error, RuntimeError):
            connection.interrupt()
        thread.join(0.05)
