"""Intervals cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd import Curator

from .repeating import answers

RUNS = 2_000
rng = np.random.default_rng(20240229)
ROWS = 4_000
TABLE = pa.table(
    {
        "id": rng.integers(0, 1_500, ROWS),
        "kind": rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.35, 0.05]),
        "age": rng.integers(18, 91, ROWS),
        "pay": rng.uniform(0, 100, ROWS),
    }
)
TRUTH = TABLE.to_pandas().groupby("kind")


def covered(
    question: str, truth: dict[str, float], confidence: float, slack: float = 0.0, **asked: object
) -> list[int]:
    """How many of the answers' intervals hold the truth, for each group."""
    settings = {
        "bounds": {"age": (18, 90), "pay": (0, 100)},
        "domains": {"kind": ["a", "b", "c"]},
        "budget": (50.0, 1e-5),
        "unit": asked.pop("unit", "row"),
    }
    hits = dict.fromkeys(truth, 0)
    with Curator.from_tables(t=TABLE, **settings) as curator:  # type: ignore[arg-type]
        leaf_columns = None
        for answer in answers(curator, question, RUNS, confidence=confidence, **asked):
            released, leaf = answer.released[0], answer.plan.leaves[0]
            span = released.columns(leaf, confidence)[leaf.aggregates[0].name]
            leaf_columns = leaf_columns or released.table.column("k0").to_pylist()
            for place, key in enumerate(leaf_columns):
                if key in truth:
                    hits[key] += bool(span.low[place] - slack <= truth[key] <= span.high[place] + slack)
    return list(hits.values())


def check(hits: list[int], confidence: float) -> None:
    """Fails by chance with probability below 1e-7 for each group if the coverage is at least as stated."""
    for count in hits:
        assert binom.cdf(count, RUNS, confidence) > 1e-7


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_counts_and_sums_are_covered_as_stated_and_not_much_more(confidence: float) -> None:
    for question, truth in (
        ("SELECT kind, COUNT(*) FROM t GROUP BY kind", TRUTH.size().to_dict()),
        ("SELECT kind, SUM(age) FROM t GROUP BY kind", TRUTH.age.sum().to_dict()),
    ):
        hits = covered(question, truth, confidence, epsilon=0.5)
        check(hits, confidence)
        for count in hits:
            # Noise on a fine grid is covered almost exactly: no more than 2% beyond what is stated.
            assert binom.sf(count - 1, RUNS, min(confidence + 0.02, 1)) > 1e-7


@pytest.mark.statistical
def test_averages_are_covered() -> None:
    truth = TRUTH.age.mean().to_dict()
    check(covered("SELECT kind, AVG(age) FROM t GROUP BY kind", truth, 0.95, epsilon=0.5), 0.95)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_medians_are_covered(epsilon: float) -> None:
    truth = TRUTH.age.median().to_dict()
    check(covered("SELECT kind, MEDIAN(age) FROM t GROUP BY kind", truth, 0.95, epsilon=epsilon), 0.95)


@pytest.mark.statistical
def test_spreads_are_covered() -> None:
    truth = TRUTH.pay.std().to_dict()
    # Values are rounded to the grid, which moves a deviation by far less than a millionth.
    check(covered("SELECT kind, STDDEV(pay) FROM t GROUP BY kind", truth, 0.9, slack=1e-4, epsilon=1.0), 0.9)


@pytest.mark.statistical
def test_counts_of_people_with_many_rows_are_covered_where_nobody_exceeds_the_cap() -> None:
    truth = TRUTH.size().to_dict()
    hits = covered(
        "SELECT kind, COUNT(*) FROM t GROUP BY kind", truth, 0.95, unit="id", contribution=16, epsilon=1.0
    )
    check(hits, 0.95)


@pytest.mark.statistical
def test_rescaled_counts_are_covered_where_heavy_units_are_like_the_others() -> None:
    truth = TRUTH.size().to_dict()
    check(covered("SELECT kind, COUNT(*) FROM t GROUP BY kind", truth, 0.95, unit="id", epsilon=1.0), 0.95)
