"""Records as numbers, each read by itself.

Two rules keep what one person wrote from deciding more than her own number:

- *No record makes a release raise.* A missing value (None, NaN) is left out where records come and go, and
  counts as 0 where their number is public. A value that is too large is clamped by the mechanism.
- *No record decides how another is read.* NumPy chooses one type for a whole list. One float among large
  integers would then round them all, and one text would turn numbers into text. So the items of a list are
  read one by one. The type of an array is taken as it is, since the program chose it.

Only mistakes of the program are refused: text, dates or lists where numbers are due, or a table of another
shape.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.readings import items_of

Floats = NDArray[np.float64]

_WORD = 2**63


def read_records(values: Any, owner: str, public: bool) -> NDArray[Any]:
    """One list of numbers: int64, float64, or objects that are plain ints and floats; nothing is missing.

    `public` says that the number of records is public: a missing record then counts as 0.

    >>> read_records([2**53 + 1, 0.5, None], "Quantile", public=True).tolist()
    [9007199254740993, 0.5, 0]
    """
    complaint = f"The values given to {owner} must be one list of numbers, without gaps."
    array = _typed(values)
    if array is None:
        array = _gathered(_items(values, complaint), complaint)
    if array.ndim != 1:
        raise InvalidInput(complaint)
    return _without_gaps(array, public)


def read_floats(values: Any, complaint: str, dimensions: int = 1) -> Floats:
    """Numbers as floats, each rounded by itself; NaN where one is missing.

    With two dimensions: rows of numbers, a matrix or a data frame.
    """
    if dimensions == 2 and not isinstance(values, np.ndarray) and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = _typed(values)
    if array is not None:
        if array.ndim != dimensions and array.size:
            raise InvalidInput(complaint)
        return array.astype(np.float64)
    rows = _items(values, complaint)
    if dimensions == 2:
        table = [read_floats(row, complaint) for row in rows]
        if len({row.size for row in table}) > 1:
            raise InvalidInput(complaint)
        return np.array(table, dtype=np.float64)
    if (quick := _of_one_type(rows, np.float64)) is not None:
        return np.asarray(quick, dtype=np.float64)
    return np.array([as_float(_plain(item, complaint)) for item in rows], dtype=np.float64)


def read_column(values: Any, owner: str, public: bool) -> Floats:
    """One list of numbers as floats; nothing is missing, infinities are values like others."""
    floats = read_floats(values, f"The values given to {owner} must be one list of numbers, without gaps.")
    return np.asarray(_without_gaps(floats, public), dtype=np.float64)


def as_float(number: float) -> float:
    """The nearest float, an infinity for an int beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def listed(values: Any, complaint: str) -> list[Any]:
    """The items of a list, an array or a column, as Python values."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(complaint)
    array = values.ravel() if isinstance(values, np.ndarray) else values
    return items_of(array.tolist() if hasattr(array, "tolist") else array, complaint)


def _typed(values: Any) -> NDArray[Any] | None:
    """An array (or a pandas column) whose type the program chose; None for what is read item by item."""
    if isinstance(values, np.ma.MaskedArray):
        return None
    pandas = hasattr(values, "iloc") and isinstance(getattr(values, "dtype", None), np.dtype)
    if not isinstance(values, np.ndarray) and not pandas:
        return None
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype == np.uint64:
        return np.asarray(np.minimum(array, np.uint64(_WORD - 1)), dtype=np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array.astype(np.float64)
    return None


def _of_one_type(items: list[Any], whole: type[np.int64] | type[np.float64]) -> NDArray[Any] | None:
    """Plain floats, or plain ints as `whole`, all at once; each is read as it would be by itself."""
    kinds = set(map(type, items))
    if kinds == {float}:
        return np.array(items, dtype=np.float64)
    try:
        return np.array(items, dtype=whole) if kinds == {int} else None
    except OverflowError:
        return None


def _gathered(items: list[Any], complaint: str) -> NDArray[Any]:
    """Plain numbers as an array; integers are clamped to 64 bits, whatever stands beside them."""
    if (quick := _of_one_type(items, np.int64)) is not None:
        return quick
    items = [_plain(item, complaint) for item in items]
    items = [max(-_WORD, min(_WORD - 1, item)) if type(item) is int else item for item in items]
    kinds = set(map(type, items))
    if kinds == {float}:
        return np.array(items, dtype=np.float64)
    if kinds <= {int}:
        return np.array(items, dtype=np.int64)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _items(values: Any, complaint: str) -> list[Any]:
    if isinstance(values, np.ma.MaskedArray | str | bytes | dict) or not isinstance(values, Iterable):
        raise InvalidInput(complaint)
    if hasattr(values, "to_pylist"):  # Arrow: its own conversion rounds integers beside a gap
        return list(values.to_pylist())
    return items_of(values, complaint)


def _plain(item: Any, complaint: str) -> int | float:
    """A record as a plain int or float; NaN where it is missing."""
    if type(item) is int or type(item) is float:
        return item
    if item is None or type(item).__name__ == "NAType":
        return math.nan
    if isinstance(item, bool | np.bool_ | numbers.Integral):
        return int(item)
    if isinstance(item, Decimal) and item.is_nan():
        return math.nan
    if isinstance(item, float | Decimal | numbers.Rational | np.floating):
        try:
            return float(item)
        except OverflowError:
            return math.inf if Fraction(item) > 0 else -math.inf  # type: ignore[arg-type]
    raise InvalidInput(complaint)


def _without_gaps(array: NDArray[Any], public: bool) -> NDArray[Any]:
    if array.dtype.kind == "i":
        return array
    gaps = np.array([item != item for item in array.tolist()]) if array.dtype.kind == "O" else np.isnan(array)
    if not gaps.any():
        return array
    return np.where(gaps, 0, array) if public else array[~gaps]
