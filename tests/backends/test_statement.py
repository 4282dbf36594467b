"""What a unit counts for: its rows, shrunk to its cap, by the formulas of the plan written out in Python."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import DuckDB, census_statement, release_statement
from incrowd.backends.measures import CENSUS_CELLS, KEY_MASS
from incrowd.catalog import catalog_for
from incrowd.query import Contribution, Leaf, bound, measure, parse, plan

Row = tuple[int, str, int]
ROWS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("ab"), st.integers(-3, 12)), max_size=25)
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def run(sql: str, rows: list[Row], cap: int | None, l2: bool = False) -> tuple[Leaf, list[dict[str, object]]]:
    """A leaf and the rows of its statement: the release where there is a cap, else the census."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.int64(), pa.string(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    frame = pa.Table.from_arrays(arrays, names=["u", "g", "x"])
    types = {"u": "integer", "g": "text", "x": "integer"}
    catalog = catalog_for({"t": types}, unit="u", bounds={"t.x": (0, 9)})
    (leaf,) = bound(parse(sql), catalog, None, Contribution(cap, cap)).leaves
    leaf = leaf.in_l2() if l2 else leaf
    statement = census_statement(leaf) if leaf.uncapped else release_statement(leaf)
    return leaf, DuckDB(catalog, {"t": frame}).run(statement.tree).to_pylist()


@SETTINGS
@given(rows=ROWS, cap=st.sampled_from([1, 2, 5]))
@pytest.mark.parametrize("keyed", [False, True])
def test_counts_shrink_by_the_number_of_rows(keyed: bool, rows: list[Row], cap: int) -> None:
    sql = "SELECT g, COUNT(*) FROM t WHERE g IN ('a', 'b') GROUP BY g" if keyed else "SELECT COUNT(*) FROM t"
    leaf, released = run(sql, rows, cap)
    one = 1 << -leaf.measures["m0"].exponent
    weights: dict[int, int] = defaultdict(int)
    for unit, _, _ in rows:
        weights[unit] += 1
    expected: dict[str | None, int] = defaultdict(int)
    for unit, group, _ in rows:
        expected[group if keyed else None] += one if weights[unit] <= cap else one * cap // weights[unit]
    assert {row.get("k0"): row["n0"] for row in released if row["n0"]} == dict(expected)


@SETTINGS
@given(rows=ROWS)
def test_key_weights_are_shares_of_one_mass(rows: list[Row]) -> None:
    _, released = run("SELECT g, SUM(x) FROM t GROUP BY g", rows, 2)
    groups: dict[int, set[str]] = defaultdict(set)
    for unit, group, _ in rows:
        groups[unit].add(group)
    expected: dict[str, int] = defaultdict(int)
    for held in groups.values():
        for group in held:
            expected[group] += KEY_MASS // len(held)
    assert {row["k0"]: row["n0"] for row in released if row["part"] == 1} == dict(expected)


@pytest.mark.parametrize("groups", [1, 5, 9, 40])
def test_a_unit_in_more_groups_than_may_count_adds_nothing_where_a_count_decides(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "MOST_GROUPS", 9)
    monkeypatch.setattr(plan, "FEW_SHOWN", 0)
    rows: list[Row] = [(1, f"g{group}", 0) for group in range(groups)]
    leaf, released = run("SELECT g, COUNT(DISTINCT u) FROM t GROUP BY g", rows, 2, l2=True)
    one = leaf.measures["m0"].limit_steps
    share = one if groups <= 2 else math.floor(one * math.sqrt(2 / groups)) if groups <= 9 else 0
    assert [row["n0"] for row in released] == [share] * groups


@SETTINGS
@given(rows=ROWS)
def test_a_census_counts_the_units_above_each_power_of_two(rows: list[Row]) -> None:
    _, (census,) = run("SELECT COUNT(*) FROM t", rows, None)
    weights: dict[int, int] = defaultdict(int)
    for unit, _, _ in rows:
        weights[unit] += 1
    limits = [0, *(1 << cell for cell in range(CENSUS_CELLS))]
    expected = [sum(weight > limit for weight in weights.values()) for limit in limits]
    assert [census[f"n{place}"] for place in range(len(limits))] == expected


@SETTINGS
@given(rows=ROWS, l2=st.booleans(), cap=st.sampled_from([1, 2]))
def test_units_in_several_groups_keep_to_their_cap(rows: list[Row], l2: bool, cap: int) -> None:
    sql = "SELECT g, COUNT(DISTINCT u) FROM t WHERE g IN ('a', 'b') GROUP BY g"
    leaf, released = run(sql, rows, cap, l2)
    measure = leaf.measures["m0"]
    units = len({unit for unit, _, _ in rows})
    sums = [int(str(row["n0"])) for row in released]
    most = Fraction(measure.sensitivity_steps) * units
    assert sum(total**2 for total in sums) <= most**2 if l2 else sum(sums) <= most
