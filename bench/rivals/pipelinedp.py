"""PipelineDP on its local backend: rows are Python tuples, and the plain question is a Python loop."""

from __future__ import annotations

import operator
import statistics
from collections import defaultdict

import pipeline_dp
import pyarrow.parquet as pq

from rivals.protocol import Answer, Job, Peer, serve

USER, DAY, REGION, CATEGORY, VALUE = range(5)
KEY = {"sum": CATEGORY, "distinct": DAY, "average": REGION}
METRIC = {
    "count": pipeline_dp.Metrics.COUNT,
    "sum": pipeline_dp.Metrics.SUM,
    "distinct": pipeline_dp.Metrics.PRIVACY_ID_COUNT,
    "average": pipeline_dp.Metrics.MEAN,
    "median": pipeline_dp.Metrics.PERCENTILE(50),
}


def opened(job: Job) -> Peer:
    columns = pq.read_table(job.source).to_pydict()
    columns["day"] = [str(day) for day in columns["day"]]
    rows = list(zip(*columns.values(), strict=True))
    key = operator.itemgetter(KEY[job.question]) if job.question in KEY else lambda row: ""

    def plain(number: int) -> Answer:
        return _plain(job.question, ((key(row), row) for row in rows if row[VALUE] > -number))

    def private(number: int) -> Answer:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=job.epsilon, total_delta=job.delta)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        result = engine.aggregate(
            (row for row in rows if row[VALUE] > -number),
            _parameters(job),
            pipeline_dp.DataExtractors(
                privacy_id_extractor=operator.itemgetter(USER),
                partition_extractor=key,
                value_extractor=operator.itemgetter(VALUE),
            ),
            public_partitions=job.public_keys or ([""] if job.key is None else None),
        )
        accountant.compute_budgets()
        return {name: float(metrics[0]) for name, metrics in result}

    return Peer(plain, private)


def _plain(question: str, rows):  # type: ignore[no-untyped-def]
    groups = defaultdict(set if question == "distinct" else list)
    for key, row in rows:
        if question == "distinct":
            groups[key].add(row[USER])
        else:
            groups[key].append(row[VALUE])
    reduce = {"sum": sum, "average": statistics.fmean, "median": statistics.median}.get(question, len)
    return {key: float(reduce(values)) for key, values in groups.items()}


def _parameters(job: Job) -> pipeline_dp.AggregateParams:
    given = {
        "metrics": [METRIC[job.question]],
        "noise_kind": pipeline_dp.NoiseKind[job.noise.upper()],
    }
    if job.question == "distinct":
        if job.noise == "gaussian":
            strategy = pipeline_dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING
            given["partition_selection_strategy"] = strategy
        given |= {"max_partitions_contributed": job.rows, "max_contributions_per_partition": 1}
    elif job.key is None:
        given |= {"max_partitions_contributed": 1, "max_contributions_per_partition": job.rows}
    else:
        given |= {"max_contributions": job.rows}
    if job.question in ("sum", "average", "median"):
        given |= {"min_value": 0.0, "max_value": job.value}
    return pipeline_dp.AggregateParams(**given)


if __name__ == "__main__":
    serve(opened)
