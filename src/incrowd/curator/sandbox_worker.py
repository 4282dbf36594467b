"""Runs SQL over tables that it is sent, in a process of its own that may not grow or reach anything else.

Started as a script (`sandbox.py` talks to it), it imports nothing of this package. Each request is a line of
JSON and the tables in Arrow's stream format; each reply is a line of JSON and perhaps one table.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import IO, Any

import duckdb
import pyarrow as pa

SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "1",
}


def limit(memory: int) -> None:
    """Let this process take `memory` bytes beyond what it has, and write no file; where the system can."""
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with open("/proc/self/statm") as statm:  # noqa: PTH123
            held = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, held + memory))


def alarm(seconds: int) -> None:
    """End this process after so many seconds, whatever it does then; 0 takes that back."""
    with contextlib.suppress(ImportError, AttributeError):
        import signal

        signal.alarm(seconds)


def answer(connection: duckdb.DuckDBPyConnection, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    """The result of a query over tables, each under its name."""
    with connection.cursor() as cursor:
        for name, table in tables.items():
            cursor.register(name, table)
        return cursor.sql(sql).to_arrow_table()


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    connection: Any = None
    for line in requests:
        request = json.loads(line)
        tables = {
            name: pa.ipc.open_stream(requests.read(size)).read_all()
            for name, size in request["tables"].items()
        }
        if connection is None:
            connection = duckdb.connect(config={**SETTINGS, "memory_limit": f"{request['memory']}B"})
            connection.execute("SET TimeZone = 'UTC'")
            # It lifts shared expressions out of TRY(...), where they raise.
            connection.execute("SET disabled_optimizers = 'common_subexpressions'")
            connection.execute("SET lock_configuration = true")
            answer(connection, "SELECT * FROM first", {"first": pa.table({"x": [0]})})
            limit(request["memory"])
        alarm(request["seconds"])
        content = b""
        try:
            sink = pa.BufferOutputStream()
            result = answer(connection, request["sql"], tables)
            with pa.ipc.new_stream(sink, result.schema) as writer:
                writer.write_table(result)
            content = sink.getvalue().to_pybytes()
            reply: dict[str, Any] = {"size": len(content)}
        except (MemoryError, duckdb.OutOfMemoryException, pa.ArrowMemoryError):
            reply = {"exhausted": True}
        except duckdb.Error as error:
            reply = {"error": str(error).splitlines()[0]}
        alarm(0)
        replies.write(json.dumps(reply).encode() + b"\n" + content)
        replies.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
