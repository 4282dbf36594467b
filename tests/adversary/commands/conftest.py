"""A fixture that runs a command line, shared by the tests of both commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from incrowd.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in an empty folder: its status, output and complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command
