"""Counts of values: the sums are those of a model, and one unit moves them by its cap at most."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import DuckDB, census_statement, open_frame, release_statement
from incrowd.backends.values import value_columns
from incrowd.catalog.building import catalog_for
from incrowd.query import Contribution, Leaf, bound, parse

Rows = list[tuple[int, str, int | None]]
ROWS = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from(["a", "b"]), st.one_of(st.none(), st.integers(0, 6))),
    max_size=25,
)
QUESTION = "SELECT k, COUNT(DISTINCT x) AS n FROM t GROUP BY k"


def leaf_and_engine(rows: Rows, sql: str = QUESTION, **declared: dict[str, object]) -> tuple[Leaf, DuckDB]:
    units, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "u": pa.array(units, pa.int64()),
        "k": pa.array(keys, pa.string()),
        "x": pa.array(values, pa.int64()),
    }
    frame = open_frame(pa.table(columns), "t")
    catalog = catalog_for({"t": frame.types}, unit="u", domains={"k": ["a", "b"]}, budget=(1, 0), **declared)
    (leaf,) = bound(parse(sql), catalog, {}, Contribution()).leaves
    return leaf, DuckDB(catalog, {"t": frame})


def counts(rows: Rows, cap: float) -> list[dict[str, int]]:
    """The sums of both counts by group, as the engine computes them."""
    leaf, engine = leaf_and_engine(rows)
    capped = leaf.with_caps(dict.fromkeys(leaf.open_caps, cap))
    statement = release_statement(capped)
    result = engine.run(statement.tree).to_pylist()
    return [
        {row["k0"]: row["n0"] for row in result if row["part"] == place}
        for place, _ in enumerate(statement.parts)
    ]


def model(rows: Rows, cap: int) -> dict[str, int]:
    held: dict[int, set[tuple[str, int]]] = {}
    for unit, key, value in rows:
        if value is not None:
            held.setdefault(unit, set()).add((key, value))
    leaf, _ = leaf_and_engine([])
    one = 1 << -next(iter(leaf.with_caps(dict.fromkeys(leaf.open_caps, cap)).measures.values())).exponent
    weights: dict[tuple[str, int], int] = {}
    for lines in held.values():
        for line in lines:
            weights[line] = weights.get(line, 0) + (one if len(lines) <= cap else one * cap // len(lines))
    found: dict[str, int] = {}
    for (key, _), weight in weights.items():
        found[key] = found.get(key, 0) + min(weight, one)
    return found


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cap=st.sampled_from([1, 2, 3, 8]))
def test_the_sums_are_those_of_the_model(rows: Rows, cap: int) -> None:
    assert counts(rows, cap)[0] == model(rows, cap)


@settings(max_examples=300, deadline=None)
@given(rows=ROWS, more=ROWS, cap=st.sampled_from([1, 2, 3, 8]))
def test_a_unit_moves_all_groups_together_by_the_cap_at_most(rows: Rows, more: Rows, cap: int) -> None:
    leaf, _ = leaf_and_engine([])
    measure = next(iter(leaf.with_caps(dict.fromkeys(leaf.open_caps, cap)).measures.values()))
    mine = [(9, key, value) for _, key, value in more]
    before, after = model(rows, cap), model(rows + mine, cap)
    moved = sum(after.get(key, 0) - before.get(key, 0) for key in ("a", "b"))
    assert all(after.get(key, 0) >= before.get(key, 0) for key in ("a", "b"))
    assert 0 <= moved <= measure.sensitivity_steps == cap << -measure.exponent


@settings(max_examples=100, deadline=None)
@given(rows=ROWS, cap=st.sampled_from([1, 2, 8]))
def test_no_value_counts_that_is_not_there_and_none_is_lost_under_a_large_cap(rows: Rows, cap: int) -> None:
    leaf, _ = leaf_and_engine([])
    one = 1 << -next(iter(leaf.with_caps(dict.fromkeys(leaf.open_caps, cap)).measures.values())).exponent
    truth = {key: len({value for _, k, value in rows if k == key and value is not None}) for key in "ab"}
    found = model(rows, cap)
    there = [row for row in rows if row[2] is not None]
    most = max(len({row[1:] for row in there if row[0] == unit}) for unit in range(6))
    for key, many in truth.items():
        assert found.get(key, 0) <= many * one
        assert cap < most or found.get(key, 0) == many * one


def test_both_caps_read_one_set_of_values() -> None:
    leaf, _ = leaf_and_engine([])
    statement = release_statement(leaf.with_caps(dict.fromkeys(leaf.open_caps, 4)))
    text = statement.tree.sql("duckdb")
    assert text.count("__values0 AS") == 1 and "__values1" not in text
    assert [part.kind for part in statement.parts] == ["values", "values"]


def test_a_census_counts_units_by_their_number_of_values() -> None:
    rows: Rows = [(1, "a", 1), (1, "a", 1), (1, "b", 1), (2, "a", 3), (3, "a", None)]
    leaf, engine = leaf_and_engine(rows)
    (row,) = engine.run(census_statement(leaf).tree).to_pylist()
    assert [row[f"n{place}"] for place in range(4)] == [2, 1, 0, 0]


@pytest.mark.parametrize(("listed", "many"), [("x", 2), ("(x, k)", 5), ("x, k", 3)])
def test_a_tuple_in_brackets_counts_with_its_nulls_and_a_list_without(listed: str, many: int) -> None:
    rows: Rows = [(1, "a", 1), (2, "b", 1), (3, "a", 2), (4, "a", None), (5, "b", None)]
    leaf, engine = leaf_and_engine(rows, f"SELECT COUNT(DISTINCT {listed}) AS n FROM t")
    capped = leaf.with_caps(dict.fromkeys(leaf.open_caps, 8))
    measure = next(iter(capped.measures.values()))
    assert len(value_columns(measure)) == (1 if listed == "x" else 2)
    result = engine.run(release_statement(capped).tree).to_pylist()
    assert next(row["n0"] for row in result if row["part"] == 0) * measure.step == many


@pytest.mark.parametrize(("counted", "many"), [("x", 2), ("x + 1", 2), ("(x, k)", 3), ("x, k", 2)])
def test_rows_that_break_the_declaration_count_nowhere(counted: str, many: int) -> None:
    """They would make more values than there can be, by which intervals end."""
    rows: Rows = [(1, "a", 1), (2, "b", 3), (3, "a", 4), (4, "a", None), (5, "b", -(2**62))]
    sql = f"SELECT COUNT(DISTINCT {counted}) AS n FROM t"
    leaf, engine = leaf_and_engine(rows, sql, bounds={"x": (1, 3)})
    capped = leaf.with_caps(dict.fromkeys(leaf.open_caps, 8))
    result = engine.run(release_statement(capped).tree).to_pylist()
    step = next(iter(capped.measures.values())).step
    assert next(row["n0"] for row in result if row["part"] == 0) * step == many
