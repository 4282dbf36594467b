"""Turns a table into yes-or-no attributes, as summaries publish them: married, aged 41 to 45, both.

Knows nothing of attacks or of privacy.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.adversary.data.mondrian import ranked
from incrowd.errors import InvalidInput

MOST_VALUES = 60
"""A column of numbers with more values is cut at its deciles; a column of texts with more is left out."""


def binary_attributes(table: pa.Table, count: int) -> NDArray[np.uint8]:
    """A row for each person and `count` columns of 0 and 1, or fewer where the table has fewer.

    First one attribute for each value of each column (missing is a value), then the conjunctions of values of
    two columns, the most evenly split first: the cells of one-way and two-way tables. What all people share,
    or nobody has, is left out.

    >>> people = pa.table({"sex": ["f", "m", "m"], "town": ["x", "x", "y"]})
    >>> binary_attributes(people, 9).tolist()
    [[1, 0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 0, 1, 0], [0, 1, 0, 1, 0, 0, 1]]
    """
    if count < 1:
        raise InvalidInput(f"attributes must be at least 1, not {count}.")
    singles, owners = [], []
    for place, name in enumerate(table.column_names):
        column = ranked(table, name)
        ranks = column.ranks
        if len(column.values) - 1 > MOST_VALUES:
            if not column.numeric:
                continue
            ranks = np.searchsorted(np.unique(np.quantile(ranks, np.arange(1, 10) / 10)), ranks)
        distinct = np.unique(ranks)
        if len(distinct) > 1:
            singles += [ranks == value for value in distinct]
            owners += [place] * len(distinct)
    if not singles:
        raise InvalidInput("The table has no column in which people differ and which can be cut into groups.")
    bits = np.column_stack(singles)[:, :count].astype(np.uint8)
    left, right = _pairs(bits, np.array(owners[:count]), count - bits.shape[1])
    return np.concatenate([bits, bits[:, left] & bits[:, right]], axis=1)


def _pairs(
    bits: NDArray[np.uint8], owners: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The `count` pairs of attributes of different columns whose conjunction is nearest to a half."""
    left, right = np.triu_indices(len(owners), 1)
    apart = owners[left] != owners[right]
    left, right = left[apart], right[apart]
    as_floats = bits.astype(np.float32)  # counts below 2^24 are exact
    together = (as_floats.T @ as_floats)[left, right]
    split = np.minimum(together, len(bits) - together)
    order = np.argsort(-split, kind="stable")
    chosen = order[split[order] > 0][:count]
    return left[chosen], right[chosen]
