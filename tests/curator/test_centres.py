"""Centres and spreads: cells that cover every range, three draws of one weight each, and what they find."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.curator import centres, quantiles
from incrowd.curator.centres import (
    _HEAVIER,
    DRAWS,
    PER_RADIUS,
    SPREAD,
    _coarse,
    _lightened,
    _radii,
    _within,
    centre_of,
)
from incrowd.curator.quantiles import added_up
from incrowd.query import Measure
from incrowd.query.graded_cells import bands_of, cell_at, count_of

ONE = 1 << 30
"""The weight of a unit."""


def histogram(low: float, high: float, cells: int = 65_536) -> Measure:
    return Measure("x0", "row", "rows", None, None, low, high, buckets=cells).capped(1.0)


def edges_of(values: np.ndarray, measure: Measure) -> Any:
    width = (measure.high - measure.low) / measure.buckets
    cells = np.clip(((values - measure.low) / width).astype(int), 0, measure.buckets - 1)
    return added_up(np.bincount(cells, minlength=measure.buckets).astype(np.int64) * ONE)


@pytest.mark.parametrize(
    ("low", "high", "middle", "spread"),
    [(0, 1e3, 30, 5), (0, 1e6, 30_000, 8_000), (-1e3, 1e3, -40, 10), (500, 900, 510, 4), (-9, -1, -2, 0.5)],
)
def test_a_large_budget_finds_where_values_lie(low: float, high: float, middle: float, spread: float) -> None:
    """A normal distribution's deviations, cut at 1.5 of its own, are half as large on average as that."""
    values = np.random.default_rng(3).normal(middle, spread, 20_000)
    measure = histogram(low, high)
    bought = centre_of(edges_of(values, measure), measure, Fraction(10), 1)
    assert abs(bought.middle - middle) < 0.7 * spread
    assert 1.5 * spread < bought.spread < 4.5 * spread


@pytest.mark.parametrize(("middle", "spread"), [(30, 5), (30_000, 8_000), (4e8, 1e8), (-40, 10)])
def test_cells_that_widen_find_where_values_lie_over_any_range(middle: float, spread: float) -> None:
    values = np.random.default_rng(3).normal(middle, spread, 20_000)
    bands = bands_of(-(2.0**31), 2.0**31, 2.0**-9, 65_536)
    measure = replace(histogram(bands[0].start, bands[-1].end, count_of(bands)), bands=bands)
    starts = np.array([cell_at(bands, cell)[0] for cell in range(measure.buckets)])
    cells = np.searchsorted(starts, values, side="right") - 1
    edges = added_up(np.bincount(cells, minlength=measure.buckets).astype(np.int64) * ONE)
    bought = centre_of(edges, measure, Fraction(10), 1)
    assert abs(bought.middle - middle) < 0.7 * spread
    assert 1.5 * spread < bought.spread < 4.5 * spread


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_edges_are_in_order_where_cells_widen(weights: list[int], data: st.DataObject) -> None:
    """The argument of the third draw, for cells of any widths: a unit moves all edges one way."""
    widths = data.draw(st.lists(st.integers(1, 50), min_size=len(weights), max_size=len(weights)))
    starts = np.concatenate(([0], np.cumsum(widths)))
    twice, radii = data.draw(st.integers(0, 2 * int(starts[-1]))), _radii(int(starts[-1]))
    times, row = math.lcm(*radii), data.draw(st.integers(0, len(weights) - 1))
    more = [weight + (place == row) for place, weight in enumerate(weights)]
    before, after = (
        _within(added_up(np.array(cells, dtype=np.int64)), starts, twice, radii, times)
        for cells in (weights, more)
    )
    assert (np.diff(before) >= 0).all()
    assert ((after - before) >= 0).all() and ((after - before) <= times).all()


