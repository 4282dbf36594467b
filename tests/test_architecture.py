"""The map is true: the rooms, imports and steps of docs/architecture.md are those of the code."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import incrowd
from incrowd.curator import Curator
from tests.hospital import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
SOURCE = Path(incrowd.__file__).parent
ROOMS = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
ROOMS -= {"__init__"}


def table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its two header lines."""
    lines = PAGE.partition(f"## {heading}\n")[2].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


DRAWN = {names(room)[0]: set(names(imports)) for room, _, _, imports in table("The rooms")}
STEPS = [names(step)[0] for step, *_ in table("The path of a question")]


def layers() -> list[set[str]]:
    """The layers of the import contract, the lowest first."""
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    lines = contract["importlinter:contract:house"]["layers"].split("\n")
    return [set(re.findall(r"incrowd\.(\w+)", line)) for line in reversed(lines) if line.strip()]


def imported(file: Path) -> Iterator[str]:
    """The dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_imported(room: str) -> set[str]:
    """The other rooms that a room imports from."""
    files = (SOURCE / room).rglob("*.py") if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    parts = (name.split(".") for file in files for name in imported(file))
    return {name[1] for name in parts if name[0] == "incrowd" and name[1] in ROOMS - {room}}


def test_every_room_is_on_the_map_and_in_the_contract() -> None:
    assert set(DRAWN) == ROOMS
    assert set().union(*layers()) >= ROOMS


def test_the_map_lists_rooms_in_the_order_of_the_layers() -> None:
    floor = {room: number for number, layer in enumerate(layers()) for room in layer}
    floors = [floor[room] for room in DRAWN]
    assert floors == sorted(floors)
    for room, below in DRAWN.items():
        assert all(floor[other] < floor[room] for other in below), room


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_what_the_map_says(room: str) -> None:
    assert rooms_imported(room) == DRAWN[room]


def test_data_and_noise_meet_in_the_curator_alone() -> None:
    data, noise = {"catalog", "query", "backends"}, {"noise", "privacy", "mechanisms"}
    assert not any(DRAWN[room] & noise for room in data)
    assert not any(DRAWN[room] & data for room in noise)


def test_a_question_takes_the_steps_that_are_drawn() -> None:
    (ask,) = (
        node
        for node in ast.walk(ast.parse((SOURCE / "curator/curator.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "ask"
    )
    calls = sorted(
        (node.lineno, node.func.attr)
        for node in ast.walk(ask)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    )
    names = [name for _, name in calls]
    # The rows that the later steps see are no step; their moment begins before the price is reserved.
    assert names.pop(names.index("reserve") - 1) == "rows_of"
    assert names == STEPS
    assert len(STEPS) == 8 and all(getattr(Curator, step).__doc__ for step in STEPS)
    drawing = PAGE.partition("## The path of a question")[2].partition("```\n")[2].partition("```")[0]
    assert [
        line.split()[0] for line in drawing.splitlines() if line.split()[:1] and line.split()[0] in STEPS
    ] == STEPS


def test_what_the_page_names_exists() -> None:
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", PAGE):
        assert (SOURCE / name).exists() or (ROOT / name).exists(), name
