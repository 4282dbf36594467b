"""How wide numbers would be whose half-widths depend on the data, as far as that can be said without a row.

An average or a spread is a ratio of sums whose noise is known beforehand if the rows per unit are; its
half-width falls like one over the rows of the group. It is stated for a group of ROWS rows, as the widest
over a few: half of the values at each bound; values that are spread evenly between the bounds; and, as the
error grows with the distance of the mean from the middle, all values at one bound (for an average, which can
be no wider) or spread evenly over the outer quarter (for spreads; that of equal values is all noise). These
groups are made up, and their intervals computed as those of an answer are.

A quantile's interval is as wide as the values between two ranks, so its half-width is stated in ranks.

Where the owner bought a census of rows, the rows of a group on average are stated beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from incrowd.curator import rank_tree, rank_window
from incrowd.curator.caveats import Expected
from incrowd.curator.lineage import origins
from incrowd.curator.prices import Line, Price
from incrowd.curator.quantiles import CHAIN, tree_shape
from incrowd.curator.released import Noisy, Released
from incrowd.mechanisms import Laplace
from incrowd.query import Aggregate, Leaf, Measure, Plan

ROWS = 1_000
"""The rows of the group that half-widths are stated for, where nothing is known about groups."""
_STATED = frozenset({"avg", "var", "covar", "corr", "quantile"})
_MIDDLE = 0.72
"""A unit of a census cell has about this part of the cell's upper edge."""


def expected(plan: Plan, price: Price, groups: Sequence[int | None]) -> dict[str, Expected]:
    """By column of the answer whose half-width depends on the data: what is expected, where it can be said.

    groups: of each leaf, None where it is not known.
    """
    stated = {}
    for name, origin in origins(plan).items():
        if origin is None or origin[1].kind not in _STATED:
            continue
        index, aggregate = origin
        leaf = plan.leaves[index].with_bought_caps()
        measures = [leaf.measures[measure] for measure in aggregate.measures]
        lines = [
            price.line(index, "quantile" if measure.buckets else "sum", measure.line) for measure in measures
        ]
        known = [line for line in lines if line is not None]
        if len(known) < len(measures) or any(measure.cap is None for measure in measures):
            continue
        if aggregate.kind == "quantile":
            stated[name] = _in_ranks(leaf, aggregate, known[0], groups[index], price.confidence)
        else:
            stated[name] = _of_ratio(leaf, aggregate, known, price.confidence)
    return stated


def _of_ratio(leaf: Leaf, aggregate: Aggregate, lines: Sequence[Line], confidence: float) -> Expected:
    """The half-width of an average or a spread in a group of ROWS rows."""
    measures = {name: leaf.measures[name] for name in aggregate.measures}
    noise = {
        name: Noisy.of(line.mechanism(measure, leaf.distance), measure.step)
        for (name, measure), line in zip(measures.items(), lines, strict=True)
    }
    groups = [ROWS * np.array(means) for means in _means(aggregate, list(measures.values()))]
    sums = {
        name: pa.array([round(float(group[place]) / noise[name].step) for group in groups], pa.int64())
        for place, name in enumerate(measures)
    }
    alone = replace(leaf, measures=measures, aggregates=(aggregate,))
    span = Released(pa.table(sums), noise).columns(alone, confidence)[aggregate.name]
    return Expected(float(np.maximum(span.value - span.low, span.high - span.value).max()), ROWS)


def _means(aggregate: Aggregate, measures: Sequence[Measure]) -> list[list[float]]:
    """For each of the groups that are made up, the mean of each measure over its rows."""
    columns = 1 if aggregate.kind in ("avg", "var") else 2
    bounds = [(measure.low - measure.centre, measure.high - measure.centre) for measure in measures[:columns]]
    bound = [max(ends, key=abs) for ends in bounds]
    outer = [(end if aggregate.kind == "avg" else end / 2, end) for end in bound]
    # Pairs of values move together at the bounds; those that are spread evenly do not.
    shapes = [(outer, False), (bounds, True), (bounds, False)]
    if aggregate.kind == "corr":
        shapes = shapes[2:]
    groups = []
    for ends, together in shapes:
        means = [(low + high) / 2 for low, high in ends]
        squares = [
            (low**2 + high**2) / 2 if together else (low**2 + low * high + high**2) / 3 for low, high in ends
        ]
        parts = means.copy()
        if aggregate.kind in ("var", "corr"):
            parts += squares
        if columns == 2:
            (low, high), (other_low, other_high) = ends
            cross = (low * other_low + high * other_high) / 2 if together else means[0] * means[1]
            parts.append(cross)
        seconds = measures[columns:-1]
        centred = [part - measure.centre for part, measure in zip(parts[columns:], seconds, strict=True)]
        groups.append([*parts[:columns], *centred, 1.0])
    return groups


def _in_ranks(
    leaf: Leaf, aggregate: Aggregate, line: Line, groups: int | None, confidence: float
) -> Expected:
    """The half-width of a quantile, in rows between it and the truth."""
    measure, (rank,) = leaf.measures[aggregate.measures[0]], aggregate.quantiles
    sensitivity = -(-measure.sensitivity_steps * leaf.distance // CHAIN) * CHAIN
    if line.shares.points:
        noise = Laplace(line.epsilon * line.shares.window, sensitivity=sensitivity)
        asked = len(set(leaf.ranks(measure.name)))
        steps = rank_window.expected_reach(rank, asked, measure.buckets, noise, confidence)
    else:
        noise = Laplace(line.epsilon * line.shares.tree / line.levels, sensitivity=sensitivity)
        shape = tree_shape(measure.buckets)
        variance = 2.0 * float(noise.scale_in_steps) ** 2
        steps = rank_tree.expected_reach(shape, variance, rank, confidence)
    return Expected(steps * 2.0**measure.exponent, _rows(measure, groups), ranks=True)


def _rows(measure: Measure, groups: int | None) -> float | None:
    """How many rows a group has on average, from a census that the owner bought; None if there is none."""
    if measure.census is None or groups is None:
        return None
    edges = measure.census.up_to * 2.0 ** np.arange(len(measure.census.units))
    heavy = np.maximum(_MIDDLE * edges, 1.0)
    rows = float(np.maximum(measure.census.units, 0) @ heavy) / max(groups, 1)
    return rows if rows >= 1 else None
