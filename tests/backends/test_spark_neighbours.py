"""One unit's files on Spark, as nasty as files allow: with it and without it the same questions succeed, with
the same columns, and no number moves by more than is stated.

The unit's rows are in a file, and where folders are columns in a folder, of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.backends import release_statement, spark_columns, spark_files, spark_sql
from incrowd.backends.spark import Spark
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError
from incrowd.query import Contribution, bound, parse
from tests.backends.houses import Numbers, capped, check_sensitivity, run
from tests.backends.parsing import tree
from tests.backends.spark_houses import LOCAL

Files = Mapping[str, pa.Table]
LOW, HIGH = -(2**63), 2**63 - 1
OLD_SPARK = {"org.apache.spark.version": "2.4.8", "org.apache.spark.legacyDateTime": ""}


def written(folder: Path, files: Files) -> Path:
    for name, table in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        int96 = "int96" in name
        pq.write_table(table, place, row_group_size=2, use_deprecated_int96_timestamps=int96)
    return folder


def opened(path: Path, columns: Mapping[str, str], unit: str = "id") -> Spark:
    declared = {name: {"type": kind, **BOUNDS.get(kind, {})} for name, kind in columns.items()}
    table = {"unit": unit, "path": str(path), "columns": declared}
    return Spark(
        check({"sources": {"s": {"url": LOCAL}}, "tables": {"t": table}, "budget": {"epsilon": 1.0}})
    )


BOUNDS: dict[str, dict[str, Any]] = {
    "integer": {"bounds": [0, 9]},
    "float": {"bounds": [0, 9]},
    "decimal": {"bounds": [0, 9]},
}


def answers(engine: Spark, sql: str) -> list[tuple[Any, Mapping[str, float], Numbers]]:
    results: list[tuple[Any, Mapping[str, float], Numbers]] = []
    for leaf in bound(parse(sql), engine._catalog, {}, Contribution(rows=3, groups=2)).leaves:
        bounded, large = capped(leaf, 5, 1)
        results.append((bounded, large, run(engine, release_statement(bounded, large))))
    return results


def plain(table: pa.Table) -> pa.Table:
    """With numbers for moments and days, since Python's calendar is shorter."""
    for place, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            kind = pa.int32() if pa.types.is_date(field.type) else pa.int64()
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def neighbours(
    folder: Path, columns: Mapping[str, str], others: Files, nasty: Files, question: str | None = None
) -> Numbers | None:
    """What the nasty unit changes: of the others' rows nothing, and no number by more than is stated.

    Returns the numbers with it.
    """
    alone = opened(written(folder / "without", others), columns)
    both = opened(written(folder / "with", {**others, **nasty}), columns)
    names = ", ".join(columns)
    before, after = (
        Counter(map(repr, plain(engine._run(tree(f"SELECT {names} FROM t"))).to_pylist()))
        for engine in (alone, both)
    )
    assert before <= after, "another unit's rows are read differently"
    if question is None:
        return None
    for (leaf, large, without), (_, _, beside) in zip(
        answers(alone, question), answers(both, question), strict=True
    ):
        assert without.statement == beside.statement
        check_sensitivity(leaf, large, beside, without)
    return beside


def total(numbers: Numbers) -> int:
    return sum(numbers.values.get((0, 0), {}).values())


# Folders.


def people(first: int, count: int) -> pa.Table:
    return pa.table({"id": [str(number) for number in range(first, first + count)], "v": [1] * count})


ZIPS = {"zip=01234/a.parquet": people(0, 30), "zip=00007/a.parquet": people(30, 9)}
IN_ZIP = {"id": "text", "v": "integer", "zip": "text"}


def test_a_persons_folder_does_not_change_what_other_folders_mean(tmp_path: Path) -> None:
    question = "SELECT COUNT(*) FROM t WHERE zip = '01234'"
    count = neighbours(tmp_path, IN_ZIP, ZIPS, {"zip=A1/a.parquet": people(99, 1)}, question)
    assert count is not None and total(count) >= 30, "the names of folders are text"
    numbers = {**IN_ZIP, "zip": "integer"}
    nobody = {
        f"zip={code}/a.parquet": people(99, 1) for code in ("__HIVE_DEFAULT_PARTITION__", "a%20b", "1e3")
    }
    neighbours(tmp_path / "n", numbers, ZIPS, nobody)


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_units_that_are_folders_are_never_merged(tmp_path: Path, kind: str) -> None:
    rows = pa.table({"v": [9] * 5})
    others = {f"id={person}/a.parquet": rows for person in (7, 8)}
    columns = {"id": kind, "v": "integer"}
    question = "SELECT SUM(v) FROM t" if kind == "integer" else None
    neighbours(
        tmp_path, columns, others, {"id=007/a.parquet": rows, "id=x1/a.parquet": rows.slice(0, 0)}, question
    )


def test_guessing_the_types_of_folders_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {"spark.sql.sources.partitionColumnTypeInference.enabled": "true"}
    monkeypatch.setattr("incrowd.backends.spark.SETTINGS", {**spark_sql.SETTINGS, **setting})
    with pytest.raises(AssertionError, match="read differently"):
        neighbours(tmp_path, IN_ZIP, ZIPS, {"zip=A1/a.parquet": people(99, 1)})


