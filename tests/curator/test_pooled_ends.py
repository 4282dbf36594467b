"""Ends of sums and shares of released groups: they cover the truth as often as they say, and not much more.

Many answers are made up at once, in DuckDB: `rep` numbers them. A test fails by chance with a probability
below 1e-6: five standard deviations of the number of answers that are covered.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from incrowd.curator.ends import with_ends
from incrowd.query import Aggregate, Key, Plan
from incrowd.query.measure import Measure
from incrowd.query.plan import Leaf

REPS = 20_000
CONFIDENCE = 0.95
SPARE = 5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / REPS)
NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def answers(
    sql: str, truth: list[float], noise: str, scale: float, seed: int, known: bool = True
) -> pa.Table:
    """The columns of a SELECT with their ends, beside the same over the true numbers as t_...."""
    measure = Measure("m0", "row", "own", None, None, 0, 1)
    keys = (Key("k0", exp.column("k"), "integer"), Key("k1", exp.column("rep"), "integer"))
    leaf = Leaf(
        exp.Select(), (), False, keys, {"m0": measure}, (Aggregate("a0", "count", "n", ("m0",)),), 1, ()
    )
    outer = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(outer, exp.Query)
    rng = np.random.default_rng(seed)
    groups, true = np.tile(np.arange(len(truth)), REPS), np.tile(np.array(truth, dtype=float), REPS)
    size = len(true)
    error = rng.laplace(0, scale, size) if noise == "laplace" else rng.normal(0, scale, size)
    reach = -math.log(1 - CONFIDENCE) * scale if noise == "laplace" else NORMAL * scale
    value = true + error
    low = np.maximum(value - reach, np.minimum(value, 0))
    columns = {"k0": groups, "k1": np.repeat(np.arange(REPS), len(truth)), "a0": value}
    columns |= {"a0_low": low, "a0_high": np.maximum(value + reach, 0)}
    columns["a0_half"] = np.full(size, reach if known else np.nan)
    with duckdb.connect(config={"threads": "2"}) as engine:
        engine.register(
            "released_0", pa.table(columns | {"a0_half": pa.array(columns["a0_half"], from_pandas=True)})
        )
        engine.register("true_0", pa.table(columns | {"a0": true}))
        query = with_ends(Plan((leaf,), outer)).sql("duckdb")
        plain = sql.replace("released_0", "true_0")
        return engine.sql(
            f"SELECT noisy.*, exact.x AS truth FROM ({query}) AS noisy POSITIONAL JOIN ({plain}) AS exact"
        ).to_arrow_table()


def covered(table: pa.Table) -> float:
    low, high, truth = (table.column(name).to_numpy() for name in ("x_low", "x_high", "truth"))
    slack = 1e-9 * np.maximum(1, np.abs(truth))
    return float(np.mean((low - slack <= truth) & (truth <= high + slack)))


def width(table: pa.Table) -> float:
    return float(np.median(table.column("x_high").to_numpy() - table.column("x_low").to_numpy()))


EVEN, SKEWED = [400.0] * 8, [3_000.0, 400.0, 60.0, 20.0, 5.0, 1.0, 0.0, 0.0]
OVER = "OVER (PARTITION BY k1)"


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("groups", [1, 2, 3, 10, 60])
def test_totals_are_covered_and_no_wider_than_their_noise(noise: str, groups: int) -> None:
    sql = f"SELECT SUM(a0) {OVER} AS x FROM released_0 WHERE k0 < {groups} ORDER BY k1, k0"
    table = answers(sql, [300.0] * groups, noise, 5.0, groups)
    assert covered(table) >= CONFIDENCE - SPARE
    deviation = 5.0 * math.sqrt(groups) * (math.sqrt(2) if noise == "laplace" else 1)
    assert 2 * 1.9 * deviation <= width(table) <= 2 * 2.13 * deviation


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("truth", [EVEN, SKEWED], ids=["even", "skewed"])
@pytest.mark.parametrize(
    ("x", "part"),
    [
        (f"a0 / SUM(a0) {OVER}", 0),
        (f"a0 / SUM(a0) {OVER}", 2),
        (f"a0 / SUM(a0) {OVER}", 7),
        ("SUM(a0) OVER (PARTITION BY k1 ORDER BY k0) / SUM(a0) OVER (PARTITION BY k1)", 3),
    ],
)
def test_shares_are_covered_and_no_wider_than_their_noise(
    noise: str, truth: list[float], x: str, part: int
) -> None:
    scale = 12.0
    plain = f"SELECT k0, k1, {x} AS x FROM released_0 ORDER BY k1, k0"
    table = answers(plain, truth, noise, scale, part)
    table = table.filter(pa.array(table.column("k0").to_numpy() == part))
    assert covered(table) >= CONFIDENCE - SPARE
    share = table.column("truth").to_numpy()[0]
    summed = part + 1 if "ORDER" in x else 1
    deviation = scale * (math.sqrt(2) if noise == "laplace" else 1) / sum(truth)
    spread = deviation * math.sqrt(summed * (1 - 2 * share) + share**2 * len(truth))
    clamped = not 0.01 < share < 0.99
    assert (0.4 if clamped else 1.8) * spread <= width(table) / 2 <= 2.4 * spread


@pytest.mark.statistical
def test_shares_of_next_to_nothing_lie_between_0_and_1() -> None:
    sql = f"SELECT a0 / SUM(a0) {OVER} AS x FROM released_0 ORDER BY k1, k0"
    table = answers(sql, [3.0, 1.0, 0.0], "laplace", 50.0, 5)
    assert covered(table) >= CONFIDENCE - SPARE
    value, low, high = (table.column(name).to_numpy() for name in ("x", "x_low", "x_high"))
    assert (low >= np.minimum(value, 0) - 1e-12).all() and (high <= np.maximum(value, 1) + 1e-12).all()


@pytest.mark.statistical
def test_averages_of_groups_are_covered() -> None:
    table = answers(
        "SELECT k1, AVG(a0) AS x FROM released_0 GROUP BY k1 ORDER BY k1", SKEWED, "laplace", 5.0, 9
    )
    assert CONFIDENCE - SPARE <= covered(table) <= 0.98
    assert width(table) == pytest.approx(2 * 3 * 5.0 / math.sqrt(len(SKEWED)), rel=0.02)


@pytest.mark.statistical
@pytest.mark.parametrize("x", [f"SUM(a0) {OVER}", f"a0 / SUM(a0) {OVER}"])
def test_without_independent_errors_ends_are_added_up(x: str) -> None:
    table = answers(f"SELECT {x} AS x FROM released_0 ORDER BY k1, k0", EVEN, "laplace", 5.0, 3, known=False)
    pooled = answers(f"SELECT {x} AS x FROM released_0 ORDER BY k1, k0", EVEN, "laplace", 5.0, 3)
    assert covered(table) > covered(pooled) and width(table) > 1.5 * width(pooled)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_sums_of_laplace_errors_reach_no_farther_than_is_said(confidence: float, count: int) -> None:
    # A sum of Laplace errors is Gaussian with a variance that is Gamma distributed: its tail is exact.
    from scipy import integrate, stats

    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    reach = max(-math.log(1 - confidence), normal * math.sqrt(2)) * math.sqrt(count)
    spread = stats.gamma(count, scale=2.0)
    inside, _ = integrate.quad(
        lambda v: (2 * stats.norm.cdf(reach / math.sqrt(v)) - 1) * spread.pdf(v),
        0,
        spread.ppf(1 - 1e-12),
        limit=200,
    )
    assert inside >= confidence - 1e-4
