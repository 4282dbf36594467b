"""Whether answers can be believed where nobody declared how much a unit contributes: coverage, width, error.

For each table, question and epsilon, the same question is released many times. One line says
- cover: how often the interval holds what the answer says it is about (each unit counting for at most
  `answer.caps`), which should be 94% to 99%;
- wide: the median half-width over the 95% quantile of the errors, which is what an interval could at best be;
- worst: the largest error in half-widths, over all releases;
- rmse, and rmse over that of the best cap which somebody who knows the data would declare.
Lines out of range end with what is.

Lines "people by private key" are about groups that may be hidden:
- cover: how often the interval of a group that is shown holds its number of people;
- near: the same for the groups that are shown less than 95% of the time;
- wide: the median half-width over that of Laplace noise at the whole epsilon, for as many groups as a unit
  is in;
- half, usual: the sizes that the answer names, shown at least half and 95% of the time; then how often groups
  of at least these sizes were.

`--untuned` asks about tables that nothing was tuned on instead (`untuned`), without an engine, so that 10,000
asks take minutes. Its lines also say
- wide: how many times narrower all intervals could be and still hold 95% of what they are about;
- usually: the median error over that of the best cap, which a few bad caps do not move;
- beyond: how often `answer.beyond` was at least the number of units that weigh more than the cap; and, in the
  median, how many times it was what one noisy count of those units would let one state;
- absurd: some cap was far above all units, or threw away nearly everything that could be seen.

    python bench/believe.py [--releases N] [--data FOLDER] [--only WORD] [--untuned] [--relation RELATION]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from incrowd import Curator
from incrowd.curator.quantities import caps_of
from incrowd.curator.releasing import Exact
from incrowd.curator.request import Request
from incrowd.curator.showing import shown_sizes
from untuned import matrix

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0)
Weigh = Callable[[float], np.ndarray]


@dataclass(frozen=True)
class Table:
    """A table with a unit, a value in bounds, and a key with a public domain."""

    name: str
    frame: pd.DataFrame
    bounds: tuple[float, float]

    def curator(self) -> Curator:
        domain = sorted(self.frame["key"].unique().tolist())
        return Curator.from_tables(
            t=self.frame,
            unit="unit",
            bounds={"value": self.bounds},
            domains={"key": domain},
            budget=(1e9, 0.5),
        )


def made(name: str, unit: np.ndarray, value: np.ndarray, bounds: tuple[float, float], keys: int) -> Table:
    """A table with keys drawn by Zipf's law."""
    rng = np.random.default_rng(17)
    weights = 1 / np.arange(1, keys + 1)
    key = rng.choice(keys, len(unit), p=weights / weights.sum())
    return Table(name, pd.DataFrame({"unit": unit, "value": value, "key": key}), bounds)


def tables(data: Path | None) -> Iterator[Table]:
    """Skewed, heavy-tailed, tiny and even tables of our own, and real ones where the folder is at hand."""
    rng = np.random.default_rng(23)
    activity = rng.pareto(1.5, 2_000) + 1
    person = rng.choice(2_000, 10_000, p=activity / activity.sum())
    yield made("visits", person, rng.lognormal(5, 1, 10_000).clip(0, 20_000), (0, 20_000), 8)
    activity = rng.lognormal(0, 1.5, 300)
    person = rng.choice(300, 1_500, p=activity / activity.sum())
    yield made("tiny", person, rng.gamma(2, 10, 1_500).clip(0, 200), (0, 200), 4)
    yield made("even", np.repeat(np.arange(3_000), 10), rng.uniform(0, 1, 30_000), (0, 1), 20)
    yield made("single", np.arange(5_000), rng.exponential(1_000, 5_000).clip(0, 1e5), (0, 1e5), 10)
    activity = rng.zipf(1.8, 4_000).clip(1, 5_000)
    person = np.repeat(np.arange(4_000), activity)
    yield made("zipf", person, rng.normal(0, 30, len(person)).clip(-100, 100), (-100, 100), 30)
    if data is not None:
        pums = pd.read_csv(data / "pums_pid_1000.csv")
        yield Table("pums", _columns(pums, pums.pid, pums.income, pums.educ), (0, 500_000))
        adult = pd.read_csv(data / "adult.csv")
        unit = pd.Series(np.arange(len(adult)))
        yield Table("adult", _columns(adult, unit, adult.hours_per_week, adult.education), (0, 100))
        yield Table("gains", _columns(adult, unit, adult.capital_gain, adult.education), (0, 100_000))
        taxis = pd.read_csv(data / "nyc_taxis_2019.csv").dropna(subset=["pickup_zone", "pickup_borough"])
        zone = taxis.pickup_zone.astype("category").cat.codes
        yield Table("taxis", _columns(taxis, zone, taxis.fare, taxis.pickup_borough), (0, 500))


