"""The scratch database: one instance for a process, and connections that share nothing."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from incrowd.curator import scratch as module
from incrowd.curator.scratch import scratch

NUMBERS = pa.table({"x": [1, 2, 3]})


def test_a_registered_table_is_seen_by_its_connection_only() -> None:
    with scratch() as one, scratch() as other:
        one.register("numbers", NUMBERS)
        assert one.sql("SELECT SUM(x) FROM numbers").fetchall() == [(6,)]
        with pytest.raises(duckdb.CatalogException):
            other.sql("SELECT SUM(x) FROM numbers")
    with scratch() as later, pytest.raises(duckdb.CatalogException):
        later.sql("SELECT SUM(x) FROM numbers")


def test_a_connection_is_closed_even_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), scratch() as connection:
        raise ZeroDivisionError
    with pytest.raises(duckdb.ConnectionException):
        connection.sql("SELECT 1")


def test_a_process_keeps_one_instance() -> None:
    with scratch():
        first = module._instances[os.getpid()]
    with scratch():
        assert module._instances[os.getpid()] is first


def test_files_cannot_be_reached(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("x\n1\n")
    for statement in (f"SELECT * FROM '{file}'", f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'"):
        with scratch() as connection, pytest.raises(duckdb.PermissionException):
            connection.execute(statement)
    assert not (tmp_path / "out.csv").exists()


def test_times_are_those_of_utc() -> None:
    with scratch() as connection:
        assert connection.sql("SELECT CAST(TIMESTAMPTZ '2024-01-01 12:00:00+00' AS VARCHAR)").fetchall() == [
            ("2024-01-01 12:00:00+00",)
        ]


def test_an_error_within_try_is_null_where_an_expression_is_shared() -> None:
    """A shared expression that was lifted out of TRY would raise."""
    with scratch() as connection:
        connection.register("numbers", pa.table({"x": ["a", "4"]}))
        statement = "SELECT TRY(CAST(x AS INT)) AS a, TRY(CAST(x AS INT) + 1) AS b FROM numbers ORDER BY x"
        assert connection.sql(statement).fetchall() == [(4, 5), (None, None)]


def _sum_in_child(results: multiprocessing.SimpleQueue[tuple[int, bool]]) -> None:
    with scratch() as connection:
        connection.register("numbers", NUMBERS)
        (total,) = connection.sql("SELECT SUM(x) FROM numbers").fetchall()[0]
    parents = module._instances[os.getppid()]
    results.put((int(total), module._instances[os.getpid()] is not parents))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_starts_an_instance_of_its_own() -> None:
    with scratch():
        pass
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_sum_in_child, args=(results,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert results.get() == (6, True)
