"""What an engine writes to disk: nobody else can read it, and it is gone even after a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from incrowd.backends import ENCRYPTED
from incrowd.backends.private_folders import PrivateFolder

_HOLDING = """
import sys, pathlib
from incrowd.backends.private_folders import PrivateFolder
held = PrivateFolder(pathlib.Path(sys.argv[1]))
(held.path / "rows").write_text("a row")
print(held.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_its_users_alone_and_gone_when_closed(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = PrivateFolder(tmp_path / "curator.copies")
    finally:
        os.umask(before)
    (folder.path / "rows").write_text("a row")
    for place in (folder.path, folder.path.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    folder.close()
    folder.close()
    assert not folder.path.exists()


def test_without_a_parent_it_lies_in_a_private_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = PrivateFolder()
    assert folder.path.parent.parent == tmp_path
    assert stat.S_IMODE(folder.path.parent.stat().st_mode) == 0o700
    folder.close()


def test_a_parent_that_is_a_link_is_not_entered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another user of the machine may have put it there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"incrowd-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")
    folder = PrivateFolder()
    assert folder.path.parent == tmp_path
    assert not list((tmp_path / "elsewhere").iterdir())
    folder.close()
    assert not folder.path.exists()


def test_the_folder_of_a_killed_process_is_swept_and_that_of_a_running_one_kept(tmp_path: Path) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        child = subprocess.Popen(
            [sys.executable, "-c", _HOLDING, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        return child, Path(child.stdout.readline().strip())

    (killed, left), (running, kept) = start(), start()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "rows").exists()
    PrivateFolder(tmp_path).close()
    assert not left.exists()
    assert (kept / "rows").exists()
    running.communicate()
    assert not kept.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_its_parents_folder(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path)
    child = os.fork()
    if not child:
        folder.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    folder.close()


def test_what_duckdb_spills_is_encrypted(tmp_path: Path) -> None:
    """Under this limit the groups do not fit into memory; the text would be found in plain files."""

    def spilled(settings: tuple[str, ...], folder: Path) -> bytes:
        connection = duckdb.connect(config={"temp_directory": str(folder), "memory_limit": "60MB"})
        for setting in (*settings, "SET threads = 1"):
            connection.execute(setting)
        connection.execute(
            "CREATE TABLE t AS SELECT 'secretname' || md5(i::VARCHAR) AS a FROM range(1500000) t(i)"
        )
        content = b"".join(file.read_bytes() for file in folder.iterdir())
        connection.close()
        return content

    plain, hidden = (tmp_path / "plain", tmp_path / "hidden")
    plain.mkdir()
    hidden.mkdir()
    before, after = spilled((), plain), spilled(ENCRYPTED, hidden)
    assert b"secretname" in before
    assert len(after) > 1_000_000
    assert b"secretname" not in after