def _columns(frame: pd.DataFrame, unit: pd.Series, value: pd.Series, key: pd.Series) -> pd.DataFrame:
    columns = {"unit": unit.to_numpy(), "value": value.to_numpy(float), "key": key.astype(str).to_numpy()}
    return pd.DataFrame(columns, index=None)


QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM t",
    "sum": "SELECT SUM(value) AS n FROM t",
    "avg": "SELECT AVG(value) AS n FROM t",
    "count by key": "SELECT key, COUNT(*) AS n FROM t GROUP BY key",
    "sum by key": "SELECT key, SUM(value) AS n FROM t GROUP BY key",
    "avg by key": "SELECT key, AVG(value) AS n FROM t GROUP BY key",
    "median": "SELECT MEDIAN(value) AS n FROM t",
    "median by key": "SELECT key, MEDIAN(value) AS n FROM t GROUP BY key",
}


def average_of(exact: Exact) -> np.ndarray:
    """What an average is about: heavy units weigh less, in its sum and its count alike."""
    (aggregate,) = exact.leaf.aggregates
    total, count = (exact.leaf.measures[name] for name in aggregate.measures)
    sums, rows = (exact.sums[measure.name] * measure.step for measure in (total, count))
    return np.asarray(total.centre + sums / np.maximum(rows, 1e-12))


def stated(table: Table, question: str, cap: float | None) -> np.ndarray:
    """What an answer is about: each unit counting for at most `cap` (rows, or values of a sum)."""
    kind = question.partition(" ")[0]
    value = table.frame["value"].clip(*table.bounds).to_numpy()
    unit = table.frame["unit"].to_numpy()
    groups = table.frame["key"] if "by key" in question else pd.Series(np.zeros(len(unit)))
    codes = groups.astype("category").cat.codes.to_numpy()
    _, units = np.unique(unit, return_inverse=True)
    weight = np.abs(value) if kind == "sum" else np.ones(len(unit))
    held = np.bincount(units, weight)
    share = np.ones(len(held)) if cap is None else np.minimum(1, cap / np.maximum(held, 1e-12))
    part = share[units]
    counts = np.bincount(codes, part)
    if kind == "count":
        return counts
    if kind == "median":
        return np.array([median(value[codes == code], part[codes == code]) for code in range(len(counts))])
    sums = np.bincount(codes, part * value)
    return sums if kind == "sum" else sums / np.maximum(counts, 1e-12)


def median(value: np.ndarray, part: np.ndarray) -> float:
    """The value at which half of the weight is reached."""
    order = np.argsort(value)
    below = np.cumsum(part[order])
    return float(value[order][np.searchsorted(below, below[-1] / 2)])


def best_by_hand(table: Table, question: str, epsilon: float) -> float:
    """The rmse of the best cap, declared by somebody who knows the data, with the whole epsilon."""
    kind = question.partition(" ")[0]
    if kind in ("avg", "median"):
        return math.nan
    truth = stated(table, question, None)
    weight = table.frame["value"].abs() if kind == "sum" else pd.Series(np.ones(len(table.frame)))
    held = weight.groupby(table.frame["unit"].to_numpy()).sum()
    caps = np.unique(np.quantile(held, np.linspace(0, 1, 200)))
    errors = [
        2 * (cap / epsilon) ** 2 + np.mean((stated(table, question, cap) - truth) ** 2)
        for cap in caps[caps > 0]
    ]
    return math.sqrt(min(errors))


def line(table: Table, question: str, epsilon: float, releases: int) -> str:
    """One line of the matrix."""
    truth = stated(table, question, None)
    covered, halves, errors, worst, squares = [], [], [], 0.0, []
    with table.curator() as curator:
        prepared = curator.prepare(Request(QUESTIONS[question], epsilon))
        price = curator.price_of(prepared)
        for _ in range(releases):
            exact = curator.execute(prepared, curator.choose_caps(prepared, price))
            released = curator.noise(exact, price)
            (cap,) = caps_of(prepared.plan, released).values()
            (span,) = released[0].columns(prepared.plan.leaves[0], 0.95).values()
            averaged = question.startswith("avg")
            about = average_of(exact[0])[: len(truth)] if averaged else stated(table, question, cap)
            # Last come rows without a key, of which there are none.
            value, low, high = (ends[: len(about)] for ends in (span.value, span.low, span.high))
            away = np.abs(value - about)
            half = np.maximum((high - low) / 2, 1e-12)
            covered.append((low - 1e-9 <= about) & (about <= high + 1e-9))
            halves.append(half)
            errors.append(away)
            worst = max(worst, float((away / half).max()))
            squares.append(np.mean((value - truth) ** 2))
    cover = float(np.mean(covered))
    wide = float(np.median(np.concatenate(halves)) / max(np.quantile(np.concatenate(errors), 0.95), 1e-12))
    rmse, best = math.sqrt(float(np.mean(squares))), best_by_hand(table, question, epsilon)
    spread = 3 * math.sqrt(0.05 * 0.95 / (releases * len(truth)))
    faults = [
        word
        for word, wrong in (
            ("cover", not 0.94 - spread <= cover <= 0.99 + spread),
            ("wide", wide > 1.5),
            ("worst", worst > 5),
        )
        if wrong
    ]
    return (
        f"{table.name:8} {question:13} {epsilon:5} cover {cover:6.1%} wide {wide:5.2f} worst {worst:5.2f} "
        f"rmse {rmse:10.4g} /best {rmse / best:6.2f} {' '.join(faults)}"
    )


