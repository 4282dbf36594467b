"""Intervals of weighted averages, ratios and lines hold as often as stated, on skewed and on tiny tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd import Curator

from .repeating import answers

RUNS = 800
rng = np.random.default_rng(31)


def table(rows: int) -> pd.DataFrame:
    """Heavy-tailed weights and values, a line with noise, and people of whom few have many rows."""
    weight = np.minimum(rng.pareto(1.5, rows), 40.0)
    x = rng.uniform(0, 10, rows)
    return pd.DataFrame(
        {
            "id": np.minimum(rng.geometric(0.02, rows), 300),
            "w": weight,
            "x": x,
            "y": np.clip(3 * x + rng.normal(0, 4, rows), -20, 60),
        }
    )


LARGE, TINY = table(5_000), table(30)


def weighted(frame: pd.DataFrame) -> float:
    return float((frame.w * frame.y).sum() / frame.w.sum())


def ratio(frame: pd.DataFrame) -> float:
    return float(frame.x.sum() / frame.w.sum())


def slope(frame: pd.DataFrame) -> float:
    return float(np.polyfit(frame.x, frame.y, 1)[0])


def intercept(frame: pd.DataFrame) -> float:
    return float(np.polyfit(frame.x, frame.y, 1)[1])


ASKED = [
    ("SUM(w * y) / SUM(w)", weighted),
    ("SUM(x) / SUM(w)", ratio),
    ("REGR_SLOPE(y, x)", slope),
    ("REGR_INTERCEPT(y, x)", intercept),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "frame"), [(1.0, LARGE), (0.1, LARGE), (1.0, TINY), (0.1, TINY)])
@pytest.mark.parametrize(("aggregate", "exact"), ASKED)
@pytest.mark.parametrize("unit", ["row", "id"])
def test_the_truth_is_inside_as_often_as_stated(
    aggregate: str, exact: object, epsilon: float, frame: pd.DataFrame, unit: str
) -> None:
    assert callable(exact)
    truth, widths, held = exact(frame), [], 0
    bounds = {"w": (0, 40), "x": (0, 10), "y": (-20, 60)}
    most = int(frame.groupby("id").size().max())
    with Curator.from_tables(
        t=pa.Table.from_pandas(frame), unit=unit, bounds=bounds, budget=(20.0, 1e-5)
    ) as curator:
        asked = {"contribution": most} if unit == "id" else {}
        for answer in answers(curator, f"SELECT {aggregate} AS z FROM t", RUNS, epsilon=epsilon, **asked):
            released, leaf = answer.released[0], answer.plan.leaves[0]
            span = released.columns(leaf, 0.95)["a0"]
            # Values are rounded to their grid, which moves a ratio by less than a part in 10^6.
            slack = 1e-5 * (1 + abs(truth))
            held += bool(span.low[0] - slack <= truth <= span.high[0] + slack)
            widths.append(float(span.high[0] - span.low[0]))
            assert span.low[0] <= span.value[0] <= span.high[0]
    assert binom.cdf(held, RUNS, 0.95) > 1e-8, held
    if epsilon == 1 and unit == "row" and frame is LARGE:
        # Not needlessly wide either: most of these intervals are ones that miss now and then.
        assert binom.sf(held - 1, RUNS, 0.998) > 1e-8, held
        assert np.isfinite(np.median(widths))


@pytest.mark.statistical
def test_a_weighted_average_of_people_is_as_narrow_as_an_average_of_rows_of_one_weight() -> None:
    frame = LARGE.assign(w=1.0)
    medians = []
    with Curator.from_tables(
        t=pa.Table.from_pandas(frame), unit="row", bounds={"w": (0, 1), "y": (-20, 60)}, budget=(20.0, 1e-5)
    ) as curator:
        for asked in ("SUM(w * y) / SUM(w)", "AVG(y)"):
            spans = [
                answer.released[0].columns(answer.plan.leaves[0], 0.95)["a0"]
                for answer in answers(curator, f"SELECT {asked} AS z FROM t", 100, epsilon=1.0)
            ]
            medians.append(float(np.median([span.high[0] - span.low[0] for span in spans])))
    assert medians[0] < 1.3 * medians[1]
