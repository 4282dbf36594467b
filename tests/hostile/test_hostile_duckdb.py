"""DuckDB against the hostile neighbour: frames, CSV, Parquet and database files, with generated questions.

Few questions in the tests; all of them with INCROWD_HOSTILE=full, as `make audit` has it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile import stores
from tests.hostile.attack import attack, wanted
from tests.hostile.duckdb_files import duckdb_files
from tests.hostile.known import DUCKDB_ATTACKS
from tests.hostile.neighbour import Tally
from tests.hostile.stores import Store

STORES = (
    stores.arrow_frames,
    stores.inferred_frames,
    stores.pandas_frames,
    stores.polars_frames,
    stores.parquet_files,
    stores.hive_folders,
    stores.csv_files,
    duckdb_files,
)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)
def test_no_row_decides_anything_but_a_number(
    store: Callable[[random.Random], Store], counted: Callable[[Tally], None]
) -> None:
    counted(attack(Tally("DuckDB"), [store], wanted(quick=3, full=640)))


@pytest.mark.parametrize("attack", DUCKDB_ATTACKS, ids=lambda function: function.__name__)
def test_a_known_attack_fails(attack: Callable[[Path], None], tmp_path: Path) -> None:
    attack(tmp_path)
