"""Tumult Analytics: a Session over a Spark frame whose rows are added or removed by identifier."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    QueryBuilder,
    Session,
)

from rivals.protocol import Answer, Job, Peer, by_key, serve, sql


def opened(job: Job) -> Peer:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    frame = spark.read.parquet(job.source)
    frame.createOrReplaceTempView("events")

    def plain(number: int) -> Answer:
        return by_key(spark.sql(sql(job.question, number)).collect())

    def private(number: int) -> Answer:
        session = Session.from_dataframe(
            privacy_budget=ApproxDPBudget(job.epsilon, job.delta),
            source_id="events",
            dataframe=frame,
            protected_change=AddRowsWithID("user_id"),
        )
        rows = QueryBuilder("events").filter(f"value > -{number}")
        if job.question == "distinct":
            return by_key(_users_by_day(session, rows, job).collect())
        rows = rows.enforce(MaxRowsPerID(job.rows))
        if job.key:
            rows = rows.groupby(KeySet.from_dict({job.key: job.public_keys}))
        asked = {
            "count": lambda: rows.count(),
            "sum": lambda: rows.sum("value", low=0, high=job.value),
            "average": lambda: rows.average("value", low=0, high=job.value),
            "median": lambda: rows.median("value", low=0, high=job.value),
        }[job.question]()
        return by_key(session.evaluate(asked, session.remaining_privacy_budget).collect())

    return Peer(plain, private)


def _users_by_day(session, rows, job):  # type: ignore[no-untyped-def]
    rows = rows.enforce(MaxGroupsPerID("day", job.rows)).enforce(MaxRowsPerGroupPerID("day", 1))
    # Keys are bought first, with half of epsilon and all of delta.
    days = session.evaluate(rows.get_groups(["day"]), ApproxDPBudget(job.epsilon / 2, job.delta))
    asked = rows.groupby(KeySet.from_dataframe(days)).count()
    return session.evaluate(asked, session.remaining_privacy_budget)


if __name__ == "__main__":
    serve(opened)
