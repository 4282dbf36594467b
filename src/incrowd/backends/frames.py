"""Data frames in memory as Arrow tables that the engine reads without an error, whatever their rows hold.

How a column is understood follows from its type, never from its values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.errors import CatalogError
from incrowd.query.typed import fold

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}
_MOST = 2**63 - 1


def arrow_table(frame: Any, name: str) -> pa.Table:
    """A frame of any common kind as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":
        return _from_pandas(frame, name)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if isinstance(frame, Mapping):
        return pa.table(dict(frame))
    raise CatalogError(
        f"tables.{name}: expected a data frame (pandas, polars or Arrow), not {type(frame).__name__}."
    )


def _from_pandas(frame: Any, name: str) -> pa.Table:
    """Columns of Python objects are text. Arrow would choose their type by looking at the values."""
    names, columns = [], []
    for label, values in frame.items():
        schema = pa.string() if values.dtype == object else None
        failed = False
        try:
            columns.append(pa.array(values, schema, from_pandas=True))
            names.append(str(label))
        except (pa.ArrowException, TypeError, ValueError):
            failed = True
        if failed:
            raise CatalogError(
                f"tables.{name}.columns.{label}: the frame holds Python objects that are not text; give the "
                "column a type, as with pandas.to_datetime, pandas.to_numeric or astype."
            )
    return pa.table(columns, names=names)


def frame_types(frame: Any, name: str) -> dict[str, str]:
    """The column types of a frame."""
    schema = arrow_table(frame, name).schema
    return {
        field.name: str(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in schema
    }


def sound(table: pa.Table, name: str, wanted: Collection[str] | None) -> pa.Table:
    """The wanted columns (by folded name; None for all), in types that the engine reads whatever they hold.

    CatalogError where the table is malformed: text that is not UTF-8, say.
    """
    folded = [fold(each) for each in table.column_names]
    if len(set(folded)) < len(folded):
        raise CatalogError(f"tables.{name}: two columns of the frame have one name in SQL; rename one.")
    table = table.select([place for place, each in enumerate(folded) if wanted is None or each in wanted])
    failed = False
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        failed = True
    if failed:
        raise CatalogError(
            f"tables.{name}: the frame is malformed (text that is not UTF-8, say); repair it before opening."
        )
    return (
        pa.table([readable(column) for column in table.columns], names=table.column_names)
        if table.num_columns
        else table
    )


def readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in a type at whose values the engine does not raise."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        held = kind.value_type
        if not (pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held)):
            return readable(pa.chunked_array([each.dictionary_decode() for each in column.chunks], held))
        # Arrow cannot yet look up views of text.
        texts = [
            pa.DictionaryArray.from_arrays(each.indices, each.dictionary.cast(pa.large_string()))
            for each in column.chunks
        ]
        return pa.chunked_array(texts, pa.dictionary(kind.index_type, pa.large_string()))
    if pa.types.is_timestamp(kind) and kind.unit in _MICROSECONDS:
        return in_microseconds(column)
    return column


def in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Seconds or milliseconds as microseconds of UTC, NULL beyond 64 bits, where engines raise.

    >>> import pyarrow as pa
    >>> times = pa.chunked_array([pa.array([1, 2**62], pa.timestamp("ms"))])
    >>> in_microseconds(times).cast(pa.int64()).to_pylist()
    [1000, None]
    """
    factor = _MICROSECONDS[column.type.unit]
    most = _MOST // factor
    chunks = []
    for chunk in column.chunks:
        counts = chunk.view(pa.int64())
        inside = pc.and_(pc.greater_equal(counts, -most), pc.less_equal(counts, most))
        kept = pc.if_else(inside, counts, pa.scalar(None, pa.int64()))
        chunks.append(pc.multiply(kept, np.int64(factor)).view(pa.timestamp("us")))
    return pa.chunked_array(chunks, pa.timestamp("us"))
