"""The measures of one aggregate over the houses' tables, and their sums as DuckDB computes them.

The model is DuckDB: the measures of an aggregate, summed over rows without any cap, give its plain value by
the formulas of the module.
"""

from __future__ import annotations

import math

import duckdb
import pytest

from incrowd.errors import QueryError
from incrowd.query import Leaf, Measure
from tests.backends.houses import plan_of

ENGINE = duckdb.connect(":memory:")


def leaf_of(aggregate: str, mode: str = "user", source: str = "visits", **contribution: float) -> Leaf:
    (leaf,) = plan_of(f"SELECT {aggregate} AS z FROM {source}", mode, **contribution).leaves
    return leaf


def measures_of(aggregate: str, mode: str = "user", **contribution: float) -> list[Measure]:
    leaf = leaf_of(aggregate, mode, **contribution)
    (column,) = leaf.aggregates
    return [leaf.measures[name] for name in column.measures]


def summed(measure: Measure) -> tuple[float, int]:
    """The sum of a measure over all rows, clamped and centred, and the number of rows that count."""
    value = "CAST(1 AS DOUBLE)" if measure.value is None else measure.value.sql("duckdb")
    present = "TRUE" if measure.present is None else measure.present.sql("duckdb")
    rows = ENGINE.execute(f"SELECT {value} FROM visits WHERE {present}").fetchall()
    there = [value for (value,) in rows if value is not None and not math.isnan(value)]
    return math.fsum(min(max(term, measure.low), measure.high) - measure.centre for term in there), len(there)


def estimate(aggregate: str) -> float | None:
    """An aggregate from its measures, by the formulas."""
    leaf = leaf_of(aggregate)
    (column,) = leaf.aggregates
    measures = [leaf.measures[name] for name in column.measures]
    sums = [summed(measure)[0] for measure in measures]
    if column.kind in ("count", "sum"):
        return sums[0]
    n = sums[-1]
    if n == 0 or (column.sample and n == 1):
        return None
    scale = n / (n - 1) if column.sample else 1.0
    if column.kind == "avg":
        return measures[0].centre + sums[0] / n
    if column.kind == "var":
        spread = (sums[1] / n + measures[1].centre - (sums[0] / n) ** 2) * scale
        return math.sqrt(max(spread, 0.0)) if column.root else spread
    cross = sums[-2] / n - (sums[0] / n) * (sums[1] / n)
    if column.kind == "covar":
        return cross * scale
    spreads = [sums[2 + i] / n + measures[2 + i].centre - (sums[i] / n) ** 2 for i in (0, 1)]
    return None if min(spreads) <= 1e-12 else cross / math.sqrt(spreads[0] * spreads[1])


def assert_refused(aggregate: str, said: str) -> None:
    """The aggregate is refused in these words."""
    with pytest.raises(QueryError) as refusal:
        leaf_of(aggregate)
    assert said in str(refusal.value)


def facts_of(aggregate: str) -> list[tuple[object, ...]]:
    """How each measure of an aggregate is bounded: level, weighing, low, high, centre, and whether whole."""
    return [
        (measure.level, measure.weighing, measure.low, measure.high, measure.centre, measure.whole)
        for measure in measures_of(aggregate)
    ]
