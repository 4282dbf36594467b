"""SQL over tables that are in memory anyway, within hard limits of memory, time and threads.

Analysts write the SQL above released numbers, and any function of the engine may stand in it: `range` of
three billion must not end the curator. So it runs in one child process, kept between questions, which holds
nothing private. A child that exceeds a limit is ended, and the next question starts another.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

MEMORY = 1 << 30
"""How many bytes a query may take."""
SECONDS = 20
"""How long a query may take."""
_WORKER = Path(__file__).with_name("sandbox_worker.py")


class SandboxError(Exception):
    """The engine refused the SQL or failed on it; the message is the engine's first line."""


class ExhaustedError(SandboxError):
    """The SQL took more memory or time than it may."""


class Sandbox:
    """A child process that runs one query at a time."""

    def __init__(self, memory: int = MEMORY, seconds: int = SECONDS) -> None:
        self._limits = {"memory": memory, "seconds": seconds}
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The result of a query over tables, each under its name; SandboxError where there is none."""
        streams = {name: _stream(table) for name, table in tables.items()}
        sizes = {name: len(stream) for name, stream in streams.items()}
        request = json.dumps({"sql": sql, "tables": sizes, **self._limits}).encode() + b"\n"
        with self._lock:
            try:
                return self._reply(request + b"".join(streams.values()))
            except SandboxError as error:
                if isinstance(error, ExhaustedError):
                    self.close()
                raise
            except BaseException:
                self.close()
                raise

    def _reply(self, request: bytes) -> pa.Table:
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        timer = threading.Timer(self._limits["seconds"] + 5, child.kill)
        timer.start()
        try:
            child.stdin.write(request)
            child.stdin.flush()
            line = child.stdout.readline()
            reply = json.loads(line) if line else {"exhausted": True}
            content = child.stdout.read(reply.get("size", 0))
        except OSError:  # the child ended while it was sent the tables
            reply, content = {"exhausted": True}, b""
        finally:
            timer.cancel()
        if "error" in reply:
            raise SandboxError(reply["error"])
        if "exhausted" in reply or len(content) < reply["size"]:
            seconds, memory = self._limits["seconds"], self._limits["memory"] >> 20
            raise ExhaustedError(f"it takes more than {memory:,} MB of memory or {seconds} seconds")
        return pa.ipc.open_stream(content).read_all()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            # -P: the worker's own folder is no place to import from.
            self._child = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Arrow's own allocator takes address space ahead of need, which the limit would count.
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "ARROW_DEFAULT_MEMORY_POOL": "system",
                },
            )
        return self._child

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None and os.getpid() == self._owner:
            child.kill()
            child.communicate()


_sandboxes: dict[int, Sandbox] = {}
_making = threading.Lock()


def sandbox() -> Sandbox:
    """This process's sandbox. A forked child must not speak to its parent's."""
    with _making:
        running = _sandboxes.get(os.getpid())
        if running is None:
            running = _sandboxes[os.getpid()] = Sandbox()
            atexit.register(running.close)
        return running


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
