"""Tables that no parameter was tuned on, as what each unit adds to each key: nothing that needs an engine.

Some are drawn: heavy tails, few units, one whale, negative and mixed values. Others are real, where their
folder is at hand. Each is spread over 1, 8, 100 or 5,000 keys: by chance row by row (by Zipf's law), or
("whole") with all rows of a unit under one key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
KEYS = (1, 8, 100, 5_000)


@dataclass(frozen=True)
class Rows:
    """The rows of a table: a unit and a value each. bounds: of the values; None if rows are counted."""

    name: str
    unit: Codes
    value: Numbers
    bounds: tuple[float, float] | None


@dataclass(frozen=True)
class Spread:
    """What units add to keys: one line for each pair of a unit and a key that has rows.

    sums: of values. weights: by unit, the sum of absolute values.
    """

    name: str
    keys: int
    unit: Codes
    key: Codes
    sums: Numbers
    weights: Numbers
    bounds: tuple[float, float] | None

    def under(self, cap: float) -> Numbers:
        """By key, the sums in which each unit counts for at most `cap`."""
        share = np.minimum(1.0, cap / np.maximum(self.weights, 1e-300))
        return np.bincount(self.key, self.sums * share[self.unit], self.keys)

    def total_under(self, cap: float) -> float:
        """The weight of all units, each limited to a cap."""
        return float(np.minimum(self.weights, cap).sum())


def spread(rows: Rows, keys: int, whole: bool = False) -> Spread:
    """Rows over keys."""
    rng = np.random.default_rng(29)
    _, unit = np.unique(rows.unit, return_inverse=True)
    units = int(unit.max()) + 1 if len(unit) else 0
    chances = 1 / np.arange(1, keys + 1)
    chances = np.ones(keys) / keys if keys == 8 else chances / chances.sum()
    key = rng.choice(keys, units, p=chances)[unit] if whole else rng.choice(keys, len(unit), p=chances)
    pairs, place = np.unique(unit.astype(np.int64) * keys + key, return_inverse=True)
    sums = np.bincount(place, rows.value, len(pairs))
    weights = np.bincount(unit, np.abs(rows.value), units)
    name = f"{rows.name} whole" if whole else rows.name
    return Spread(name, keys, pairs // keys, pairs % keys, sums, weights, rows.bounds)


def _counted(name: str, rows_per_unit: NDArray[np.int64]) -> Rows:
    unit = np.repeat(np.arange(len(rows_per_unit)), rows_per_unit)
    return Rows(name, unit, np.ones(len(unit)), None)


def _valued(name: str, unit: Codes, value: Numbers, bounds: tuple[float, float]) -> Rows:
    return Rows(name, unit, np.asarray(value, dtype=np.float64).clip(*bounds), bounds)


def drawn() -> Iterator[Rows]:
    """Tables of our own."""
    rng = np.random.default_rng(31)
    yield _counted("lognormal rows", np.ceil(rng.lognormal(1, 1.2, 3_000)).astype(int))
    for tail in (1.1, 1.5, 2.5):
        yield _counted(
            f"pareto {tail} rows", np.ceil(rng.pareto(tail, 2_000) + 1).clip(1, 50_000).astype(int)
        )
        unit = np.arange(4_000)
        yield _valued(f"pareto {tail} sum", unit, 100 * (rng.pareto(tail, 4_000) + 1), (0, 1e6))
    yield _valued("lognormal sum", np.arange(6_000) // 3, rng.lognormal(4, 2, 6_000), (0, 1e5))
    yield _counted("zipf 2 rows", rng.zipf(2.0, 3_000).clip(1, 20_000))
    two = np.where(rng.random(1_500) < 0.1, 800, 2)
    yield _counted("two-point rows", two)
    yield _valued("two-point sum", np.arange(3_000), np.where(rng.random(3_000) < 0.3, 900.0, 1.0), (0, 1e4))
    yield _counted("whale rows", np.append(np.full(2_000, 5), 30_000))
    yield _valued("whale sum", np.arange(2_001), np.append(np.full(2_000, 3.0), 9e4), (0, 1e5))
    yield _counted("equal rows", np.full(1_200, 7))
    yield _valued("equal sum", np.arange(2_500), np.full(2_500, 40.0), (0, 100))
    yield _counted("ten units", rng.integers(1, 60, 10))
    yield _counted("one unit", np.array([300]))
    yield _counted("nobody", np.array([], dtype=int))
    yield _valued("nobody sum", np.array([], dtype=int), np.array([]), (0, 1e4))
    yield _valued("integers", rng.integers(0, 900, 5_000), rng.poisson(6, 5_000), (0, 50))
    yield _valued("negative", np.arange(5_000) // 2, -rng.gamma(0.7, 200, 5_000), (-1e4, 0))
    yield _valued("mixed", rng.integers(0, 2_500, 9_000), rng.normal(20, 80, 9_000), (-1e3, 1e3))
    yield _valued("cancelling", np.arange(8_000) // 4, rng.standard_t(2, 8_000) * 10, (-1e3, 1e3))


def real(data: Path) -> Iterator[Rows]:
    """Columns of public tables; the cells of DPBench's histograms stand for units."""
    titanic = pd.read_csv(data / "titanic.csv")
    yield _valued("titanic fare", np.arange(len(titanic)), titanic.fare, (0, 1_000))
    taxis = pd.read_csv(data / "nyc_taxis_2019.csv").dropna(subset=["dropoff_zone"])
    zone = taxis.dropoff_zone.astype("category").cat.codes.to_numpy()
    yield _valued("taxi tips", zone, taxis.tip, (0, 200))
    yield _counted("taxi trips", np.bincount(zone))
    housing = pd.read_csv(data / "california_housing.csv")
    block = np.arange(len(housing))
    yield _valued("housing people", block, housing.population, (0, 1e5))
    yield _valued("housing income", block, housing.median_income, (0, 20))
    adult = pd.read_csv(data / "adult.csv")
    yield _valued("adult loss", np.arange(len(adult)), adult.capital_loss, (0, 1e4))
    for name in ("MEDCOST", "NETTRACE", "SEARCHLOGS", "HEPTH"):
        yield _counted(name.lower(), np.load(data / "dpbench" / f"{name}.n4096.npy"))
