"""Spark's houses: Parquet files, read by Spark inside this process or by a Spark Connect server.

The first is set up for many small statements: it interprets plans, which takes less time than compiling them.
The server compiles them, as Spark does by default.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.backends.spark import Spark
from incrowd.catalog import Catalog
from tests import servers
from tests.backends.houses import catalog_at, cities, tables_from

LOCAL = "spark://local[2]"
_SMALL = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.memory": "2g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    # The plans of a thousand statements fill a heap.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="incrowd-warehouse-"),
}
atexit.register(shutil.rmtree, _SMALL["spark.sql.warehouse.dir"], ignore_errors=True)
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    " ".join([*(f"--conf '{name}={value}'" for name, value in _SMALL.items()), "pyspark-shell"]),
)


def at_paths(url: str, mode: str, folder: Path) -> Catalog:
    """The houses' catalog, with each table in Parquet files of a folder of its own."""
    catalog = catalog_at(url, mode)
    tables = {
        name: table.model_copy(update={"path": (str(folder / name),)})
        for name, table in catalog.tables.items()
    }
    return catalog.model_copy(update={"tables": tables})


def write(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    """Put other rows into the files of some tables: into two files each, so that rows have two homes."""
    for name, table in tables.items():
        place = folder / name
        place.mkdir(exist_ok=True)
        half = table.num_rows // 2
        for part, rows in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(rows, place / f"part-{part}.parquet")


class SparkHouse:
    """Spark inside this process."""

    def __init__(self, mode: str, url: str = LOCAL) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="incrowd-spark-"))
        self._folder.chmod(0o755)
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        write(self._folder, {**tables_from(0, True), "cities": cities()})
        self.backend = Spark(at_paths(url, mode, self._folder))

    def furnish(self, tables: Mapping[str, pa.Table]) -> None:
        write(self._folder, tables)
        self.backend.refresh(tables)


class SparkConnectHouse(SparkHouse):
    """A Spark Connect server."""

    def __init__(self, mode: str) -> None:
        super().__init__(mode, servers.spark_connect())
        # Before the server ends: a session tries for minutes to say goodbye to one that is gone.
        atexit.register(self.backend.close)
