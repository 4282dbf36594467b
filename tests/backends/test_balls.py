"""Balls: a unit's sums are bounded together, in L1 and in L2, and computed as stated."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import Backend, DuckDB, census_statement, open_frame, release_statement
from incrowd.catalog.building import catalog_for
from incrowd.curator.census import _counts
from incrowd.query import Centre, Contribution, Leaf, bound, parse
from incrowd.query.measure import BALL

Rows = list[tuple[int, str, float]]
CENTRE = Centre(10.0, 4.0)


def backend_of(rows: Rows) -> tuple[DuckDB, Leaf]:
    units, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    frame = open_frame(
        pa.table(
            {
                "u": pa.array(units, pa.int64()),
                "k": pa.array(keys, pa.string()),
                "x": pa.array(values, pa.float64()),
            }
        ),
        "t",
    )
    catalog = catalog_for(
        {"t": frame.types}, unit="u", bounds={"x": (0, 1000)}, domains={"k": ["a", "b"]}, budget=(1, 0)
    )
    plan = bound(parse("SELECT k, VAR_POP(x) AS v FROM t GROUP BY k"), catalog, {}, Contribution())
    return DuckDB(catalog, {"t": frame}), plan.leaves[0]


def sums_of(backend: Backend, leaf: Leaf) -> dict[tuple[str, str], int]:
    statement = release_statement(leaf)
    result = backend.run(statement.tree).to_pylist()
    (part,) = statement.parts
    return {(row["k0"], name): row[f"n{place}"] for row in result for place, name in enumerate(part.columns)}


def expected(rows: Rows, leaf: Leaf, norm: int) -> dict[tuple[str, str], int]:
    """The same in Python's whole numbers."""
    totals: dict[tuple[str, str], int] = {}
    for unit in sorted({unit for unit, *_ in rows}):
        own: dict[tuple[str, str], int] = {}
        for _, key, value in (row for row in rows if row[0] == unit):
            deviation = min(max(value, 0), 1000) - CENTRE.middle
            for name, amount in (("m0", deviation), ("m1", deviation**2 - CENTRE.spread**2), ("m2", 1.0)):
                step = leaf.measures[name].step
                steps = math.floor((amount + step / 2) * (1 / step))
                own[key, name] = own.get((key, name), 0) + steps
        held = {place: min(max(value, -(2**54)), 2**54) for place, value in own.items()}
        if norm == 1:
            weight = sum(map(abs, held.values()))
            share = min(1.0, BALL / weight) if weight else 1.0
        else:
            weight = sum(min(-(-abs(value) // 2**12), 2**20 + 1) ** 2 for value in held.values())
            share = min(1.0, math.sqrt(2**36 / weight)) if weight else 1.0
            if weight > 2**40:
                share = math.sqrt(2**8 / sum((-(-abs(value) // 2**26)) ** 2 for value in held.values()))
        for place, value in held.items():
            totals[place] = totals.get(place, 0) + math.trunc(value * share)
    return totals


rows_of = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from("ab"), st.sampled_from([0.0, 8.5, 10.0, 14.0, 400.0, 1e9, -3.0])
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("norm", [1, 2])
@settings(max_examples=12, deadline=None)
@given(rows=rows_of, cap=st.sampled_from([0.25, 2.0, 50.0, 1e7]))
def test_sums_are_shrunk_as_stated_and_lie_in_the_ball(norm: int, rows: Rows, cap: float) -> None:
    backend, leaf = backend_of(rows)
    bounded = (leaf.in_l2() if norm == 2 else leaf).with_centres({"x0": CENTRE})
    bounded = bounded.with_caps(dict.fromkeys(bounded.uncapped, cap))
    assert sums_of(backend, bounded) == expected(rows, bounded, norm)
    for unit in {unit for unit, *_ in rows}:
        alone, _ = backend_of([row for row in rows if row[0] == unit])
        size = sum(abs(value) ** norm for value in sums_of(alone, bounded).values())
        assert size <= (BALL + (norm == 2)) ** norm


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("rows", [1, 9, 40, 5_000])
def test_a_heavy_unit_keeps_its_average(norm: int, rows: int) -> None:
    """However far a unit is above the cap, its sum and its count shrink alike."""
    backend, leaf = backend_of([(1, "a", 400.0)] * rows + [(1, "b", 10.0)])
    bounded = (leaf.in_l2() if norm == 2 else leaf).with_centres({"x0": CENTRE})
    bounded = bounded.with_caps(dict.fromkeys(bounded.uncapped, 0.5))
    sums = sums_of(backend, bounded)
    total, count = (sums["a", name] * bounded.measures[name].step for name in ("m0", "m2"))
    assert CENTRE.middle + total / count == pytest.approx(400.0, rel=1e-3)
    assert sum(abs(value) ** norm for value in sums.values()) <= (BALL + (norm == 2)) ** norm


@pytest.mark.parametrize("norm", [1, 2])
def test_a_census_counts_units_by_their_norm(norm: int) -> None:
    """Two rows at the centre weigh 1, which is 64 steps. Squares at the centre are one spread away."""
    rows: Rows = [(1, "a", 10.0), *[(2, "a", 10.0)] * 8, *[(3, "a", 10.0)] * 64, *[(3, "b", 10.0)] * 64]
    backend, leaf = backend_of(rows)
    centred = (leaf.in_l2() if norm == 2 else leaf).with_centres({"x0": CENTRE})
    counts = _counts(backend.run(census_statement(centred).tree), 0)
    cells = list(counts - [*counts[1:], 0])
    weights = {}
    for unit, groups in ((1, [1]), (2, [8]), (3, [64, 64])):
        parts = [64 * rows * part for rows in groups for part in (0.5, 0.5)]
        weights[unit] = sum(parts) if norm == 1 else math.sqrt(sum(part**2 for part in parts))
    for weight in weights.values():
        cells[math.ceil(math.log2(weight))] -= 1
    assert not any(cells)