def test_values_that_are_all_the_same_have_the_least_spread() -> None:
    measure = histogram(0, 65_536)
    bought = centre_of(edges_of(np.full(1_000, 7.5), measure), measure, Fraction(1000), 1)
    assert bought == (7.5, PER_RADIUS / 2)


def test_no_row_at_all_is_drawn_like_any_other() -> None:
    measure = histogram(-5, 20, 25)
    for _ in range(20):
        bought = centre_of(added_up(np.zeros(25, dtype=np.int64)), measure, Fraction(1), 2)
        assert -5 <= bought.middle <= 20 and 0 < bought.spread <= 2 * PER_RADIUS * 32


@given(
    st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.sampled_from([1, 2, 3, 25, 4_096, 65_536]), st.floats(0, 1)
)
def test_coarse_cells_cover_the_range_and_are_narrow_near_zero(
    low: float, span: float, cells: int, part: float
) -> None:
    measure = histogram(low, low + span, cells)
    starts = _coarse(measure)
    assert starts[0] == 0 and starts[-1] == cells and (np.diff(starts) > 0).all()
    assert len(starts) <= 4 * math.log2(cells) + 9
    zero = min(max(-low / (span / cells), 0), cells)
    at = part * cells
    near = min(int(np.searchsorted(starts, at, "right")) - 1, len(starts) - 2)
    assert starts[near + 1] - starts[near] <= 1.5 + abs(at - zero)


def test_rare_values_count_by_how_far_they_are() -> None:
    """Nine of ten values are 0: the spread is that of a sum, not that of the most common value."""
    measure = histogram(0, 65_536)
    values = np.append(np.zeros(9_000), np.full(1_000, 500.0))
    bought = centre_of(edges_of(values, measure), measure, Fraction(100), 1)
    assert bought.middle < 2 and 1_000 < bought.spread < 2_000


def test_a_centre_far_from_zero_needs_more_evidence() -> None:
    """Where nobody is, half of the centres lie within the nearest hundredth of the range."""
    measure = histogram(0, 65_536)
    edges = added_up(np.zeros(65_536, dtype=np.int64))
    middles = [centre_of(edges, measure, Fraction(1), 1).middle for _ in range(200)]
    # Without evidence a cell's chance falls by e^-0.5 a half doubling: one of e^6.7 lies beyond 655. At least
    # 190 of 200 fail to with a chance below 1e-9.
    assert sum(middle < 655 for middle in middles) >= 190


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 80))
def test_edges_count_rows_by_how_near_they_are(weights: list[int], twice: int) -> None:
    cells = len(weights)
    twice, radii = min(twice, 2 * cells), _radii(cells)
    times = math.lcm(*radii)
    edges = _within(added_up(np.array(weights, dtype=np.int64)), np.arange(cells + 1), twice, radii, times)
    assert edges[0] == 0 and (np.diff(edges) >= 0).all()
    for radius, held in zip(radii, edges[1:], strict=True):
        near = (max(0, radius - abs(2 * cell + 1 - twice)) for cell in range(cells))
        assert held == sum(
            weight * part * times // radius for weight, part in zip(weights, near, strict=True)
        )
    assert edges[-1] * 2 >= times * sum(weights), "some radius holds half, wherever the weight lies"


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.data())
def test_a_unit_moves_each_edge_by_at_most_its_weight_and_all_the_same_way(
    weights: list[int], data: st.DataObject
) -> None:
    """The argument of the third draw."""
    rows = data.draw(st.lists(st.integers(0, len(weights) - 1), min_size=1, max_size=5))
    more = np.array(weights, dtype=np.int64)
    for row in rows:
        more[row] += 1
    twice, radii = data.draw(st.integers(0, 2 * len(weights))), _radii(len(weights))
    times = math.lcm(*radii)
    before, after = (
        _within(added_up(np.array(cells, dtype=np.int64)), np.arange(len(weights) + 1), twice, radii, times)
        for cells in (weights, more)
    )
    moved = after - before
    assert (moved >= 0).all() and (moved <= len(rows) * times).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_rows_in_the_drawn_cell_weigh_less(weights: list[int], data: st.DataObject) -> None:
    left = data.draw(st.integers(0, len(weights) - 1))
    right = data.draw(st.integers(left + 1, len(weights)))
    lighter = np.diff(_lightened(added_up(np.array(weights, dtype=np.int64)), left, right)).tolist()
    assert lighter == [
        weight * (1 if left <= cell < right else _HEAVIER) for cell, weight in enumerate(weights)
    ]


