"""The bundled table: there, small, and attributed."""

from __future__ import annotations

from importlib.resources import files

import pyarrow.parquet as pq

from incrowd.data import adult, adult_path


def test_the_table_has_all_its_people() -> None:
    table = adult()
    assert (table.num_rows, table.num_columns) == (48_842, 15)
    assert table.column("workclass").null_count == 2_799  # '?' in the original


def test_the_file_is_compressed_parquet_under_a_megabyte() -> None:
    assert adult_path().stat().st_size < 1_000_000
    assert pq.ParquetFile(adult_path()).metadata.row_group(0).column(0).compression == "ZSTD"


def test_source_and_licence_travel_with_it() -> None:
    text = files("incrowd.data").joinpath("SOURCES.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text and "UCI" in text
