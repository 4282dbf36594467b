"""How far off each mechanism beyond global sensitivity is, next to its naive counterpart and to peers.

Every line is one question about one real column, at one epsilon (and delta), under one relation; what is
printed are root mean squared errors over repeated releases. Naive means noise for the global sensitivity
within the same bounds. diffprivlib's and OpenDP's columns are filled where they are installed and have the
statistic. A line
is marked `worse` where ours is above the best of the others by more than three standard errors (with some 70
lines, chance alone would mark a line or two at two of them).

    python bench/beyond.py [--epsilon E] [--delta D] [--repeats N]
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd import Curator
from incrowd.curator.request import Request
from incrowd.data import adult
from incrowd.mechanisms import (
    Covariance,
    DistanceToProperty,
    InterquartileRange,
    Laplace,
    Maximum,
    Mean,
    Minimum,
    PartitionSelection,
    Quantile,
    SmoothSensitivity,
    SparseVector,
    StableHistogram,
    StableMode,
    SubsampleAndAggregate,
    UnboundedQuantile,
    Variance,
)
from incrowd.mechanisms import sensitivity as relations
from rivals.mechanisms import INSTALLED, diffprivlib, opendp_mean, opendp_quantile

HOUSING = Path(__file__).resolve().parents[2] / "shared" / "data" / "california_housing.csv"
Release = Callable[[], Any]
Bounds = tuple[float, float]
WORSE: list[str] = []


def errors(release: Release, truth: Any, repeats: int) -> tuple[float, float]:
    """The root mean squared error and its standard error."""
    squares = [float(np.mean((np.asarray(release(), float) - truth) ** 2)) for _ in range(repeats)]
    mean = statistics.fmean(squares)
    if mean == 0:
        return 0.0, 0.0
    return math.sqrt(mean), float(np.std(squares)) / math.sqrt(repeats) / (2 * math.sqrt(mean))


def line(name: str, truth: Any, repeats: int, ours: Release, **others: Release | None) -> None:
    """Measure and print one line: ours, then naive, diffprivlib and OpenDP where there are such."""
    mine, spread = errors(ours, truth, repeats)
    row, best, slack = f"{name:<76}{mine:>11.4g}", math.inf, 0.0
    for other in ("naive", "diffprivlib", "opendp"):
        release = others.get(other)
        if release is None:
            row += f"{'-':>12}"
            continue
        try:
            error, theirs = errors(release, truth, repeats)
        except Exception:
            row += f"{'fails':>12}"
            continue
        row += f"{error:>12.4g}"
        if error < best:
            best, slack = error, theirs
    worse = mine > best + 3 * math.hypot(spread, slack)
    if worse:
        WORSE.append(name)
    print(row + ("  worse" if worse else ""), flush=True)


def noisy(value: float, reach: float, epsilon: float, ends: Bounds | None = None) -> float:
    """A number with Laplace noise for its global sensitivity, clamped to what it can be."""
    released = float(Laplace(epsilon, sensitivity=float(reach)).release(float(value)))
    return released if ends is None else min(max(released, ends[0]), ends[1])


def curators_median(values: np.ndarray, bounds: Bounds, epsilon: float) -> Release:
    """The point that the curator answers; its epsilon buys the interval and all other ranks as well."""
    curator = Curator.from_tables(t=pa.table({"x": values}), bounds={"x": bounds}, budget=(1e9, 0.0))
    question = curator.prepare(Request("SELECT MEDIAN(x) AS x FROM t", epsilon))
    price = curator.price_of(question)
    (leaf,) = question.plan.leaves

    def release() -> float:
        (released,) = curator.noise(curator.execute(question, curator.choose_caps(question, price)), price)
        (span,) = released.columns(leaf, 0.95).values()
        return float(span.value[0])

    return release


def quantile_lines(
    name: str, x: np.ndarray, bounds: Bounds, whole: bool, epsilon: float, delta: float, n: int
) -> None:
    """Medians, a high quantile, quartiles and extremes of one column."""
    low, high = (int(bounds[0]), int(bounds[1])) if whole else bounds
    values = x.astype(int) if whole else x
    ordered = np.sort(values)
    width = high - low
    for q in (0.5, 0.9):
        truth = float(ordered[math.ceil(q * x.size) - 1])
        naive = lambda truth=truth: noisy(truth, width, epsilon, (low, high))  # noqa: E731
        added = Quantile(epsilon, q=q, low=low, high=high)
        line(
            f"{name}: quantile {q}, add-remove",
            truth,
            n,
            lambda added=added: added.release(values),
            naive=naive,
            opendp=opendp_quantile(x, q, epsilon, (float(low), float(high)), whole),
        )
        replaced = Quantile(epsilon, q=q, low=low, high=high, relation="replace")
        line(
            f"{name}: quantile {q}, replace",
            truth,
            n,
            lambda replaced=replaced: replaced.release(values),
            naive=naive,
            diffprivlib=diffprivlib("quantile", x, epsilon, bounds, q),
        )
    rank = (x.size + 1) // 2
    truth = float(ordered[rank - 1])
    line(
        f"{name}: MEDIAN asked of a curator, with interval",
        truth,
        n,
        curators_median(values, (low, high), epsilon),
        opendp=opendp_quantile(x, 0.5, epsilon, (float(low), float(high)), whole),
    )
    naive = lambda: noisy(truth, width, epsilon, (low, high))  # noqa: E731
    for label, smooth in (
        ("Student", SmoothSensitivity(epsilon)),
        ("Laplace, delta", SmoothSensitivity(epsilon, delta=delta)),
    ):
        line(
            f"{name}: median, smooth sensitivity ({label}), replace",
            truth,
            n,
            lambda smooth=smooth: smooth.release_rank(values, rank, low=low, high=high),
            naive=naive,
        )
    quartiles = ordered[[math.ceil(q * x.size) - 1 for q in (0.25, 0.5, 0.75)]].astype(float)
    three = Quantile(epsilon, q=[0.25, 0.5, 0.75], low=low, high=high, relation="replace")
    line(
        f"{name}: three quartiles at once, replace",
        quartiles,
        n,
        lambda: three.release(values),
        naive=lambda: [noisy(value, width, epsilon / 3, (low, high)) for value in quartiles],
        diffprivlib=diffprivlib("quantile", x, epsilon, bounds, [0.25, 0.5, 0.75]),
    )
    endless = UnboundedQuantile(epsilon, low=low, unit=1 if whole else 2.0**-10)
    line(
        f"{name}: median without an upper bound, add-remove",
        truth,
        n,
        lambda: endless.release(values),
        naive=lambda: noisy(truth, 2.0**50, epsilon, (low, 2.0**50)),
    )
    for kind, extreme in ((Minimum, ordered[0]), (Maximum, ordered[-1])):
        m = kind(epsilon, low=low, high=high)
        line(
            f"{name}: {kind.__name__.lower()}",
            float(extreme),
            n,
            lambda m=m: m.release(values),
            naive=lambda extreme=extreme: noisy(float(extreme), width, epsilon, (low, high)),
        )
    spread = float(ordered[x.size - 1 - x.size // 4] - ordered[x.size // 4])
    ranges = InterquartileRange(epsilon, delta)

    def middle() -> float:
        interval = ranges.release(values)
        return spread if interval is None else math.sqrt(interval[0] * interval[1])  # a refusal says nothing

    line(
        f"{name}: interquartile range (propose-test-release), replace",
        spread,
        n,
        middle,
        naive=lambda: noisy(spread, width, epsilon, (0, width)),
    )


def mean_lines(name: str, x: np.ndarray, bounds: Bounds, wide: Bounds, epsilon: float, n: int) -> None:
    """Means and variances of one column, with the bounds given and without any."""
    size, clipped, n = x.size, np.clip(x, *bounds), 4 * n  # many of these lines are ties: look closely
    reach, broad = bounds[1] - bounds[0], wide[1] - wide[0]

    def naive_mean(ends: Bounds) -> float:
        """A sum and a count with half of epsilon each."""
        most = max(abs(ends[0]), abs(ends[1]))
        total, count = noisy(float(x.sum()), most, epsilon / 2), noisy(size, 1, epsilon / 2)
        return min(max(total / max(1.0, count), ends[0]), ends[1])

    for relation in ("add-remove", "replace"):
        mean = Mean(epsilon, low=bounds[0], high=bounds[1], relation=relation)  # type: ignore[arg-type]
        known = relation == "replace"
        line(
            f"{name}: mean in [{bounds[0]:g}, {bounds[1]:g}], {relation}",
            float(clipped.mean()),
            n,
            lambda mean=mean: mean.release(x),
            naive=(lambda: noisy(float(x.mean()), reach / size, epsilon, bounds))
            if known
            else (lambda: naive_mean(bounds)),
            diffprivlib=diffprivlib("mean", x, epsilon, bounds) if known else None,
            opendp=opendp_mean(x, epsilon, bounds) if known else None,
        )
    variance = Variance(epsilon, low=bounds[0], high=bounds[1], relation="replace")
    line(
        f"{name}: variance in [{bounds[0]:g}, {bounds[1]:g}], replace",
        float(clipped.var()),
        n,
        lambda: variance.release(x),
        naive=lambda: noisy(float(x.var()), reach**2 / size, epsilon, (0, reach**2)),
        diffprivlib=diffprivlib("var", x, epsilon, bounds),
        opendp=opendp_mean(x, epsilon, bounds, "variance"),
    )
    mean, spread = Mean(epsilon, relation="replace"), Variance(epsilon, relation="replace")
    line(
        f"{name}: mean without bounds (others: in [0, {wide[1]:g}]), replace",
        float(x.mean()),
        n,
        lambda: mean.release(x),
        naive=lambda: noisy(float(x.mean()), broad / size, epsilon, wide),
        diffprivlib=diffprivlib("mean", x, epsilon, wide),
        opendp=opendp_mean(x, epsilon, wide),
    )
    line(
        f"{name}: variance without bounds (others: in [0, {wide[1]:g}]), replace",
        float(x.var()),
        n,
        lambda: spread.release(x),
        naive=lambda: noisy(float(x.var()), broad**2 / size, epsilon, (0, broad**2)),
        diffprivlib=diffprivlib("var", x, epsilon, wide),
    )


def covariance_line(
    name: str, table: np.ndarray, bounds: list[Bounds], epsilon: float, delta: float, n: int
) -> None:
    """A covariance matrix jointly and entry by entry; errors are in units of the ranges' products."""
    d = table.shape[1]
    unit = np.outer(*2 * [[high - low for low, high in bounds]])
    truth = np.cov(np.clip(table, *np.array(bounds).T).T, bias=True) / unit
    share = epsilon / (d * (d + 1) / 2)
    reach = float(relations.covariance([(0, 1)], len(table)).l1)

    def naive() -> np.ndarray:
        upper = np.triu([[noisy(entry, reach, share) for entry in row] for row in truth])
        return upper + np.triu(upper, 1).T

    for relation, more in (("add-remove", (delta,)), ("replace", (delta,)), ("replace", ())):
        m = Covariance(epsilon, *more, columns=d, bounds=bounds, relation=relation)  # type: ignore[arg-type]
        label = "delta" if more else "pure"
        line(
            f"{name}: covariance of {d} columns ({label}), {relation}",
            truth,
            n,
            lambda m=m: m.release(table) / unit,
            naive=naive,
        )


