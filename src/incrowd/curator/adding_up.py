"""Levels that add up: exact totals of groups before noise, and consistent numbers after it.

`summed` is part of executing: it adds up the exact groups of the finest level. One unit moves the totals by
no more than the groups themselves (`query.levels`). `consistent` is post-processing of what was released: it
sees noisy numbers and the scale of their noise, nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.curator import marginals
from incrowd.curator.level_shares import nested
from incrowd.curator.marginals import Floats, Kept
from incrowd.curator.prices import Price
from incrowd.curator.released import Released, deviation_column
from incrowd.curator.releasing import Exact, noise, shown_by_keys
from incrowd.query import Leaf
from incrowd.query.levels import families

Places = NDArray[np.int64]
_MOST = 2**61
_HALF = 31
"""Sums are added up in two halves of so many bits, and then clamped: they never overflow."""


@dataclass(frozen=True)
class _Level:
    """The groups of a level: the group of each finest cell, and one cell of each group."""

    kept: Kept
    member: Places
    first: Places


def noisy(exact: Sequence[Exact], price: Price) -> tuple[Released, ...]:
    """Every leaf's numbers with noise; those of levels are consistent.

    Private groups are chosen once, among the finest; the levels add up those that are shown.
    """
    released = {
        index: noise(index, numbers, price)
        for index, numbers in enumerate(exact)
        if numbers.leaf.totals is None
    }
    for finest, members in families([numbers.leaf for numbers in exact]).items():
        cells = exact[finest]
        if cells.weights is not None:
            cells = replace(_chosen(cells, shown_by_keys(finest, cells, price)), weights=None)
        numbers = [cells, *(summed(cells, exact[index].leaf) for index in members[1:])]
        drawn = [noise(index, level, price) for index, level in zip(members, numbers, strict=True)]
        leaves = [level.leaf for level in numbers]
        released |= dict(zip(members, consistent(leaves, drawn), strict=True))
    return tuple(released[index] for index in range(len(exact)))


def of_declared_groups(exact: Exact) -> Exact:
    """The numbers without groups whose key is NULL though its owner declares that none is.

    No answer shows them, so totals leave them out as well.
    """
    kept = np.ones(exact.groups.num_rows, dtype=bool)
    for key in exact.leaf.keys:
        if not key.nullable:
            kept &= np.asarray(exact.groups.column(key.name).is_valid())
    return exact if kept.all() else _chosen(exact, np.flatnonzero(kept))


def _chosen(exact: Exact, places: Places) -> Exact:
    """The numbers of some groups."""
    return replace(
        exact,
        groups=exact.groups.take(pa.array(places)),
        sums={name: values[places] for name, values in exact.sums.items()},
        weights=None if exact.weights is None else exact.weights[places],
    )


def summed(finest: Exact, leaf: Leaf) -> Exact:
    """The exact numbers of a level whose caps are known: the finest groups, added up and clamped to 2^61.

    A clamp moves two numbers no further apart, so a unit's influence stays bounded.
    """
    assert leaf.totals is not None
    level = _level(_codes(finest.groups, len(finest.leaf.keys)), leaf.totals.kept)
    groups = pa.table({"_": [0]})
    if leaf.totals.kept:
        picked = finest.groups.take(pa.array(level.first))
        places = enumerate(leaf.totals.kept)
        groups = pa.table({f"k{number}": picked.column(f"k{place}") for number, place in places})
    sums = {name: _added(values, level) for name, values in finest.sums.items()}
    return Exact(leaf, groups, sums, None, {}, {}, finest.chosen)


def _added(values: Places, level: _Level) -> Places:
    high = np.zeros(len(level.first), dtype=np.int64)
    low = np.zeros(len(level.first), dtype=np.int64)
    np.add.at(high, level.member, values >> _HALF)
    np.add.at(low, level.member, values & ((1 << _HALF) - 1))
    totals = [min(max((int(a) << _HALF) + int(b), -_MOST), _MOST) for a, b in zip(high, low, strict=True)]
    return np.array(totals, dtype=np.int64)


def consistent(leaves: Sequence[Leaf], released: Sequence[Released]) -> list[Released]:
    """The levels of a family with numbers that add up, the finest first, and how far each may be off."""
    width = len(leaves[0].keys)
    kept = [leaf.totals.kept for leaf in leaves if leaf.totals is not None]
    codes = _codes(released[0].table, width)
    levels = [_level(codes, places) for places in kept]
    order = [_order(level, codes, release.table) for level, release in zip(levels, released, strict=True)]
    tables = [release.table for release in released]
    noises = [dict(release.noise) for release in released]
    for name in leaves[0].measures:
        at = [place for place, release in enumerate(released) if name in release.table.column_names]
        if not at:
            continue
        numbers = {}
        for place in at:
            column = released[place].table.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
            variance = (released[place].noise[name].deviation / released[place].noise[name].step) ** 2
            numbers[place] = (column[order[place]], variance)
        unit = _unit(leaves[0], name)
        cells, spreads = _solved(codes, levels, numbers, unit)
        for place, level in enumerate(levels):
            values = np.bincount(level.member, cells, minlength=len(level.first))
            back = np.empty(len(level.first), dtype=np.int64)
            back[order[place]] = np.arange(len(level.first))
            columns = {name: values[back], deviation_column(name): np.sqrt(spreads[place])[back]}
            for label, column in columns.items():
                tables[place] = _with_column(tables[place], label, column)
            noises[place].setdefault(name, released[at[0]].noise[name])
    return [
        replace(release, table=table, noise=own, factors=released[0].factors, stated=released[0].stated)
        for release, table, own in zip(released, tables, noises, strict=True)
    ]


def _with_column(table: pa.Table, name: str, column: Floats) -> pa.Table:
    others = table.select([other for other in table.column_names if other != name])
    return others.append_column(name, pa.array(column, pa.float64()))


def _solved(
    codes: Places,
    levels: Sequence[_Level],
    numbers: dict[int, tuple[Floats, float]],
    unit: float,
) -> tuple[Floats, list[Floats]]:
    """The cells in multiples of a unit, and the variance of every number of each level."""
    sizes = tuple(int(codes[:, key].max()) + 1 if len(codes) else 0 for key in range(codes.shape[1]))
    if len(codes) and math.prod(sizes) == len(codes):
        return _on_grid(codes, sizes, levels, numbers, unit)
    nest = sorted(range(len(levels)), key=lambda place: -len(levels[place].kept))
    in_tree = nest if nested([level.kept for level in levels]) else [0]
    nodes = [(levels[place].member, len(levels[place].first)) for place in in_tree]
    values, spreads = marginals.tree(nodes, [numbers.get(place) for place in in_tree])
    # Each level's groups lie together in the order of its keys, those of the coarsest level first.
    keys = list(dict.fromkeys(key for place in reversed(nest) for key in levels[place].kept))
    row = np.lexsort([codes[:, key] for key in reversed(keys)]) if len(codes) else np.arange(0)
    cells = np.empty(len(codes))
    cells[row] = marginals.rounded(values[0][row], unit)
    known = dict(zip(in_tree, spreads, strict=True))
    far = unit**2 / 6
    found = []
    for place, level in enumerate(levels):
        if place in known:
            found.append(known[place] + far)
            continue
        sizes_of = np.bincount(level.member, minlength=len(level.first))
        alone = np.bincount(level.member, spreads[0], minlength=len(level.first))
        found.append(np.asarray(alone + far * sizes_of, dtype=np.float64))
    return cells, found


def _on_grid(
    codes: Places,
    sizes: tuple[int, ...],
    levels: Sequence[_Level],
    numbers: dict[int, tuple[Floats, float]],
    unit: float,
) -> tuple[Floats, list[Floats]]:
    measured = {}
    for place, (values, variance) in numbers.items():
        level = levels[place]
        shaped = np.zeros([sizes[key] for key in level.kept])
        # A level's groups are in the order of its keys, and a grid has them all.
        shaped.reshape(-1)[:] = values
        measured[level.kept] = (shaped, variance)
    cells = marginals.rounded(marginals.grid(sizes, measured), unit)
    noise = {level: variance for level, (_, variance) in measured.items()}
    wanted = [level.kept for level in levels]
    after = marginals.variances([float(size) for size in sizes], noise, wanted)
    spreads = [
        np.full(len(level.first), variance + unit**2 * 2.0 ** len(level.kept) / 12)
        for level, variance in zip(levels, after, strict=True)
    ]
    return np.asarray(cells[tuple(codes[:, key] for key in range(len(sizes)))]), spreads


def _unit(leaf: Leaf, name: str) -> float:
    """What numbers are rounded to, in steps: whole numbers where they are shown as such."""
    whole = any(aggregate.whole and name in aggregate.measures for aggregate in leaf.aggregates)
    return max(1.0, 1 / leaf.measures[name].step) if whole else 1.0


def _codes(table: pa.Table, width: int) -> Places:
    """The groups' keys as numbers, each key's in the order of its values; NULL and NaN are values too."""
    codes = np.zeros((table.num_rows, width), dtype=np.int64)
    for key in range(width):
        column = table.column(f"k{key}").combine_chunks()
        coded = pc.dictionary_encode(column, null_encoding="encode")
        places = coded.indices.to_numpy(zero_copy_only=False)
        ranks = np.empty(len(coded.dictionary), dtype=np.int64)
        ranks[pc.sort_indices(coded.dictionary).to_numpy(zero_copy_only=False)] = np.arange(len(ranks))
        codes[:, key] = ranks[places]
    return codes


def _level(codes: Places, kept: Kept) -> _Level:
    """The groups of a level, in the order of its keys. Without keys there is one, even of no cell."""
    if not kept:
        return _Level(kept, np.zeros(len(codes), dtype=np.int64), np.zeros(1, dtype=np.int64))
    if not len(codes):
        nothing = np.zeros(0, dtype=np.int64)
        return _Level(kept, nothing, nothing)
    _, first, member = np.unique(codes[:, kept], axis=0, return_index=True, return_inverse=True)
    return _Level(kept, member.reshape(-1).astype(np.int64), first.astype(np.int64))


def _order(level: _Level, codes: Places, table: pa.Table) -> Places:
    """Where the level's groups stand in the table that was released of it: both are sorted by its keys."""
    own = _codes(table, len(level.kept))
    assert len(own) == len(level.first) or not level.kept
    if not level.kept:
        return np.zeros(1, dtype=np.int64)
    return np.lexsort([own[:, key] for key in reversed(range(own.shape[1]))]).astype(np.int64)