PRIVATE = "people by private key"


def private_line(name: str, epsilon: float, releases: int) -> str:
    """One line about groups that may be hidden, of 1 to 4,000 people, or rows."""
    sizes = np.unique(np.geomspace(1, 4_000, 300).astype(int))
    truth = {f"k{place}": int(size) for place, size in enumerate(sizes)}
    units = np.arange(sum(truth.values()))
    frame = pd.DataFrame({"unit": units, "key": np.repeat(list(truth), list(truth.values()))})
    groups = 2 if name == "several" else 1
    if groups > 1:
        # Everybody is in a second group too, of the same size.
        frame = pd.concat((frame, frame.assign(key=frame["key"] + "b")))
        truth |= {f"{key}b": size for key, size in truth.items()}
    unit = "row" if name == "rows" else "unit"
    counted = "COUNT(*)" if unit == "row" else "COUNT(DISTINCT unit)"
    question = f"SELECT key, {counted} AS n FROM t GROUP BY key"
    covered: list[tuple[int, bool]] = []
    halves, named = [], []
    with Curator.from_tables(t=frame, unit=unit, budget=(1e9, 0.5)) as curator:
        prepared = curator.prepare(Request(question, epsilon, delta=1e-6))
        price = curator.price_of(prepared)
        for _ in range(releases):
            (released,) = curator.noise(
                curator.execute(prepared, curator.choose_caps(prepared, price)), price
            )
            (leaf,) = prepared.plan.leaves
            (span,) = released.columns(leaf, 0.95).values()
            known = released.known(leaf)
            (line,) = (line for line in price.lines if line.delta)
            named.append(shown_sizes(known, line))
            for key, low, high in zip(
                released.table.column("k0").to_pylist(), span.low, span.high, strict=True
            ):
                covered.append((truth[key], bool(low <= truth[key] <= high)))
                halves.append((high - low) / 2)
    half, usual = (int(np.median(column)) for column in zip(*named, strict=True))
    near = [held for size, held in covered if size < usual]
    shown = [
        sum(size >= least for size, _ in covered)
        / releases
        / max(1, sum(size >= least for size in truth.values()))
        for least in (half, usual)
    ]
    cover, wide = (
        float(np.mean([held for _, held in covered])),
        float(np.median(halves)) * epsilon / 3 / groups,
    )
    spread = 3 * math.sqrt(0.05 * 0.95 / max(len(near), 1))
    faults = [
        word
        for word, wrong in (
            ("cover", not 0.94 <= cover <= 0.99),
            ("near", bool(near) and not 0.94 - spread <= float(np.mean(near)) <= 0.99 + spread),
            ("wide", wide > 1.5),
        )
        if wrong
    ]
    return (
        f"{name:8} {PRIVATE} {epsilon:5} cover {cover:6.1%} near "
        f"{float(np.mean(near)) if near else math.nan:6.1%} wide {wide:5.2f} half {half} usual {usual} shown "
        f"{shown[0]:.1%} {shown[1]:.1%} {' '.join(faults)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument(
        "--data", type=Path, help="a folder with pums_pid_1000.csv, adult.csv, nyc_taxis_2019.csv, ..."
    )
    parser.add_argument("--only", default="", help="lines of tables or questions with this word")
    parser.add_argument("--untuned", action="store_true", help="ask about tables that nothing was tuned on")
    parser.add_argument("--relation", choices=("add-remove", "replace"), default="add-remove")
    said = parser.parse_args()
    if said.untuned:
        matrix.run(said.data, said.releases, said.only, said.relation)
        return
    for table in tables(said.data):
        for question in QUESTIONS:
            if said.only in f"{table.name} {question}":
                for epsilon in EPSILONS:
                    print(line(table, question, epsilon, said.releases), flush=True)
                    sys.stdout.flush()
    for name in ("rows", "people", "several"):
        if said.only in f"{name} {PRIVATE}":
            for epsilon in EPSILONS:
                print(private_line(name, epsilon, said.releases), flush=True)


if __name__ == "__main__":
    main()
