"""Frames around a column `x`, and what is to be seen of a curator that was opened over one."""

from __future__ import annotations

import uuid
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings

from incrowd import Curator
from incrowd.errors import CatalogError
from tests.backends.parsing import tree
from tests.hostile import values
from tests.hostile.neighbour import attempt

SETTINGS = settings(
    max_examples=60,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
ENCODINGS = ("plain", "runs", "codes", "chunks")


def opened(frame: Any, **settings: Any) -> Curator:
    """A curator over a frame, as an owner opens it."""
    return Curator.from_tables(t=frame, **{"unit": "id", "budget": (1e6, 0.01), **settings})


def held(curator: Curator, column: str = "x") -> list[Any]:
    """What the engine reads in a column, by the rows' ids."""
    rows = curator._backend._run(tree(f'SELECT id, "{column}" AS x FROM t')).to_pylist()  # type: ignore[attr-defined]
    return [row["x"] for row in sorted(rows, key=lambda row: int(row["id"]))]


def beside(column: Any) -> dict[str, Any]:
    """A column and its rows' ids."""
    return {"id": np.arange(len(column)), "x": column}


def column_of(kind: pa.DataType, rows: list[Any]) -> pa.Array:
    """An Arrow array of any type, with raw integers as moments."""
    if pa.types.is_null(kind):
        return pa.nulls(len(rows), kind)
    if str(kind) == "extension<arrow.uuid>":
        return pa.array([None if value is None else value.bytes for value in rows], kind)
    if pa.types.is_decimal(kind) and kind.scale > kind.precision:
        # Arrow reads such values, but makes none of Python's decimals.
        whole = [None if value is None else value.scaleb(kind.scale) for value in rows]
        plain = pa.array(whole, pa.decimal128(kind.precision, 0))
        return pa.Array.from_buffers(kind, len(rows), plain.buffers())
    return values.array(rows, kind)


def nasty(kind: pa.DataType) -> tuple[Any, ...]:
    """The extremes of any type."""
    if pa.types.is_null(kind):
        return (None,)
    if str(kind) == "extension<arrow.uuid>":
        return (uuid.UUID(int=0), uuid.UUID(int=2**128 - 1))
    if pa.types.is_decimal(kind):
        return tuple(Decimal((sign, (9,) * kind.precision, -kind.scale)) for sign in (0, 1))
    return values.nasty(kind)


def encoded(column: pa.Array, how: str) -> pa.Array | pa.ChunkedArray:
    """The same values in one of the ways in which Arrow keeps them."""
    if how == "runs":
        ends = pa.array(np.arange(1, len(column) + 1), pa.int64())
        return pa.RunEndEncodedArray.from_arrays(ends, column)
    if how == "codes":
        return pa.DictionaryArray.from_arrays(pa.array(np.arange(len(column)), pa.int16()), column)
    return pa.chunked_array([column.slice(0, 1), column.slice(1)]) if how == "chunks" else column


def seen(frame: Any, **settings: Any) -> Any:
    """How a frame was understood: the refusal, or columns, types and warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        outcome = attempt(lambda: opened(frame, **settings))
    if outcome.error is not None:
        assert isinstance(outcome.error, CatalogError), repr(outcome.error)
        return str(outcome.error)
    with outcome.value as curator:
        facts = {name: column.type for name, column in curator.catalog.tables["t"].columns.items()}
        said = [str(warning.message) for warning in told]
        # The budget of these tests protects nobody, which is said too.
        return facts, [sentence for sentence in said if sentence.startswith("tables.")]
