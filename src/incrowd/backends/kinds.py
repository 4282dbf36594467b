"""The Arrow type in which each kind of value comes back, whatever the engine calls its type."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from incrowd.catalog import column_type

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
"""The Arrow type of a result's column, by kind."""


def arrow_type(engine_type: str) -> pa.DataType:
    """The Arrow type of a result's column, by the engine's name of its type; text if it is not known.

    >>> arrow_type("int8"), arrow_type("float8"), arrow_type("numeric")
    (DataType(int64), DataType(double), DataType(string))
    """
    return ARROW_TYPES.get(column_type(engine_type) or "text", pa.string())
