"""Qrlew over PostgreSQL: the question is rewritten into one SQL query that adds the noise in the engine."""

from __future__ import annotations

import pyqrlew
import sqlalchemy

from rivals.protocol import KEYS, Answer, Job, Peer, Unsupported, by_key, serve, sql


def opened(job: Job) -> Peer:
    engine = sqlalchemy.create_engine(job.source.replace("postgresql://", "postgresql+psycopg2://"))
    dataset = pyqrlew.Dataset.from_database(name="bench", engine=engine, schema_name="public")
    dataset = dataset.with_range("public", "events", "value", 0.0, job.value)
    for column, keys in KEYS.items():
        dataset = dataset.with_possible_values("public", "events", column, keys)

    def run(query: str) -> Answer:
        with engine.connect() as connection:
            return by_key(connection.exec_driver_sql(query.replace("%", "%%")).fetchall())

    def plain(number: int) -> Answer:
        return run(sql(job.question, number, "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY value)"))

    def private(number: int) -> Answer:
        if job.question == "median":
            raise Unsupported("no median")
        rewritten = dataset.relation(
            sql(job.question, number).replace("events", "public.events")
        ).rewrite_with_differential_privacy(
            dataset=dataset,
            privacy_unit=[("events", [], "user_id")],
            epsilon_delta={"epsilon": job.epsilon, "delta": job.delta},
            max_multiplicity=float(job.rows),
            max_privacy_unit_groups=job.rows if job.question == "distinct" else None,
        )
        return run(rewritten.relation().to_query())

    return Peer(plain, private)


if __name__ == "__main__":
    serve(opened)