def key_lines(name: str, keys: list[str], domain: int, epsilon: float, delta: float, n: int) -> None:
    """The most common key, counts of unknown keys, and which keys may be named."""
    named, counts = np.unique(np.array(keys), return_counts=True)
    tally = dict(zip(named.tolist(), counts.tolist(), strict=True))
    mode, most = StableMode(epsilon, delta), int(counts.max())
    one_by_one = Laplace(epsilon / domain)
    line(
        f"{name}: mode (how many fewer hold the one named)",
        0.0,
        n,
        lambda: most - tally.get(mode.release(tally), 0),
        naive=lambda: most - counts[int(np.argmax(one_by_one.release(counts)))],
    )
    histogram = StableHistogram(epsilon, delta)

    def released() -> list[int]:
        noisy_counts = histogram.release(tally)
        return [noisy_counts.get(key, 0) for key in tally]

    line(
        f"{name}: counts of unknown keys",
        counts.astype(float),
        n,
        released,
        naive=lambda: one_by_one.release(counts),
    )
    selection, cut = PartitionSelection(epsilon, delta), StableHistogram(epsilon, delta)
    line(
        f"{name}: keys not named (naive: noisy count over a threshold)",
        0.0,
        4 * n,
        lambda: len(tally) - len(selection.release(tally)),
        naive=lambda: len(tally) - len(cut.release(tally)),
    )


