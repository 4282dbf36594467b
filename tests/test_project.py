"""The project's own files agree with each other: targets, constraints, hooks and the versions they name."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

from tests.hospital import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def versions(file: str) -> dict[str, str]:
    """Package -> version, of a file of constraints."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def bounds() -> dict[str, str]:
    """Package -> the lowest version that users may have."""
    extras = PROJECT["optional-dependencies"]
    users = [requirement for name in extras if name not in ("bench", "dev") for requirement in extras[name]]
    lowest = {}
    for requirement in [*PROJECT["dependencies"], *users]:
        name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?[=>]=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        lowest[name] = version
    return lowest


def test_every_target_is_phony_and_explained() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None and set(phony[1].split()) == TARGETS
    explained = set(re.findall(r'@echo "make ([a-z-]+) ', MAKEFILE))
    assert explained | {"help", "clean"} == TARGETS


def test_the_lowest_versions_are_those_that_the_package_allows() -> None:
    lowest = versions("constraints-lowest.txt")
    for name, version in bounds().items():
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", lowest[name]), name


def test_the_pinned_versions_are_allowed() -> None:
    pinned = versions("constraints.txt")
    for name, version in bounds().items():
        assert _numbers(pinned[name]) >= _numbers(version), name


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def test_hooks_are_local() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]


def test_ci_runs_targets_that_exist_on_every_python_that_is_allowed() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    ran = {
        step["run"].removeprefix("make ") for job in jobs.values() for step in job["steps"] if "run" in step
    }
    assert ran <= TARGETS
    assert PROJECT["requires-python"] == f">={jobs['test']['strategy']['matrix']['python'][0]}"
