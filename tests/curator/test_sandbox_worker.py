"""The sandbox's child: each request gets one reply, an error is one line, and nothing outside is reached."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.curator import sandbox_worker

NUMBERS = pa.table({"x": [1, 2, 3]})
Reply = tuple[dict[str, Any], pa.Table | None]


def request(sql: str, memory: int = 256 << 20, seconds: int = 5, **tables: pa.Table) -> bytes:
    streams = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        streams[name] = sink.getvalue().to_pybytes()
    sizes = {name: len(stream) for name, stream in streams.items()}
    head = json.dumps({"sql": sql, "tables": sizes, "memory": memory, "seconds": seconds})
    return head.encode() + b"\n" + b"".join(streams.values())


def replies(content: bytes) -> list[Reply]:
    read: list[Reply] = []
    stream = io.BytesIO(content)
    for line in stream:
        reply = json.loads(line)
        table = pa.ipc.open_stream(stream.read(reply["size"])).read_all() if "size" in reply else None
        read.append((reply, table))
    return read


@pytest.fixture
def alarms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The alarms that would be set; this process is neither ended nor limited."""
    seen: list[int] = []
    monkeypatch.setattr(sandbox_worker, "alarm", seen.append)
    monkeypatch.setattr(sandbox_worker, "limit", lambda memory: None)
    return seen


def served(*requests: bytes) -> list[Reply]:
    output = io.BytesIO()
    sandbox_worker.serve(io.BytesIO(b"".join(requests)), output)
    return replies(output.getvalue())


def test_each_request_gets_its_reply_in_order(alarms: list[int]) -> None:
    first, second = served(
        request("SELECT SUM(x) AS s FROM t", t=NUMBERS),
        request("SELECT a.x FROM t AS a, u WHERE a.x = u.x", seconds=7, t=NUMBERS, u=NUMBERS.slice(1, 1)),
    )
    assert first[1] is not None and first[1].to_pydict() == {"s": [6]}
    assert second[1] is not None and second[1].to_pydict() == {"x": [2]}
    assert alarms == [5, 0, 7, 0]


def test_an_error_is_one_line_and_the_next_request_is_answered(alarms: list[int]) -> None:
    broken, next_one = served(request("SELECT y FROM t", t=NUMBERS), request("SELECT 1 AS one"))
    assert set(broken[0]) == {"error"} and "\n" not in broken[0]["error"]
    assert broken[0]["error"].startswith("Binder Error")
    assert next_one[1] is not None and next_one[1].to_pydict() == {"one": [1]}
    assert alarms == [5, 0, 5, 0]


def test_a_table_of_one_request_is_gone_at_the_next(alarms: list[int]) -> None:
    _, after = served(request("SELECT * FROM t", t=NUMBERS), request("SELECT * FROM t"))
    assert set(after[0]) == {"error"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}'",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT * FROM NUMBERS",
    ],
)
def test_nothing_outside_is_reached(alarms: list[int], tmp_path: Path, sql: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("x\n1\n")
    (refused,) = served(request(sql.format(file=file)))
    assert set(refused[0]) == {"error"}
    assert file.read_text() == "x\n1\n"


def test_what_needs_more_memory_than_allowed_is_told(alarms: list[int]) -> None:
    sql = "SELECT list(range) AS l FROM range(100000000)"
    (reply,) = served(request(sql, memory=32 << 20))
    assert reply == ({"exhausted": True}, None)


def test_as_a_script_it_needs_nothing_of_the_package() -> None:
    content = request("SELECT SUM(x) AS s FROM t", t=NUMBERS)
    command = [sys.executable, "-I", sandbox_worker.__file__]
    output = subprocess.run(command, input=content, capture_output=True, check=True, timeout=60).stdout
    ((_, table),) = replies(output)
    assert table is not None and table.to_pydict() == {"s": [6]}
