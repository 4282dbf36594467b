"""Private columnar copies of files that are slow or unsafe to read again for every question.

Copies lie in a folder beside the ledger that only its owner may enter, or in a temporary folder if the
catalog has no file. A copy's name depends on the source's path and content (`contents`) and on the recipe
(the SQL that reads it), so a changed file or declaration gets a new copy: a copy holds the rows that the
version of the data names. Copies that no table needs any more are removed. A checksum detects damage, but not
tampering: whoever can write to the folder can also write a checksum.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from incrowd.backends.contents import Contents, State, identity
from incrowd.backends.private_folders import PrivateFolder, private
from incrowd.errors import CatalogError

_FORMAT = "1"
"""Increase this number when copies of an older version must not be used any more."""
_SUFFIX = ".copy"
_HALF_WRITTEN = ".new"
_OURS = (_SUFFIX, ".sum", ".seen", _HALF_WRITTEN)
_ABANDONED = 86_400.0
"""Seconds after which an unfinished copy counts as abandoned."""


class Copies:
    """A folder of copies."""

    def __init__(self, folder: Path | None) -> None:
        self._wished = folder
        self._folder: Path | None = None
        self._checked: dict[Path, str] = {}
        self._user = ""
        self._used: dict[str, set[Path]] = defaultdict(set)
        self._temporary: PrivateFolder | None = None
        self._contents = Contents(lambda: self.folder)

    @property
    def folder(self) -> Path:
        """The folder of the copies, created when it is first needed."""
        if self._folder is not None and not self._folder.is_dir():
            self._folder = None
        if self._folder is None and self._wished is not None:
            self._folder = private(self._wished)
        if self._folder is None:
            self._temporary = PrivateFolder()
            self._folder = self._temporary.path
        return self._folder

    def state(self, source: str) -> State:
        """A file as it is now; OSError if it is gone or changes meanwhile."""
        return self._contents.state(source)

    def copy(self, source: str, recipe: str, write: Callable[[Path], None]) -> Path:
        """The copy of a file as it is now. `write` creates it unless an undamaged one exists."""
        now = self.state(source)
        place = self._place(now, recipe, _SUFFIX)
        if self.whole(place):
            return place
        sums = place.with_suffix(".sum")
        if not (place.is_file() and sums.is_file() and sums.read_text("ascii") == _checksum(place)):
            self._forget(source, recipe)
            new = self.folder / f"{secrets.token_hex(8)}{_HALF_WRITTEN}"
            try:
                new.touch(0o600)
                write(new)
                if self.state(source) != now:
                    raise changed(self._user)
                _written(sums, _checksum(new))
                new.replace(place)
            finally:
                new.unlink(missing_ok=True)
        self._checked[place] = identity(place)
        return place

    def whole(self, place: Path) -> bool:
        """True if a copy has not changed since its checksum was verified."""
        try:
            return self._checked.get(place) == identity(place)
        except OSError:
            return False

    @contextmanager
    def user(self, name: str) -> Iterator[None]:
        """Record the copies that a table needs: those that are asked for inside this context."""
        self._user = name
        self._used[name] = set()
        yield

    def used_by(self, name: str) -> list[Path]:
        """The copies that a table needs."""
        return [place for place in self._used[name] if place.suffix == _SUFFIX]

    def sweep(self) -> None:
        """Remove the copies that no table needs any more: they may hold rows that were deleted since."""
        if self._folder is None and (self._wished is None or not self._wished.is_dir()):
            return
        needed = {place.stem for places in self._used.values() for place in places}
        for file in self.folder.iterdir():
            kept = file.stem in needed or file.suffix not in _OURS
            if not (kept or (file.suffix == _HALF_WRITTEN and not _abandoned(file))):
                _remove(file)

    def seen(self, file: State, recipe: str) -> bool:
        """True if a file was noted with this recipe and the content that it has."""
        return self._place(file, recipe, ".seen").exists()

    def note(self, file: State, recipe: str) -> None:
        """Remember a file that was read in this state, unless it has changed meanwhile."""
        if self.state(file.path) == file:
            self._forget(file.path, recipe)
            _written(self._place(file, recipe, ".seen"), "")

    def remembered(self, table: str, recipe: str) -> frozenset[str]:
        """The digests of a table's files that were read with this recipe.

        For files that an engine reaches and this process may not reach. A table has one list, since it may
        have many files.
        """
        place = self._list(table, recipe)
        return frozenset(place.read_text("ascii").split()) if place.exists() else frozenset()

    def remember(self, table: str, recipe: str, digests: Iterable[str]) -> None:
        """Replace the remembered digests of a table's files."""
        _written(self._list(table, recipe), "\n".join(sorted(digests)))

    def _list(self, table: str, recipe: str) -> Path:
        place = self.folder / f"{digest(table)}-{digest(_FORMAT + recipe)}.seen"
        self._used[self._user].add(place)
        return place

    def _place(self, file: State, recipe: str, suffix: str) -> Path:
        place = self.folder / f"{self._stem(file.path, recipe)}-{digest(file.word)}{suffix}"
        self._used[self._user].add(place)
        return place

    def _stem(self, source: str, recipe: str) -> str:
        return f"{digest(str(Path(source).resolve()))}-{digest(_FORMAT + recipe)}"

    def _forget(self, source: str, recipe: str) -> None:
        """Remove copies of earlier contents, so that no deleted row stays behind."""
        for old in self.folder.glob(f"{self._stem(source, recipe)}-*"):
            _remove(old)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary is not None:
            self._temporary.close()


def changed(table: str) -> CatalogError:
    """The error for a file that another program writes to."""
    return CatalogError(f"tables.{table}: its files changed while they were read; try again.")


def _written(file: Path, content: str) -> None:
    """Write a small file completely or not at all."""
    new = file.with_name(f"{secrets.token_hex(8)}{_HALF_WRITTEN}")
    new.touch(0o600)
    new.write_text(content, "ascii")
    new.replace(file)


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def _abandoned(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime > _ABANDONED
    except OSError:
        return False


def digest(text: str) -> str:
    """A short name for a text that does not reveal the text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
