"""Files and frames of every type: no row decides how another is read, or whether anything can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.backends import DuckDB
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import BackendError, CatalogError
from tests.backends.parsing import tree

MOST = 2**63 - 1
MOMENTS = [0, 1_600_000_000_000, MOST, -MOST, -MOST - 1, 10**18, -(10**18), None]


def catalog(source: dict[str, Any], columns: dict[str, str], unit: Any = "row") -> Catalog:
    declared = {"unit": unit, "columns": {name: {"type": kind} for name, kind in columns.items()}}
    return check({"sources": {"s": source}, "tables": {"t": declared}, "budget": {"epsilon": 1.0}})


def rows(engine: DuckDB, columns: str = "*") -> list[tuple[Any, ...]]:
    return [
        tuple(row.values()) for row in engine._run(tree(f"SELECT {columns} FROM t ORDER BY ALL")).to_pylist()
    ]


def moments(unit: str, zone: str | None) -> pa.Table:
    return pa.table({"moment": pa.array(MOMENTS, pa.int64()).view(pa.timestamp(unit, zone))})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("store", ["frame", "parquet"])
def test_moments_beyond_the_calendar_make_nothing_fail(
    tmp_path: Path, unit: str, zone: str | None, store: str
) -> None:
    table = moments(unit, zone)
    if store == "parquet":
        # Parquet has no seconds; its milliseconds hold what no engine's microseconds do.
        pq.write_table(moments("ms" if unit == "s" else unit, zone), tmp_path / "a.parquet")
        engine = DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")}, {"moment": "timestamp"}))
    else:
        engine = DuckDB(catalog({"frame": "t"}, {"moment": "timestamp"}), {"t": table})
    instants = engine._run(tree("SELECT epoch_us(moment) AS us FROM t")).column("us").to_pylist()
    factor = {"s": 1000 if store == "parquet" else 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]
    divisor = 1000 if unit == "ns" else 1
    ordinary = 1_600_000_000_000 * factor // divisor
    assert len(instants) == len(MOMENTS) and 0 in instants and ordinary in instants
    assert all(instant is None or instant // 10**15 <= 9224 for instant in instants)


def test_a_file_that_holds_such_moments_keeps_what_its_folders_say(tmp_path: Path) -> None:
    for zone, values in (("01234", [0, MOST]), ("A%2F1", [5])):
        (tmp_path / f"zip={zone}").mkdir()
        at = pa.array(values, pa.int64()).view(pa.timestamp("ms"))
        pq.write_table(pa.table({"moment": at}), tmp_path / f"zip={zone}/a.parquet")
    source = {"parquet": str(tmp_path / "*/*.parquet")}
    engine = DuckDB(catalog(source, {"moment": "timestamp", "zip": "text"}))
    assert rows(engine, "zip, epoch_us(moment)") == [("01234", 0), ("01234", None), ("A/1", 5000)]


@pytest.mark.parametrize("hostile", ["A1", "1e5", "", "7", "%zz", "%ff", "__HIVE_DEFAULT_PARTITION__", "a=b"])
def test_one_folder_does_not_decide_how_others_are_read(tmp_path: Path, hostile: str) -> None:
    """Engines that guess a type from all names turn 01234 from a number into text when A1 comes by."""
    for place, zone in enumerate(["01234", "007", hostile]):
        (tmp_path / f"zip={zone}").mkdir()
        pq.write_table(pa.table({"n": [place]}), tmp_path / f"zip={zone}/a.parquet")
    source = {"parquet": str(tmp_path / "*/*.parquet")}
    as_text = rows(DuckDB(catalog(source, {"n": "integer", "zip": "text"})), "n, zip")
    assert as_text[:2] == [(0, "01234"), (1, "007")]
    as_number = rows(DuckDB(catalog(source, {"n": "integer", "zip": "integer"})), "n, zip")
    assert as_number == [(0, 1234), (1, 7), (2, 7 if hostile == "7" else None)]


def test_files_of_different_types_are_each_read_by_their_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([5], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["abc", "7"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": [2.5, float("nan")]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"y": [1]}), tmp_path / "d.parquet")
    engine = DuckDB(catalog({"parquet": str(tmp_path / "*.parquet")}, {"x": "integer"}))
    assert sorted(rows(engine), key=str) == [(2,), (5,), (7,), (None,), (None,), (None,)]


def test_text_that_is_not_utf8_is_refused_at_opening_and_nothing_of_it_is_told(tmp_path: Path) -> None:
    offsets = pa.py_buffer(b"".join(offset.to_bytes(4, "little") for offset in (0, 1, 3)))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff\xfe")])
    pq.write_table(pa.table({"x": broken}), tmp_path / "a.parquet")
    with pytest.raises(CatalogError, match="well-formed") as caught:
        DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")}, {"x": "text"}))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_file_is_tried_once_and_again_when_it_changes(tmp_path: Path) -> None:
    from incrowd.catalog import load

    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    (tmp_path / "curator.yaml").write_text(
        "sources: {s: {parquet: a.parquet}}\ntables: {t: {unit: row, columns: {x: {type: integer}}}}\n"
        "budget: {epsilon: 1}\n"
    )
    engine = DuckDB(load(tmp_path / "curator.yaml"))
    noted = sorted((tmp_path / "curator.copies").glob("*.seen"))
    assert len(noted) == 1
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    engine.refresh(["t"])
    assert rows(engine) == [(1,), (2,)] and sorted((tmp_path / "curator.copies").glob("*.seen")) != noted


WIDE = [0, 7, 2**53 + 1, 2**63 - 1]


@pytest.mark.parametrize(
    ("kind", "values", "declared", "expected"),
    [
        (pa.uint64(), [7, 2**64 - 1, 2**63 - 1], "integer", [7, 2**63 - 1, None]),
        (pa.decimal128(20, 2), ["7.00", "7.25", "100000000000000001.00"], "integer", [7, 10**17 + 1, None]),
        (pa.decimal128(38, 0), ["7", str(10**37), "100000000000000003"], "integer", [7, 10**17 + 3, None]),
        (pa.decimal128(20, 2), ["7.00", "7.25"], "text", ["7.00", "7.25"]),
        (
            pa.string(),
            ["7", "007", "+7", "-0", "9223372036854775807"],
            "integer",
            [7, 2**63 - 1, *[None] * 3],
        ),
    ],
)
def test_ids_are_read_exactly_or_as_nobodys(
    kind: pa.DataType, values: list[Any], declared: str, expected: list[Any]
) -> None:
    column = pa.array(values, pa.string() if isinstance(values[0], str) else kind).cast(kind)
    engine = DuckDB(catalog({"frame": "t"}, {"id": declared}, "id"), {"t": pa.table({"id": column})})
    ids = engine.run(tree("SELECT id FROM t")).column("id").to_pylist()
    assert sorted(ids, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int8(), pa.int16()])
def test_integers_of_every_width_are_integers(kind: pa.DataType) -> None:
    frame = pa.table({"x": pa.array([1, 2], kind)})
    assert rows(DuckDB(catalog({"frame": "t"}, {"x": "integer"}), {"t": frame})) == [(1,), (2,)]


def test_categories_are_read_by_their_values() -> None:
    import polars as pl

    facts = catalog({"frame": "t"}, {"x": "text"})
    for frame in (
        pl.DataFrame({"x": ["a", "b"]}, schema={"x": pl.Categorical}),
        pl.DataFrame({"x": ["a", "b"]}, schema={"x": pl.Enum(["a", "b", "c"])}),
        pa.table({"x": pa.array(["a", "b"]).dictionary_encode()}),
        pa.table({"x": pa.array(["a", "b"], pa.large_string()).dictionary_encode()}),
    ):
        assert rows(DuckDB(facts, {"t": frame})) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (pa.array([1.5, 2.5]), "integer"),
        (pa.array([1, 2], pa.timestamp("ns")), "timestamp"),
        (pa.array([1.5], pa.float32()), "text"),
        (pa.array([1, 2], pa.timestamp("us")), "date"),
    ],
)
def test_ids_that_could_be_merged_are_refused(column: pa.Array, declared: str) -> None:
    with pytest.raises(CatalogError, match="identifies units"):
        DuckDB(catalog({"frame": "t"}, {"id": declared}, "id"), {"t": pa.table({"id": column})})


def test_a_file_that_is_matched_twice_is_read_once(tmp_path: Path) -> None:
    """Where each row is a unit, one that is read twice moves a count by two."""
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "data/a.parquet")
    (tmp_path / "data/b.parquet").symlink_to(tmp_path / "data/a.parquet")
    (tmp_path / "data/c.parquet").hardlink_to(tmp_path / "data/a.parquet")
    patterns = [str(tmp_path / "data/*.parquet"), str(tmp_path / "*/a.parquet")]
    assert rows(DuckDB(catalog({"parquet": patterns}, {"x": "integer"}))) == [(1,)]


def test_copies_are_no_files_of_a_table(tmp_path: Path) -> None:
    from incrowd.catalog import load

    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "curator.yaml").write_text(
        "sources: {s: {csv: '**/*[!l]'}}\ntables: {t: {unit: row, columns: {x: {type: integer}}}}\n"
        "budget: {epsilon: 1}\n"
    )
    for _ in range(2):
        assert rows(DuckDB(load(tmp_path / "curator.yaml"))) == [(1,)]
    assert list((tmp_path / "curator.copies").iterdir())


def test_columns_of_python_objects_are_text_whatever_they_hold() -> None:
    import datetime as dt

    import pandas as pd

    facts = catalog({"frame": "t"}, {"x": "text"})
    for values in (["a", None], [None, None]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        assert rows(DuckDB(facts, {"t": frame}))[-1] == (None,)
    for hostile in (dt.date(2020, 1, 1), 5, b"\xff", ["secret"]):
        frame = pd.DataFrame({"x": pd.Series(["a", hostile], dtype=object)})
        with pytest.raises(CatalogError, match="Python objects") as caught:
            DuckDB(facts, {"t": frame})
        assert caught.value.__context__ is None and "secret" not in str(caught.value)
    twice = pd.DataFrame([["a", "b"]], columns=["x", "x"], dtype=object)
    with pytest.raises(CatalogError, match="one name in SQL"):
        DuckDB(facts, {"t": twice})


def test_ids_in_the_96_bits_of_old_files_are_refused(tmp_path: Path) -> None:
    """They hold nanoseconds: two people within one microsecond would be one."""
    table = pa.table({"id": pa.array([1000, 1001], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(CatalogError, match="identifies units"):
        DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")}, {"id": "timestamp"}, "id"))
    assert DuckDB(catalog({"parquet": str(tmp_path / "a.parquet")}, {"id": "timestamp"}))


@pytest.mark.parametrize("name", ["*", "?", "[a]", "{a,b}", "[", "a]b[", "[!x]", "**"])
def test_a_folder_named_like_a_wildcard_is_read_by_its_name(tmp_path: Path, name: str) -> None:
    for folder in ("a", name):
        (tmp_path / f"k={folder}").mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"k={folder}/f[1]*.parquet")
    engine = DuckDB(catalog({"parquet": str(tmp_path / "*/*.parquet")}, {"x": "integer", "k": "text"}))
    assert rows(engine, "k, x") == sorted([(name, 1), ("a", 1)])


def test_a_name_that_the_engine_cannot_be_told_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a\\[b").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a\\[b" / "f.parquet")
    with pytest.raises(CatalogError, match="rename it"):
        DuckDB(catalog({"parquet": str(tmp_path / "*/*.parquet")}, {"x": "integer"}))


def test_a_record_where_names_belong_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Ann,HIV\nBob,flu\n")
    with pytest.raises(CatalogError, match="must name the columns") as caught:
        DuckDB(catalog({"csv": str(tmp_path / "a.csv")}, {"name": "text", "disease": "text"}))
    assert "Ann" not in str(caught.value) and "HIV" not in str(caught.value)


def test_a_copy_that_is_lost_or_changed_under_an_open_curator_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    facts = catalog({"csv": str(tmp_path / "a.csv")}, {"x": "integer"}).located(tmp_path / "c.yaml")
    engine = DuckDB(facts)
    for harm in (Path.unlink, lambda place: place.write_bytes(b"PAR1")):
        (place,) = (tmp_path / "c.copies").glob("*.copy")
        harm(place)
        with pytest.raises(BackendError, match="changed"):
            engine.run(tree("SELECT COUNT(*) AS n FROM t"))
        engine.refresh(["t"])
        assert engine.run(tree("SELECT COUNT(*) AS n FROM t")).to_pylist() == [{"n": 2}]
