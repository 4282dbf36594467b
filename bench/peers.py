"""Incrowd on its engines beside its peers: the five questions of bench/engine.py in one run on one machine.

    python bench/peers.py [--rows 1000000] [--own-rows 10000000] [--rounds 5] [--only opendp ours-duckdb]
    python bench/peers.py --growth [--rows 100000 1000000 10000000 100000000] [--limit 1GB]

Everyone reads the same table and answers for epsilon 1 and delta 1e-7, with a user as the unit. Peers have to
be told how much a user may contribute, and are told what is best for them on this table (rivals/bounds.py),
which no analyst could know. Incrowd runs twice: with the same bounds, and with none ("own"), choosing them
privately.

"ratio" is the time as a ratio to the plain question on the same engine, in the same process, in turns;
medians of the rounds, after one that warms. "/ DuckDB" is the ratio to the plain question on DuckDB. "MB" is
the peak of a fresh process that asks once, with all that it starts and the server that it uses. "rmse" is the
root mean squared error over the true groups, a group that is not released counting as 0; the median of the
rounds. Whoever needs more than --patience seconds for the rounds of a question is stopped, and what it had
answered until then counts.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import duckdb

from engine import CASES, make_table
from rivals.bounds import DELTA, EPSILON, Bounds, best
from rivals.environments import RIVALS, CannotInstall, python_of
from rivals.growth import grow
from rivals.processes import Outcome, run
from rivals.protocol import Answer, Job, by_key, sql
from rivals.server import Server, serving

QUESTIONS = dict(zip(("count", "sum", "distinct", "average", "median"), CASES, strict=True))
TARGET = 4
"""At most so many times the plain question of the engine."""


@dataclass(frozen=True)
class Contestant:
    """One line of the table. `style`: has Gaussian noise, and pays for keys apart."""

    name: str
    title: str
    engine: str
    python: Path
    module: str
    style: tuple[bool, bool]
    source: str
    server: int = 0
    more: dict[str, str] | None = None

    @property
    def ours(self) -> bool:
        return self.module == "ours"


@dataclass(frozen=True)
class Score:
    """How a contestant did on a question: seconds, MB and error, or nothing but a note."""

    who: Contestant
    rounds: int = 0
    plain: float = math.nan
    private: float = math.nan
    plain_peak: float = math.nan
    peak: float = math.nan
    rmse: float = math.nan
    groups: int = 0
    note: str = ""


def contestants(
    table: Path, server: Server | str, only: list[str], peers: bool
) -> Iterator[Contestant | str]:
    """Who can run here, and for everyone else one sentence that says why not."""
    parquet = str(table.with_suffix(".parquet"))
    engines = (
        ("duckdb", "DuckDB", str(table)),
        ("postgres", "PostgreSQL", ""),
        ("spark", "Spark", "spark://local[2]"),
    )
    for engine, title, source in engines:
        for caps in ("same", "own"):
            name, at = f"ours-{engine}", source
            if only and name not in only:
                continue
            if engine == "postgres":
                if isinstance(server, str):
                    yield f"Incrowd on {title}: {server}"
                    break
                at = server.url
            pid = server.pid if engine == "postgres" and isinstance(server, Server) else 0
            more = {"engine": engine, "caps": caps, "parquet": parquet}
            yield Contestant(
                name,
                f"Incrowd, {caps} bounds",
                title,
                Path(sys.executable),
                "ours",
                (True, False),
                at,
                pid,
                more,
            )
    for rival in RIVALS if peers else ():
        if only and rival.name not in only:
            continue
        if rival.server and isinstance(server, str):
            yield f"{rival}: {server}"
            continue
        try:
            python = python_of(rival)
        except CannotInstall as reason:
            yield f"{rival}: {reason}"
            continue
        at, pid = (server.url, server.pid) if rival.server and isinstance(server, Server) else (parquet, 0)
        yield Contestant(
            rival.name, str(rival), rival.engine, python, rival.name, (rival.gaussian, rival.split), at, pid
        )


def score(who: Contestant, job: Job, truth: Answer, patience: float) -> Score:
    """Time in turns with the plain question first; then the memory of each alone."""
    timed = run(who.python, who.module, job, patience)
    answered = timed.said("private")
    if not answered:
        return Score(who, note=timed.trouble)

    return Score(
        who,
        len(answered),
        _median(timed, "plain"),
        _median(timed, "private"),
        _memory(who, job, "plain", patience),
        _memory(who, job, "private", patience),
        statistics.median(rmse(truth, line["answer"]) for line in answered),
        len(answered[-1]["answer"]),
        timed.trouble,
    )


def _memory(who: Contestant, job: Job, kind: str, patience: float) -> float:
    """The peak of a fresh process that asks once; NaN where it did not come to an answer."""
    alone = Job(**{**vars(job), "kinds": (kind,), "rounds": 0})
    outcome = run(who.python, who.module, alone, patience, watch=True, server=who.server)
    if outcome.trouble:
        return math.nan
    return max([outcome.peak, *(line["peak"] for line in outcome.lines if "peak" in line)])


def _median(outcome: Outcome, kind: str) -> float:
    return statistics.median(line["seconds"] for line in outcome.said(kind))


def rmse(truth: Answer, answer: Answer) -> float:
    squares = [(answer.get(key, 0.0) - value) ** 2 for key, value in truth.items()]
    return math.sqrt(statistics.fmean(squares))


def line(result: Score, fastest: float) -> str:
    start = f"{result.who.title:22}{result.who.engine:12}"
    if not result.rounds:
        return f"{start}{result.note}"
    numbers = (
        f"{result.plain * 1e3:10.0f}{result.private * 1e3:11.0f}{result.private / result.plain:9.1f}"
        f"{result.private / fastest:9.1f}{result.plain_peak:10.0f}{result.peak:9.0f}"
        f"{result.rmse:11.4g}{result.groups:8}"
    )
    return f"{start}{numbers}{result.rounds:6}  {result.note}"


HEAD = (
    f"{'who':22}{'engine':12}{'plain ms':>10}{'private ms':>11}{'ratio':>9}{'/ DuckDB':>9}"
    f"{'plain MB':>10}{'MB':>9}{'rmse':>11}{'groups':>8}{'runs':>6}"
)


def compare(rows: int, given: argparse.Namespace, peers: bool) -> None:
    """The table of one size."""
    table = make_table(rows)
    with duckdb.connect(str(table), read_only=True) as connection:
        parquet = table.with_suffix(".parquet")
        if not parquet.exists():
            connection.execute(f"COPY events TO '{parquet}' (FORMAT parquet)")
        bounds = {style: best(connection, *style) for style in product((True, False), repeat=2)}
        truths = {
            name: by_key(connection.execute(sql(name, 1)).fetchall())
            for name in QUESTIONS
            if name in given.questions
        }
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(table))
        entrants = list(contestants(table, server, given.only, peers))
        running = [entrant for entrant in entrants if isinstance(entrant, Contestant)]
        print(f"\n{rows:,} rows, {given.rounds} rounds")
        for entrant in entrants:
            if isinstance(entrant, str):
                print(f"not run: {entrant}")
        for name, truth in truths.items():
            size = statistics.fmean(truth.values())
            told = " or ".join(dict.fromkeys(str(by_question[name]) for by_question in bounds.values()))
            print(f"\n{QUESTIONS[name].name} (the true mean is {size:.5g}; peers are told {told})\n{HEAD}")
            scores: list[Score] = []
            for who in running:
                scores.append(
                    score(who, job_of(who, name, bounds, rows, given.rounds), truth, given.patience)
                )
                fastest = next((result.plain for result in scores if result.who.engine == "DuckDB"), math.nan)
                print(line(scores[-1], fastest), flush=True)
            print(verdict(scores))


def job_of(
    who: Contestant, question: str, bounds: dict[tuple[bool, bool], dict[str, Bounds]], rows: int, rounds: int
) -> Job:
    told = bounds[who.style][question]
    return Job(
        question,
        who.source,
        rounds=rounds,
        table_rows=rows,
        rows=told.rows,
        value=told.value,
        noise=told.noise,
        epsilon=EPSILON,
        delta=DELTA,
        more=who.more or {},
    )


def verdict(scores: list[Score]) -> str:
    """How far each target is met."""
    ours = [result for result in scores if result.rounds and result.who.ours]
    peers = [result for result in scores if result.rounds and not result.who.ours]
    slow = max(ours, key=lambda result: result.private / result.plain, default=None)
    if slow is None:
        return "  none of ours answered"
    said = f"  slowest of ours: {slow.private / slow.plain:.1f} times the plain, to be at most {TARGET}"
    if peers:
        first = min(peers, key=lambda result: result.rmse)
        for result in ours:
            said += (
                f"\n  {result.who.title} on {result.who.engine}: {result.rmse / first.rmse:.2f} times the "
                f"error of {first.who.title}, to be at most 1"
            )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["ours-duckdb", "ours-postgres", "ours-spark", *(rival.name for rival in RIVALS)]
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--own-rows", type=int, nargs="*", default=[10_000_000], help="sizes without peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=300, help="seconds for the rounds of a question")
    parser.add_argument("--only", nargs="+", choices=names, default=[])
    parser.add_argument("--questions", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--growth", action="store_true", help="time and memory per row instead of peers")
    parser.add_argument("--limit", default="1GB", help="the engine's memory limit while growing")
    given = parser.parse_args()
    if given.growth:
        rows = given.rows or [100_000, 1_000_000, 10_000_000, 100_000_000]
        grow(rows, given.questions, given.rounds, given.limit)
        return
    for rows in given.rows or [1_000_000]:
        compare(rows, given, peers=True)
    for rows in given.own_rows:
        compare(rows, given, peers=False)


if __name__ == "__main__":
    main()
