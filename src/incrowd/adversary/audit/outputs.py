"""Outputs of any kind as columns of numbers and words, for events to be learned on. Knows nothing of privacy.

An output may be a number, a text, None, a failure, an array, a list, a mapping, a dataclass, or any nesting
of these. It becomes numbers by place (`[2]`, `['flu']`), words by place (texts, None, the kind of a failure,
the order of a mapping's keys), and the output as a whole. NaN stands for a number that an output does not have.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Words = NDArray[np.object_]
MOST_PLACES = 400
"""Places of a structure that are looked at; the first ones that appear."""


@dataclass(frozen=True)
class Failure:
    """An output that is the mechanism's failure: the type of its exception, an exit or HTTP status."""

    kind: str


@dataclass(frozen=True)
class Outputs:
    """Many outputs, by place."""

    size: int
    numbers: Mapping[str, Floats]
    words: Mapping[str, Words]
    whole: NDArray[Any] | Sequence[Hashable]

    def number(self, place: str) -> Floats:
        """The numbers at a place; NaN where an output has none there."""
        found = self.numbers.get(place)
        return np.full(self.size, np.nan) if found is None else found

    def word(self, place: str) -> Words:
        """The words at a place; empty where an output has none there."""
        found = self.words.get(place)
        return np.full(self.size, "", dtype=object) if found is None else found


def read(outputs: Any) -> Outputs:
    """Outputs in columns.

    >>> found = read([3, None, 4])
    >>> found.number("").tolist(), found.word("").tolist()
    ([3.0, nan, 4.0], ['', 'None', ''])
    >>> sorted(read([{"a": 1}, {"b": 2, "a": 0}]).numbers)
    ["['a']", "['b']", 'length']
    """
    array = _as_array(outputs)
    if array is not None:
        return _from_array(array)
    numbers: dict[str, tuple[list[int], list[float]]] = {}
    words: dict[str, tuple[list[int], list[str]]] = {}
    for row, output in enumerate(outputs):
        _walk(output, "", row, numbers, words)
    size = len(outputs)
    columns = {}
    for place, (rows, values) in list(numbers.items())[:MOST_PLACES]:
        columns[place] = np.full(size, np.nan)
        columns[place][rows] = values
    texts = {}
    for place, (rows, found) in list(words.items())[:MOST_PLACES]:
        texts[place] = np.full(size, "", dtype=object)
        texts[place][rows] = found
    return Outputs(size, columns, texts, [repr(output) for output in outputs])


def _as_array(outputs: Any) -> NDArray[Any] | None:
    """Outputs that are all numbers, or all rows of as many numbers, as an array."""
    if isinstance(outputs, np.ndarray):
        return outputs if outputs.dtype.kind in "iufb" else None
    kinds = {type(output) for output in outputs}
    if not all(issubclass(kind, int | float | np.number | list | tuple | np.ndarray) for kind in kinds):
        return None
    if any(issubclass(kind, int | float | np.number) for kind in kinds) and len(kinds) > 1:
        return None
    try:
        array = np.asarray(outputs)
    except (ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "iufb" else None


def _from_array(array: NDArray[Any]) -> Outputs:
    size = len(array)
    if array.ndim == 1:
        return Outputs(size, {"": array.astype(np.float64)}, {}, array)
    rows = np.ascontiguousarray(array.reshape(size, -1))
    if rows.shape[1] == 0:
        return Outputs(size, {}, {}, np.zeros(size, dtype=np.int64))
    numbers = {f"[{j}]": rows[:, j].astype(np.float64) for j in range(min(rows.shape[1], MOST_PLACES))}
    return Outputs(size, numbers, {}, [tuple(row) for row in rows.tolist()])


def _walk(
    value: Any,
    place: str,
    row: int,
    numbers: dict[str, tuple[list[int], list[float]]],
    words: dict[str, tuple[list[int], list[str]]],
) -> None:
    """Put one output, or a part of it, into its columns."""

    def number(at: str, found: float) -> None:
        rows, values = numbers.setdefault(at, ([], []))
        rows.append(row)
        values.append(found)

    def word(at: str, found: str) -> None:
        rows, values = words.setdefault(at, ([], []))
        rows.append(row)
        values.append(found)

    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Failure):
        word(place, f"a failure ({value.kind})")
    elif isinstance(value, bool | int | float | Fraction):
        found = _float(value)
        if math.isnan(found):
            word(place, "NaN")
        else:
            number(place, found)
    elif isinstance(value, str) or value is None:
        word(place, "None" if value is None else repr(value))
    elif isinstance(value, Mapping):
        number(f"{place}length", len(value))
        word(f"{place}order", ", ".join(repr(key) for key in value))
        for key, each in value.items():
            _walk(each, f"{place}[{key!r}]", row, numbers, words)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        word(f"{place}type", type(value).__name__)
        for field in dataclasses.fields(value):
            _walk(getattr(value, field.name), f"{place}.{field.name}", row, numbers, words)
    elif isinstance(value, list | tuple | AbstractSet):
        number(f"{place}length", len(value))
        members = sorted(value, key=repr) if isinstance(value, AbstractSet) else value
        for index, each in enumerate(members):
            if isinstance(each, str):
                number(f"{place} holds {each!r}", 1.0)
            if not isinstance(value, AbstractSet):
                _walk(each, f"{place}[{index}]", row, numbers, words)
    else:
        word(place, repr(value))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
