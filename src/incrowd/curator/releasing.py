"""Execute and noise: exact numbers of a leaf come in, noisy ones go out. Nothing else sees both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.backends import Progress, Reader, Statement, release_statement
from incrowd.backends.statement import KEY_MASS, weight_cap
from incrowd.curator import quantiles
from incrowd.curator.census import ChosenCaps
from incrowd.curator.contribution import totals_shares
from incrowd.curator.prices import Price
from incrowd.curator.rank_tree import Tree
from incrowd.curator.released import Noisy, Released, rank_column
from incrowd.curator.scratch import scratch
from incrowd.curator.showing import by_count, by_weights, key_selection
from incrowd.mechanisms import Laplace
from incrowd.query import Leaf
from incrowd.query.measure import STEPS

Steps = NDArray[np.int64]


@dataclass(frozen=True)
class Exact:
    """What an engine returned for a leaf, by group: exact, private, never shown.

    groups: the public groups, or every group there is where keys are private.
    sums: a measure's steps per group. weights: the groups' key weights, where these decide what is shown.
    cells: for a quantile's histogram, (group, cell, steps) of what is not empty.
    totals: a measure's weight under its cap and under the generous one.
    """

    leaf: Leaf
    groups: pa.Table
    sums: Mapping[str, Steps]
    weights: Steps | None
    cells: Mapping[str, tuple[Steps, Steps, Steps]]
    totals: Mapping[str, tuple[int, int]]
    chosen: ChosenCaps


def execute(
    leaf: Leaf, chosen: ChosenCaps, reader: Reader, keys: pa.Table | None, progress: Progress | None = None
) -> Exact:
    """Run a leaf's statement with all of its caps known."""
    bounded = chosen.bounded(leaf)
    statement = release_statement(bounded, chosen.generous)
    return _by_group(bounded, statement, reader.run(statement.tree, progress), keys, chosen)


def _by_group(
    leaf: Leaf,
    statement: Statement,
    result: pa.Table,
    keys: pa.Table | None,
    chosen: ChosenCaps,
) -> Exact:
    """The engine's rows, sorted to their groups. Groups outside a public domain are dropped."""
    parts = result.column("part").to_numpy()
    sums: dict[str, Steps] = {}
    cells: dict[str, tuple[Steps, Steps, Steps]] = {}
    totals: dict[str, tuple[int, int]] = {}
    if not leaf.keys:
        groups = pa.table({"_": [0]})
    elif keys is not None:
        groups = keys
    else:
        decides = leaf.shown_by or "keys"
        held = next(i for i, part in enumerate(statement.parts) if decides in part.columns)
        groups = result.filter(pa.array(parts == held)).select([key.name for key in leaf.keys])
    with scratch() as local:
        local.register("groups", groups.append_column("place", pa.array(np.arange(groups.num_rows))))
        local.register("result", result)
        on = " AND ".join(f"groups.{key.name} IS NOT DISTINCT FROM result.{key.name}" for key in leaf.keys)
        for number, part in enumerate(statement.parts):
            if part.kind == "totals":
                row = int(np.flatnonzero(parts == number)[0])
                first, second = (int(result.column(name)[row].as_py() or 0) for name in ("n0", "n1"))
                totals[part.columns[0]] = (first, second)
                continue
            placed = local.sql(
                f"SELECT place, result.* FROM result JOIN groups ON {on or 'TRUE'} WHERE part = {number}"
            ).to_arrow_table()
            place = _steps(placed, "place")
            if part.kind == "histogram":
                cells[part.columns[0]] = (place, _steps(placed, "cell"), _steps(placed, "n0"))
                continue
            for column, name in enumerate(part.columns):
                values = np.zeros(groups.num_rows, dtype=np.int64)
                values[place] = _steps(placed, f"n{column}")
                sums[name] = values
    return Exact(leaf, groups, sums, sums.pop("keys", None), cells, totals, chosen)


