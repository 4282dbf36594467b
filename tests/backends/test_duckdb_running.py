"""A statement ends with its caller: by Ctrl-C, by its deadline, or by an error in a callback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import duckdb
import pytest

from incrowd.backends.duckdb_running import OutOfTimeError, stoppable

ENDLESS = "SELECT SUM(HASH(a.range * b.range)) FROM range(1000000) AS a, range(10000000) AS b"
"""Takes longer than these tests have."""


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def usable(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the connection answers the next statement, and no thread still runs the last."""
    return connection.execute("SELECT 1").fetchall() == [(1,)] and not any(
        thread.name.endswith("(run)") for thread in threading.enumerate()
    )


def test_a_result_comes_with_progress_from_nothing_to_all(connection: duckdb.DuckDBPyConnection) -> None:
    shares: list[float] = []
    rows = stoppable(connection, connection.sql("SELECT 7").fetchall, seconds=60, progress=shares.append)
    assert rows == [(7,)]
    assert shares[-1] == 1.0 and all(0 <= share <= 1 for share in shares)


def test_ctrl_c_is_a_keyboard_interrupt_and_ends_the_statement(connection: duckdb.DuckDBPyConnection) -> None:
    def press(_: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        stoppable(connection, lambda: connection.sql(ENDLESS).to_arrow_table(), progress=press)
    assert usable(connection)


def test_ctrl_c_while_nothing_is_reported_ends_the_statement_too(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    def work() -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return connection.sql(ENDLESS).to_arrow_table()

    with pytest.raises(KeyboardInterrupt):
        stoppable(connection, work)
    assert usable(connection)


BEGINNING = f"""
import os, signal, threading, duckdb
from incrowd.backends.duckdb_running import stoppable
connection = duckdb.connect(config={{"threads": 1}})
begun = threading.Event()
def work():
    begun.set()
    return connection.sql({ENDLESS!r}).fetchall()
"""
CAUGHT = """
def pressed():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=pressed).start()
try:
    stoppable(connection, work)
except KeyboardInterrupt:
    print("caught")
"""
LEFT = """
def asked():
    try:
        stoppable(connection, work)
    except duckdb.InterruptException:
        pass
threading.Thread(target=asked, daemon=True).start()
begun.wait()
print("left")
"""


@pytest.mark.parametrize(("rest", "said"), [(CAUGHT, "caught"), (LEFT, "left")])
def test_a_process_ends_in_peace_whatever_still_ran(rest: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGINNING + rest], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{said}\n", "")


def test_a_deadline_ends_the_statement(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(OutOfTimeError):
        stoppable(connection, lambda: connection.sql(ENDLESS).to_arrow_table(), seconds=0.2)
    assert usable(connection)


def test_an_error_in_the_callback_ends_the_statement(connection: duckdb.DuckDBPyConnection) -> None:
    def fail(_: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stoppable(connection, lambda: connection.sql(ENDLESS).to_arrow_table(), progress=fail)
    assert usable(connection)


def test_the_engines_own_error_comes_out(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.CatalogException):
        stoppable(connection, lambda: connection.sql("SELECT * FROM nowhere").fetchall())
