"""A runner as a process: started, watched and stopped from outside; its lines, its end and its peak memory.

Memory is the proportional set size of the runner and all that it started (and of a database server with its
workers, where one does the work), sampled, so that what processes share counts once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivals.protocol import Job

BENCH = Path(__file__).resolve().parents[1]
SAMPLING = 0.02
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Outcome:
    """What a runner said, the most memory it held in MB (0 where nobody looked), and why it ended early."""

    lines: list[dict[str, Any]]
    peak: float
    trouble: str = ""

    def said(self, kind: str) -> list[dict[str, Any]]:
        """The lines of the rounds that count: the first one warms, unless it is all there is."""
        every = [line for line in self.lines if line.get("kind") == kind]
        return every[1:] or every


def run(
    python: Path, module: str, job: Job, patience: float, watch: bool = False, server: int = 0
) -> Outcome:
    """Run the job in a process of its own, for `patience` seconds at most."""
    logs = BENCH / "data" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as room, (logs / f"{module}-{job.question}.log").open("w") as log:
        process = subprocess.Popen(
            [python, "-m", f"rivals.{module}", job.encoded()],
            cwd=room,  # some leave files where they run
            env={**os.environ, "PYTHONPATH": str(BENCH)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        stopped, done = threading.Event(), threading.Event()

        def stop() -> None:
            stopped.set()
            _kill(process.pid)

        timer = threading.Timer(patience, stop)
        timer.start()
        peaks = [0.0]
        watcher = threading.Thread(target=_watch, args=((process.pid, server), peaks, done))
        if watch:
            watcher.start()
        try:
            assert process.stdout is not None
            said = [line for line in process.stdout if line.endswith("}\n")]
            process.wait()
        finally:
            timer.cancel()
            done.set()
            if watch:
                watcher.join()
            _kill(process.pid)  # what it started and left behind, too
    lines = [json.loads(line) for line in said]
    return Outcome(lines, peaks[0], _trouble(lines, stopped.is_set(), patience))


def _trouble(lines: list[dict[str, Any]], stopped: bool, patience: float) -> str:
    if stopped:
        return f"stopped after {patience:g} s"
    last = lines[-1] if lines else {"error": "ended without a word"}
    return str(last.get("error") or last.get("unsupported") or "")


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _watch(roots: tuple[int, ...], peaks: list[float], done: threading.Event) -> None:
    while not done.wait(SAMPLING):
        held = sum(_held(pid) for root in roots if root for pid in _family(root))
        peaks[0] = max(peaks[0], held / 1024)


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _held(pid: int) -> int:
    """Kilobytes of a process; nothing where it has ended meanwhile."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