def _steps(table: pa.Table, name: str) -> Steps:
    values: Steps = table.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def noise(index: int, exact: Exact, price: Price) -> Released:
    """Add the noise that the price states to a leaf's exact numbers."""
    leaf = exact.leaf
    noisy: dict[str, Noisy] = {}
    counts: Steps | None = None
    if leaf.shown_by is None:
        shown = shown_by_keys(index, exact, price)
    else:
        shown, counts, noisy[leaf.shown_by] = _shown_by_count(index, exact, price, leaf.shown_by)
    picked = exact.groups.take(pa.array(shown))
    columns: dict[str, Any] = {key.name: picked.column(key.name) for key in leaf.keys}
    for name, measure in leaf.measures.items():
        line = price.line(index, "sum", measure.line)
        if line is None:
            continue
        if name == leaf.shown_by:
            columns[name] = pa.array(counts)
            continue
        mechanism = line.mechanism(measure, leaf.distance)
        values = exact.sums[name][shown]
        columns[name] = pa.array(mechanism.release(values) if len(values) else values)
        noisy[name] = Noisy.of(mechanism, measure.step)
    trees: dict[str, Tree] = {}
    for name in exact.cells:
        cells, tree = _quantiles(index, exact, price, name, shown)
        columns |= cells
        if tree is not None:
            trees[name] = tree
    if not columns:
        columns["nothing"] = pa.array([0] * len(shown), pa.int64())
    factors = {name: _totals(index, exact, price, name) for name in exact.totals}
    chosen = exact.chosen
    released = Released(
        pa.table(columns),
        noisy,
        _caps(leaf) if chosen.caps else {},
        factors,
        chosen.stated,
        price.confidence,
        chosen.centres,
        trees,
    )
    return released.sorted_by_keys(len(leaf.keys))


def _caps(leaf: Leaf) -> dict[str, float]:
    return {name: measure.cap for name, measure in leaf.measures.items() if measure.cap is not None}


def _shown_by_count(index: int, exact: Exact, price: Price, name: str) -> tuple[Steps, Steps, Noisy]:
    """The places of the groups whose noisy count of units is large enough, those counts, and their noise."""
    leaf, measure = exact.leaf, exact.leaf.measures[name]
    line = price.line(index, "sum", name)
    assert line is not None
    decision = by_count(leaf, line)
    candidates = np.flatnonzero(exact.sums[name] > 0)
    counts = exact.sums[name][candidates]
    noisy = decision.mechanism.release(counts) if len(counts) else counts
    passed = noisy >= decision.least
    noise = replace(Noisy.of(decision.mechanism, measure.step), least=decision.least, bound=decision.bound)
    return candidates[passed], noisy[passed], noise


def shown_by_keys(index: int, exact: Exact, price: Price) -> Steps:
    """The places of the answer's groups: all public ones, or those whose noisy weight reaches T."""
    leaf = exact.leaf
    if exact.weights is None:
        return np.arange(exact.groups.num_rows)
    line = price.line(index, "keys", "keys")
    assert line is not None
    if line.noise == "selection":
        chosen = key_selection(line.epsilon, line.delta, leaf.distance).release(exact.weights // KEY_MASS)
        return np.flatnonzero(chosen)
    decision = by_weights(leaf, line)
    noisy = decision.mechanism.release(exact.weights)
    return np.flatnonzero((exact.weights > 0) & (noisy >= decision.least))


def _quantiles(
    index: int, exact: Exact, price: Price, name: str, shown: Steps
) -> tuple[dict[str, pa.Array], Tree | None]:
    """For each shown group, the cells of a histogram's quantiles and of their ends; the tree that is kept."""
    leaf, measure = exact.leaf, exact.leaf.measures[name]
    line = price.line(index, "quantile", name)
    assert line is not None
    ranks = leaf.ranks(name)
    reach = measure.sensitivity_steps * leaf.distance
    histograms = quantiles.Histograms(
        *exact.cells[name], shown, measure.buckets, reach, 1 << -measure.exponent
    )
    drawn, tree = quantiles.release(histograms, ranks, line.epsilon, price.confidence, leaf.keeps_trees)
    columns = {}
    for place, rank in enumerate(ranks):
        for end, cells in (("", drawn.points), ("_low", drawn.lows), ("_high", drawn.highs)):
            columns[rank_column(name, rank, end)] = pa.array(cells[place], pa.int64())
    return columns, tree


def _totals(index: int, exact: Exact, price: Price, name: str) -> tuple[int, int, Noisy, Noisy]:
    """Two noisy grand totals of a measure's weights: under its cap, and under the generous one.

    The line's epsilon is shared by what the caps are, which the census has made public. A total is floored to
    a coarser grid where its cap would need noise too wide to draw; one unit moves a floored number by at most
    its floored cap plus one.
    """
    leaf, measure = exact.leaf, exact.leaf.measures[name]
    line = price.line(index, "totals", name)
    assert line is not None
    generous = exact.chosen.generous[name]
    assert measure.cap is not None
    caps = (weight_cap(measure), weight_cap(measure, generous))
    small = Fraction(totals_shares(measure.cap, generous)[0])
    totals, noises = [], []
    for total, cap, share in zip(exact.totals[name], caps, (small, 1 - small), strict=True):
        shift = max(0, cap.bit_length() - STEPS)
        mechanism = Laplace(line.epsilon * share, sensitivity=((cap >> shift) + bool(shift)) * leaf.distance)
        totals.append(int(mechanism.release(total >> shift)))
        noises.append(Noisy.of(mechanism, math.ldexp(measure.weight_step, shift)))
    return totals[0], totals[1], noises[0], noises[1]