@pytest.mark.parametrize("cells", [1, 2, 3, 25, 4_096, 65_536])
def test_radii_divide_one_number_and_reach_as_far_as_any_value(cells: int) -> None:
    radii = _radii(cells)
    assert radii == sorted(set(radii)) and math.lcm(*radii) <= 3 * radii[-1]
    assert radii[0] == 1 and radii[-1] >= 4 * cells and len(radii) <= 2 * math.log2(cells) + 8


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=20),
    st.data(),
    st.sampled_from([Fraction(1, 10), Fraction(2)]),
)
@settings(max_examples=60)
def test_no_unit_moves_a_draw_by_more_than_its_share_of_epsilon(
    units: list[int], data: st.DataObject, epsilon: Fraction
) -> None:
    """Log-chances of each draw, given the draws before it, differ by a range of at most its epsilon."""
    cells = len(units)
    measure = histogram(-3, cells - 3, cells)
    rows = data.draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=4))
    before = np.array(units, dtype=np.int64) * ONE
    after = before + np.bincount(rows, minlength=cells) * (ONE // len(rows))
    chosen = [data.draw(st.integers(0, 200)) for _ in range(3)]
    spent = [epsilon * share for share in DRAWS]
    runs = []
    for weights in (before, after):
        logs: list[list[Fraction]] = []

        def pick(utilities: Any, *, rate: Fraction, logs: list[list[Fraction]] = logs) -> int:
            logs.append([rate * int(utility) for utility in utilities])
            return chosen[len(logs) - 1] % len(utilities)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quantiles, "categorical", pick)
            centre_of(added_up(weights), measure, epsilon, 1)
        runs.append(logs)
    for share, one, other in zip(spent, *runs, strict=True):
        moved = [b - a for a, b in zip(one, other, strict=True)]
        assert max(moved) - min(moved) <= share


def test_the_three_draws_share_epsilon_and_know_the_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data may decide how a draw is made: only its edges, its target and earlier draws are from rows."""
    seen: list[tuple[Any, ...]] = []

    def draw(
        edges: Any, target: Fraction, share: Fraction, epsilon: Fraction, reach: int, nats: Any = None
    ) -> int:
        seen.append((target, share, epsilon, reach, nats))
        return len(edges) // 2

    monkeypatch.setattr(centres, "draw_cell", draw)
    measure = histogram(0, 100, 1_000)
    handicaps = []
    for values in (np.array([1.0, 2.0, 99.0]), np.array([50.0] * 8)):
        seen.clear()
        centre_of(edges_of(values, measure), measure, Fraction(3), 2)
        total = len(values) * ONE
        # The cells that are drawn here hold nobody, so in the third draw all rows weigh the same.
        assert [target for target, *_ in seen] == [
            total * Fraction(1, 2),
            total * Fraction(1, 2),
            total * _HEAVIER * SPREAD * seen[2][3] / (2 * ONE * _HEAVIER),
        ]
        assert [epsilon for _, _, epsilon, _, _ in seen] == [3 * share for share in DRAWS]
        reaches = [reach for *_, reach, _ in seen]
        assert reaches[:2] == [2 * ONE] * 2 and reaches[2] % (2 * ONE * _HEAVIER) == 0 and sum(DRAWS) == 1
        handicaps.append(seen[0][-1])
    assert np.array_equal(*handicaps)
