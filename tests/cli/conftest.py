"""A census folder to stand in, and a way to run the command line and see what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from incrowd.catalog import load
from incrowd.cli import main
from incrowd.curator import Ledger
from incrowd.data import adult_path

CATALOG = """\
sources:
  census: {{parquet: {path}}}
tables:
  adult:
    unit: row
    columns:
      age: {{type: integer, bounds: [17, 90]}}
      sex: {{type: text, domain: [Female, Male], nullable: false}}
      education: {{type: text}}
      fnlwgt: {{type: integer}}
budget: {{epsilon: 2.0, delta: 1e-6}}
analysts:
  ana: {{epsilon: 1.0, per_day: {{epsilon: 0.6}}}}
  ben: {{epsilon: 1.0, max_epsilon: 0.5}}
"""


@dataclass(frozen=True)
class Result:
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def census(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a curator.yaml for the Adult table, to run commands in as ana."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INCROWD_ANALYST", "ana")
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "curator.yaml").write_text(CATALOG.format(path=adult_path()), encoding="utf-8")
    declared = load("curator.yaml")
    Ledger.found(declared.ledger_url, declared).close()
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line."""

    def command(*arguments: str) -> Result:
        capsys.readouterr()
        status = main(arguments)
        said = capsys.readouterr()
        return Result(status, said.out, said.err)

    return command
