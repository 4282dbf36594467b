"""Converts Arrow columns into types that the engine reads without an error, in our own memory.

The conversion of a column depends on its type, never on its values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}
_MOST = 2**63 - 1
_DECIMAL_DIGITS = 38
"""The digits of a 128-bit decimal, the engine's widest type."""


def type_name(kind: pa.DataType) -> str:
    """The name of the type of a column's values, however they are encoded.

    >>> type_name(pa.dictionary(pa.int8(), pa.string())), type_name(pa.null())
    ('string', 'string')
    """
    if _is_encoded(kind):
        return type_name(kind.value_type)
    if pa.types.is_null(kind):
        return "string"  # nothing but NULL: any type would do
    return "uuid" if _is_uuid(kind) else str(kind)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that the engine knows: no run-end encoding, no views, no numbers of rare widths.

    Decimals that the engine cannot hold become text, which loses nothing.
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        values = [_unrolled(runs) for runs in column.chunks]
        return pa.chunked_array(values or [_plain_values(pa.array([], kind.value_type))])
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        values = [_plain_values(chunk.dictionary).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(values or [_plain_values(pa.array([], kind.value_type))])
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= _DECIMAL_DIGITS
        return column.cast(pa.decimal128(kind.precision, kind.scale) if fits else pa.large_string())
    return column


def _unrolled(runs: pa.RunEndEncodedArray) -> pa.Array:
    """The values of run-end encoded rows. Arrow's own decoder does not know all types of values."""
    values = _plain_values(runs.values)
    numbers = pa.array(np.arange(len(values)))
    numbered = pa.RunEndEncodedArray.from_arrays(runs.run_ends, numbers).slice(runs.offset, len(runs))
    return values.take(pc.run_end_decode(numbered))


def _plain_values(values: pa.Array) -> pa.Array:
    """The values that encoded rows point to. Repeated text may need offsets of more than 32 bits."""
    decoded = plain(pa.chunked_array([values])).combine_chunks()
    return decoded.cast(pa.large_string()) if pa.types.is_string(decoded.type) else decoded


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type on whose values the engine does not raise."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            values = [chunk.dictionary_decode() for chunk in column.chunks]
            return readable(pa.chunked_array(values, kind.value_type))
        # Arrow cannot yet look up string views.
        texts = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
            for chunk in column.chunks
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


def copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in our own memory.

    Arrow and polars use NumPy's memory without a copy, and pandas writes into memory that it has handed out.
    No flag tells: `is_mutable` is false for a pandas column and true for memory that Arrow itself allocates.
    """
    return pa.chunked_array([_copy(chunk) for chunk in column.chunks], column.type)


def _copy(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(_copy(values.indices), _copy(values.dictionary))
    # Arrow copies when it concatenates two arrays, so append an empty one.
    return pa.concat_arrays([values, values.slice(0, 0)])
