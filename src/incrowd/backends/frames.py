"""Data frames in memory as Arrow tables that the engine reads without an error, whatever their rows hold.

How a column is understood follows from its type, never from its values.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from incrowd.backends.arrow_columns import copied, plain, readable, type_name
from incrowd.backends.pandas_columns import numpy_column, pandas_column, text_column
from incrowd.catalog import column_type
from incrowd.errors import CatalogError
from incrowd.query.typed import fold


class _Column(NamedTuple):
    """A column of a frame. `values` is None if Arrow has no such type."""

    name: str
    kind: str
    values: pa.Array | pa.ChunkedArray | None


@dataclass(frozen=True)
class Frame:
    """A frame as an Arrow table. `left_out` says, as a clause, why a column is not in the table."""

    table: pa.Table
    left_out: Mapping[str, str]

    @property
    def types(self) -> dict[str, str]:
        """The type of each column."""
        return {field.name: type_name(field.type) for field in self.table.schema}


def open_frame(frame: Any, name: str) -> Frame:
    """Open a frame of any common kind as the table `name`. A stream of rows is read here, once."""
    if isinstance(frame, Frame):
        return frame
    columns = list(_columns(frame, name))
    _check_names([column.name for column in columns], name)
    held = {
        column.name: column.values
        for column in columns
        if column.values is not None and column_type(column.kind) is not None
    }
    left_out = {
        column.name: (
            f"its type {column.kind} cannot be asked about: make it numbers, text, dates or timestamps"
        )
        for column in columns
        if column.name not in held
    }
    if _is(frame, "pandas", "DataFrame"):
        index = [str(label) for label in frame.index.names if label is not None and str(label) not in held]
        left_out |= dict.fromkeys(index, "it is the index: make it a column with frame.reset_index()")
    if not held:
        hint = "".join(f"; {column} is left out, for {why}" for column, why in list(left_out.items())[:1])
        raise CatalogError(f"tables.{name}: the frame has no column that can be asked about{hint}.")
    if len({len(values) for values in held.values()}) > 1:
        raise CatalogError(f"tables.{name}: the columns of the frame differ in length.")
    return Frame(pa.table(held), left_out)


def _columns(frame: Any, name: str) -> Iterable[_Column]:
    if _is(frame, "pandas", "DataFrame"):
        return _pandas_columns(frame, name)
    if _is(frame, "polars", "DataFrame"):
        return _polars_columns(frame, name)
    if isinstance(frame, Mapping):
        return [_column(str(label), values, name) for label, values in frame.items()]
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        return _arrow_columns(frame, name)
    hint = "; collect() it first" if _is(frame, "polars", "LazyFrame") else ""
    raise CatalogError(
        f"tables.{name}: expected a data frame (pandas, polars or Arrow), not {type(frame).__name__}{hint}."
    )


def _is(value: object, library: str, kind: str) -> bool:
    """True if `value` is an instance of a library's class. Does not import the library."""
    return library in sys.modules and isinstance(value, getattr(sys.modules[library], kind))


def _check_names(names: Iterable[str], table: str) -> None:
    folded = [fold(column) for column in names]
    if any(column.encode("utf-8", "replace").decode() != column for column in folded):
        raise CatalogError(f"tables.{table}: the name of a column of the frame is not valid text; rename it.")
    if len(set(folded)) < len(folded):
        raise CatalogError(f"tables.{table}: two columns of the frame have one name in SQL; rename one.")


def _arrow_columns(frame: Any, name: str) -> list[_Column]:
    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        return [_held(label, table.column(place)) for place, label in enumerate(table.column_names)]
    except Exception:
        pass
    raise CatalogError(
        f"tables.{name}: {type(frame).__name__} cannot be turned into an Arrow table; give a data frame of "
        "pandas, polars or Arrow."
    )


def _held(name: str, values: pa.Array | pa.ChunkedArray | None, kind: object = "") -> _Column:
    return _Column(name, str(kind) if values is None else type_name(values.type), values)


def _pandas_columns(frame: Any, name: str) -> list[_Column]:
    if frame.columns.nlevels > 1:
        raise CatalogError(
            f"tables.{name}: the frame's columns have names of several levels; make them one, as with "
            "frame.columns = ['_'.join(map(str, each)) for each in frame.columns]."
        )
    return [_column(str(label), values, name) for label, values in frame.items()]


def _column(label: str, values: Any, table: str) -> _Column:
    """A column of a pandas frame, or one value of a mapping."""
    where = f"tables.{table}.columns.{label}"
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _held(label, values)
    if isinstance(values, list | tuple):
        return _held(label, text_column(values, where))
    if _is(values, "pandas", "Series"):
        return _held(label, pandas_column(values, where), values.dtype)
    if isinstance(values, np.ndarray):
        return _held(label, numpy_column(values, where), values.dtype)
    raise CatalogError(
        f"{where}: expected a NumPy array, a pandas Series or an Arrow array, not {type(values).__name__}."
    )


def _polars_columns(frame: Any, name: str) -> list[_Column]:
    polars = sys.modules["polars"]
    # Only the base type: the full type of a categorical column quotes its categories.
    kinds = {series.name: str(series.dtype.base_type()) for series in frame.get_columns()}
    kept = [
        # Arrow has no 128-bit integers. Values beyond 64 bits become NULL, as on every engine.
        series.cast(polars.Int64, strict=False) if kinds[series.name] in ("Int128", "UInt128") else series
        for series in frame.get_columns()
        if not (series.dtype.is_nested() or kinds[series.name] == "Object")
    ]
    columns = {column.name: column for column in _arrow_columns(polars.DataFrame(kept), name)}
    return [columns.get(column) or _held(column, None, kind) for column, kind in kinds.items()]


def sound(table: pa.Table, name: str, wanted: Collection[str] | None) -> pa.Table:
    """The wanted columns (by folded name; None for all), in types that the engine reads whatever they hold.

    They are copied into our own memory, so that every question reads the same rows. CatalogError if the table
    is malformed, for example with text that is not UTF-8.
    """
    names = [column for column in table.column_names if wanted is None or fold(column) in wanted]
    try:
        table = table.select(names)
        table.validate(full=True)
        columns = [copied(readable(plain(column))) for column in table.columns]
        # Validate our copy as well: somebody may have changed the rows in the meantime.
        copy = pa.table(columns, names=names)
        copy.validate(full=True)
        return copy
    except pa.ArrowInvalid:
        pass
    raise CatalogError(
        f"tables.{name}: the frame is malformed (text that is not UTF-8, say); repair it before opening."
    )
