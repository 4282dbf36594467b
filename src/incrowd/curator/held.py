"""Values that Python, pandas and polars can hold; columns of others as the engine's own text.

SQL over released numbers may make any type of the engine: dates after the year 9999, infinite moments,
unions, intervals. Arrow holds them all; other libraries raise or abort on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from incrowd.curator.scratch import scratch

Test = Callable[[pa.DataType], bool]
_UNHELD = (pa.ArrowException, ValueError, OverflowError, TypeError)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The values by row, whatever the names of columns.

    >>> rows_of(pa.table([[1, 2], [None, "a"]], ["x", "x"]))
    [(1, None), (2, 'a')]
    """
    return list(zip(*(_values(column) for column in table.columns), strict=True))


def for_python(table: pa.Table) -> pa.Table:
    """The table with columns that Python cannot hold as text."""
    return _replaced(table, lambda column: _temporal(column.type) and _fails(column))


def for_pandas(table: pa.Table) -> pa.Table:
    """The table with columns that pandas cannot hold as text."""

    def unheld(column: pa.ChunkedArray) -> bool:
        try:
            pa.table([column], ["values"]).to_pandas()
        except _UNHELD:
            return True
        return False

    return _replaced(table, lambda column: _rare(column.type) and unheld(column))


def for_polars(table: pa.Table) -> pa.Table:
    """The table with columns that polars cannot hold as text; it aborts on them, so none is tried."""
    return _replaced(
        table,
        lambda column: contains(column.type, _foreign) or (_temporal(column.type) and _fails(column)),
    )


def contains(kind: pa.DataType, test: Test) -> bool:
    """Whether a type, or a type inside it, passes a test."""
    if test(kind):
        return True
    if pa.types.is_dictionary(kind):
        return contains(kind.value_type, test)
    if isinstance(kind, pa.BaseExtensionType):
        return contains(kind.storage_type, test)
    return any(contains(kind.field(place).type, test) for place in range(kind.num_fields))


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as the engine writes it."""
    with scratch() as local:
        try:
            local.register("held", pa.table([column], ["v"]))
            return local.sql("SELECT CAST(v AS VARCHAR) AS v FROM held").to_arrow_table().column("v")
        except duckdb.Error:
            values = (None if value is None else str(value) for value in column.to_pylist())
            return pa.chunked_array([pa.array(values, pa.string())])


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except _UNHELD:
        return list(as_text(column).to_pylist())


def _replaced(table: pa.Table, unheld: Callable[[pa.ChunkedArray], bool]) -> pa.Table:
    for place, name in enumerate(table.column_names):
        if unheld(table.column(place)):
            table = table.set_column(place, name, as_text(table.column(place)))
    return table


def _fails(column: pa.ChunkedArray) -> bool:
    try:
        column.to_pylist()
    except _UNHELD:
        return True
    return False


def _temporal(kind: pa.DataType) -> bool:
    return contains(kind, pa.types.is_temporal)


def _foreign(kind: pa.DataType) -> bool:
    return bool(pa.types.is_interval(kind) or pa.types.is_union(kind))


def _rare(kind: pa.DataType) -> bool:
    return contains(kind, lambda part: pa.types.is_temporal(part) or pa.types.is_nested(part))
