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
    """A column of a frame; its values are None where Arrow has no such type."""

    name: str
    kind: str
    values: pa.Array | pa.ChunkedArray | None


@dataclass(frozen=True)
class Frame:
    """A frame as an Arrow table, and for each column that is not in it the reason, as a clause."""

    table: pa.Table
    left_out: Mapping[str, str]

    @property
    def types(self) -> dict[str, str]:
        """The type of each column."""
        return {field.name: type_name(field.type) for field in self.table.schema}


def open_frame(frame: Any, name: str) -> Frame:
    """A frame of any common kind, for the table `name`. A stream of rows is read here, and never again."""
    if isinstance(frame, Frame):
        return frame
    columns = list(_columns(frame, name))
    _check_names([each.name for each in columns], name)
    held = {
        each.name: each.values
        for each in columns
        if each.values is not None and column_type(each.kind) is not None
    }
    left_out = {
        each.name: f"its type {each.kind} cannot be asked about: make it numbers, text, dates or timestamps"
        for each in columns
        if each.name not in held
    }
    if _is(frame, "pandas", "DataFrame"):
        index = [str(each) for each in frame.index.names if each is not None and str(each) not in held]
        left_out |= dict.fromkeys(index, "it is the index: make it a column with frame.reset_index()")
    if not held:
        hint = "".join(f"; {each} is left out, for {why}" for each, why in list(left_out.items())[:1])
        raise CatalogError(f"tables.{name}: the frame has no column that can be asked about{hint}.")
    if len({len(each) for each in held.values()}) > 1:
        raise CatalogError(f"tables.{name}: the columns of the frame differ in length.")
    return Frame(pa.table(held), left_out)


def _columns(frame: Any, name: str) -> Iterable[_Column]:
    if _is(frame, "pandas", "DataFrame"):
        return _pandas_columns(frame, name)
    if _is(frame, "polars", "DataFrame"):
        return _polars_columns(frame, name)
    if isinstance(frame, Mapping):
        return [_given_column(str(label), values, name) for label, values in frame.items()]
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        return _arrow_columns(frame, name)
    hint = "; collect() it first" if _is(frame, "polars", "LazyFrame") else ""
    raise CatalogError(
        f"tables.{name}: expected a data frame (pandas, polars or Arrow), not {type(frame).__name__}{hint}."
    )


def _is(value: object, library: str, kind: str) -> bool:
    """Whether a value is of a library's class; without importing what nobody else has imported."""
    return library in sys.modules and isinstance(value, getattr(sys.modules[library], kind))


def _check_names(names: Iterable[str], table: str) -> None:
    folded = [fold(each) for each in names]
    if any(each.encode("utf-8", "replace").decode() != each for each in folded):
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
    return [_given_column(str(label), values, name) for label, values in frame.items()]


def _given_column(label: str, values: Any, table: str) -> _Column:
    """A column of pandas, or one that somebody gives by itself."""
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
    # Not the whole type: that of a list of categories quotes them.
    kinds = {each.name: str(each.dtype.base_type()) for each in frame.get_columns()}
    kept = [
        # Arrow has no integers of 128 bits. Beyond 64 they are NULL, as on every engine.
        each.cast(polars.Int64, strict=False) if kinds[each.name] in ("Int128", "UInt128") else each
        for each in frame.get_columns()
        if not (each.dtype.is_nested() or kinds[each.name] == "Object")
    ]
    found = {each.name: each for each in _arrow_columns(polars.DataFrame(kept), name)}
    return [found.get(each) or _held(each, None, kind) for each, kind in kinds.items()]


def sound(table: pa.Table, name: str, wanted: Collection[str] | None) -> pa.Table:
    """The wanted columns (by folded name; None for all), in types that the engine reads whatever they hold,
    and in memory of their own: every question must find the rows that the last one found.

    CatalogError where the table is malformed: text that is not UTF-8, say.
    """
    names = [each for each in table.column_names if wanted is None or fold(each) in wanted]
    try:
        table = table.select(names)
        table.validate(full=True)
        columns = [copied(readable(plain(column))) for column in table.columns]
        # Once more, of our own: somebody may have changed the rows in the meantime.
        made = pa.table(columns, names=names)
        made.validate(full=True)
        return made
    except pa.ArrowInvalid:
        pass
    raise CatalogError(
        f"tables.{name}: the frame is malformed (text that is not UTF-8, say); repair it before opening."
    )
