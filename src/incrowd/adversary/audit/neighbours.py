"""Pairs of neighbouring data sets to search over. Knows nothing of mechanisms.

Bugs show at the edges: an empty list, one record, a record at the end of its range, all records alike, a
record that nobody else resembles. Every pair here is one record apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from incrowd.errors import InvalidInput

Relation = Literal["add-remove", "replace"]
Pair = tuple[list[Any], list[Any]]


def neighbours(
    example: Sequence[Any], values: Sequence[Any], relation: Relation = "add-remove", most: int = 40
) -> Iterator[Pair]:
    """Up to `most` pairs of lists of records that differ in one: added or removed, or replaced.

    `example` is a list such as the mechanism is made for; `values` are those that a record may have, its
    extremes above all. First the example itself with a record of each value, then lists in which all are
    alike, then the example without each of its records.

    >>> list(neighbours([3], values=(0, 9)))[:3]
    [([3], [3, 0]), ([3], [3, 9]), ([], [0])]
    >>> list(neighbours([3, 4], values=(0, 9), relation="replace"))[0]
    ([3, 0], [3, 9])
    """
    if not values:
        raise InvalidInput("A search over neighbours needs at least one value that a record may have.")
    if relation not in ("add-remove", "replace"):
        raise InvalidInput(f'relation must be "add-remove" or "replace", not {relation!r}.')
    seen = 0
    found: list[Pair] = []
    for pair in _pairs(list(example), list(values), relation):
        if pair[0] != pair[1] and pair not in found:
            found.append(pair)
            yield pair
            seen += 1
            if seen == most:
                return


def _pairs(example: list[Any], values: list[Any], relation: Relation) -> Iterator[Pair]:
    size = len(example)
    alike = [[value] * size for value in values]
    if relation == "replace":
        rest = example[: max(size - 1, 0)]
        for low in values:
            for high in values:
                yield [*rest, low], [*rest, high]
        for same in alike if size else []:
            for value in values:
                yield same, [*same[:-1], value]
        for place in range(size):
            for value in values:
                yield example, [*example[:place], value, *example[place + 1 :]]
        return
    for value in values:
        yield example, [*example, value]
    for value in values:
        yield [], [value]
    for same in alike:
        for value in values:
            yield same, [*same, value]
    for place in range(size):
        yield example, [*example[:place], *example[place + 1 :]]
