"""Words for what files hold: by content, kept under a secret, read once."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from incrowd.backends import contents
from incrowd.backends.contents import Contents, identity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "private"
    made.mkdir()
    return made


def word_of(folder: Path, file: Path) -> str:
    return Contents(lambda: folder).state(str(file)).word


def test_a_word_is_about_content_alone(tmp_path: Path, folder: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    one.write_bytes(b"rows")
    two.write_bytes(b"rows")
    other.write_bytes(b"swor")
    first = word_of(folder, one)
    assert word_of(folder, two) == first != word_of(folder, other)
    os.utime(one, (0, 0))
    assert word_of(folder, one) == first
    (tmp_path / "one.wal").write_bytes(b"log")
    assert word_of(folder, one) != first


def test_an_identity_changes_with_the_file_and_its_log_though_times_are_set_back(tmp_path: Path) -> None:
    file, log = tmp_path / "one", tmp_path / "one.wal"
    file.write_bytes(b"rows")
    met = {identity(file)}
    log.write_bytes(b"log")
    met.add(identity(file))
    for one in (file, log):
        seen = one.stat()
        while one.stat().st_ctime_ns == seen.st_ctime_ns:  # the file system's clock moves in ticks
            os.utime(one, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        met.add(identity(file))
    assert len(met) == 4


def test_the_memory_of_words_outlives_times_that_are_set_back_and_ahead(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a change of status alone says how long ago a file changed."""
    file = tmp_path / "one"
    file.write_bytes(b"rows")
    for year in (2000, 2100):
        os.utime(file, (year * 3.15e7 - 6.2e10,) * 2)
        word_of(folder, file)
        assert not (folder / "contents.json").exists()
    monkeypatch.setattr(contents, "_SETTLED", -(10**12))
    word_of(folder, file)
    assert (folder / "contents.json").exists()


def test_a_word_tells_nothing_without_the_secret(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "one").write_bytes(b"rows")
    word = word_of(folder, tmp_path / "one")
    assert word != hashlib.sha256(b"rows").hexdigest()
    assert stat.S_IMODE((folder / "contents.key").stat().st_mode) == 0o600
    (folder / "contents.key").unlink()
    assert word_of(folder, tmp_path / "one") != word


def test_a_file_at_rest_is_read_once(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one"
    file.write_bytes(b"rows")
    monkeypatch.setattr(contents, "_SETTLED", -(10**12))
    word = word_of(folder, file)
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert word_of(folder, file) == word
    file.write_bytes(b"swor")
    with pytest.raises(TypeError):
        word_of(folder, file)


def test_a_file_that_changed_a_moment_ago_is_not_taken_for_known(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "one"
    file.write_bytes(b"rows")
    word_of(folder, file)
    assert not (folder / "contents.json").exists()
    (folder / "contents.json").write_bytes(b"[1")
    assert word_of(folder, file)
