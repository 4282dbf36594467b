"""NaN is never shown: it is NULL, in columns, inside lists and structs, and where it was made a text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from incrowd.curator.held import as_text, contains

_WORD = re.compile(r"(?<![A-Za-z])nan(?![A-Za-z])", re.IGNORECASE)
"""How the engine writes it: nan, -nan, and NaN in JSON."""


def without_nan(table: pa.Table, texts: bool = True) -> pa.Table:
    """The table with NULL in the place of NaN; `texts` says whether a text that names it is NULL too.

    >>> without_nan(pa.table({"x": [float("nan"), 1.0], "l": [[float("nan"), 2.0], []]})).to_pydict()
    {'x': [None, 1.0], 'l': [[None, 2.0], []]}
    >>> without_nan(pa.table({"t": ["-nan", "Nancy"]})).to_pydict()
    {'t': [None, 'Nancy']}
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_floating(field.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
        elif contains(field.type, pa.types.is_floating) or (texts and contains(field.type, _is_text)):
            column = _scrubbed(column, texts)
        if column is not table.column(place):
            table = table.set_column(place, pa.field(field.name, column.type), column)
    return table


def says_nan(query: exp.Expr, tables: Iterable[pa.Table]) -> bool:
    """Whether a text of the query or of its tables holds the word, so that it need not be a number's."""
    if any(_WORD.search(literal.this) for literal in query.find_all(exp.Literal) if literal.is_string):
        return True
    return any(
        pc.any(pc.match_substring_regex(column, "(?i)(^|[^a-z])nan([^a-z]|$)")).as_py()
        for table in tables
        for column in table.columns
        if pa.types.is_string(column.type)
    )


def _scrubbed(column: pa.ChunkedArray, texts: bool) -> pa.ChunkedArray:
    """A column of lists, structs or texts without NaN; the column itself if it has none."""
    if _is_text(column.type) and not pc.any(pc.match_substring_regex(column, "(?i)nan")).as_py():
        return column
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        return column
    cleaned = [_clean(value, texts) for value in values]
    if all(before is after for before, after in zip(values, cleaned, strict=True)):
        return column
    try:
        return pa.chunked_array([pa.array(cleaned, column.type)])
    except (pa.ArrowException, ValueError, TypeError):  # unions cannot be made of values
        shown = as_text(column).to_pylist()
        kept = [
            text if before is after else None
            for text, before, after in zip(shown, values, cleaned, strict=True)
        ]
        return pa.chunked_array([pa.array(kept, pa.string())])


def _clean(value: Any, texts: bool) -> Any:
    """A value with None in the place of NaN; the value itself if it has none."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, str):
        return None if texts and _WORD.search(value) else value
    if isinstance(value, dict):
        parts = {key: _clean(part, texts) for key, part in value.items()}
        return value if all(parts[key] is value[key] for key in value) else parts
    if isinstance(value, list | tuple):
        items = [_clean(item, texts) for item in value]
        same = all(before is after for before, after in zip(value, items, strict=True))
        return value if same else type(value)(items)
    return value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
