"""Changes a few values in the text of an owner's file and leaves everything else as it is written.

Comments, order and layout are the owner's. Values are put in place by their position in the text; a field
that is not there yet goes below the last one of its mapping; the section `bought` is written anew, at its
place or at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from incrowd.catalog.bought import BoughtTable
from incrowd.catalog.declaration import PLACEHOLDER
from incrowd.catalog.writing import bought_lines, inline, scalar
from incrowd.errors import CatalogError

Path = tuple[str, ...]
NOTED = "bought"
"""How notes beside values begin."""


def amended(
    text: str, values: Mapping[Path, Any], notes: Mapping[Path, str], bought: Mapping[str, BoughtTable]
) -> str:
    """The text with new values at some paths, notes beside them, and what was bought.

    >>> text = "tables:\\n  people:\\n    unit: id  # a person\\n    columns: {id: {type: text}}\\n"
    >>> print(amended(text, {("tables", "people", "contribution"): 8}, {}, {}), end="")
    tables:
      people:
        unit: id  # a person
        contribution: 8
        columns: {id: {type: text}}
    """
    for path, value in values.items():
        text = _with_value(text, path, inline(value), notes.get(path, ""))
    return _with_section(text, bought) if bought else text


def _with_value(text: str, path: Path, written: str, note: str) -> str:
    holder = _mapping(text, path)
    *_, name = path
    comment = f"  # {NOTED} {note}" if note else ""
    for key, value in holder.value:
        if key.value == name:
            start, end = key.end_mark.index, _end(value)
            rest = text[end:].partition("\n")[0]
            # A note takes the place of an earlier one, and of nothing that the owner wrote.
            replaced = not holder.flow_style and (not rest.strip() or rest.strip().startswith(f"# {NOTED} "))
            aside, end = (comment, end + len(rest)) if replaced else ("", end)
            return f"{text[:start]}: {written}{aside}{text[end:]}"
    if holder.flow_style:
        place = _end(holder.value[-1][1]) if holder.value else holder.start_mark.index + 1
        return f"{text[:place]}{', ' if holder.value else ''}{name}: {written}{text[place:]}"
    indent = " " * int(holder.value[0][0].start_mark.column)
    line_end = text.find("\n", _end(_anchor(holder)))
    before, after = (text, "") if line_end < 0 else (text[:line_end], text[line_end:])
    return f"{before}\n{indent}{name}: {written}{comment}{_without_hint(after, name)}"


def _anchor(holder: yaml.MappingNode) -> yaml.Node:
    """The value below which a new field goes: the unit of a table, the last one of a column."""
    units = [value for key, value in holder.value if key.value == "unit"]
    last: yaml.Node = holder.value[-1][1]
    return units[0] if units else last


def _without_hint(after: str, name: str) -> str:
    """The rest of the text, less the line that a proposed file has where the field was open."""
    line, _, rest = after.removeprefix("\n").partition("\n")
    return f"\n{rest}" if line.strip().startswith(f"# {name}: [{PLACEHOLDER}") else after


def _mapping(text: str, path: Path) -> yaml.MappingNode:
    """The mapping that holds the last name of a path."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for name in path[:-1]:
        node = next((value for key, value in node.value if key.value == name), None)
        if not isinstance(node, yaml.MappingNode):
            place = ".".join(path)
            raise CatalogError(f"{place} cannot be written into the file; write that part of it out plainly.")
    assert isinstance(node, yaml.MappingNode)
    return node


def _end(node: yaml.Node) -> int:
    """Where the text of a value ends. Marks of blocks lie behind the blanks and comments that follow them."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _with_section(text: str, bought: Mapping[str, BoughtTable]) -> str:
    lines = "\n".join(bought_lines(bought))
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in root.value:
        if key.value == scalar("bought"):
            start, end = key.start_mark.index, _end(value)
            return text[:start] + lines[lines.index("\nbought:") + 1 :] + text[end:]
    return f"{text.rstrip()}\n\n{lines}\n"
