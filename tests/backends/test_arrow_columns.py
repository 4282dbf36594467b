"""Columns of Arrow: every type is read by its values or left out with a word, whatever its encoding."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.backends.arrow_columns import copied, plain, readable, type_name
from incrowd.catalog import column_type
from tests.backends.framing import ENCODINGS, SETTINGS, beside, column_of, encoded, held, nasty, opened, seen
from tests.backends.parsing import tree
from tests.hostile import values

LEFT_OUT = (
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3), pa.time32("s"), pa.time64("ns")),
    *(pa.duration("ms"), pa.month_day_nano_interval(), pa.bool8(), pa.json_(), pa.list_(pa.int8())),
    *(pa.large_list(pa.string()), pa.list_(pa.int8(), 2), pa.list_view(pa.int8()), pa.struct([])),
    *(pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.int8())),
    *(pa.dense_union([pa.field("a", pa.int8())]), pa.fixed_shape_tensor(pa.int8(), [2])),
)
KEPT = (
    *(kind for kind in values.EVERY if column_type(type_name(kind)) is not None),
    *(pa.null(), pa.uuid(), pa.decimal32(5, 2), pa.decimal64(18, 2), pa.decimal128(5, -2)),
    *(pa.decimal128(3, 5), pa.decimal256(38, 3), pa.decimal256(60, -3), pa.timestamp("us", "nonsense")),
    *(pa.large_string(), pa.string_view(), pa.float16()),
)


@pytest.mark.parametrize("how", ENCODINGS)
def test_no_column_vanishes_in_silence(how: str) -> None:
    columns = {str(kind): encoded(pa.nulls(2, kind), how) for kind in (*KEPT, *LEFT_OUT)}
    facts, told = seen(pa.table({"id": [1, 2], **columns}))
    assert list(facts) == ["id", *(name for name in columns if name in map(str, KEPT))]
    expected = [
        f"tables.t: {kind} is left out, for its type {kind} cannot be asked about" for kind in LEFT_OUT
    ]
    assert all(warning.startswith(text) for warning, text in zip(told, expected, strict=True))


def test_every_column_can_be_grouped_by_whatever_it_holds() -> None:
    rows = {kind: (None, *nasty(kind)[:99]) for kind in KEPT}
    columns = {
        str(kind): column_of(kind, [column[i % len(column)] for i in range(100)])
        for kind, column in rows.items()
    }
    with opened(pa.table({"id": np.arange(100), **columns})) as curator:
        for name in columns:
            curator.ask(f'SELECT "{name}" AS x, COUNT(*) AS n FROM t GROUP BY 1', epsilon=1.0)


def framed(column: Any, library: str) -> Any:
    """A column in a frame of a library; None where the library has no such type."""
    table = pa.table(beside(column))
    if library == "pandas":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    try:
        return pl.from_arrow(table) if library == "polars" else table
    except BaseException as error:  # polars panics
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


@given(data=st.data())
@SETTINGS
def test_one_row_decides_neither_types_nor_columns_nor_success(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*KEPT, *values.EVERY]))
    how = data.draw(st.sampled_from(ENCODINGS))
    library = data.draw(st.sampled_from(["Arrow", "pandas", "polars"]))
    mine = data.draw(st.sampled_from(nasty(kind)))
    unit = data.draw(st.sampled_from(["id", "x", "row"]))
    sides = [
        framed(encoded(column_of(kind, rows), how), library) for rows in ([None, None], [None, None, mine])
    ]
    if not any(side is None for side in sides):
        assert seen(sides[0], unit=unit) == seen(sides[1], unit=unit)


@pytest.mark.parametrize(
    ("kind", "rows", "expected"),
    [
        (pa.decimal32(5, 2), [Decimal("1.25"), None], [1.25, None]),
        (pa.decimal64(18, 2), [Decimal("1.25"), None], [1.25, None]),
        (pa.decimal256(38, 2), [Decimal("1.25"), None], [1.25, None]),
        (pa.decimal256(76, 3), [Decimal(10) ** 60, Decimal("-12.5")], [None, -12.5]),
        (pa.decimal128(5, -2), [Decimal(12300), None], [12300.0, None]),
        (pa.decimal128(3, 5), [Decimal("0.00123"), None], [0.00123, None]),
        (pa.float16(), [1.5, None], [1.5, None]),
        (pa.uint64(), [2**63, 7], [None, 7]),
        (pa.bool_(), [True, None], [True, None]),
        (pa.timestamp("ms", "+01:00"), [0, None], [dt.datetime(1970, 1, 1), None]),
        (pa.date64(), [86_400_000, None], [dt.date(1970, 1, 2), None]),
        (pa.uuid(), [uuid.UUID(int=7), None], ["00000000-0000-0000-0000-000000000007", None]),
    ],
    ids=lambda parameter: str(parameter) if isinstance(parameter, pa.DataType) else "",
)
def test_rare_types_are_read_by_their_values(kind: pa.DataType, rows: list[Any], expected: list[Any]) -> None:
    for how in ENCODINGS:
        assert held(opened(pa.table(beside(encoded(column_of(kind, rows), how))))) == expected


def runs(column: pa.Array) -> pa.Array:
    """Each value twice, as runs of which the first is cut off."""
    ends = pa.array(np.arange(1, len(column) + 2) * 2 - 1, pa.int32())
    whole = pa.RunEndEncodedArray.from_arrays(ends, pa.concat_arrays([column.slice(0, 1), column]))
    return whole.slice(1, 2 * len(column))


def test_runs_are_read_from_where_they_are_cut() -> None:
    for column in (pa.array([1, None, 3]), pa.array(["a", None, "b"], pa.string_view())):
        expected = [value for value in column.to_pylist() for _ in range(2)]
        chunks = pa.chunked_array([runs(column), runs(column).slice(1, 2)])
        assert plain(chunks).to_pylist() == [*expected, *expected[1:3]]


def test_encodings_within_encodings_are_read() -> None:
    text = pa.array(["a", None], pa.string_view())
    inner = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), text)
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 3, None, 1]), inner)
    assert type_name(codes.type) == "string_view"
    assert plain(pa.chunked_array([codes])).to_pylist() == ["a", None, None, "a"]
    outer = pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 3], pa.int16()), text.cast("string").dictionary_encode()
    )
    assert readable(plain(pa.chunked_array([outer]))).to_pylist() == ["a", None, None]


def test_codes_for_the_same_value_are_one_value() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "a", None]))
    curator = opened(pa.table({"id": codes}))
    answer = curator._backend._run(tree("SELECT COUNT(DISTINCT id) AS n FROM t"))  # type: ignore[attr-defined]
    assert answer.to_pylist() == [{"n": 1}]


def addresses(column: pa.ChunkedArray) -> Iterator[int]:
    for chunk in column.chunks:
        yield from (buffer.address for buffer in chunk.buffers() if buffer is not None and buffer.size)
        if pa.types.is_dictionary(chunk.type):
            yield from addresses(pa.chunked_array([chunk.dictionary]))


@pytest.mark.parametrize("how", ENCODINGS)
def test_a_copy_shares_no_memory_with_its_original(how: str) -> None:
    for kind in KEPT:
        rows = [None, *nasty(kind)[:20]]
        whole = pa.table({"x": encoded(column_of(kind, rows), how)}).column("x")
        for column in (whole, whole.slice(1, 3)):
            original = readable(plain(column))
            made = copied(original)
            assert made.type == original.type and made.to_string(window=99) == original.to_string(window=99)
            assert not set(addresses(made)) & {*addresses(original), *addresses(column)}
