"""Converts columns of pandas, NumPy and plain Python to Arrow. Python objects are always read as text.

Arrow would choose their type from the values: one person's value would then change how everybody's text is
read, and two ids could be read as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from incrowd.errors import CatalogError

if TYPE_CHECKING:
    import pandas as pd

_MOMENTS = ("s", "ms", "us", "ns")


def pandas_column(values: pd.Series[Any], where: str) -> pa.Array | pa.ChunkedArray | None:
    """A pandas column as Arrow; None if its type is not understood."""
    import pandas as pd

    kind = values.dtype
    if isinstance(kind, np.dtype):
        return numpy_column(values.to_numpy(), where)
    if isinstance(kind, pd.SparseDtype):
        return pandas_column(pd.Series(np.asarray(values)), where)
    if isinstance(kind, pd.CategoricalDtype):
        return _categories(values, where)
    if isinstance(kind, pd.DatetimeTZDtype):
        # Some of Python's time zones have no name in Arrow.
        return _typed(values.dt.tz_convert("UTC"), where)
    masked = (pd.BooleanDtype, pd.Float32Dtype, pd.Float64Dtype, *_whole_numbers())
    if isinstance(kind, (pd.StringDtype, pd.ArrowDtype, *masked)):
        return _typed(values, where)
    return None


def _whole_numbers() -> list[type]:
    import pandas as pd

    return [getattr(pd, f"{sign}Int{bits}Dtype") for sign in ("", "U") for bits in (8, 16, 32, 64)]


def _categories(values: pd.Series[Any], where: str) -> pa.Array | None:
    import pandas as pd

    categories = pandas_column(pd.Series(values.cat.categories), where)
    if categories is None:
        return None
    if isinstance(categories, pa.ChunkedArray):
        categories = categories.combine_chunks()
    codes = values.cat.codes.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)


def numpy_column(values: np.ndarray[Any, Any], where: str) -> pa.Array | pa.ChunkedArray | None:
    """A NumPy array as Arrow; None if its type is not understood."""
    if values.ndim != 1:
        raise CatalogError(f"{where}: expected an array of one dimension, not of {values.ndim}.")
    kind = values.dtype
    if kind.kind in "OUT":
        # Arrow cuts off NumPy's own texts at their first NUL.
        return text_column(values.tolist(), where)
    number = kind.kind in "biu" or (kind.kind == "f" and kind.itemsize <= 8)
    moment = kind.kind == "M" and np.datetime_data(kind) in [(unit, 1) for unit in _MOMENTS]
    if not (number or moment):
        return None
    return _typed(values.astype(kind.newbyteorder("="), copy=False), where)


def text_column(values: Iterable[Any], where: str) -> pa.Array:
    """Python objects as text: only str and missing values are allowed.

    Arrow itself would read bytes as text, so that 'a' and b'a' would be one person. A float passes here;
    Arrow reads NaN as missing and refuses every other float.
    """
    kinds = set(map(type, values))
    if all(issubclass(kind, (str, float, type(None))) or _is_missing(kind) for kind in kinds):
        try:
            return pa.array(values, pa.large_string(), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            pass
    raise CatalogError(
        f"{where}: Python objects are read as text, and some of these are not valid text; give the column a "
        "type, as with pandas.to_datetime, pandas.to_numeric or pyarrow.array(values, pyarrow.int64())."
    )


def _is_missing(kind: type) -> bool:
    return kind.__module__.startswith("pandas.") and kind.__name__ in ("NaTType", "NAType")


def _typed(values: Any, where: str) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    raise CatalogError(f"{where}: some of its text is not valid Unicode; repair it before opening.")
