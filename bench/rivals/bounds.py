"""The bounds that peers are given: those which are best for them on the bench's own table.

Peers keep at most `rows` rows of a user, at random, and clip values into [0, `value`]; whoever runs them has
to say both. Here both are read off the true data, which no analyst could do, so that no peer looks worse than
its best: the pair of a grid with the least expected squared error, of clipping, sampling and noise together,
for Laplace noise of scale rows * value / epsilon (or Gaussian noise, where a user counts once per group).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import numpy as np

EPSILON, DELTA = 1.0, 1e-7
ROWS = [round(2 ** (step / 2)) for step in range(25)]
VALUES = [25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0]
TOP = VALUES[-1]


@dataclass(frozen=True)
class Bounds:
    """At most `rows` rows of a user (days, where users are counted by day), each worth up to `value`."""

    rows: int
    value: float
    noise: str = "laplace"

    def __str__(self) -> str:
        return f"{self.rows} rows per user, values up to {self.value:g}, {self.noise} noise"


def best(connection: duckdb.DuckDBPyConnection, gaussian: bool, split: bool) -> dict[str, Bounds]:
    """The bounds for each question.

    For a peer that has Gaussian noise too (or Laplace noise alone), and that pays for private keys with half
    of epsilon (or releases a group when its noisy count passes a threshold, for delta alone).
    """
    rows = _column(connection, "SELECT COUNT(*) FROM events GROUP BY user_id")
    kept = {cap: np.minimum(rows, cap).sum() for cap in ROWS}
    return {
        "count": _least(((rows.sum() - kept[cap]) ** 2 + _laplace(cap), Bounds(cap, TOP)) for cap in ROWS),
        "sum": _sum(connection, {cap: rows_kept / rows.sum() for cap, rows_kept in kept.items()}),
        "distinct": _distinct(connection, gaussian, EPSILON / 2 if split else EPSILON),
        "average": _average(connection, kept),
        # The error of a median in ranks: of the sample, and of a selection whose scores move by one per row.
        "median": _least((0.25 / kept[cap] + (2 * cap / kept[cap]) ** 2, Bounds(cap, TOP)) for cap in ROWS),
    }


def _sum(connection: duckdb.DuckDBPyConnection, share: dict[int, float]) -> Bounds:
    truth = _column(connection, "SELECT SUM(value) FROM events GROUP BY category ORDER BY category")
    clipped = {
        top: _column(
            connection, f"SELECT SUM(LEAST(value, {top})) FROM events GROUP BY category ORDER BY category"
        )
        for top in VALUES
    }
    return _least(
        (np.mean((truth - share[cap] * clipped[top]) ** 2) + _laplace(cap * top), Bounds(cap, top))
        for cap in ROWS
        for top in VALUES
    )


def _average(connection: duckdb.DuckDBPyConnection, kept: dict[int, float]) -> Bounds:
    def one(what: str) -> float:
        return float(_column(connection, f"SELECT {what} FROM events")[0])

    mean, variance = one("AVG(value)"), one("VAR_POP(value)")
    clipped = {top: one(f"AVG(LEAST(value, {top}))") for top in VALUES}

    def error(cap: int, top: float) -> float:
        # A noisy sum over a noisy count, each for half of epsilon, of one region of a hundred.
        rows = kept[cap] / 100
        noise = 4 * (_laplace(cap * top) + _laplace(cap * mean)) / rows**2
        return (mean - clipped[top]) ** 2 + variance / rows + noise

    return _least((error(cap, top), Bounds(cap, top)) for cap in ROWS for top in VALUES)


def _distinct(connection: duckdb.DuckDBPyConnection, gaussian: bool, epsilon: float) -> Bounds:
    days = _column(connection, "SELECT COUNT(DISTINCT day) FROM events GROUP BY user_id")
    truth = _column(connection, "SELECT COUNT(DISTINCT user_id) FROM events GROUP BY day")

    def error(cap: int, noise: str) -> float:
        share = np.minimum(days, cap).sum() / days.sum()
        if noise == "laplace":
            scale = cap / epsilon
            variance, threshold = 2 * scale**2, scale * math.log(cap / (2 * DELTA))
        else:
            # rho = (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2 is enough for (epsilon, delta).
            rho = (math.sqrt(math.log(1 / DELTA) + epsilon) - math.sqrt(math.log(1 / DELTA))) ** 2
            variance = cap / (2 * rho)
            threshold = math.sqrt(variance * 2 * math.log(cap / DELTA))
        # Three deviations above, so that a group is hardly ever lost.
        released = np.where(share * truth > threshold + 3 * math.sqrt(variance), share * truth, 0)
        return float(np.mean((released - truth) ** 2) + variance)

    noises = ("laplace", "gaussian") if gaussian else ("laplace",)
    return _least((error(cap, noise), Bounds(cap, TOP, noise)) for cap in ROWS for noise in noises)


def _laplace(sensitivity: float) -> float:
    """The variance of the noise."""
    return 2 * (sensitivity / EPSILON) ** 2


def _least(options: Iterable[tuple[float, Bounds]]) -> Bounds:
    return min(options, key=lambda option: option[0])[1]


def _column(connection: duckdb.DuckDBPyConnection, sql: str) -> np.ndarray:
    return np.array([row[0] for row in connection.execute(sql).fetchall()], float)
