"""Importing is quick because nothing is loaded before it is used, and nothing is missing because of that."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

import incrowd

HEAVY = ["duckdb", "numpy", "pyarrow", "pydantic", "rich", "scipy", "sqlalchemy", "sqlglot", "typer", "yaml"]
COMMAND = """
import contextlib, io
from incrowd.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main({!r})
"""


def loaded(code: str) -> set[str]:
    """Which heavy packages a fresh process has loaded after some code."""
    asked = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("import incrowd", set()),
        ("from incrowd import BudgetExceeded", set()),
        ("from incrowd.privacy import zcdp", {"numpy", "scipy"}),
        ("from incrowd.mechanisms import Laplace", {"numpy", "scipy"}),
        (COMMAND.format(["--version"]), {"rich", "typer"}),
        (COMMAND.format(["--help"]), {"numpy", "rich", "typer"}),
        (COMMAND.format(["ask", "--help"]), {"pydantic", "rich", "typer"}),  # typer looks for pydantic
    ],
    ids=["package", "error", "privacy", "mechanisms", "version", "help", "help of a command"],
)
def test_only_what_is_needed_is_loaded(code: str, needed: set[str]) -> None:
    assert loaded(code) <= needed


def test_every_name_and_room_is_listed_for_completion() -> None:
    rooms = {module.name for module in pkgutil.iter_modules(incrowd.__path__) if module.ispkg}
    assert {*incrowd.__all__, *rooms} <= set(dir(incrowd))


def test_a_room_is_reached_through_the_package() -> None:
    assert loaded("import incrowd\nincrowd.mechanisms.Laplace; incrowd.noise.geometric")
    assert "sqlalchemy" in loaded("from incrowd import *\nCurator.ask; assert __version__")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'incrowd' has no attribute 'Curater'"):
        _ = incrowd.Curater  # type: ignore[attr-defined]
    assert not hasattr(incrowd, "nothing")
