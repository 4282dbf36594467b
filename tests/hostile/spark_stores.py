"""Spark's house: Parquet files, folders that say a column's value, and tables of Spark's catalog."""

from __future__ import annotations

import functools
import random
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd import Curator
from tests.backends.engines import house
from tests.backends.houses import cities
from tests.backends.spark_houses import LOCAL, SparkHouse
from tests.hostile import values
from tests.hostile.cases import Case, Rows
from tests.hostile.stores import PARQUET, Store, arrow_tables, by_file, partitioned

KINDS = ("files", "files", "folders", "table")


@functools.cache
def session() -> Any:
    """The session of the process, through which an owner makes tables."""
    spark_house = house("spark", "user")
    assert isinstance(spark_house, SparkHouse)
    return spark_house.backend._session


def spark_stores(rng: random.Random) -> Store:
    """One of the ways in which Spark finds rows."""
    kind = rng.choice(KINDS)
    key = rng.choice(["grp", "cat", "t", "user_id"])
    files = rng.choice([1, 2])
    options: dict[str, Any] = {
        "store_schema": rng.random() < 0.5,
        "use_dictionary": rng.random() < 0.5,
        "use_deprecated_int96_timestamps": rng.random() < 0.1,
    }

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        folder.chmod(0o755)
        places: dict[str, Any] = {}
        for name, table in {**arrow_tables(case, rows), "cities": cities()}.items():
            home = folder / name
            home.mkdir()
            if kind == "folders" and name == "visits":
                partitioned(table, [*rows["visits"][key]], key, home)
            else:
                size = -(-table.num_rows // files) or 1
                for part in range(files):
                    pq.write_table(table.slice(part * size, size), home / f"{part}.parquet", **options)
            places[name] = {"path": str(home)}
            if kind == "table" and name == "visits":
                stored = f"visits_{secrets.token_hex(6)}"
                session().sql(f"CREATE TABLE {stored} USING parquet LOCATION '{home}'")
                places[name] = {"table": f"default.{stored}"}
        return lambda: by_file(case, folder, {"lake": {"url": LOCAL}}, places)

    kept = tuple(storage for storage in PARQUET if not pa.types.is_dictionary(storage.made))
    name = f"Spark, {kind}" + (f" by {key}" if kind == "folders" else "")
    return Store(name, kept, written, rng.choice([(), (), (), values.LONG_TEXTS[:1]]))
