"""What a noisy census is taken for: units that are there are seen, units that are not are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator.evidence import SURE, Top, nats, tail_point, top_of

CELLS = 47


@pytest.mark.parametrize("window", [1, 2, 3, 4, 6, 30])
def test_nats_are_those_of_a_sum_of_laplace_draws(window: int) -> None:
    """By numbers: the characteristic function of the sum is (1 + t^2)^-window (Gil-Pelaez)."""
    t = (np.arange(400_000) + 0.5) * 1e-3
    for point in (0.0, 1.0, 4.0, 9.0):
        integrand = np.sin(t * point) / t * (1 + t**2) ** -window
        tail = 0.5 - integrand.sum() * 1e-3 / math.pi
        assert float(nats(np.array(point), window)) == pytest.approx(-math.log(tail), rel=2e-4)
        other = float(nats(np.array(-point), window))
        assert other == pytest.approx(-math.log1p(-tail), rel=2e-3) or point == 0.0


@given(st.integers(1, 46), st.floats(0.5, 0.9999))
def test_a_tail_point_is_where_the_nats_are_those_of_the_confidence(window: int, confidence: float) -> None:
    point = tail_point(window, confidence)
    assert float(nats(np.array(point), window)) == pytest.approx(-math.log1p(-confidence), rel=1e-9)


@pytest.mark.parametrize("window", [0, 1, 5, 20, 40])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_a_wide_draw_is_part_of_the_tail_point(window: int, confidence: float) -> None:
    """By numbers: the characteristic function of the sum is (1 + t^2)^-window / (1 + 4 t^2)."""
    point = tail_point(window, confidence, wide=True)
    t = (np.arange(4_000_000) + 0.5) * 1e-3
    integrand = np.sin(t * point) / t * (1 + t**2) ** -float(window) / (1 + 4 * t**2)
    assert 0.5 + integrand.sum() * 1e-3 / math.pi == pytest.approx(confidence, abs=2e-5)


def test_cells_with_more_noise_need_more_units() -> None:
    cells = np.zeros(CELLS, dtype=np.int64)
    cells[3], cells[20] = 1_000, 250
    rates = np.where(np.arange(CELLS) < 11, 0.1, 0.05)
    assert top_of(cells, 0.1, 0, counts=True).cell == 20
    assert top_of(cells, rates, 0, counts=True).cell == 3
    cells[20] = 500
    assert top_of(cells, rates, 0, counts=True).cell == 20


@given(
    st.lists(st.integers(-(10**6), 10**9), min_size=CELLS, max_size=CELLS),
    st.floats(1e-5, 100),
    st.integers(0, 20),
    st.booleans(),
)
def test_any_census_has_a_top(cells: list[int], epsilon: float, row: int, counts: bool) -> None:
    top = top_of(np.array(cells), epsilon, row, counts)
    assert 0 <= top.cell < CELLS
    assert top.held or not top.sure


def test_where_nothing_is_shown_the_fallback_is_one_row_s_weight_or_four_rows() -> None:
    nothing = np.zeros(CELLS, dtype=np.int64)
    assert top_of(nothing, 1.0, 20, counts=False) == Top(21, False, False)
    assert top_of(nothing, 1.0, 0, counts=True) == Top(3, False, False)


@pytest.mark.parametrize("counts", [True, False])
def test_many_units_in_a_cell_are_sure_and_few_far_above_them_are_not(counts: bool) -> None:
    cells = np.zeros(CELLS, dtype=np.int64)
    cells[3] = 1_000
    assert top_of(cells, 0.1, 0, counts) == Top(3, True, True)
    cells[40] = 100  # worth 10 nats, 37 doublings above the others
    assert top_of(cells, 0.1, 0, counts) == Top(3, True, True)
    cells[40] = 1_000
    assert top_of(cells, 0.1, 0, counts) == Top(40, True, True)


def test_units_a_little_above_the_sure_ones_need_less() -> None:
    cells = np.zeros(CELLS, dtype=np.int64)
    cells[3], cells[4] = 1_000, 60
    assert SURE > 60 * 0.1
    assert top_of(cells, 0.1, 0, counts=True).cell == 4


def test_neighbouring_cells_count_together() -> None:
    cells = np.zeros(CELLS, dtype=np.int64)
    cells[2:8] = 60
    assert top_of(cells, 0.1, 0, counts=True).sure
    cells[3:8] = 0
    assert not top_of(cells, 0.1, 0, counts=True).sure


@pytest.mark.statistical
@pytest.mark.parametrize("counts", [True, False])
def test_noise_alone_hardly_ever_makes_a_cell_sure(counts: bool) -> None:
    """5,000 empty censuses. A sure cell has a chance of at most 5 windows times 47 cells times e^-11."""
    seed = np.random.default_rng(11)
    draws = np.round(seed.laplace(0, 100, (5_000, CELLS))).astype(np.int64)
    false = sum(top_of(cells, 0.01, 20 if not counts else 0, counts).sure for cells in draws)
    assert false <= 5_000 * 4e-3 + 40
