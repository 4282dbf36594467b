"""Data frames: how they are understood follows from their types, and their rows are those at opening."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from incrowd.backends import DuckDB, open_frame
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError
from tests.backends.framing import beside, held, opened
from tests.backends.parsing import tree

TEXTS = ["a", None, "a\0", "b" * 30, "", "a"]
ARROW_TEXTS = [
    pa.array(TEXTS, pa.string()),
    pa.array(TEXTS, pa.large_string()),
    pa.array(TEXTS, pa.string_view()),
    *(pa.array(TEXTS, kind).dictionary_encode() for kind in (pa.string(), pa.large_string())),
    pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 5], pa.uint8()), pa.array(TEXTS, pa.string_view())
    ),
]


@pytest.mark.parametrize(
    "frame",
    [
        *(pa.table(beside(column)) for column in ARROW_TEXTS),
        pa.table(beside(ARROW_TEXTS[0])).to_batches()[0],
        *(
            pd.DataFrame(beside(pd.Series(TEXTS, dtype=kind)))
            for kind in (object, "str", "category", "string")
        ),
        pd.DataFrame(beside(pd.Series(TEXTS, dtype="string[python]"))),
        pd.DataFrame(beside(pd.Categorical(TEXTS))),
        *(
            pd.DataFrame(beside(pd.Series(TEXTS, dtype=pd.ArrowDtype(column.type))))
            for column in ARROW_TEXTS[:3]
        ),
        *(pl.DataFrame(beside(pl.Series(TEXTS, dtype=kind))) for kind in (pl.String, pl.Categorical)),
        pl.DataFrame(beside(pl.Series(TEXTS, dtype=pl.Enum(["", "a", "a\0", "b" * 30])))),
        beside(TEXTS),
        beside(np.array(TEXTS, dtype=object)),
        beside(pd.Series(TEXTS)),
    ],
    ids=lambda frame: f"{type(frame).__module__.partition('.')[0]}-{type(frame).__name__}",
)
def test_text_of_every_library_is_text(frame: Any) -> None:
    with opened(frame) as curator:
        assert curator.catalog.tables["t"].columns["x"].type == "text"
        assert held(curator) == TEXTS
        for asked in ("COUNT(*) AS n FROM t", "x, COUNT(*) AS n FROM t GROUP BY x"):
            curator.ask(f"SELECT {asked}", epsilon=1.0)


def test_wide_integers_of_polars_are_integers() -> None:
    for kind in (pl.Int128, pl.UInt128):
        frame = pl.DataFrame(beside(pl.Series([7, 2**100, None, 2**63 - 1], dtype=kind)))
        assert held(opened(frame)) == [7, None, None, 2**63 - 1]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pl.DataFrame(beside(pl.Series([[1]]))), "its type List cannot"),
        (pl.DataFrame(beside(pl.Series([["a"]], dtype=pl.List(pl.Enum(["a"]))))), "its type List cannot"),
        (pl.DataFrame(beside(pl.Series([object()], dtype=pl.Object))), "its type Object"),
        (pl.DataFrame(beside(pl.Series([b"a"]))), "its type binary_view"),
        (pd.DataFrame(beside(pd.Series([1j]))), "its type complex128"),
        (pd.DataFrame(beside(pd.interval_range(0, 1))), r"its type interval\[int64, right\]"),
        (pd.DataFrame(beside(pd.Categorical(pd.interval_range(0, 1)))), "its type category"),
        (pd.DataFrame(beside(pd.to_timedelta([1]))), r"its type timedelta64\[ns\]"),
        (beside(np.array(["2020-01-01"], dtype="M8[D]")), r"its type datetime64\[D\]"),
        (beside(np.zeros(1, dtype=[("a", "i4")])), "its type "),
        (pd.DataFrame({"id": [1]}, index=pd.Index([1], name="x")), r"it is the index: .*reset_index\(\)"),
    ],
)
def test_what_is_left_out_is_said_and_said_again_where_it_is_named(frame: Any, said: str) -> None:
    with pytest.warns(UserWarning, match=rf"^tables\.t: x is left out, for {said}.*\.$"):
        opened(frame).close()
    named: list[Mapping[str, Any]] = [
        {"unit": "x"},
        {"unit": ("id", "x")},
        {"bounds": {"x": (0, 1)}},
        {"domains": {"t.x": [1]}},
        {"not_null": ["x"]},
        {"contribution": {"x": 1}},
    ]
    for settings in named:
        with pytest.raises(CatalogError, match=rf"^{next(iter(settings))}: t\.x is left out, for {said}"):
            opened(frame, **settings)
    catalog = check(
        {
            "sources": {"s": {"frame": "f"}},
            "tables": {"t": {"unit": "row", "columns": {"x": {"type": "text"}}}},
            "budget": {"epsilon": 1.0},
        }
    )
    with pytest.raises(CatalogError, match=rf"^tables\.t\.columns\.x: {said}"):
        DuckDB(catalog, {"f": frame})


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame(), "no column that can be asked about"),
        (pl.DataFrame(), "no column that can be asked about"),
        (pl.DataFrame({"x": [[1]]}), "no column that can be asked about; x is left out"),
        (pd.DataFrame(index=pd.Index([1], name="id")), r"no column .*; id is left out, .*reset_index\(\)"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "two columns of the frame have one name"),
        (pd.DataFrame([[1, 2]], columns=["0", 0]), "two columns of the frame have one name"),
        (pd.DataFrame({"id": [1j], "ID": [1]}), "two columns of the frame have one name"),
        (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])), "several levels"),
        (pd.DataFrame([[1, 2]], columns=pd.Index(["id", "\ud800"], dtype=object)), "is not valid text"),
        (pd.DataFrame({"id": [1], "": [2]}), "a name must not be empty"),
        (pd.Series([1]), "Series cannot be turned into an Arrow table"),
        (pl.Series([1]), "Series cannot be turned into an Arrow table"),
        (pa.array([1]), "Int64Array cannot be turned into an Arrow table"),
        (pl.LazyFrame({"id": [1]}), r"not LazyFrame; collect\(\) it first"),
        (np.zeros((2, 2)), "expected a data frame"),
        ({"id": np.zeros((2, 2))}, "expected an array of one dimension, not of 2"),
        ({"id": ["a", "b"], "x": ["a"]}, "differ in length"),
        ({"id": range(3)}, "expected a NumPy array, a pandas Series or an Arrow array, not range"),
        ({"id": [1, 2**70]}, "Python objects are read as text"),
        (pd.DataFrame({"id": pd.Series(["\ud800"], dtype="string[python]")}), "text is not valid Unicode"),
    ],
)
def test_a_frame_of_another_shape_is_refused_in_one_sentence(frame: Any, said: str) -> None:
    with pytest.raises(CatalogError, match=said) as caught:
        opened(frame)
    assert str(caught.value).startswith(("tables.t", "from_tables: tables.t"))
    assert str(caught.value).count(". ") == 0


def test_labels_that_are_no_text_are_named_by_their_text() -> None:
    frame = pd.DataFrame({"id": [1], 0: [2], None: ["a"], ("b", 1): [3.5]})
    assert list(opened(frame).catalog.tables["t"].columns) == ["id", "0", "None", "('b', 1)"]
    odd = pl.DataFrame({"id": [1], "^x$": [2], "*": [3]})
    assert list(opened(odd).catalog.tables["t"].columns) == ["id", "^x$", "*"]


def test_an_index_that_is_called_row_is_not_the_unit() -> None:
    frame = pd.DataFrame({"id": [1]}, index=pd.Index([1], name="row"))
    with pytest.warns(UserWarning, match="row is left out"):
        opened(frame, unit="row").close()


def test_a_subclass_of_a_pandas_frame_is_one() -> None:
    class Mine(pd.DataFrame):
        pass

    with pytest.raises(CatalogError, match="Python objects"):
        opened(Mine(beside(pd.Series(["a", b"a"], dtype=object))))


def test_a_stream_is_read_once() -> None:
    table = pa.table(beside(pa.array([5, 6, 7])))
    assert held(opened(table.to_reader())) == [5, 6, 7]


def test_tables_may_share_a_frame_and_want_different_columns() -> None:
    facts: dict[str, Any] = {
        "sources": {"s": {"frame": "f"}},
        "tables": {
            name: {"unit": "row", "columns": {name: {"type": "integer"}}, "source": "s"}
            for name in ("a", "b")
        },
        "budget": {"epsilon": 1.0},
    }
    engine = DuckDB(check(facts), {"f": pa.table({"a": [1], "b": [2]})})
    assert [engine.run(tree(f"SELECT {letter} AS n FROM {letter}")).to_pylist() for letter in "ab"] == [
        [{"n": 1}],
        [{"n": 2}],
    ]


def _pandas() -> tuple[Any, Callable[[], None]]:
    frame = pd.DataFrame(beside(np.array([1, 2, 3])))

    def change() -> None:
        frame.loc[0, "x"] = 99

    return frame, change


def _behind(make: Callable[[Any], Any], kind: str = "i8") -> tuple[Any, Callable[[], None]]:
    """A frame over memory of NumPy's that somebody writes to."""
    column = np.array([1, 2, 3], dtype=kind)

    def change() -> None:
        column[:] = 99

    return make(column), change


