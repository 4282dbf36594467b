"""Folders for what an engine writes while it computes: for one process, for nobody else's eyes, never left.

An engine that runs out of memory writes rows to disk. They go into a folder that only this user may enter,
and are encrypted where the engine can do that. The folder is removed when it is closed. A process that is
killed removes nothing, so each folder is locked by its process, and whoever makes the next one beside it
removes those whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "spill-"


class PrivateFolder:
    """A folder of this process, made in `parent`, or in the system's temporary folder without one."""

    def __init__(self, parent: Path | None = None) -> None:
        root = private(parent) if parent is not None else None
        root = root or private(Path(tempfile.gettempdir()) / f"incrowd-{os.geteuid()}")
        self.path, lock = _alone() if root is None else _beside(root)
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder and what is in it."""
        self._finalizer()


def private(folder: Path) -> Path | None:
    """Create a folder that nobody else may enter; None if this is not possible here."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return None
        folder.chmod(0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _alone() -> tuple[Path, int]:
    """A folder with a name that nobody can foresee, where there is no folder to share."""
    path = Path(tempfile.mkdtemp(prefix=f"incrowd-{_PREFIX}"))
    return path, os.open(path, os.O_RDONLY)


def _beside(root: Path) -> tuple[Path, int]:
    """A locked folder in `root`. Those of processes that ended without removing theirs are removed."""
    # Without the lock on the root, another process could remove the new folder before it is locked.
    with _turn(root):
        for folder in root.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                left = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(left)
        path = root / f"{_PREFIX}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        lock = os.open(path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path, lock


@contextlib.contextmanager
def _turn(root: Path) -> Iterator[None]:
    place = os.open(root, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def _remove(path: Path, lock: int, owner: int) -> None:
    # A forked child has its parent's objects, but the folder is its parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)
