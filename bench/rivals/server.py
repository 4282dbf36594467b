"""A PostgreSQL server with the bench's table in it: the one that the tests start, on a bare machine too."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

TESTS = Path(__file__).resolve().parents[2] / "tests"


@dataclass(frozen=True)
class Server:
    """Where the table is, and the process whose family does the work."""

    url: str
    pid: int


@contextlib.contextmanager
def serving(table: Path) -> Iterator[Server | str]:
    """A running server, or the reason why there is none."""
    sys.path.append(str(TESTS))
    try:
        import psycopg

        from servers import postgres

        started = postgres()
    except (ImportError, RuntimeError) as error:
        yield f"no PostgreSQL server: {str(error).splitlines()[0]}"
        return
    with started.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE events (user_id bigint NOT NULL, day date NOT NULL, region text NOT NULL, "
            "category text NOT NULL, value double precision NOT NULL)"
        )
        with tempfile.TemporaryDirectory() as room:
            rows = Path(room) / "events.csv"
            with duckdb.connect(str(table), read_only=True) as source:
                source.execute(f"COPY events TO '{rows}' (HEADER false)")
            with rows.open("rb") as file, connection.cursor().copy("COPY events FROM STDIN CSV") as copy:
                while block := file.read(1 << 20):
                    copy.write(block)
        connection.execute("VACUUM ANALYZE events")
        backend = connection.info.backend_pid
        yield Server(url, _parent(backend))


def _parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    parent = int(status.split("PPid:")[1].split()[0])
    assert parent != os.getpid()
    return parent
