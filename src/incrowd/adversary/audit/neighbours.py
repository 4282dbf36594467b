"""Pairs of neighbouring data sets to search over. Knows nothing of mechanisms.

Bugs show at the edges: an empty list, one record, a record at the end of its range, all records alike, a
record that nobody else resembles. Every pair here is one record apart.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from incrowd.errors import InvalidInput

Relation = Literal["add-remove", "replace"]
Pair = tuple[list[Any], list[Any]]
_SIZES = (
    *(0.0, 5e-324, 2.0**-1022, 2.0**-1000, 1.5 * 2.0**-1000, 2.0**-64, 1e-9, 0.5, 1 - 2.0**-53, 1.0),
    *(1 + 2.0**-52, 3.0, 1e6, 2.0**53, 2.0**61, 2.0**63, 2.0**64, 1e300, sys.float_info.max, math.inf),
)
HOSTILE: tuple[float, ...] = (*(sign * size for size in _SIZES for sign in (1, -1)), math.nan)
"""Floats at which formats, ranges and units end."""


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
    yielded: list[Pair] = []
    for pair in _pairs(list(example), list(values), relation):
        if pair[0] != pair[1] and pair not in yielded:
            yielded.append(pair)
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


def every_pair(
    values: Sequence[Any], sizes: Sequence[int], relation: Relation = "add-remove"
) -> Iterator[Pair]:
    """All pairs of sorted lists of these values; the smaller (if replaced, each) has one of the `sizes`.

    >>> list(every_pair([0, 1], [1]))
    [([0], [0, 0]), ([0], [0, 1]), ([1], [0, 1]), ([1], [1, 1])]
    >>> list(every_pair([0, 1], [1], "replace"))
    [([0], [1]), ([1], [0])]
    """
    for size in sizes:
        for chosen in itertools.combinations_with_replacement(values, size):
            rests = [list(chosen)]
            if relation == "replace":
                rests = [[*chosen[:place], *chosen[place + 1 :]] for place in range(size)]
            for rest in rests:
                for value in values:
                    other = sorted([*rest, value])
                    if other != list(chosen):
                        yield list(chosen), other


def hostile(
    count: int,
    relation: Relation = "add-remove",
    *,
    values: Sequence[Any] = HOSTILE,
    ordinary: Sequence[Any] = (1.0, 2.0, 2.5, 3.0),
    sizes: Sequence[int] = (0, 1, 2, 3, 5, 8, 40),
    seed: int = 0,
) -> Iterator[Pair]:
    """Pairs of neighbouring lists of ordinary and hostile records; `seed` fixes them.

    >>> x, x_prime = next(hostile(1, sizes=[3]))
    >>> len(x), len(x_prime)
    (3, 4)
    """
    chance = random.Random(seed)
    for _ in range(count):
        size = max(chance.choice(sizes), 1 if relation == "replace" else 0)
        share = chance.random()
        x = [chance.choice(values if chance.random() > share else ordinary) for _ in range(size)]
        place = chance.randrange(size + (relation == "add-remove"))
        yield x, [*x[:place], chance.choice(values), *x[place + (relation == "replace") :]]
