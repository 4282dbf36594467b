"""What a runner, a process that asks one peer one question again and again, is told and says.

It is told a job, as JSON in its only argument, and says one line of JSON for each thing done, so that whoever
waits knows how far it came when it is stopped. It runs in the peer's own environment: only the standard
library is known here.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# A group's key as text ("" for the only group of a question without keys) and its answer.
Answer = Mapping[str, float]
KEYS = {
    "region": [f"region-{number}" for number in range(100)],
    "category": [f"category-{number}" for number in range(1, 5_001)],
}


class Unsupported(Exception):  # noqa: N818 - no error of anyone
    """The peer has no way to ask this."""


@dataclass(frozen=True)
class Job:
    """One question (count, sum, distinct, average or median) to one peer.

    `source` is a Parquet file or a server's address. `kinds` are asked in turn, `rounds` times after a round
    that warms all. `rows` and `value` bound what a user contributes.
    """

    question: str
    source: str
    kinds: tuple[str, ...] = ("plain", "private")
    rounds: int = 5
    table_rows: int = 0
    rows: int = 1
    value: float = 1.0
    noise: str = "laplace"
    epsilon: float = 1.0
    delta: float = 1e-7
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str | None:
        """The column that the question groups by."""
        return {"sum": "category", "distinct": "day", "average": "region"}.get(self.question)

    @property
    def public_keys(self) -> list[str] | None:
        """The keys that are known beforehand."""
        return KEYS.get(self.key or "")

    def encoded(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Peer:
    """How a peer is asked. Both get a number that is new each time, to filter by: value > -number."""

    plain: Callable[[int], Answer]
    private: Callable[[int], Answer]


def serve(opened: Callable[[Job], Peer]) -> None:
    """Do the job in the process's argument; lines are {kind, number, seconds, answer} and then {peak}."""
    # Libraries print what they like to standard output, so ours is another file from here on.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**line: Any) -> None:
        print(json.dumps(line), file=out, flush=True)

    job = Job(**json.loads(sys.argv[1]))
    try:
        peer = opened(job)
        for number in range(job.rounds + 1):
            for kind in job.kinds:
                start = time.perf_counter()
                answer = getattr(peer, kind)(number + 1)
                seconds = time.perf_counter() - start
                say(kind=kind, number=number, seconds=seconds, answer=dict(answer))
        say(peak=high_water())
    except Unsupported as reason:
        say(unsupported=str(reason))
    except BaseException as error:  # a panic of a Rust library is no Exception
        traceback.print_exc()
        say(error=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    out.flush()
    os._exit(0)  # not every library ends its threads


def high_water() -> float:
    """The most memory, in MB, that this process has held."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def sql(question: str, number: int, median: str = "MEDIAN(value)") -> str:
    """The plain question."""
    key, what = {
        "count": (None, "COUNT(*)"),
        "sum": ("category", "SUM(value)"),
        "distinct": ("day", "COUNT(DISTINCT user_id)"),
        "average": ("region", "AVG(value)"),
        "median": (None, median),
    }[question]
    rows = f"FROM events WHERE value > -{number}"
    return f"SELECT {key}, {what} AS x {rows} GROUP BY {key}" if key else f"SELECT {what} AS x {rows}"


def by_key(rows: Any) -> Answer:
    """Rows of (key, value), or one row of (value,), as an answer."""
    tuples = [tuple(row) for row in rows]
    if tuples and len(tuples[0]) == 1:
        return {"": float(tuples[0][0])}
    return {str(key): float(value) for key, value in tuples if value is not None}
