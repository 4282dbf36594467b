"""What bounding and noise cost: the curator on DuckDB as a ratio to the plain query, side by side in one run.

    python bench/engine.py [--rows 1000000 10000000] [--rounds 5]

Makes its own table (user_id, day, region, category zipf, value lognormal) under bench/data/. The unit is the
user. "declared": the owner's file says how much a user contributes. "private": nobody says, and the curator
buys a census of what users contribute first, which is one more pass over the rows. Times are medians of
interleaved rounds; each round asks a question that was not asked before, so nothing comes from the record.
Memory is the peak of a fresh process that runs the one question. The error is that of one answer at epsilon
1 and delta 1e-7: the root mean squared error over groups against the true answer.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from incrowd import Curator

DATA = Path(__file__).parent / "data"
USERS_PER_ROW = 1 / 50


@dataclass(frozen=True)
class Case:
    name: str
    private: str
    plain: str
    target: float | None


# The FILTER with a round number makes each round a new question, at no cost to speak of.
CASES = (
    Case(
        "COUNT",
        "SELECT COUNT(*) AS x FROM events WHERE value > -{round}",
        "SELECT COUNT(*) FROM events WHERE value > -{round}",
        None,
    ),
    Case(
        "SUM by 5,000 keys",
        "SELECT category, SUM(value) AS x FROM events WHERE value > -{round} GROUP BY category",
        "SELECT category, SUM(value) FROM events WHERE value > -{round} GROUP BY category",
        4,
    ),
    Case(
        "COUNT DISTINCT by day, private keys",
        "SELECT day, COUNT(DISTINCT user_id) AS x FROM events WHERE value > -{round} GROUP BY day",
        "SELECT day, COUNT(DISTINCT user_id) FROM events WHERE value > -{round} GROUP BY day",
        2,
    ),
    Case(
        "AVG by 100 keys",
        "SELECT region, AVG(value) AS x FROM events WHERE value > -{round} GROUP BY region",
        "SELECT region, AVG(value) FROM events WHERE value > -{round} GROUP BY region",
        6,
    ),
    Case(
        "MEDIAN",
        "SELECT MEDIAN(value) AS x FROM events WHERE value > -{round}",
        "SELECT MEDIAN(value) FROM events WHERE value > -{round}",
        3,
    ),
)


def make_table(rows: int) -> Path:
    file = DATA / f"events_{rows}.duckdb"
    if file.exists():
        return file
    DATA.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    users = max(1, int(rows * USERS_PER_ROW))
    activity = rng.lognormal(0, 1, users)
    table = pa.table(
        {
            "user_id": rng.choice(users, rows, p=activity / activity.sum()),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 365, rows).astype("timedelta64[D]"),
            "region": rng.integers(0, 100, rows),
            "category": np.minimum(rng.zipf(1.3, rows), 5_000),
            "value": rng.lognormal(3, 1, rows),
        }
    )
    partial = file.with_suffix(".part")
    partial.unlink(missing_ok=True)
    with duckdb.connect(str(partial)) as connection:
        connection.register("made", table)
        connection.execute(
            "CREATE TABLE events AS SELECT user_id, day::DATE AS day, 'region-' || region AS region, "
            "'category-' || category AS category, value FROM made"
        )
    partial.rename(file)
    return file


def catalog(file: Path, declared_caps: bool) -> Path:
    keys = {
        name: [f"{name}-{i}" for i in span]
        for name, span in (("region", range(100)), ("category", range(1, 5_001)))
    }
    declared: dict[str, Any] = {
        "sources": {"db": {"duckdb": file.name}},
        "tables": {
            "events": {
                "unit": "user_id",
                "columns": {
                    "user_id": {"type": "integer"},
                    "day": {"type": "date"},
                    "region": {"type": "text", "domain": keys["region"], "nullable": False},
                    "category": {"type": "text", "domain": keys["category"], "nullable": False},
                    "value": {"type": "float", "bounds": [0, 1000], "nullable": False},
                },
            }
        },
        "budget": {"epsilon": 10_000, "delta": 0.01},
    }
    if declared_caps:
        events = declared["tables"]["events"]
        events["contribution"] = 128
        events["columns"]["value"]["contribution"] = 4096
    path = file.with_name(f"{file.stem}_{'declared' if declared_caps else 'private'}.yaml")
    path.write_text(json.dumps(declared))
    path.with_suffix(".ledger").unlink(missing_ok=True)
    return path


def ask(curator: Curator, case: Case, number: int) -> dict[Any, float]:
    groups = 64 if "DISTINCT" in case.private and curator.catalog.tables["events"].contribution else None
    table = curator.ask(case.private.format(round=number), epsilon=1.0, delta=1e-7, groups=groups).to_arrow()
    values = table.column("x").to_pylist()
    return (
        dict(zip(table.column(0).to_pylist(), values, strict=True))
        if table.num_columns == 2
        else {None: values[0]}
    )


def run_plain(connection: duckdb.DuckDBPyConnection, case: Case, number: int) -> dict[Any, float]:
    rows = connection.execute(case.plain.format(round=number)).fetchall()
    return dict(rows) if len(rows[0]) == 2 else {None: rows[0][0]}


def measure(file: Path, rounds: int) -> None:
    print(f"\n{file.stem}: {rounds} interleaved rounds, medians")
    heads = ("caps", "plain ms", "ours ms", "ratio", "target", "plain MB", "ours MB", "rmse", "mean truth")
    print(f"{'question':38}" + "".join(f"{head:>11}" for head in heads))
    files = {"declared": catalog(file, True), "private": catalog(file, False)}
    for case in CASES:
        times: dict[str, list[float]] = {"plain": [], "declared": [], "private": []}
        answers: dict[str, dict[Any, float]] = {}
        curators = {name: opened(path) for name, path in files.items()}
        with duckdb.connect(str(file), read_only=True) as connection:
            for number in range(rounds + 1):  # the first round warms all
                for name in times:
                    start = time.perf_counter()
                    answers[name] = (
                        run_plain(connection, case, number)
                        if name == "plain"
                        else ask(curators[name], case, number)
                    )
                    if number:
                        times[name].append(time.perf_counter() - start)
        for curator in curators.values():
            curator.close()
        truth = answers["plain"]
        size = statistics.fmean(truth.values())
        plain = statistics.median(times["plain"])
        plain_memory = peak("plain", file, case)
        target = "" if case.target is None else f"{case.target:g}"
        for name, path in files.items():
            ours = statistics.median(times[name])
            squares = [(answers[name].get(key, 0) - value) ** 2 for key, value in truth.items()]
            print(
                f"{case.name:38}{name:>11}{plain * 1e3:11.0f}{ours * 1e3:11.0f}"
                f"{ours / plain:11.2f}{target:>11}"
                f"{plain_memory:11.0f}{peak('ours', path, case):11.0f}"
                f"{math.sqrt(statistics.fmean(squares)):11.4g}{size:11.5g}"
            )


def opened(path: Path) -> Curator:
    """The curator of a catalog, whose ledger is founded the first time."""
    return Curator.open(path, new_ledger=not path.with_suffix(".ledger").exists())


def peak(who: str, path: Path, case: Case) -> float:
    """The peak memory, in MB, of a fresh process that runs one question."""
    command = [sys.executable, __file__, "--peak", who, str(path), case.name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_alone(who: str, path: Path, name: str) -> None:
    case = next(candidate for candidate in CASES if candidate.name == name)
    if who == "plain":
        with duckdb.connect(str(path), read_only=True) as connection:
            run_plain(connection, case, 0)
    else:
        with opened(path) as curator:
            ask(curator, case, 10_000)
    # The high-water mark of this process alone: the parent's is inherited on exec by ru_maxrss.
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        run_alone(given.peak[0], Path(given.peak[1]), given.peak[2])
        return
    for rows in given.rows:
        measure(make_table(rows), given.rounds)


if __name__ == "__main__":
    main()
