"""Columns of pandas, NumPy and plain Python: objects are text or refused, types are kept."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import CatalogError
from tests.backends.framing import SETTINGS, beside, held, opened, seen
from tests.hostile.neighbour import attempt, check_silence

NO_TEXT = [
    *(b"zqSecretxj", b"\xff", bytearray(b"zqSecretxj"), memoryview(b"zqSecretxj"), np.bytes_(b"zqSecretxj")),
    *(7, 2**70, 1.5, float("inf"), True, 1j, Decimal(7), Decimal("NaN"), dt.date(2020, 1, 1), dt.time(1)),
    *(pd.Timestamp(0), np.datetime64("NaT"), np.float32("nan"), uuid.UUID(int=7), pd.Interval(0, 1)),
    *(["zqSecretxj"], {"zqSecretxj": 1}, np.array([1, 2]), pa.scalar("zqSecretxj"), object(), int),
    *("\ud800zqSecretxj", ValueError("zqSecretxj")),
]


def objects(rows: list[Any]) -> pd.Series[Any]:
    """A column of objects, none of which pandas gives another type."""
    column = np.empty(len(rows), dtype=object)
    for place, value in enumerate(rows):
        column[place] = value
    return pd.Series(column, dtype=object)


@given(
    odd=st.sampled_from(NO_TEXT), place=st.integers(0, 3), kind=st.sampled_from(["frame", "array", "list"])
)
@SETTINGS
def test_an_object_that_is_no_text_is_refused_in_the_same_words_whatever_it_is(
    odd: Any, place: int, kind: str
) -> None:
    """Bytes above all: 'a' and b'a' would be one person."""
    rows: list[Any] = ["a", "b", None]
    rows.insert(place, odd)
    made = {"frame": pd.DataFrame(beside(objects(rows))), "array": beside(objects(rows).to_numpy())}
    check_refusal(made.get(kind, beside(rows)))


@pytest.mark.parametrize(
    "odd", [b"zqSecretxj", b"\xff", 7, 2**70, 1.5, 1j, dt.date(2020, 1, 1), uuid.UUID(int=7)]
)
def test_categories_follow_the_same_rule(odd: Any) -> None:
    for categories in ([odd], ["a", odd]):
        column = pd.Categorical.from_codes([0, -1], pd.Index(categories, dtype=object))
        check_refusal(pd.DataFrame(beside(column)))


def check_refusal(frame: Any) -> None:
    outcome = attempt(lambda: opened(frame))
    assert isinstance(outcome.error, CatalogError) and outcome.error.__context__ is None
    assert str(outcome.error).startswith("tables.t.columns.x: Python objects are read as text, and some of")
    check_silence(outcome, ["zqSecretxj", "1180591620717411303424"])


@pytest.mark.parametrize("rows", [[None, None], [None, float("nan"), pd.NaT, pd.NA], []])
def test_missing_objects_are_missing_texts(rows: list[Any]) -> None:
    for column in (objects(rows), objects(rows).astype("category")):
        curator = opened(pd.DataFrame(beside(column)))
        assert curator.catalog.tables["t"].columns["x"].type == "text"
        assert held(curator) == [None] * len(rows)


class Name(str):
    """A text that is equal to every other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_a_text_is_what_it_holds_whatever_its_class() -> None:
    column = objects(["a", Name("b"), np.str_("c"), "a\0"])
    assert held(opened(pd.DataFrame(beside(column)))) == ["a", "b", "c", "a\0"]


def test_texts_of_numpy_are_not_cut_off_at_a_nul() -> None:
    for kind in ("U3", np.dtypes.StringDType()):
        assert held(opened(beside(np.array(["a", "a\0b"], dtype=kind)))) == ["a", "a\0b"]


def test_values_that_are_masked_are_missing() -> None:
    assert held(opened(beside(np.ma.array([1, 2], mask=[False, True])))) == [1, None]
    assert held(opened(beside(np.ma.array(["a", "b"], mask=[False, True], dtype=object)))) == ["a", None]


def of_type(kind: str, rows: list[Any]) -> pd.Series[Any]:
    if kind.startswith("datetime64"):
        column = pd.Series(np.array(rows, dtype="i8").view(f"M8[{kind[11:13].strip(']')}]"))
        return column.dt.tz_localize("UTC").dt.tz_convert("Asia/Kathmandu") if "Asia" in kind else column
    if kind == "period[D]":
        return pd.Series(pd.PeriodIndex.from_ordinals(rows, freq="D"))
    return pd.Series(np.array(rows, kind)) if kind[0] == ">" else pd.Series(rows, dtype=kind)


OWN: dict[str, list[Any]] = {
    "int8": [0, -128, 127],
    "uint64": [0, 2**64 - 1],
    "int64": [0, -(2**63), 2**63 - 1],
    "float16": [0.0, 65504.0, float("nan"), float("-inf")],
    "float64": [0.0, 1.7e308, float("nan"), -0.0],
    "Int64": [0, None, 2**63 - 1],
    "Float32": [0.0, None, float("nan")],
    "boolean": [False, None, True],
    "bool": [False, True],
    ">i4": [0, 2**31 - 1],
    ">f8": [0.0, float("nan")],
    "datetime64[s]": [0, 2**62, -(2**62), -(2**63)],
    "datetime64[ns]": [0, 2**62, -(2**63)],
    "datetime64[us, Asia/Kathmandu]": [0, 2**62, -(2**62)],
    "timedelta64[ns]": [0, 2**62],
    "complex64": [0j, complex("nan")],
    "longdouble": [0.0, 1e308],
    "Sparse[int64]": [0, 2**62],
    "Sparse[float64]": [0.0, float("nan")],
    "period[D]": [0, 10**6],
    "category": [0, 2**62],
    "string": ["", None, "\0"],
    "string[python]": ["", None, "\0"],
}


@given(kind=st.sampled_from(sorted(OWN)), place=st.integers(0, 9), unit=st.sampled_from(["id", "x"]))
@SETTINGS
def test_one_row_decides_neither_types_nor_columns_nor_success(kind: str, place: int, unit: str) -> None:
    first, mine = OWN[kind][0], OWN[kind][place % len(OWN[kind])]
    sides = [pd.DataFrame(beside(of_type(kind, rows))) for rows in ([first, first], [first, first, mine])]
    assert seen(sides[0], unit=unit) == seen(sides[1], unit=unit)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([0, 5], dtype="Sparse[int64]"), [0, 5]),
        (pd.Series(["a", None], dtype=pd.SparseDtype(object)), ["a", None]),  # type: ignore[list-item]
        (pd.Series(np.array([1, 2], dtype=">i8")), [1, 2]),
        (pd.Series([7, None, 7], dtype="category"), [7.0, None, 7.0]),
        (pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01", None]))), [dt.datetime(2020, 1, 1), None]),
        (
            pd.Series(pd.to_datetime(["2020-01-01"])).dt.tz_localize(dt.timezone(dt.timedelta(seconds=3601))),
            [dt.datetime(2019, 12, 31, 22, 59, 59)],
        ),
        (pd.Series([1.5, float("nan")], dtype="float16"), [1.5, None]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
    ],
)
def test_types_of_pandas_are_read_by_their_values(column: pd.Series[Any], expected: list[Any]) -> None:
    assert held(opened(pd.DataFrame(beside(column)))) == expected
