"""Cells that widen: they cover any range in order, and tell numbers apart to a small part of them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.backends.measures import cell_of
from incrowd.backends.trees import text_of
from incrowd.curator.scratch import scratch
from incrowd.query import Measure
from incrowd.query.graded_cells import bands_of, cell_at, count_of, edges_of

ENDS = st.sampled_from([0.0, 0.5, 3.0, 1e4, 2.0**20, 2.0**31, 1e15])


@given(ENDS, ENDS, st.sampled_from([1.0, 0.25, 2.0**-9]), st.sampled_from([64, 4_096, 65_536]))
def test_bands_follow_each_other_over_the_whole_range(
    below: float, above: float, grain: float, most: int
) -> None:
    bands = bands_of(-below, above, grain, most)
    assert all(one.end == two.start for one, two in itertools.pairwise(bands))
    assert bands[0].start <= -below and bands[-1].end >= above
    assert count_of(bands) <= most or all(band.cells == 1 for band in bands)
    edges = list(edges_of(bands))
    assert len(edges) == count_of(bands) + 1 and edges == sorted(set(edges))
    for cell in {0, count_of(bands) // 3, count_of(bands) - 1}:
        start, width = cell_at(bands, cell)
        assert (
            start == pytest.approx(bands[0].start + edges[cell] * grain, abs=1e-9 * below)
            and width == (edges[cell + 1] - edges[cell]) * grain
        )


@pytest.mark.parametrize("most", [16_384, 65_536])
def test_a_cell_is_narrow_beside_its_numbers(most: int) -> None:
    bands = bands_of(-(2.0**31), 2.0**31, 2.0**-9, most)
    for cell in range(count_of(bands)):
        start, width = cell_at(bands, cell)
        near = min(abs(start), abs(start + width))
        assert width <= max(2.0**-9, near * 15 / bands[0].cells)


def test_a_cell_that_is_not_there_has_no_start() -> None:
    with pytest.raises(IndexError):
        cell_at(bands_of(0, 9, 1.0, 8), 10**6)


def test_a_number_is_in_the_cell_between_whose_ends_it_lies() -> None:
    bands = bands_of(-1e9, 1e9, 2.0**-5, 4_096)
    measure = Measure(
        "m0", "row", "rows", None, exp.column("x"), bands[0].start, bands[-1].end,
        cap=1.0, buckets=count_of(bands), bands=bands,
    )  # fmt: skip
    starts = np.array([cell_at(bands, cell)[0] for cell in range(count_of(bands))])
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 10.0**power, 200) for power in range(-3, 12)])
    values = np.concatenate([values, starts, starts[1:] - 1e-7, [np.inf, -np.inf, 1e300, -0.0, 5e-324]])
    with scratch() as local:
        local.register("t", pa.table({"x": values}))
        cells = local.sql(f"SELECT {text_of(cell_of(measure))} AS c FROM t").to_arrow_table()["c"].to_numpy()
    expected = np.clip(np.searchsorted(starts, values, side="right") - 1, 0, count_of(bands) - 1)
    # A number within a rounding of an edge may be on its other side.
    apart = cells - expected
    near = np.abs(values - starts[np.clip(expected + 1, 0, len(starts) - 1)]) <= 1e-9 * np.abs(values)
    assert ((apart == 0) | ((apart == 1) & near)).all()
    order = np.argsort(values)
    assert (np.diff(cells[order]) >= 0).all(), "a larger number is never in a lower cell"


def test_neither_null_nor_nan_has_a_cell() -> None:
    bands = bands_of(-9, 9, 1.0, 64)
    measure = Measure(
        "m0", "row", "rows", None, exp.column("x"), bands[0].start, bands[-1].end,
        cap=1.0, buckets=count_of(bands), bands=bands,
    )  # fmt: skip
    with scratch() as local:
        local.register("t", pa.table({"x": pa.array([None, float("nan")], pa.float64())}))
        assert (
            local.sql(f"SELECT {text_of(cell_of(measure))} AS c FROM t").to_arrow_table()["c"].null_count == 2
        )