def other_lines(table: dict[str, np.ndarray], epsilon: float, n: int) -> None:
    """Sparse vector, subsample and aggregate, and a distance."""
    ages = table["age"]
    above = np.array([int((ages >= a).sum()) for a in range(90, 10, -1)])
    cut = 2 * ages.size // 3
    truth = float(np.argmax(above >= cut))
    sparse, one_by_one = SparseVector(epsilon, threshold=cut, monotone=True), Laplace(epsilon / above.size)

    def first(answers: Any) -> float:
        hits = np.flatnonzero(np.asarray(answers))
        return float(hits[0]) if hits.size else float(above.size)

    line(
        "adult: first of 80 counts above 2/3 of the people (sparse vector)",
        truth,
        n,
        lambda: first(sparse.release(above)),
        naive=lambda: first(one_by_one.release(above) >= cut),
    )
    pairs = np.column_stack([ages, table["education_num"]]).astype(float)
    correlate = lambda block: float(np.corrcoef(block.T)[0, 1])  # noqa: E731
    whole = correlate(pairs)
    for aggregate in ("median", "mean"):
        m = SubsampleAndAggregate(correlate, epsilon, blocks=100, low=-1.0, high=1.0, aggregate=aggregate)  # type: ignore[arg-type]
        line(
            f"adult: correlation of age and education, {aggregate} of 100 blocks",
            whole,
            max(3, n // 20),
            lambda m=m: m.release(pairs),
            naive=lambda: noisy(whole, 2.0, epsilon, (-1, 1)),
        )
    held, distance = int((ages >= 65).sum()), DistanceToProperty(epsilon)
    line(
        "adult: people to remove until nobody is 65 (distance to a property)",
        float(held),
        n,
        lambda: distance.release(held),
        naive=lambda: noisy(held, ages.size, epsilon, (0, ages.size)),
    )


def speed(rounds: int = 7) -> None:
    """A private median of a million values against sorting them; the target is 5."""
    for label, values in (
        ("integers", np.random.default_rng(1).integers(0, 10**6, 10**6)),
        ("reals", np.random.default_rng(1).random(10**6) * 10**6),
    ):
        m = Quantile(1.0, low=0, high=10**6) if label == "integers" else Quantile(1.0, low=0.0, high=1e6)
        taken: dict[str, list[float]] = {"sort": [], "median": []}
        for _ in range(rounds):
            for name, run in (
                ("sort", lambda v=values: np.sort(v)),
                ("median", lambda v=values, m=m: m.release(v)),
            ):
                start = time.perf_counter()
                run()
                taken[name].append(time.perf_counter() - start)
        ratio = statistics.median(taken["median"]) / statistics.median(taken["sort"])
        print(f"A private median of 1,000,000 {label}: {ratio:.2f} times a NumPy sort (target: at most 5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    epsilon, delta, n = options.epsilon, options.delta, options.repeats
    warnings.simplefilter("ignore")  # the peers', about bounds and deprecations of their own
    for name in sorted({"diffprivlib", "opendp"} - INSTALLED):
        print(f"{name} is not installed: its column is left out.")
    speed()
    print(f"\nRoot mean squared errors at epsilon {epsilon:g}, delta {delta:g}, {n} releases each")
    print(f"{'':<76}{'ours':>11}{'naive':>12}{'diffprivlib':>12}{'opendp':>12}")
    table = adult()
    people = {
        name: table.column(name).to_numpy() for name in ("age", "hours_per_week", "fnlwgt", "education_num")
    }
    for name, bounds in (("age", (0.0, 120.0)), ("hours_per_week", (0.0, 100.0))):
        quantile_lines(f"adult.{name}", people[name].astype(float), bounds, True, epsilon, delta, n)
        mean_lines(f"adult.{name}", people[name].astype(float), bounds, (0.0, 10_000.0), epsilon, n)
    matrix = np.column_stack([people[name] for name in people]).astype(float)
    covariance_line("adult", matrix, [(0, 120), (0, 100), (0, 1_500_000), (0, 16)], epsilon, delta, n)
    key_lines(
        "adult.occupation", [str(v) for v in table.column("occupation").to_pylist()], 15, epsilon, delta, n
    )
    both = zip(*(table.column(c).to_pylist() for c in ("native_country", "education")), strict=True)
    key_lines("adult.country and education", [f"{a}, {b}" for a, b in both], 42 * 16, epsilon, delta, n)
    other_lines(people, epsilon, n)
    if HOUSING.exists():
        with HOUSING.open() as file:
            rows = list(csv.DictReader(file))
        for name, bounds, wide in (
            ("median_income", (0.0, 20.0), (0.0, 10_000.0)),
            ("median_house_value", (0.0, 10_000.0), (0.0, 1e7)),
        ):
            x = np.array([float(row[name]) for row in rows])
            # House values come in hundreds of dollars, and are asked for in them by everybody.
            hundreds = name == "median_house_value"
            x = x / 100 if hundreds else x
            quantile_lines(f"housing.{name}", x, bounds, hundreds, epsilon, delta, n)
            mean_lines(f"housing.{name}", x, bounds, wide, epsilon, n)
    else:
        print("California housing is left out: ../shared/data beside the checkout does not hold it.")
    print(f"\nLines where ours is worse: {', '.join(WORSE) if WORSE else 'none'}")


if __name__ == "__main__":
    main()
