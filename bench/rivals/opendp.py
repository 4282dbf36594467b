"""OpenDP: queries of a Context over a Polars frame; rows are truncated per identifier, keys joined or bought.

Groups are truncated through rows: `truncate_num_groups` samples them by an expression that the Polars release
which OpenDP pins refuses.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl

from rivals.protocol import Answer, Job, Peer, by_key, serve

value = pl.col("value")
PLAIN = {
    "count": pl.len(),
    "sum": value.sum(),
    "distinct": pl.col("user_id").n_unique(),
    "average": value.mean(),
    "median": value.median(),
}


def opened(job: Job) -> Peer:
    warnings.simplefilter("ignore")
    dp.enable_features("contrib")
    frame = pl.scan_parquet(job.source)
    by = [job.key] if job.key else []

    def plain(number: int) -> Answer:
        rows = frame.filter(value > -float(number))
        asked = rows.group_by(by).agg(PLAIN[job.question]) if by else rows.select(PLAIN[job.question])
        return by_key(asked.collect().rows())

    def private(number: int) -> Answer:
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
            privacy_loss=_loss(job),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=by, max_length=job.table_rows, max_groups=5_000 if by else None)],
        )
        query: Any = context.query().filter(value > -float(number))
        if job.question == "distinct":
            query = query.truncate_per_group(1, by=by)
        query = query.truncate_per_group(job.rows)
        asked = _aggregate(job)
        query = query.group_by(by).agg(asked) if by else query.select(asked)
        if job.public_keys is not None:
            query = query.with_keys(pl.LazyFrame({job.key: job.public_keys}))
        return by_key(query.release().collect().rows())

    return Peer(plain, private)


def _loss(job: Job) -> Any:
    if job.noise == "gaussian":
        # Half of delta buys the keys, half turns rho into epsilon.
        log = math.log(2 / job.delta)
        rho = (math.sqrt(log + job.epsilon) - math.sqrt(log)) ** 2
        return dp.loss_of(rho=rho, delta=job.delta / 2)
    return dp.loss_of(epsilon=job.epsilon, delta=job.delta)


def _aggregate(job: Job) -> Any:
    if job.question in ("count", "distinct"):
        return dp.len(signed=True)
    if job.question == "median":
        return value.dp.median([job.value * step / 10_000 for step in range(10_001)])
    bounds = (0.0, job.value)
    return value.dp.sum(bounds) if job.question == "sum" else value.dp.mean(bounds)


if __name__ == "__main__":
    serve(opened)
