"""Running a function on blocks of data, each in a process of its own, within limits.

Whatever a block does, it gives one number: what it returned, or a default when it raised, was killed, ran out
of time or memory, or returned something that is no number. A process serves one block and dies: a function
that keeps something between calls could otherwise carry one person's data into another's block. This module
knows nothing of privacy. It guards against accidents, not against hostile code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import numbers
import os
import pickle
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from incrowd.errors import IncrowdError, InvalidInput
from incrowd.mechanisms.parameters import chosen

# `multiprocessing` takes as long to import as this whole room, so only those who run blocks do.
if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Start = Literal["fork", "spawn"]
Function = Callable[[Any], Any]

_NUMBER = struct.Struct("<d")
_PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """What one block may use: processor seconds, seconds by the clock, and memory beyond its parent's."""

    seconds: int
    patience: float
    megabytes: int


def check_start(function: Function, start: object) -> Start:
    """How blocks are started, or a sentence about what is in the way."""
    import multiprocessing

    if not callable(function):
        raise InvalidInput("function must be a callable that takes a block of the data and returns a number.")
    chosen(start, ("fork", "spawn"), "start")
    if start not in multiprocessing.get_all_start_methods() or sys.platform == "win32":
        raise InvalidInput(f"Blocks cannot be limited on this system by start={start!r}: use Linux or macOS.")
    if start == "spawn":
        try:
            pickle.dumps(function)
        except Exception:
            raise InvalidInput(
                'With start="spawn" the function must be importable (defined at the top of a module); '
                'move it there or use start="fork".'
            ) from None
    return "fork" if start == "fork" else "spawn"


def run_blocks(
    function: Function, blocks: Sequence[Any], limits: Limits, *, workers: int, start: Start, default: float
) -> list[float]:
    """The number that each block gives, in order; `default` for a block that gives none."""
    import multiprocessing
    from multiprocessing.connection import wait

    context = multiprocessing.get_context(start)
    _probe(context, limits)
    answers = [default] * len(blocks)
    running: dict[Any, _Block] = {}
    waiting: Iterator[tuple[int, Any]] = iter(enumerate(blocks))
    try:
        while True:
            while len(running) < workers and (job := next(waiting, None)) is not None:
                block = _Block.started(context, function, job, limits)
                if block is not None:
                    running[block.process.sentinel] = block
            if not running:
                return answers
            soonest = min(block.deadline for block in running.values())
            ready = wait(list(running), timeout=max(0.0, soonest - time.monotonic()))
            now = time.monotonic()
            for key, block in list(running.items()):
                if key in ready or now >= block.deadline:
                    del running[key]
                    answer = block.ended()
                    answers[block.place] = default if math.isnan(answer) else answer
    finally:
        for block in running.values():
            block.ended()


@dataclass(frozen=True)
class _Block:
    """A process at work on one block, and the end of the pipe on which its number arrives."""

    place: int
    process: Any
    pipe: Connection
    deadline: float

    @staticmethod
    def started(context: Any, function: Function, job: tuple[int, Any], limits: Limits) -> _Block | None:
        """The process for one block; None where its data cannot be handed over."""
        receiver, sender = context.Pipe(duplex=False)
        try:
            process = context.Process(target=_work, args=(function, job[1], limits, sender), daemon=False)
            with warnings.catch_warnings():
                # From 3.12 on forking with threads around is warned of: a block that hangs is ended anyway.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
        except Exception:
            receiver.close()
            return None
        finally:
            sender.close()
        return _Block(job[0], process, receiver, time.monotonic() + limits.patience)

    def ended(self) -> float:
        """End the process with all that it started, and read its number; NaN where it left none."""
        if _is_unreaped(self.process.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.process.close()
        answer = b""
        if self.pipe.poll():
            with contextlib.suppress(OSError):
                answer = os.read(self.pipe.fileno(), _NUMBER.size + 1)
        self.pipe.close()
        return float(_NUMBER.unpack(answer)[0]) if len(answer) == _NUMBER.size else math.nan


def _work(function: Function, block: Any, limits: Limits, sender: Connection) -> None:
    """What a block's process does; it tells its number and never anything else."""
    answer = math.nan
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.stdout = sys.stderr = os.fdopen(nowhere, "w")
        faulthandler.disable()  # it keeps a stream of its own
        _confine(limits)
        answer = _as_number(function(block))
    except BaseException:  # a block that exits is a block that gives no number
        answer = math.nan
    os.write(sender.fileno(), _NUMBER.pack(answer))
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with all that the function started
    # Neither buffers nor exit handlers of the parent's are this process's to run.
    os._exit(0)


def _is_unreaped(pid: int) -> bool:
    """Whether a child's number still names it: once it is reaped, the number may be another's."""
    if not hasattr(os, "waitid"):
        return True
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _as_number(result: Any) -> float:
    if isinstance(result, numbers.Real) or (hasattr(result, "dtype") and getattr(result, "ndim", None) == 0):
        return float(result)
    return math.nan


def _confine(limits: Limits) -> None:
    import resource  # not on Windows, where check_start has refused

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold the data
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds))
    # A forked process begins with its parent's memory, which is not the block's doing.
    pages = Path("/proc/self/statm")
    held = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    most = held + limits.megabytes * 2**20
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _nothing(block: Any) -> float:
    return 1.0


def _probe(context: Any, limits: Limits) -> None:
    """Start one process on no data, so that what is wrong with the machine is said before data are read."""
    from multiprocessing.connection import wait

    generous = Limits(limits.seconds, max(limits.patience, _PROBE_SECONDS), limits.megabytes)
    block = _Block.started(context, _nothing, (0, None), generous)
    if block is not None:
        wait([block.process.sentinel], timeout=generous.patience)
        if block.ended() == 1.0:
            return
    raise IncrowdError(
        "No process could be started for a block of the data: give megabytes= a larger limit, or make room "
        'for more processes; with start="spawn" the main program must be importable.'
    )
