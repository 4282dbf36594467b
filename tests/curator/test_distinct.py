"""Numbers of values: their intervals hold as often as stated, and are narrow where values are shared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd import Curator
from incrowd.curator.distinct import combined

from .repeating import answers

RUNS = 400
rng = np.random.default_rng(9)
SHARED = pd.DataFrame({"id": rng.integers(0, 500, 3_000), "v": rng.integers(0, 40, 3_000)})
"""Everybody has a few of 40 values."""
OWN = pd.DataFrame({"id": np.minimum(rng.geometric(0.01, 2_000), 300), "v": np.arange(2_000)})
"""Each value is one person's, and few people have many."""
TINY = pd.DataFrame({"id": [1, 1, 2], "v": [5, 6, 6]})


def floats(*numbers: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(numbers, dtype=np.float64)


def test_the_narrow_count_stands_for_the_other_unless_that_is_above_it_by_more_than_noise() -> None:
    span = combined(floats(60, 300), floats(50, 50), (100.0, 10.0), 35.0, (0, np.inf))
    assert span.value.tolist() == [50, 300]
    assert span.low.tolist() == [40, 200] and span.high.tolist() == [160, 400]


def test_no_more_values_than_can_be_and_no_fewer_than_none() -> None:
    span = combined(floats(60, -90), floats(50, -4), (100.0, 10.0), 35.0, (0, 26))
    assert (span.value.tolist(), span.low.tolist(), span.high.tolist()) == ([26, 0], [26, 0], [26, 10])


def test_crossed_ends_still_hold_the_estimate() -> None:
    span = combined(floats(-200), floats(50), (100.0, 10.0), 35.0, (0, np.inf))
    assert span.low[0] <= span.value[0] <= span.high[0]


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("frame", [SHARED, OWN, TINY])
@pytest.mark.parametrize("contribution", [None, 300])
def test_the_number_is_inside_as_often_as_stated(
    frame: pd.DataFrame, epsilon: float, contribution: int | None
) -> None:
    table, truth, held = pa.Table.from_pandas(frame), frame.v.nunique(), 0
    with Curator.from_tables(t=table, unit="id", budget=(20.0, 1e-5)) as curator:
        asked = {} if contribution is None else {"contribution": contribution}
        question = "SELECT COUNT(DISTINCT v) AS n FROM t"
        for answer in answers(curator, question, RUNS, epsilon=epsilon, **asked):
            leaf, cap = answer.plan.leaves[0], answer.caps["COUNT(DISTINCT v)"]
            span = answer.released[0].columns(leaf, 0.95)["a0"]
            # The interval is about the number under the cap that the answer states.
            assert cap is not None
            mine = frame.groupby("id").v.nunique()
            stated = truth if mine.max() <= cap else _under(frame, cap)
            held += bool(span.low[0] <= truth and np.floor(stated) <= span.high[0])
            assert span.low[0] <= span.value[0] <= span.high[0]
    assert binom.cdf(held, RUNS, 0.95) > 1e-8, held


def _under(frame: pd.DataFrame, cap: float) -> float:
    pairs = frame.drop_duplicates()
    share = np.minimum(1.0, cap / pairs.groupby("id").v.transform("size"))
    return float(np.minimum(1.0, share.groupby(pairs.v).sum()).sum())


@pytest.mark.statistical
def test_values_that_many_share_are_counted_with_the_noise_of_one() -> None:
    with Curator.from_tables(t=pa.Table.from_pandas(SHARED), unit="id", budget=(20.0, 1e-5)) as curator:
        errors = [
            abs(next(iter(answer))["n"] - 40)
            for answer in answers(curator, "SELECT COUNT(DISTINCT v) AS n FROM t", 100, epsilon=1.0)
        ]
    assert np.median(errors) <= 4
