"""Puts small faults into modules, one at a time, and tells which of them no test notices.

    python -m tests.mutation src/incrowd/query              every module of a folder, 15 faults each
    python -m tests.mutation src/incrowd/query/growth.py --sample 0          every fault of one module
    python -m tests.mutation src/incrowd/privacy --tests tests/privacy       against a whole room's tests

A module is tested by its mirrored file (src/incrowd/query/growth.py by tests/query/test_growth.py) unless
--tests names others. Each mutant runs in a process of its own, forked where the libraries are loaded already
and Incrowd is not. It is killed if a test fails or the time is up. A module whose tests fail without any
fault is reported and left out. Exit status 1 if a mutant survived or a module has no tests.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
WARM = ("duckdb", "hypothesis", "numpy", "pandas", "pyarrow", "pydantic", "pytest", "scipy.stats", "sqlglot")
LATE = 124


class Faulty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a tree instead of its file."""

    def __init__(self, name: str, file: Path, tree: ast.Module) -> None:
        self.name, self.file, self.tree = name, file, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        package = self.file.name == "__init__.py"
        return importlib.util.spec_from_file_location(
            fullname,
            self.file,
            loader=self,
            submodule_search_locations=[str(self.file.parent)] if package else None,
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.file), "exec"), module.__dict__)


def name_of(file: Path) -> str:
    """The import name of a file under src."""
    parts = file.resolve().relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def mirror_of(file: Path) -> Path:
    """The test file that mirrors a module; a package is mirrored by a file with its name."""
    inside = file.resolve().relative_to(ROOT / "src" / "incrowd")
    folder, stem = inside.parent, inside.stem
    if stem == "__init__":
        folder, stem = folder.parent if folder.parent.name else folder, folder.name
    return ROOT / "tests" / folder / f"test_{stem}.py"


def status(file: Path, tree: ast.Module, tests: Sequence[Path], limit: float) -> int:
    """The exit status of the tests with this tree in the module's place; `LATE` if the time is up."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        import pytest

        sys.meta_path.insert(0, Faulty(name_of(file), file, tree))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
        options += ["--hypothesis-seed=0", "-W", "ignore:Module already imported"]
        os._exit(int(pytest.main([*options, *map(str, tests)])))
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return LATE


def modules_in(paths: Sequence[str]) -> list[Path]:
    """The files that are named, and those in folders that are named."""
    given = [Path(name) for name in paths]
    return [file for path in given for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


def survivors(file: Path, tests: Sequence[Path], sample: int, seed: int) -> tuple[int, list[Mutant]]:
    """How many mutants of a module were tried, and those that no test noticed."""
    source = file.read_text(encoding="utf-8")
    every = mutants(source)
    shuffled = random.Random(seed).sample(every, len(every))
    chosen = shuffled[: sample or None]
    if not chosen:
        return 0, []
    begun = time.monotonic()
    if status(file, ast.parse(source), tests, 600) != 0:
        raise RuntimeError("its tests fail without any fault")
    limit = 10 + 3 * (time.monotonic() - begun)
    alive = [mutant for mutant in chosen if status(file, mutant.tree, tests, limit) == 0]
    return len(chosen), sorted(alive, key=lambda mutant: mutant.line)


def main() -> int:
    """Try the modules named on the command line, and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("modules", nargs="+", help="files and folders under src/incrowd")
    parser.add_argument("--tests", nargs="*", default=None, help="instead of the mirrored files")
    parser.add_argument("--sample", type=int, default=15, help="mutants per module; 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="a smaller sample is part of a larger one")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    for name in WARM:
        importlib.import_module(name)
    tried = lived = 0
    failed = False
    for file in modules_in(options.modules):
        tests = [mirror_of(file)] if options.tests is None else [Path(path) for path in options.tests]
        missing = [test for test in tests if not test.exists()]
        if missing:
            failed = failed or bool(mutants(file.read_text(encoding="utf-8")))
            print(f"{name_of(file)}: no {missing[0].relative_to(ROOT)}", flush=True)
            continue
        try:
            number, alive = survivors(file, tests, options.sample, options.seed)
        except RuntimeError as error:
            failed = True
            print(f"{name_of(file)}: {error}", flush=True)
            continue
        tried, lived = tried + number, lived + len(alive)
        print(f"{name_of(file)}: {number - len(alive)} of {number} killed", flush=True)
        for mutant in alive:
            print(f"    survived at {file}:{mutant.line}: {mutant.fault}", flush=True)
    print(f"{tried - lived} of {tried} mutants killed")
    return int(failed or lived > 0)


if __name__ == "__main__":
    sys.exit(main())
