"""Files on Spark are read whole before a question is paid for, and no log quotes what Spark stumbled at."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.backends.spark import Spark
from incrowd.errors import BackendError, CatalogError
from tests.backends.test_spark import catalog, rows
from tests.backends.test_spark_tables import ONE, refused, written


def too_long(place: Path) -> None:
    """An ordinary sum per person, which polars lets run past the digits of its type."""
    frame = pl.DataFrame(
        {"user_id": [7, 7], "age": pl.Series([Decimal("9" * 38)] * 2, dtype=pl.Decimal(38, 0))}
    )
    frame.group_by("user_id").agg(pl.col("age").sum()).write_parquet(place)


def damaged(place: Path) -> None:
    secrets = [f"secret {number}" for number in range(200)]
    pq.write_table(pa.table({"user_id": [7] * 200, "age": secrets}), place)
    start = pq.ParquetFile(place).metadata.row_group(0).column(1).data_page_offset + 30
    content = bytearray(place.read_bytes())
    content[start : start + 30] = (byte ^ 0xA5 for byte in content[start : start + 30])
    place.write_bytes(content)


def brotli(place: Path) -> None:
    pq.write_table(ONE, place, compression="brotli")


def age_as(kind: str) -> dict[str, Any]:
    return {"user_id": {"type": "integer"}, "age": {"type": kind}}


@pytest.mark.parametrize(("write", "kind"), [(too_long, "decimal"), (damaged, "text"), (brotli, "integer")])
def test_what_cannot_be_read_whole_is_refused_before_a_question(
    tmp_path: Path, write: Callable[[Path], None], kind: str
) -> None:
    write(tmp_path / "a.parquet")
    refused("tables.t: Spark cannot read one of its files whole", tmp_path, columns=age_as(kind))


OPENING = """
import sys
from incrowd.backends.spark_session import open_session
from incrowd.errors import CatalogError
from tests.backends.spark_houses import LOCAL
from tests.backends import test_spark_whole as tests

try:
    tests.Spark(tests.catalog(sys.argv[1], columns=tests.age_as("decimal")))
except CatalogError as error:
    print(error)
try:
    open_session(LOCAL, {}).sql("SELECT secret_word")
except Exception as error:
    print(type(error).__name__)
"""


def test_sparks_own_log_quotes_no_row(tmp_path: Path) -> None:
    too_long(tmp_path / "a.parquet")
    told = subprocess.run(
        [sys.executable, "-c", OPENING, tmp_path], capture_output=True, text=True, check=True
    )
    assert "cannot read one of its files whole" in told.stdout and "AnalysisException" in told.stdout
    assert "ERROR Executor org.apache.spark" in told.stderr
    assert not re.search(r"\d{30}|secret_word", told.stderr)


def test_a_new_file_is_read_before_the_next_question_and_is_no_part_of_this_one(tmp_path: Path) -> None:
    column = pa.array([Decimal(1)], pa.decimal128(38, 0))
    folder = written(tmp_path, k_is_1__a=ONE.set_column(1, "age", column))
    columns = {**age_as("decimal"), "k": {"type": "text"}}
    engine = Spark(catalog(folder, columns=columns))
    bad = folder / "k=1" / "b.parquet"
    too_long(bad)
    with pytest.raises(CatalogError, match="cannot read one of its files whole") as told:
        engine.refresh(["t"])
    assert told.value.__cause__ is None and told.value.__context__ is None
    with pytest.raises(BackendError, match="changed while the question ran"):
        rows(engine)
    written(folder, k_is_1__b=ONE.set_column(1, "age", column))
    with pytest.raises(BackendError, match="changed while the question ran"):
        rows(engine)
    engine.refresh(["t"])
    assert len(rows(engine)) == 2


def no_parquet(place: Path) -> None:
    place.write_text("no Parquet")


@pytest.mark.parametrize("write", [too_long, no_parquet, lambda place: pq.write_table(ONE, place)])
def test_a_file_that_comes_while_a_question_is_prepared_ends_it_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    column = pa.array([Decimal(1)], pa.decimal128(38, 0))
    engine = Spark(catalog(written(tmp_path, a=ONE.set_column(1, "age", column)), columns=age_as("decimal")))
    attach = Spark._attach

    def late(self: Spark, names: Any) -> None:
        write(tmp_path / "b.parquet")
        attach(self, names)

    monkeypatch.setattr(Spark, "_attach", late)
    with pytest.raises(BackendError, match="changed while the question ran") as told:
        rows(engine)
    assert told.value.__cause__ is None and told.value.__context__ is None


def test_a_file_is_read_whole_once_by_all_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = Spark._read_whole

    def counted(self: Spark, new: Any, listed: Any) -> None:
        read.append(sum(map(len, new.values())))
        whole(self, new, listed)

    monkeypatch.setattr(Spark, "_read_whole", counted)
    declared = catalog(written(tmp_path / "t", a=ONE, b=ONE)).located(tmp_path / "curator.yaml")
    for _ in range(2):
        Spark(declared).refresh(["t"])
    written(tmp_path / "t", b=pa.table({"user_id": [1, 2], "age": [3, 4]}))
    assert len(rows(Spark(declared))) == 3
    assert read == [2, 1]
