"""Outputs of any kind as columns of numbers and words, for events to be learned on. Knows nothing of privacy.

An output may be a number, a text, None, a failure, an array, a list, a mapping, a dataclass, or any nesting
of these. It becomes numbers by place (`[2]`, `['flu']`), words by place (texts, None, the kind of a failure,
the order of a mapping's keys), and one text for the whole. An output's columns depend on that output alone,
because events must be sets of outputs. NaN stands for a missing number.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Words = NDArray[np.object_]


@dataclass(frozen=True)
class Failure:
    """A failure of the mechanism, as an output: the type of its exception, an exit or HTTP status."""

    kind: str


@dataclass(frozen=True)
class Outputs:
    """Many outputs, by place."""

    size: int
    numbers: Mapping[str, Floats]
    words: Mapping[str, Words]
    raw: Sequence[Any] | NDArray[Any]

    def number(self, place: str) -> Floats:
        """The numbers at a place; NaN where an output has none there."""
        column = self.numbers.get(place)
        return np.full(self.size, np.nan) if column is None else column

    def word(self, place: str) -> Words:
        """The words at a place; empty where an output has none there."""
        column = self.words.get(place)
        return np.full(self.size, "", dtype=object) if column is None else column

    def whole(self) -> Words:
        """Each output as one text."""
        listed = self.raw.tolist() if isinstance(self.raw, np.ndarray) else self.raw
        texts = np.empty(self.size, dtype=object)
        texts[:] = [repr(_plain(output)) for output in listed]
        return texts

    def head(self, most: int) -> Outputs:
        """The first of these outputs."""
        numbers = {place: column[:most] for place, column in self.numbers.items()}
        words = {place: column[:most] for place, column in self.words.items()}
        return Outputs(min(self.size, most), numbers, words, self.raw[:most])


def read(outputs: Any) -> Outputs:
    """Outputs in columns.

    >>> columns = read([3, None, 4])
    >>> columns.number("").tolist(), columns.word("").tolist()
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
    columns = {place: _filled(size, rows, values, np.nan) for place, (rows, values) in numbers.items()}
    texts = {place: _filled(size, rows, values, "") for place, (rows, values) in words.items()}
    return Outputs(size, columns, texts, outputs)


def _filled(size: int, rows: list[int], values: list[Any], empty: Any) -> NDArray[Any]:
    column = np.full(size, empty, dtype=object if isinstance(empty, str) else np.float64)
    column[rows] = values
    return column


def _as_array(outputs: Any) -> NDArray[Any] | None:
    """Outputs that are numbers of one type, or come as an array already; None otherwise."""
    if isinstance(outputs, np.ndarray):
        return outputs if outputs.dtype.kind in "iufb" else None
    if len({type(output) for output in outputs}) != 1 or not isinstance(outputs[0], int | float):
        return None
    try:
        array = np.asarray(outputs)
    except OverflowError:
        return None
    return array if array.dtype.kind in "iufb" else None


def _from_array(array: NDArray[Any]) -> Outputs:
    """The same columns that `_walk` makes, at once."""
    size = len(array)
    numbers: dict[str, Floats] = {}
    words: dict[str, Words] = {}

    def put(place: str, column: NDArray[Any]) -> None:
        numbers[place] = column.astype(np.float64)
        nothing = np.isnan(numbers[place])
        if nothing.any():
            words[place] = np.where(nothing, "NaN", "").astype(object)

    def down(part: NDArray[Any], place: str) -> None:
        if part.ndim == 1:
            put(place, part)
            return
        numbers[f"{place}length"] = np.full(size, float(part.shape[1]))
        for index in range(part.shape[1]):
            down(part[:, index], f"{place}[{index}]")

    down(array, "")
    return Outputs(size, numbers, words, array)


def _plain(value: Any) -> Any:
    """An output in plain Python types, so that arrays and lists read alike."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return sorted(value, key=repr) if isinstance(value, AbstractSet) else value


def _walk(
    value: Any,
    place: str,
    row: int,
    numbers: dict[str, tuple[list[int], list[float]]],
    words: dict[str, tuple[list[int], list[str]]],
) -> None:
    """Put one output, or a part of it, into its columns."""

    def number(at: str, amount: float) -> None:
        rows, values = numbers.setdefault(at, ([], []))
        rows.append(row)
        values.append(amount)

    def word(at: str, text: str) -> None:
        rows, values = words.setdefault(at, ([], []))
        rows.append(row)
        values.append(text)

    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Failure):
        word(place, f"a failure ({value.kind})")
    elif isinstance(value, bool | int | float | Fraction):
        amount = _float(value)
        if math.isnan(amount):
            word(place, "NaN")
        else:
            number(place, amount)
    elif isinstance(value, str) or value is None:
        word(place, "None" if value is None else repr(value))
    elif isinstance(value, Mapping):
        number(f"{place}length", len(value))
        word(f"{place}order", ", ".join(repr(key) for key in value))
        for key, item in value.items():
            _walk(item, f"{place}[{key!r}]", row, numbers, words)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        word(f"{place}type", type(value).__name__)
        for field in dataclasses.fields(value):
            _walk(getattr(value, field.name), f"{place}.{field.name}", row, numbers, words)
    elif isinstance(value, list | tuple | AbstractSet):
        number(f"{place}length", len(value))
        members = sorted(value, key=repr) if isinstance(value, AbstractSet) else value
        for index, member in enumerate(members):
            if isinstance(member, str):
                number(f"{place} holds {member!r}", 1.0)
            if not isinstance(value, AbstractSet):
                _walk(member, f"{place}[{index}]", row, numbers, words)
    else:
        word(place, repr(value))


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
