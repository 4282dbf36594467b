"""What goes wrong around a ledger, each as a context: it lasts while the block runs and is mended after it.

A full disk is a real one: the ledger's folder is a small file system in memory, whose size is set to what is
used. That needs root; elsewhere this fault is left out.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.soak.arena import Arena
from tests.soak.own_server import OwnServer

ROOM = 1 << 30
"""Bytes of a disk that is not full."""
_DAY = 86_400
_PAGE = 4096

Fault = Callable[[], AbstractContextManager[None]]


def faults_of(arena: Arena, server: OwnServer | None, chance: random.Random) -> dict[str, Fault]:
    """All faults that an arena can have, by name."""
    faults: dict[str, Fault] = {
        "clock a few days ahead": lambda: skewed(arena, chance.randrange(1, 30) * _DAY),
        "clock a year ahead": lambda: skewed(arena, 365 * _DAY),
        "clock a few days back": lambda: skewed(arena, -chance.randrange(1, 30) * _DAY),
        "read-only anchor": lambda: read_only(arena.anchor.parent, arena.anchor),
    }
    if server is None:
        faults["read-only file"] = lambda: read_only(arena.ledger, *arena.side_files)
        faults["read-only folder"] = lambda: read_only(arena.account)
        disk = arena.account
    else:
        faults["sessions ended"] = lambda: sessions_ended(server)
        faults["server stopped"] = lambda: stopped(server, signal.SIGINT)
        faults["server crashed"] = lambda: stopped(server, signal.SIGQUIT)
        disk = server.home
    if os.path.ismount(disk):
        faults["disk full"] = lambda: full(disk, chance.randrange(20), server)
    return faults


@contextlib.contextmanager
def skewed(arena: Arena, seconds: int) -> Iterator[None]:
    """Clocks that are wrong."""
    _replace(arena.skew, str(seconds))
    try:
        yield
    finally:
        _replace(arena.skew, "0")


@contextlib.contextmanager
def read_only(*places: Path) -> Iterator[None]:
    """Files or folders that cannot be written. What appears meanwhile may be read-only too."""
    _allow(0o444, 0o555, *places)
    try:
        yield
    finally:
        _allow(0o600, 0o700, *places)


@contextlib.contextmanager
def full(disk: Path, pages: int, server: OwnServer | None) -> Iterator[None]:
    """A disk on which a few pages are left."""
    state = os.statvfs(disk)
    used = (state.f_blocks - state.f_bfree) * state.f_frsize
    resize(disk, used + pages * _PAGE)
    try:
        yield
    finally:
        resize(disk, ROOM)
        if server is not None:
            server.start()  # a server that could not write its log has ended


@contextlib.contextmanager
def sessions_ended(server: OwnServer) -> Iterator[None]:
    """Connections that are cut."""
    server.end_sessions()
    yield
    server.end_sessions()


@contextlib.contextmanager
def stopped(server: OwnServer, how: signal.Signals) -> Iterator[None]:
    """A server that is away for a while."""
    server.stop(how)
    try:
        yield
    finally:
        server.start()


@contextlib.contextmanager
def own_disk(folder: Path) -> Iterator[None]:
    """A file system of its own under a folder, if that is possible here."""
    if os.geteuid() != 0:
        yield
        return
    words = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "tmpfs", str(folder)]
    subprocess.run(words, capture_output=True, check=False)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def resize(disk: Path, size: int) -> None:
    """Let a disk have so many bytes."""
    # Somebody may have written meanwhile, and a disk cannot be smaller than what is on it.
    for more in (0, 16, 256, 4096):
        words = ["mount", "-o", f"remount,size={size + more * _PAGE}", str(disk)]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return
    raise RuntimeError(f"The size of {disk} cannot be changed.")


def _allow(file: int, folder: int, *places: Path) -> None:
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            place.chmod(folder if place.is_dir() else file)


def _replace(file: Path, text: str) -> None:
    draft = file.with_name(file.name + ".new")
    draft.write_text(text)
    draft.replace(file)
