"""SmartNoise SQL over PostgreSQL: a private reader that samples rows per user with a window of the engine."""

from __future__ import annotations

import warnings

import psycopg2
import snsql

from rivals.protocol import Answer, Job, Peer, Unsupported, by_key, serve, sql

# Epsilon is spent on each noisy column, and an average has two.
COLUMNS = {"average": 2}
# Its grammar takes day for a word of its own.
VIEW = "CREATE OR REPLACE VIEW visits AS SELECT user_id, day AS visited, region, category, value FROM events"


def opened(job: Job) -> Peer:
    warnings.simplefilter("ignore")
    connection = psycopg2.connect(job.source)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(VIEW)

    def plain(number: int) -> Answer:
        with connection.cursor() as cursor:
            cursor.execute(sql(job.question, number, "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY value)"))
            return by_key(cursor.fetchall())

    def private(number: int) -> Answer:
        if job.question == "median":
            raise Unsupported("no median")
        reader = snsql.from_connection(
            connection,
            privacy=snsql.Privacy(epsilon=job.epsilon / COLUMNS.get(job.question, 1), delta=job.delta),
            metadata=_metadata(job),
        )
        asked = sql(job.question, number).replace("events", "public.visits").replace("day", "visited")
        return by_key(reader.execute(asked)[1:])

    return Peer(plain, private)


def _metadata(job: Job) -> dict:  # type: ignore[type-arg]
    visits = {
        "max_ids": job.rows,
        "sample_max_ids": True,
        "censor_dims": job.question == "distinct",  # other keys are public
        "clamp_counts": False,
        "clamp_columns": True,
        "rows": job.table_rows,
        "user_id": {"type": "int", "private_id": True},
        "visited": {"type": "datetime"},
        "region": {"type": "string"},
        "category": {"type": "string"},
        "value": {"type": "float", "lower": 0.0, "upper": job.value},
    }
    return {"": {"public": {"visits": visits}}}


if __name__ == "__main__":
    serve(opened)
