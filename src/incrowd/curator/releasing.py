"""Execute and noise: the exact numbers of a leaf come in, noisy ones go out. The only place where both
meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.backends import Backend, Progress, Statement, census_statement, release_statement
from incrowd.backends.statement import KEY_MASS, census_exponent, weight_cap
from incrowd.curator import caps as cap_choice
from incrowd.curator import quantiles
from incrowd.curator.pricing import Line, Price
from incrowd.curator.released import Noisy, Released
from incrowd.curator.thresholds import threshold_for
from incrowd.errors import QueryError
from incrowd.mechanisms import Laplace
from incrowd.query import Leaf, Measure

MOST_GROUPS = 1_000_000


@dataclass(frozen=True)
class Exact:
    """What an engine returned for a leaf: exact, private, never shown."""

    leaf: Leaf
    statement: Statement
    result: pa.Table
    generous: Mapping[str, float]
    """For measures whose shrinkage is undone: the generous cap."""
    caps: Mapping[str, float]


def public_keys(leaf: Leaf, backend: Backend) -> pa.Table | None:
    """Every combination of public keys; None where some key is private. Reads public things only."""
    if not leaf.keys or not leaf.public:
        return None
    listed = [backend.run(f"SELECT DISTINCT v FROM ({key.domain}) AS domain") for key in leaf.keys]
    size = 1
    for each in listed:
        size *= each.num_rows
    if size > MOST_GROUPS:
        names = ", ".join(key.label for key in leaf.keys)
        raise QueryError(
            f"The domains of {names} make {size:,} groups, and each would be answered; "
            "group by fewer or coarser keys."
        )
    with duckdb.connect() as local:
        for index, each in enumerate(listed):
            local.register(f"d{index}", each)
        picked = ", ".join(f"d{index}.v AS k{index}" for index in range(len(listed)))
        tables = ", ".join(f"d{index}" for index in range(len(listed)))
        order = ", ".join(f"k{index}" for index in range(len(listed)))
        return local.sql(f"SELECT {picked} FROM {tables} ORDER BY {order}").to_arrow_table()


def choose_caps(
    index: int, leaf: Leaf, price: Price, backend: Backend, groups: int | None, progress: Progress | None
) -> tuple[dict[str, float], dict[str, float]]:
    """The caps that owner and analyst left open, bought with a noisy census; and the generous ones."""
    if not leaf.uncapped:
        return {}, {}
    statement = census_statement(leaf)
    result = backend.run(statement.sql, progress)
    part_of = result.column("part").to_numpy()
    caps: dict[str, float] = {}
    generous: dict[str, float] = {}
    for place, (key, measure) in enumerate(leaf.uncapped.items()):
        rows = np.flatnonzero(part_of == place)
        width = len(statement.parts) and sum(name.startswith("n") for name in result.column_names)
        counts = np.array(
            [_whole(result.column(f"n{i}")[int(rows[0])].as_py()) for i in range(width)], dtype=np.int64
        )
        line = price.line(index, "census", key)
        assert line is not None
        cells = cap_choice.noisy_census(counts, line.epsilon, leaf.distance)
        users = [each for each in leaf.measures.values() if each.weigh_key == key]
        rescaled = [each.name for each in users if price.line(index, "totals", each.name) is not None]
        spent = [
            _epsilon_like(price.line(index, "quantile" if each.buckets else "sum", each.name))
            for each in users
        ]
        best, large = cap_choice.choose(
            cells,
            float(line.epsilon),
            min(spent),
            groups,
            leaf.distance,
            _use(leaf, users, bool(rescaled)),
            measure.level == "pair" and measure.value is None,
        )
        unit = 2.0 ** census_exponent(measure)
        caps[key] = unit * 2.0**best
        for name in rescaled:
            generous[name] = unit * 2.0**large
    return caps, generous


def _use(leaf: Leaf, users: Sequence[Measure], rescaled: bool) -> cap_choice.Use:
    """What the measures that share a cap are for."""
    names = {each.name for each in users}
    kinds = {each.kind for each in leaf.aggregates if names & set(each.measures)}
    if not kinds & {"count", "sum"}:
        return "ratio"
    return "rescaled" if rescaled else "sum"


def _epsilon_like(line: Line | None) -> float:
    """The epsilon of a line, or that of Laplace noise as wide as its Gaussian noise."""
    assert line is not None
    return float(line.epsilon) if line.noise != "gaussian" else line.mu * 2**0.5


def _whole(value: Any) -> int:
    return 0 if value is None else int(value)


def execute(
    index: int, leaf: Leaf, price: Price, backend: Backend, keys: pa.Table | None, progress: Progress | None
) -> Exact:
    """Run a leaf's statements: the census where caps are open, then everything else in one."""
    groups = keys.num_rows if keys is not None else (1 if not leaf.keys else None)
    chosen, generous = choose_caps(index, leaf, price, backend, groups, progress)
    bounded = leaf.with_caps(chosen) if chosen else leaf
    statement = release_statement(bounded, generous)
    return Exact(bounded, statement, backend.run(statement.sql, progress), generous, chosen)


