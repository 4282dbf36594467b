"""Centres and spreads: cells that cover every range, three draws of one weight each, and what they find."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator import centres
from incrowd.curator.centres import DRAWS, SPREAD, _coarse, _folded, _radii, centre_of
from incrowd.curator.quantiles import added_up
from incrowd.query import Measure

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
    """Three of four values of a normal distribution lie within 1.15 spreads; the spread is twice as far."""
    values = np.random.default_rng(3).normal(middle, spread, 20_000)
    measure = histogram(low, high)
    bought = centre_of(edges_of(values, measure), measure, Fraction(10), 1)
    assert abs(bought.middle - middle) < 0.7 * spread
    assert 1.5 * spread < bought.spread < 4.5 * spread


def test_values_that_are_all_the_same_have_the_least_spread() -> None:
    measure = histogram(0, 65_536)
    bought = centre_of(edges_of(np.full(1_000, 7.5), measure), measure, Fraction(1000), 1)
    assert bought == (7.5, 1.0)


def test_no_row_at_all_is_drawn_like_any_other() -> None:
    measure = histogram(-5, 20, 25)
    for _ in range(20):
        bought = centre_of(added_up(np.zeros(25, dtype=np.int64)), measure, Fraction(1), 2)
        assert -5 <= bought.middle <= 20 and 0 < bought.spread <= 64


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


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 80))
def test_folding_moves_weights_and_adds_none(weights: list[int], twice: int) -> None:
    edges, middle = added_up(np.array(weights, dtype=np.int64)), min(twice, 2 * len(weights)) / 2
    radii = _radii(len(weights))
    folded = _folded(edges, middle, radii)
    assert folded[0] == 0 and folded[-1] == sum(weights) and (np.diff(folded) >= 0).all()
    for radius, held in list(zip(radii, folded[1:], strict=True))[:-1]:
        assert held == sum(
            weight for cell, weight in enumerate(weights) if abs(cell + 0.5 - middle) <= radius
        )


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.data())
def test_a_unit_moves_a_folded_histogram_by_its_weight(weights: list[int], data: st.DataObject) -> None:
    """The argument of the third draw: folded or not, one unit's rows weigh at most as much as before."""
    rows = data.draw(st.lists(st.integers(0, len(weights) - 1), min_size=1, max_size=5))
    more = np.array(weights, dtype=np.int64)
    for row in rows:
        more[row] += 1
    middle = data.draw(st.integers(0, 2 * len(weights))) / 2
    before, after = (
        np.diff(_folded(added_up(np.array(cells, dtype=np.int64)), middle, _radii(len(weights))))
        for cells in (weights, more)
    )
    assert np.abs(after - before).sum() == len(rows)


def test_the_three_draws_share_epsilon_and_know_the_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data may decide how a draw is made: only its edges, its target and earlier draws are from rows."""
    seen: list[tuple[Any, ...]] = []

    def draw(edges: Any, target: Fraction, share: Fraction, epsilon: Fraction, reach: int, nats: Any) -> int:
        seen.append((target, share, epsilon, reach, nats))
        return len(edges) // 2

    monkeypatch.setattr(centres, "draw_cell", draw)
    measure = histogram(0, 100, 1_000)
    handicaps = []
    for values in (np.array([1.0, 2.0, 99.0]), np.array([50.0] * 8)):
        seen.clear()
        centre_of(edges_of(values, measure), measure, Fraction(3), 2)
        total = len(values) * ONE
        assert [target for target, *_ in seen] == [total * share for share in (Fraction(1, 2),) * 2] + [
            total * SPREAD
        ]
        assert [epsilon for _, _, epsilon, _, _ in seen] == [3 * share for share in DRAWS]
        assert {reach for *_, reach, _ in seen} == {2 * ONE} and sum(DRAWS) == 1
        handicaps.append(seen[-1][-1])
    assert np.array_equal(*handicaps)
