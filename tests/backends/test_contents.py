"""Words for what files hold: by content, kept under a secret, read once."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from incrowd.backends import contents
from incrowd.backends.contents import Contents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "private"
    made.mkdir()
    return made


def test_a_word_is_about_content_alone(tmp_path: Path, folder: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    one.write_bytes(b"rows")
    two.write_bytes(b"rows")
    other.write_bytes(b"swor")
    words = Contents(lambda: folder)
    first = words.word(str(one))
    assert words.word(str(two)) == first != words.word(str(other))
    os.utime(one, (0, 0))
    assert Contents(lambda: folder).word(str(one)) == first
    (tmp_path / "one.wal").write_bytes(b"log")
    assert words.word(str(one)) != first


def test_a_word_tells_nothing_without_the_secret(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "one").write_bytes(b"rows")
    word = Contents(lambda: folder).word(str(tmp_path / "one"))
    assert word != hashlib.sha256(b"rows").hexdigest()
    assert stat.S_IMODE((folder / "contents.key").stat().st_mode) == 0o600
    (folder / "contents.key").unlink()
    assert Contents(lambda: folder).word(str(tmp_path / "one")) != word


def test_a_file_at_rest_is_read_once(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one"
    file.write_bytes(b"rows")
    monkeypatch.setattr(contents, "_SETTLED", -(10**12))
    word = Contents(lambda: folder).word(str(file))
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert Contents(lambda: folder).word(str(file)) == word
    file.write_bytes(b"swor")
    with pytest.raises(TypeError):
        Contents(lambda: folder).word(str(file))


def test_a_file_that_changed_a_moment_ago_is_not_taken_for_known(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "one"
    file.write_bytes(b"rows")
    Contents(lambda: folder).word(str(file))
    assert not (folder / "contents.json").exists()
    (folder / "contents.json").write_bytes(b"[1")
    assert Contents(lambda: folder).word(str(file))