# Values.


def broken_text() -> pa.Array:
    """Texts of two megabytes, of no letters, and of bytes that are none: a lone surrogate, a cut letter."""
    texts = ["ü".encode() * 2**20, b"", b"\xed\xa0\x80", b"\xc3", b"\x00", b"a\r\nb\xff"]
    return pa.array(texts, pa.binary()).view(pa.string())


def doubles() -> pa.Array:
    """NaN with a payload and a sign, minus zero, the least number above zero, and the ends."""
    bits = np.array(
        [0x7FF4DEADBEEF0001, 0xFFF8000000000000, 1 << 63, 1, 0x7FF0000000000000, 0xFFEFFFFFFFFFFFFF]
    )
    return pa.array(np.asarray(bits, np.uint64).view(np.float64))


def columns_of(count: int, nasty: bool) -> dict[str, pa.Array]:
    def integers(tame: int, ends: list[int | None], kind: pa.DataType) -> pa.Array:
        values = (ends * count)[:count] if nasty else [tame] * count
        return pa.array(values, kind)

    far, tame = [LOW, HIGH, LOW // 1000, HIGH // 1000, None, 0], 1_600_000_000
    wide = [Decimal(sign + "9" * 29 + "." + "9" * 9) for sign in ("", "-")]
    return {
        "ms": integers(tame * 10**3, far, pa.int64()).cast(pa.timestamp("ms")),
        "ms_utc": integers(tame * 10**3, far, pa.int64()).cast(pa.timestamp("ms", "UTC")),
        "us": integers(tame * 10**6, far, pa.int64()).cast(pa.timestamp("us")),
        "us_utc": integers(tame * 10**6, far, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "ns": integers(tame * 10**9, far, pa.int64()).cast(pa.timestamp("ns")),
        "d": integers(18_000, [-(2**31), 2**31 - 1, None, -719_163, 0, 1], pa.int32()).cast(pa.date32()),
        "dec": pa.array((wide * count)[:count] if nasty else [Decimal(3)] * count, pa.decimal128(38, 9)),
        "u64": integers(3, [2**64 - 1, 2**63, None, 0, 1, 2], pa.uint64()),
        "u8": integers(3, [255, 0, None, 1, 2, 3], pa.uint8()),
        "i8": integers(3, [-128, 127, None, 1, 2, 3], pa.int8()),
        "f64": doubles() if nasty else pa.array([1.5] * count),
        "f32": (doubles() if nasty else pa.array([1.5] * count)).cast(pa.float32(), safe=False),
        "s": broken_text() if nasty else pa.array(["flu"] * count),
        "w": broken_text() if nasty else pa.array(["12"] * count),
    }


VALUES = {
    **dict.fromkeys(("ms", "ms_utc", "us", "us_utc", "ns"), "timestamp"),
    **{"d": "date", "dec": "decimal", "u64": "integer", "u8": "integer", "i8": "integer"},
    **{"f64": "float", "f32": "float", "s": "text", "w": "float"},
}


def of_values(ids: list[str], nasty: bool) -> pa.Table:
    columns = columns_of(len(ids), nasty)
    # Lists and records beside what is declared are not read.
    return pa.table({"id": ids, **columns, "list": [[1]] * len(ids), "record": [{"ns": 1}] * len(ids)})


@pytest.mark.parametrize("metadata", [{}, OLD_SPARK], ids=["new", "old"])
def test_no_value_of_parquet_raises_or_changes_another(tmp_path: Path, metadata: dict[str, str]) -> None:
    others = {"a.parquet": of_values([f"p{person}" for person in range(6)], nasty=False)}
    mine = of_values(["nasty"] * 6, nasty=True).replace_schema_metadata(metadata)
    nasty = {"b.parquet": mine, "none.parquet": mine.slice(0, 0)}
    question = "SELECT COUNT_IF(ms >= '2000-01-01'), SUM(u64) FROM t WHERE UPPER(s) = 'FLU'"
    neighbours(tmp_path, {"id": "text", **VALUES}, others, nasty, None if metadata else question)


def test_moments_are_what_duckdb_makes_of_them(tmp_path: Path) -> None:
    table = of_values(["nasty"] * 6, nasty=True)
    pq.write_table(table, tmp_path / "a.parquet")
    engine = opened(tmp_path / "a.parquet", {"id": "text", **VALUES})
    answer = engine._run(tree("SELECT ms, us_utc, ns, d FROM t"))
    for name, unit in (("ms", 1000), ("us_utc", 1), ("ns", 1 / 1000)):
        stored = table.column(name).cast(pa.int64()).to_pylist()
        exact = [None if value is None else Fraction(value) * Fraction(unit) for value in stored]
        nearest = [
            None if value is None else int(value + Fraction(1 if value > 0 else -1, 2)) for value in exact
        ]
        fits = [value if value is None or LOW <= value <= HIGH else None for value in nearest]
        assert answer.column(name).cast(pa.int64()).to_pylist() == (stored if unit == 1 else fits)
    assert answer.column("d").cast(pa.int32()).equals(table.column("d").cast(pa.int32()))


def test_reading_moments_as_spark_does_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_spark(kind: str) -> str:
        return "timestamp_ntz" if kind == "timestamp[ms]" else stored_as(kind)

    stored_as = spark_files.stored_as
    monkeypatch.setattr("incrowd.backends.spark_tables.stored_as", as_spark)
    monkeypatch.setattr(spark_columns, "_moment", lambda column, engine_type: column)
    tame, nasty = (pa.table({"id": ["a"] * 6, "ms": columns_of(6, wild)["ms"]}) for wild in (False, True))
    with pytest.raises(CatalogError, match="cannot read one of its files whole") as told:
        neighbours(tmp_path, {"id": "text", "ms": "timestamp"}, {"a.parquet": tame}, {"b.parquet": nasty})
    assert told.value.__cause__ is None and told.value.__context__ is None


def test_int96_of_any_day_is_read(tmp_path: Path) -> None:
    ends = pa.array([LOW + 1, HIGH, 0], pa.int64()).cast(pa.timestamp("ns"))
    tame = pa.array([0, 1, 2], pa.timestamp("ns"))
    nasty = {
        f"int96-{len(metadata)}.parquet": pa.table({"id": ["nasty"] * 3, "at": ends}).replace_schema_metadata(
            metadata
        )
        for metadata in ({}, OLD_SPARK)
    }
    others = {"int96.parquet": pa.table({"id": ["a", "b", "c"], "at": tame})}
    neighbours(tmp_path, {"id": "text", "at": "timestamp"}, others, nasty)


def test_a_column_that_only_some_files_have_is_null_elsewhere(tmp_path: Path) -> None:
    others = {"a.parquet": pa.table({"id": ["a", "b"], "v": [1, 2]}), "b.parquet": pa.table({"v": [7, 7]})}
    nasty = {"0.parquet": pa.table({"id": ["nasty"] * 4})}
    neighbours(tmp_path, {"id": "text", "v": "integer"}, others, nasty)


# Units.


def decimals(values: list[str], digits: int = 20, places: int = 2) -> pa.Array:
    return pa.array([Decimal(value) for value in values], pa.decimal128(digits, places))


UNITS: dict[str, tuple[str, pa.Array]] = {
    "decimal as integer": ("integer", decimals(["100000000000000001", "100000000000000003", "7.00", "7.49"])),
    "decimal as text": ("text", decimals(["0.000000001", "0.000000002", "0", "-0.000000001"], 38, 9)),
    "uint64": ("integer", pa.array([2**64 - 1, 2**63, 1, 2**64 - 2], pa.uint64())),
    "milliseconds": ("timestamp", pa.array([LOW, HIGH, 0, LOW + 1], pa.timestamp("ms"))),
    "text as integer": ("integer", pa.array(["7", "007", "+7", " 7"])),
    "text": ("text", pa.array(["a" * 3000 + "x", "a" * 3000 + "y", "ann", "ANN "])),
}


@pytest.mark.parametrize("case", UNITS)
def test_two_values_of_a_unit_column_are_never_read_as_one(tmp_path: Path, case: str) -> None:
    """For each value, the unit of that value is the nasty one."""
    kind, ids = UNITS[case]
    rows = pa.table({"id": ids.take(pa.array([0, 1, 2, 3] * 3)), "v": [9] * 12})
    pq.write_table(rows, tmp_path / "a.parquet")
    engine = opened(tmp_path / "a.parquet", {"id": kind, "v": "integer"})
    answer = engine._run(tree("SELECT id, COUNT(*) AS n FROM t WHERE NOT id IS NULL GROUP BY id")).to_pydict()
    assert set(answer["n"]) == {3}, "three rows each: nobody's are those of two"
    exact = {"decimal as text": 4, "decimal as integer": 3, "text": 4, "uint64": 1, "milliseconds": 1}
    assert len(answer["n"]) == exact.get(case, 1)
    if case == "decimal as text":
        assert "-0.000000001" in answer["id"] and "0.000000000" in answer["id"]


REFUSED: dict[str, tuple[str, Callable[[], pa.Array], str]] = {
    "float": ("integer", lambda: pa.array([1.5]), "could be read as the same integer"),
    "nanoseconds": ("timestamp", lambda: pa.array([1], pa.timestamp("ns")), "nanoseconds"),
    "flag": ("boolean", lambda: pa.array(["t"]), "could be read as the same boolean"),
    "moment": ("timestamp", lambda: pa.array(["2020-01-01"]), "could be read as the same timestamp"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_unit_column_that_merges_values_is_refused(tmp_path: Path, case: str) -> None:
    kind, values, said = REFUSED[case]
    pq.write_table(pa.table({"id": values(), "v": [1]}), tmp_path / "a.parquet")
    with pytest.raises(Exception, match=f"columns.id: .*{said}"):
        opened(tmp_path / "a.parquet", {"id": kind, "v": "integer"})
