"""Processes that the soak forks: as real as starting Python for each, without importing everything again.

They end with the soak, however that ends. Where it runs as root, they give up root's right to write what is
read-only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BROKEN = 4
"""The exit status of a process that ended by an error of the soak itself, or of a command."""
_PASSES_OVER_MODES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_CAPABILITIES = 0x20080522
_PR_SET_PDEATHSIG = 1


@dataclass
class Process:
    """A forked process. `killed` says that it was the soak that ended it."""

    pid: int
    name: str
    output: Path
    killed: bool = False
    status: int | None = None

    def kill(self) -> None:
        """End it as a crash would."""
        self.killed = True
        os.kill(self.pid, signal.SIGKILL)

    def tell(self) -> None:
        """Ask it to end."""
        os.kill(self.pid, signal.SIGTERM)

    def ended(self) -> bool:
        """Whether it has ended; never waits."""
        if self.status is None:
            pid, code = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(code) if pid else None
        return self.status is not None

    def wait(self, seconds: float) -> bool:
        """Whether it ends within some time."""
        deadline = time.monotonic() + seconds
        while not self.ended():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    @property
    def said(self) -> str:
        """What it printed."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""


def fork(name: str, work: Callable[[], int], output: Path) -> Process:
    """A process that does some work and ends with its status; what it prints goes to a file."""
    soak = os.getpid()
    child = os.fork()
    if child:
        return Process(child, name, output)
    status = BROKEN
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        end_with(soak)
        _obey_modes()
        status = work()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def end_with(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Let this process be ended with its parent, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:  # it has ended already
        os._exit(BROKEN)


def _obey_modes() -> None:
    if os.geteuid() != 0 or sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) == 0:
        for place in range(3):  # effective, permitted, inheritable
            sets[place] &= ~_PASSES_OVER_MODES
        libc.capset(header, sets)
