"""How time and memory grow with the rows: a table on disk, made in pieces, on an engine with a limit."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from engine import DATA, USERS_PER_ROW
from rivals.processes import run
from rivals.protocol import Job

PIECE = 5_000_000
PATIENCE = 1_800
HEAD = (
    f"{'question':10}{'rows':>13}{'plain ms':>10}{'ours ms':>10}{'ratio':>7}{'ns per row':>12}"
    f"{'plain MB':>10}{'ours MB':>9}{'bytes per row':>15}"
)


def grow(sizes: list[int], questions: list[str], rounds: int, limit: str) -> None:
    """Print a line for each question and size."""
    print(f"Incrowd on DuckDB over Parquet, own bounds, at most {limit} of memory in the engine\n{HEAD}")
    for question in questions:
        for rows in sizes:
            print(_measured(question, rows, rounds, limit), flush=True)


def _measured(question: str, rows: int, rounds: int, limit: str) -> str:
    more = {"engine": "parquet", "caps": "own", "memory_limit": limit}
    job = Job(question, str(make_files(rows)), rounds=rounds, table_rows=rows, more=more)
    timed = run(Path(sys.executable), "ours", job, PATIENCE)
    if timed.trouble:
        return f"{question:10}{rows:13,}  {timed.trouble}"
    peaks = {}
    for kind in ("plain", "private"):
        alone = Job(**{**vars(job), "kinds": (kind,), "rounds": 0})
        peaks[kind] = run(Path(sys.executable), "ours", alone, PATIENCE).lines[-1]["peak"]
    plain, ours = (
        statistics.median(line["seconds"] for line in timed.said(kind)) for kind in ("plain", "private")
    )
    return (
        f"{question:10}{rows:13,}{plain * 1e3:10.0f}{ours * 1e3:10.0f}{ours / plain:7.1f}"
        f"{ours / rows * 1e9:12.1f}{peaks['plain']:10.0f}{peaks['private']:9.0f}"
        f"{peaks['private'] * 2**20 / rows:15.1f}"
    )


def make_files(rows: int) -> Path:
    """The table of bench/engine.py as Parquet, written piece by piece: no size of it is ever in memory."""
    folder = DATA / f"growth_{rows}"
    if not folder.exists():
        partial = folder.with_suffix(".part")
        partial.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        users = max(1, int(rows * USERS_PER_ROW))
        until = np.cumsum(rng.lognormal(0, 1, users))
        for number, start in enumerate(range(0, rows, PIECE)):
            made = _piece(rng, until, min(PIECE, rows - start))
            with duckdb.connect() as connection:
                connection.register("made", made)
                connection.execute(
                    "COPY (SELECT user_id, day::DATE AS day, 'region-' || region AS region, 'category-' || "
                    f"category AS category, value FROM made) TO '{partial / f'{number:04}.parquet'}'"
                )
        partial.rename(folder)
    return folder / "*.parquet"


def _piece(rng: np.random.Generator, until: np.ndarray, rows: int) -> pa.Table:
    return pa.table(
        {
            "user_id": np.searchsorted(until, rng.random(rows) * until[-1], side="right"),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 365, rows).astype("timedelta64[D]"),
            "region": rng.integers(0, 100, rows),
            "category": np.minimum(rng.zipf(1.3, rows), 5_000),
            "value": rng.lognormal(3, 1, rows),
        }
    )
