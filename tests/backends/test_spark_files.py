"""Parquet files without a Spark: footers alone decide how columns are read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import CatalogError

pytest.importorskip("pyspark")
from incrowd.backends import spark_files
from incrowd.backends.spark_files import (
    File,
    agreed,
    engine_type,
    family,
    footers,
    listings,
    literal_path,
    stored_as,
)
from incrowd.catalog import column_type

STORED = {
    "tiny": (pa.int8(), "bigint"),
    "wide": (pa.uint64(), "decimal(20,0)"),
    "real": (pa.float32(), "double"),
    "flag": (pa.bool_(), "boolean"),
    "word": (pa.string(), "string"),
    "bytes": (pa.binary(), "binary"),
    "day": (pa.date32(), "date"),
    "s": (pa.timestamp("s"), "timestamp[ms]"),
    "ms": (pa.timestamp("ms", "Europe/Vienna"), "timestamp[ms, UTC]"),
    "us": (pa.timestamp("us"), "timestamp[us]"),
    "ns": (pa.timestamp("ns", "UTC"), "timestamp[ns, UTC]"),
    "clock": (pa.time64("us"), "int64 time"),
    "money": (pa.decimal128(9, 2), "decimal(9,2)"),
    "wealth": (pa.decimal256(50, 30), "wide decimal(50,30)"),
    "nothing": (pa.null(), "null"),
    "list": (pa.list_(pa.int64()), "group"),
    "pair": (pa.struct([("a", pa.int64()), ("b", pa.int64())]), "group"),
}

LISTED = ("path", "modificationTime", "length", "content")


def write(path: Path, **kinds: pa.DataType) -> File:
    """An empty Parquet file with columns of these types, as a file system reports it."""
    pq.write_table(pa.schema(list(kinds.items())).empty_table(), path)
    return seen(path)


def seen(path: Path) -> File:
    """A file as a file system reports it."""
    known = path.stat()
    return File(f"file://{path}", known.st_size, known.st_mtime_ns // 1000)


class Session:
    """A session on a server that reaches the files of this machine under other names."""

    def __init__(self, folder: Path, columns: Sequence[str] = LISTED) -> None:
        self.folder, self.columns, self.loaded = folder, list(columns), 0
        self.read, self.rows = self, []  # type: ignore[var-annotated]

    def format(self, name: str) -> Session:
        """The reader of whole files."""
        assert name == "binaryFile"
        return self

    def load(self, paths: list[str]) -> Session:
        """The files at these paths."""
        self.loaded += len(paths)
        frame = Session(self.folder, self.columns)
        frame.rows = [re.sub(r"\\(.)", r"\1", path) for path in paths]
        return frame

    def selectExpr(self, *columns: str) -> Session:
        """Either the ends of files, or their names, lengths and times."""
        frame = Session(self.folder)
        for path in self.rows:
            file = self.folder / Path(path).name
            if len(columns) == 2:
                end = int(re.findall(r"-(\d+)", columns[1])[0])
                frame.rows.append((path, file.read_bytes()[-end:]))
            else:
                at = seen(file)
                frame.rows.append((int(columns[0].split()[0]), path, at.length, at.changed))
        return frame

    def unionAll(self, other: Session) -> Session:
        """The rows of both."""
        frame = Session(self.folder)
        frame.rows = [*self.rows, *other.rows]
        return frame

    def collect(self) -> list[Any]:
        """The rows."""
        return self.rows


def test_footers_tell_the_type_of_each_column(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", **{name: kind for name, (kind, _) in STORED.items()})
    session: Any = Session(tmp_path)
    told = footers(session, [file], {})
    assert told == {file: {name: stored for name, (_, stored) in STORED.items()}} and not session.loaded
    known = {file: {"other": "string"}}
    assert footers(session, [file], known) == known


def test_footers_that_only_a_server_reaches_are_the_same(tmp_path: Path) -> None:
    here = write(tmp_path / "a.parquet", **{name: kind for name, (kind, _) in STORED.items()})
    many = write(tmp_path / "[b].parquet", **{f"column_{place}_of_many": pa.int64() for place in range(700)})
    assert many.length > spark_files._TAIL
    session: Any = Session(tmp_path)
    distant = [File(f"s3://far/{Path(file.path).name}", file.length, file.changed) for file in (here, many)]
    told = footers(session, distant, {})
    assert list(told.values()) == list(footers(session, [here, many], {}).values())
    assert session.loaded == 3, "the longer footer is read a second time, and the shorter is not"


@pytest.mark.parametrize("change", ["length", "time", "gone"])
def test_a_file_that_is_another_on_this_machine_is_read_by_the_server(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.parquet"
    file = write(path, x=pa.int64())
    asked = File(file.path, file.length + 1, file.changed) if change == "length" else file
    if change == "time":
        os.utime(path, (1, 1))
    if change == "gone":
        asked = File(f"file:///nowhere{path}", file.length, file.changed)
    session: Any = Session(tmp_path)
    assert footers(session, [asked], {}) == {asked: {"x": "bigint"}} and session.loaded == 1


def test_two_columns_of_one_name_are_no_column(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])
    pq.write_table(table, tmp_path / "a.parquet")
    file = seen(tmp_path / "a.parquet")
    session: Any = Session(tmp_path)
    assert footers(session, [file], {}) == {file: {"x": "two columns"}}
    assert column_type("two columns") is None


def listed(folder: Path, *paths: str, **fields: Any) -> spark_files.Listing:
    """The listing of a table at these paths."""
    session: Any = Session(folder, **fields)
    return listings(session, {"t": paths})["t"]


def test_files_are_listed_in_order_with_the_columns_of_their_folders(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{name}.parquet", x=pa.int64()) for name in "ba")
    columns = (*LISTED, "zip", "day")
    told = listed(tmp_path, "b.parquet", "a.parquet", columns=columns)
    assert [Path(file.path).name for file in told.files] == ["a.parquet", "b.parquet"]
    assert told.folders == ("zip", "day") and {file.length for file in told.files} == {one.length, two.length}
    session: Any = Session(tmp_path)
    assert listings(session, {}) == {}
    both = listings(session, {"t": [f"{tmp_path}/a.parquet"], "u": [f"{tmp_path}/b.parquet"]})
    assert [Path(both[name].files[0].path).name for name in "tu"] == ["a.parquet", "b.parquet"]


def test_a_file_at_two_paths_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=pa.int64())
    (tmp_path / "b.parquet").hardlink_to(tmp_path / "a.parquet")
    said = (
        "tables.t: two of its paths lead to the same file, whose rows would count twice; name each file "
        "once, and keep no links to it."
    )
    once, linked = (f"file://{tmp_path}/{name}.parquet" for name in "ab")
    for paths in ((once, once), (once, linked)):
        with pytest.raises(CatalogError) as caught:
            listed(tmp_path, *paths)
        assert str(caught.value) == said


def test_a_folder_cannot_be_called_like_a_fact_about_files(tmp_path: Path) -> None:
    columns = (*LISTED, "length")
    with pytest.raises(CatalogError) as caught:
        listed(tmp_path, columns=columns)
    names = "path or modificationTime or length or content"
    assert str(caught.value) == f"tables.t: no folders can name a column {names}."


def test_a_file_is_known_by_its_path_length_and_time() -> None:
    file = File("a", 1, 2)
    assert file.mark == File("a", 1, 2).mark
    assert len({file.mark, File("b", 1, 2).mark, File("a", 2, 2).mark, File("a", 1, 3).mark}) == 4


@given(st.text())
def test_a_path_without_wildcards_is_itself_and_with_them_is_escaped(path: str) -> None:
    assert re.sub(r"\\(.)", r"\1", literal_path(path), flags=re.DOTALL) == path
    assert not re.search(r"(?<!\\)(?:\\\\)*[{}\[\]*?]", literal_path(path))


@pytest.mark.parametrize(
    ("physical", "annotation", "name"),
    [
        ("INT96", "", "timestamp[ns, int96]"),
        ("INT64", "TIMESTAMP(MICROS,false)", "timestamp[us]"),
        ("INT64", "INTEGER(64,true)", "bigint"),
        ("INT64", "INTEGER(64,false)", "decimal(20,0)"),
        ("BINARY", "JSON", "string"),
        ("BYTE_ARRAY", "ENUM", "string"),
        ("FIXED_LEN_BYTE_ARRAY", "STRING", "fixed_len_binary string"),
        ("BINARY", "", "binary"),
        ("INT32", "DECIMAL(38,0)", "decimal(38,0)"),
        ("BINARY", "DECIMAL(39,0)", "wide decimal(39,0)"),
        ("INT32", "DATE", "date"),
        ("BINARY", "UNKNOWN", "null"),
        ("FIXED_LEN_BYTE_ARRAY", "UUID", "fixed_len_binary uuid"),
    ],
)
def test_a_stored_type_has_a_name_that_says_how_it_is_read(physical: str, annotation: str, name: str) -> None:
    assert engine_type(physical, annotation) == name


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["bigint", "bigint"], {"bigint"}),
        (["null", "bigint", "double"], {"bigint", "double"}),
        (["null", "timestamp[ms]"], {"timestamp[ms]"}),
        (["null", "string"], {"null", "string"}),
        (["null", "bigint", "string"], {"null", "bigint", "string"}),
        (["null"], {"null"}),
        ([], set()),
    ],
)
def test_files_agree_beside_columns_of_nothing_if_spark_reads_them(kinds: list[str], told: set[str]) -> None:
    assert agreed(kinds) == told


def test_moments_and_days_are_read_as_the_integers_that_files_store() -> None:
    kinds = ["date", "timestamp[ms]", "timestamp[ns, UTC]", "timestamp[ns, int96]", "string", "decimal(9,2)"]
    assert [stored_as(kind) for kind in kinds] == ["int", "bigint", "bigint", "timestamp_ltz", *kinds[4:]]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tinyint", "bigint"),
        ("int", "bigint"),
        ("bigint", "bigint"),
        ("float", "double"),
        ("char(3)", "string"),
        ("varchar(9)", "string"),
        ("string collate UTF8_LCASE", "string"),
        ("timestamp_ntz", "timestamp[us]"),
        ("timestamp[ns, UTC]", "timestamp[us, UTC]"),
        ("timestamp[us]", "timestamp[us]"),
        ("decimal(9,2)", "decimal(9,2)"),
        ("date", "date"),
    ],
)
def test_a_type_has_one_family_in_the_catalog_and_in_footers(kind: str, name: str) -> None:
    assert family(kind) == name
