"""YAML into plain values, with the line of each.

The common reader follows YAML 1.1, where `no` is false, `1e-6` is text, `1:30` is ninety, `010` is eight, and
the second of two equal keys silently wins. An owner who writes a domain or a delta expects none of that, so
scalars are read as in YAML 1.2 (and ISO dates as dates), and a key that appears twice is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from datetime import date, datetime
from typing import Any

import yaml

from incrowd.errors import CatalogError

Path = tuple[str | int, ...]
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*")
_DEEPEST = 40
_MOST = 200_000
"""How many values a file may hold. References (*name) multiply them: nine lines can stand for billions."""


def located(path: Path, message: str, name: str, line: int | None = None) -> CatalogError:
    """The error for a fault at `path` of the file `name`: one sentence."""
    place = f"{name}, line {line}: " if line else f"{name}: "
    return CatalogError(place + (f"{spelled(path)}: " if path else "") + message.rstrip(".") + ".")


def spelled(path: Path) -> str:
    """The path as people write it.

    >>> spelled(("tables", "people", "domain", 2))
    'tables.people.domain[2]'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def read(text: str, name: str) -> tuple[Any, dict[Path, int]]:
    """The value of a YAML document and the line (from 1) at which each part of it begins."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise located((), f"this is not YAML, {said}", name, mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, RecursionError):
        raise located(
            (), "this is not YAML: it holds characters or nesting that YAML does not allow", name
        ) from None
    lines: dict[Path, int] = {}
    if root is None:
        raise located((), "the file is empty; a catalog declares at least tables and a budget", name)
    return _value(root, (), lines, name), lines


def _value(node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> Any:
    line = lines[path] = node.start_mark.line + 1
    if len(path) > _DEEPEST:
        raise located((), "the file nests too deeply, or refers to itself", name, line)
    if len(lines) > _MOST:
        raise located(
            (),
            f"the file holds more than {_MOST:,} values; take long domains from a public table",
            name,
            line,
        )
    if isinstance(node, yaml.ScalarNode):
        _refuse_half_letters(node, path, name)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), lines, name) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, name)
    try:
        return scalar(node.value, plain=isinstance(node, yaml.ScalarNode) and node.style is None)
    except ValueError:
        raise located(path, f"{node.value} is not a date that exists", name, line) from None


def _mapping(node: yaml.MappingNode, path: Path, lines: dict[Path, int], name: str) -> dict[Hashable, Any]:
    result: dict[Hashable, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise located(path, "a name must be plain text", name, line)
        _refuse_half_letters(key_node, path, name)
        # Names are text whatever they look like: a column may be called 2024 or no.
        key = key_node.value
        if key == "<<" and key_node.style is None:
            raise located(path, "merge keys (<<) are not understood; write the fields out", name, line)
        if key in result:
            raise located((*path, key), "is declared twice", name, line)
        result[key] = _value(value_node, (*path, key), lines, name)
        lines[(*path, key)] = line
    return result


def _refuse_half_letters(node: yaml.ScalarNode, path: Path, name: str) -> None:
    r"""Refuse text such as "\ud800", which cannot be written to a file or a terminal."""
    if any("\ud800" <= letter <= "\udfff" for letter in node.value):
        said = "the text holds half a character (a lone surrogate); leave it out"
        raise located(path, said, name, node.start_mark.line + 1)


def scalar(text: str, *, plain: bool) -> Any:
    """A scalar as YAML 1.2 reads it; ISO dates and timestamps besides. ValueError for a date that is none.

    >>> [scalar(each, plain=True) for each in ("1e-6", "no", "010")], scalar("1", plain=False)
    ([1e-06, 'no', 10], '1')
    """
    if not plain:
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        # Python refuses to read absurdly long integers; as a float they are infinite, which is refused later.
        return int(text) if len(text) < 400 else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text.lower() in _SPECIAL:
        return float(_SPECIAL[text.lower()])
    if _DATE.fullmatch(text):
        return date.fromisoformat(text)
    if _TIMESTAMP.fullmatch(text):
        return datetime.fromisoformat(text)
    return text