def noise(index: int, exact: Exact, price: Price, keys: pa.Table | None) -> Released:
    """Add the noise that the price states to a leaf's exact numbers."""
    leaf = exact.leaf
    shown = _shown_keys(index, exact, price, keys)
    columns: dict[str, Any] = {key.name: shown.column(key.name) for key in leaf.keys}
    noisy: dict[str, Noisy] = {}
    for name, measure in leaf.measures.items():
        line = price.line(index, "sum", name)
        if line is None:
            continue
        mechanism = line.mechanism(measure, leaf.distance)
        values = _aligned(exact, shown, name)
        columns[name] = pa.array(mechanism.release(values) if len(values) else values)
        noisy[name] = Noisy(
            line.noise,
            Fraction(mechanism.scale_in_steps)
            if isinstance(mechanism, Laplace)
            else Fraction(mechanism.scale),
            measure.step,
        )
    for name, measure in leaf.measures.items():
        if not measure.buckets:
            continue
        line = price.line(index, "quantile", name)
        assert line is not None
        users = [each for each in leaf.aggregates if each.measures == (name,)]
        ranks = tuple(rank for each in users for rank in each.quantiles)
        reach = measure.sensitivity_steps * leaf.distance
        row = 1 << -measure.exponent
        found = [
            quantiles.release(cells, ranks, line.epsilon, reach, row, price.confidence)
            for cells in _histograms(exact, shown, name, measure.buckets)
        ]
        for place, each in enumerate(users):
            columns[each.name] = pa.array([q.points[place] for q in found], pa.int64())
            columns[f"{each.name}_low"] = pa.array([q.lows[place] for q in found], pa.int64())
            columns[f"{each.name}_high"] = pa.array([q.highs[place] for q in found], pa.int64())
    if not columns:
        columns["nothing"] = pa.array([0] * shown.num_rows, pa.int64())
    factors = {name: _totals(index, exact, price, name) for name in exact.generous}
    released = Released(pa.table(columns), noisy, exact.caps, factors, price.confidence)
    return released.sorted_by_keys(len(leaf.keys))


def _part(exact: Exact, kind: str, name: str) -> tuple[int, int]:
    """The number of the part that holds a column, and the column's place in it."""
    for index, part in enumerate(exact.statement.parts):
        if part.kind == kind and name in part.columns:
            return index, part.columns.index(name)
    raise KeyError(name)


def _shown_keys(index: int, exact: Exact, price: Price, keys: pa.Table | None) -> pa.Table:
    """The groups of the answer: the public ones, or those whose noisy weight reaches the threshold."""
    leaf = exact.leaf
    if not leaf.keys:
        return pa.table({"_": [0]})
    if keys is not None:
        return keys
    line = price.line(index, "keys", "keys")
    assert line is not None
    kind = "pairs" if leaf.units else "sums"
    part, place = _part(exact, kind, "keys")
    found = exact.result.filter(pa.array(exact.result.column("part").to_numpy() == part))
    weights = found.column(f"n{place}").fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    noisy = (
        Laplace(line.epsilon, sensitivity=KEY_MASS * leaf.distance).release(weights)
        if len(weights)
        else weights
    )
    least = threshold_for(line.epsilon, line.delta, leaf.distance, 1 if not leaf.units else KEY_MASS)
    passed = (weights > 0) & (noisy >= least)
    return found.select([key.name for key in leaf.keys]).filter(pa.array(passed))


def _matched(exact: Exact, shown: pa.Table, part: int, columns: str) -> pa.Table:
    """The rows of a part beside the shown groups they belong to, by the group's place."""
    keys = [key.name for key in exact.leaf.keys]
    on = " AND ".join(f"shown.{key} IS NOT DISTINCT FROM result.{key}" for key in keys) or "TRUE"
    places = shown.append_column("place", pa.array(np.arange(shown.num_rows)))
    with duckdb.connect() as local:
        local.register("shown", places)
        local.register("result", exact.result)
        return local.sql(
            f"SELECT place, {columns} FROM result JOIN shown ON {on} WHERE result.part = {part}"
        ).to_arrow_table()


def _aligned(exact: Exact, shown: pa.Table, name: str) -> NDArray[np.int64]:
    """A measure's exact steps for each shown group; 0 where it has no rows."""
    kind = "pairs" if exact.leaf.measures[name].level == "pair" and exact.leaf.units else "sums"
    part, place = _part(exact, kind, name)
    found = _matched(exact, shown, part, f"n{place} AS n")
    values = np.zeros(shown.num_rows, dtype=np.int64)
    values[found.column("place").to_numpy()] = (
        found.column("n").fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return values


def _histograms(exact: Exact, shown: pa.Table, name: str, cells: int) -> NDArray[np.int64]:
    """For each shown group, the exact weight of each cell."""
    part, _ = _part(exact, "histogram", name)
    found = _matched(exact, shown, part, "cell, n0 AS n")
    grid = np.zeros((shown.num_rows, cells), dtype=np.int64)
    grid[found.column("place").to_numpy(), found.column("cell").to_numpy()] = (
        found.column("n").to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return grid


def _totals(index: int, exact: Exact, price: Price, name: str) -> tuple[int, int, Noisy, Noisy]:
    """Two noisy grand totals of a measure's weights: under its cap, and under the generous one.

    A unit adds at most c + c' to the two together; each gets noise for its own half of the line's epsilon.
    """
    leaf, measure = exact.leaf, exact.leaf.measures[name]
    line = price.line(index, "totals", name)
    assert line is not None
    part, _ = _part(exact, "totals", name)
    row = int(np.flatnonzero(exact.result.column("part").to_numpy() == part)[0])
    totals, noises = [], []
    for place, cap in enumerate((weight_cap(measure), weight_cap(measure, exact.generous[name]))):
        mechanism = Laplace(line.epsilon / 2, sensitivity=cap * leaf.distance)
        totals.append(int(mechanism.release(_whole(exact.result.column(f"n{place}")[row].as_py()))))
        noises.append(Noisy("laplace", Fraction(mechanism.scale_in_steps)))
    return totals[0], totals[1], noises[0], noises[1]
