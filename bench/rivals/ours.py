"""Incrowd on one of its engines.

Either the owner declares the bounds that peers are given ("same"), or none but those of the column ("own"):
then the curator buys a census of what users contribute first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from incrowd import Curator
from rivals.protocol import KEYS, Answer, Job, Peer, by_key, serve, sql


def opened(job: Job) -> Peer:
    if "memory_limit" in job.more:
        _limit(job.more["memory_limit"])
    path = Path("curator.yaml")
    path.write_text(json.dumps(_catalog(job)))
    curator = Curator.open(path, new_ledger=True)
    run = PLAIN[job.more["engine"]](job)
    same = job.more["caps"] == "same"

    def private(number: int) -> Answer:
        groups = job.rows if same and job.question == "distinct" else None
        asked = sql(job.question, number)
        table = curator.ask(asked, epsilon=job.epsilon, delta=job.delta, groups=groups).to_arrow()
        return by_key(zip(*(column.to_pylist() for column in table.columns), strict=True))

    return Peer(run, private)


def _catalog(job: Job) -> dict[str, Any]:
    same = job.more["caps"] == "same"
    value: dict[str, Any] = {"type": "float", "bounds": [0, job.value if same else 1000], "nullable": False}
    events: dict[str, Any] = {
        "unit": "user_id",
        "columns": {
            "user_id": {"type": "integer"},
            "day": {"type": "date"},
            **{name: {"type": "text", "domain": keys, "nullable": False} for name, keys in KEYS.items()},
            "value": value,
        },
    }
    if same:
        events["contribution"] = job.rows
        value["contribution"] = job.rows * job.value
    if job.more["engine"] == "spark":
        events["path"] = job.more["parquet"]
    source = {"duckdb": "duckdb", "parquet": "parquet"}.get(job.more["engine"], "url")
    return {
        "sources": {"db": {source: job.source}},
        "tables": {"events": events},
        "budget": {"epsilon": 10_000, "delta": 0.01},
    }


def _limit(memory: str) -> None:
    # The owner's file has no word for it yet, and DuckDB takes it from no variable.
    connect = duckdb.connect
    settings = {"memory_limit": memory, "temp_directory": "spilled"}

    def limited(*given: Any, **named: Any) -> Any:
        return connect(*given, **{**named, "config": {**named.get("config", {}), **settings}})

    duckdb.connect = limited


def _duckdb(job: Job) -> Callable[[int], Answer]:
    if job.more["engine"] == "duckdb":
        connection = duckdb.connect(job.source, read_only=True)
    else:
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet('{job.source}')")
    return lambda number: by_key(connection.execute(sql(job.question, number)).fetchall())


def _postgres(job: Job) -> Callable[[int], Answer]:
    import psycopg

    connection = psycopg.connect(job.source, autocommit=True)
    median = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY value)"
    return lambda number: by_key(connection.execute(sql(job.question, number, median)).fetchall())


def _spark(job: Job) -> Callable[[int], Answer]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()  # the curator's, which is open by now
    spark.read.parquet(job.more["parquet"]).createOrReplaceTempView("events")
    return lambda number: by_key(spark.sql(sql(job.question, number)).collect())


PLAIN: dict[str, Callable[[Job], Callable[[int], Answer]]] = {
    "duckdb": _duckdb,
    "parquet": _duckdb,
    "postgres": _postgres,
    "spark": _spark,
}


if __name__ == "__main__":
    serve(opened)