def _bytes(make: Callable[[pa.Buffer], pa.Array], content: bytes) -> tuple[Any, Callable[[], None]]:
    memory = bytearray(content)

    def change() -> None:
        memory[:] = b"c" * len(memory)

    return pa.table(beside(make(pa.py_buffer(memory)))), change


CATEGORIES = [str(number) for number in range(100)]
OFFSETS = pa.py_buffer(np.array([0, 1, 2, 3], dtype="i4"))
LONG = pa.array(["a" * 20, "b" * 20, "a" * 20], pa.string_view())
CHANGING: dict[str, Callable[[], tuple[Any, Callable[[], None]]]] = {
    "pandas": _pandas,
    "NumPy behind pandas": lambda: _behind(lambda x: pd.DataFrame(beside(x), copy=False)),
    "NumPy behind polars": lambda: _behind(lambda x: pl.DataFrame(beside(x))),
    "NumPy behind Arrow": lambda: _behind(lambda x: pa.table(beside(x))),
    "NumPy behind Arrow behind polars": lambda: _behind(lambda x: pl.from_arrow(pa.table(beside(x)))),
    "NumPy in a mapping": lambda: _behind(beside),
    "moments": lambda: _behind(lambda x: pd.DataFrame(beside(x), copy=False), "M8[us]"),
    "codes of categories": lambda: _behind(
        lambda x: pa.table(beside(pa.DictionaryArray.from_arrays(pa.array(x), pa.array(CATEGORIES)))), "i1"
    ),
    "text": lambda: _bytes(lambda x: pa.Array.from_buffers(pa.string(), 3, [None, OFFSETS, x]), b"aba"),
    "categories": lambda: _bytes(
        lambda x: pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 0]),
            pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(np.arange(3)), x]),
        ),
        b"ab",
    ),
    "views": lambda: _bytes(
        lambda x: pa.Array.from_buffers(pa.string_view(), 3, [None, LONG.buffers()[1], x]),
        LONG.buffers()[2].to_pybytes(),
    ),
    "missing": lambda: _bytes(
        lambda x: pa.Array.from_buffers(pa.int64(), 3, [x, pa.py_buffer(np.arange(3))]), b"\x05"
    ),
}


@pytest.mark.parametrize("how", CHANGING)
def test_the_rows_are_those_at_opening(how: str) -> None:
    """Else the weights of one reading would hold for the rows of another, and the bound for none."""
    frame, change = CHANGING[how]()
    curator = opened(frame)
    before = held(curator)
    change()
    assert held(curator) == before


def test_the_types_of_a_frame_are_told_in_the_words_of_arrow() -> None:
    frame = open_frame(pa.table({"id": [1], "x": pa.array(["a"]).dictionary_encode(), "l": [[1]]}), "t")
    assert frame.types == {"id": "int64", "x": "string"} and list(frame.left_out) == ["l"]
    assert open_frame(frame, "t") is frame
