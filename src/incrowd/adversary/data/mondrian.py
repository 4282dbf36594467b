"""Mondrian: makes a table k-anonymous by generalising its quasi-identifiers, as many releases still do.

Strict multidimensional recoding (LeFevre, DeWitt, Ramakrishnan 2006): start with all rows in one class; cut a
class in two at the median of the quasi-identifier in which it is widest, as long as both sides keep at least
k rows; stop when no cut is left. Every class is then published as the ranges of numbers and the sets of
categories that it holds. Cuts never part equal values, so the classes are disjoint boxes and a person's
quasi-identifiers lead to one class alone.

The generaliser is here to be attacked (`k_anonymity`): k-anonymity is no guarantee. It knows nothing of
sensitive values, of noise or of budgets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.errors import InvalidInput

MISSING = 0  # the rank of NULL and of NaN, below every value


@dataclass(frozen=True, eq=False)
class Column:
    """A column as ranks: 0 for missing, else the place of the value among the distinct values in order."""

    name: str
    numeric: bool
    """Whether it is published as a range, and not as a set."""
    values: tuple[Any, ...]
    """The distinct values in order, behind None for missing."""
    ranks: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Generalised:
    """A k-anonymous table: which rows share a class, and what is published of each class. Rows keep their
    order.
    """

    columns: tuple[Column, ...]
    """The quasi-identifiers as they were."""
    classes: NDArray[np.int64]
    """The class of each row, numbered from 0."""
    low: NDArray[np.int64]
    """For each class and quasi-identifier, the lowest rank in it."""
    high: NDArray[np.int64]
    """The highest."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows in each class."""
        return np.bincount(self.classes, minlength=len(self.low)).astype(np.int64)

    def find(self, person: Sequence[Any]) -> int:
        """The class into which a person's quasi-identifiers fall, -1 for none: what an attacker looks up."""
        if len(person) != len(self.columns):
            names = ", ".join(column.name for column in self.columns)
            raise InvalidInput(f"A person is looked up by one value for each of {names}.")
        inside = np.ones(len(self.low), dtype=bool)
        for place, (column, value) in enumerate(zip(self.columns, person, strict=True)):
            rank = _rank_of(value, column.values)
            inside &= (self.low[:, place] <= rank) & (rank <= self.high[:, place])
        matches = np.flatnonzero(inside)
        return int(matches[0]) if len(matches) else -1

    def table(self) -> pa.Table:
        """What is published of every row: `17 to 34` of a number, `{Never-married, Widowed}` of a category.

        Missing values are told like a category: `missing`, or `missing or 17 to 34`.
        """
        order = np.argsort(self.classes, kind="stable")
        starts = np.searchsorted(self.classes[order], np.arange(len(self.low)))
        told = {}
        for column in self.columns:
            parts = np.split(column.ranks[order], starts[1:])
            texts = pa.array([_told(column, np.unique(part)) for part in parts], pa.string())
            told[column.name] = texts.take(pa.array(self.classes))
        return pa.table(told)


def mondrian(table: pa.Table, quasi_identifiers: Sequence[str], k: int) -> Generalised:
    """Generalise the quasi-identifiers until every row shares them with at least k - 1 others.

    The same table always gives the same classes. A class is cut where it is widest, in ranks and relative to
    the whole table; among equals the quasi-identifier named first is cut.

    >>> people = pa.table({"age": [21, 23, 38, 47, 59, 62], "zip": ["13053"] * 4 + ["14853"] * 2})
    >>> mondrian(people, ["age", "zip"], k=3).table().to_pylist()[0]
    {'age': '21 to 38', 'zip': '{13053}'}
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInput(f"k must be a whole number of at least 1, not {k!r}.")
    if not quasi_identifiers:
        raise InvalidInput("Name at least one quasi-identifier, such as quasi_identifiers=['age', 'zip'].")
    if k > table.num_rows:
        raise InvalidInput(
            f"A table of {table.num_rows} rows cannot be made {k}-anonymous: every class needs {k} rows, so "
            "lower k or add rows."
        )
    columns = tuple(ranked(table, name) for name in quasi_identifiers)
    ranks = np.column_stack([column.ranks for column in columns])
    classes = np.empty(len(ranks), dtype=np.int64)
    low, high = [], []
    for number, rows in enumerate(_partition(ranks, int(k))):
        classes[rows] = number
        low.append(ranks[rows].min(axis=0))
        high.append(ranks[rows].max(axis=0))
    return Generalised(columns, classes, np.array(low), np.array(high))


def ranked(table: pa.Table, name: str) -> Column:
    """A column of a table by the ranks of its values; NULL and NaN are missing.

    >>> ranked(pa.table({"age": [40, None, 21, 40]}), "age").ranks.tolist()
    [2, 0, 1, 2]
    """
    if name not in table.column_names:
        raise InvalidInput(f"There is no column {name}; the table has {', '.join(table.column_names)}.")
    cells = table[name].combine_chunks()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    kind = cells.type
    if pa.types.is_floating(kind):
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    try:
        distinct = cells.unique().drop_null()
        distinct = distinct.take(pc.sort_indices(distinct))
        places = pc.index_in(cells, value_set=distinct)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise InvalidInput(
            f"Column {name} holds values without an order ({kind}); use numbers, texts or dates."
        ) from None
    ranks = pc.add(pc.fill_null(places, -1), 1).to_numpy(zero_copy_only=False).astype(np.int64)
    ordered = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return Column(name, ordered or pa.types.is_temporal(kind), (None, *distinct.to_pylist()), ranks)


def _partition(ranks: NDArray[np.int64], k: int) -> Iterator[NDArray[np.int64]]:
    """The rows of each class, in the order of the cuts, left before right."""
    span = np.maximum(ranks.max(axis=0) - ranks.min(axis=0), 1)
    waiting = [np.arange(len(ranks))]
    while waiting:
        rows = waiting.pop()
        sides = _cut(ranks[rows], span, k)
        if sides is None:
            yield rows
        else:
            waiting += [rows[~sides], rows[sides]]


def _cut(within: NDArray[np.int64], span: NDArray[np.int64], k: int) -> NDArray[np.bool_] | None:
    """The rows to the left of the widest cut that leaves k on both sides, if there is one."""
    if len(within) < 2 * k:
        return None
    widths = (within.max(axis=0) - within.min(axis=0)) / span
    for place in np.argsort(-widths, kind="stable"):
        if widths[place] == 0:
            return None
        value = within[:, place]
        median = np.partition(value, (len(value) - 1) // 2)[(len(value) - 1) // 2]
        # Values equal to the median stay together: they all go left, or all go right.
        best: NDArray[np.bool_] = max((value <= median, value < median), key=_smaller_side)
        if _smaller_side(best) >= k:
            return best
    return None


def _smaller_side(left: NDArray[np.bool_]) -> int:
    count = int(np.count_nonzero(left))
    return min(count, len(left) - count)


def _rank_of(value: Any, values: tuple[Any, ...]) -> int:
    """The rank of a value; one that the table does not hold lies in no class."""
    if value is None or value != value:
        return MISSING
    return values.index(value) if value in values else -1


def _told(column: Column, ranks: NDArray[np.int64]) -> str:
    """The values of one class in words."""
    present = [column.values[rank] for rank in ranks if rank != MISSING]
    missing = len(present) < len(ranks)
    if not present:
        return "missing"
    if not column.numeric:
        told = "{" + ", ".join(str(value) for value in present) + "}"
    elif len(present) == 1:
        told = str(present[0])
    else:
        told = f"{present[0]} to {present[-1]}"
    return f"missing or {told}" if missing else told
