"""Averages and sums of a unit's part of a group: exact, the same on every engine, and bounded as stated.

The judge of exactness is plain SQL that averages per unit and group first, and then over units.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import release_statement
from tests.backends.engines import ENGINES, house
from tests.backends.houses import capped, check_leaf, engine_of, furnish, plan_of, run, tables_from
from tests.backends.parsing import tree
from tests.backends.test_integrity import SETTINGS
from tests.sweep import sized

WITH = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) "
AGGREGATES = (
    "AVG(x)",
    "AVG(f)",
    "AVG(n)",
    "AVG(p)",
    "AVG(f, contribution_bounds_per_group => (-1, 2))",
    "AVG(f, contribution_bounds_per_row => (-1, 2))",
    "AVG(x, contribution_bounds_per_group => (3, 3))",
    "AVG(x * f) FILTER (WHERE b)",
    "SUM(x, contribution_bounds_per_group => (2, 3))",
    "SUM(f, contribution_bounds_per_group => (-3, -2.5))",
    "COUNT(x, contribution_bounds_per_group => (2, 3))",
)
TAILS = ("", " GROUP BY cat", " GROUP BY grp", " GROUP BY cat, b")


def asked(aggregate: str, tail: str) -> str:
    return f"{WITH}{aggregate} AS z, COUNT(*) AS n FROM visits{tail}"


@settings(SETTINGS, max_examples=sized(12, 400))
@given(
    aggregate=st.sampled_from(AGGREGATES),
    tail=st.sampled_from(TAILS),
    mode=st.sampled_from(["user", "per"]),
    relation=st.sampled_from(["add-remove", "replace"]),
    seed=st.integers(0, 10_000),
    cells=st.sampled_from([0, 1, 2, 5, 21]),
    l2=st.booleans(),
)
def test_one_unit_moves_them_by_at_most_what_is_stated(
    aggregate: str, tail: str, mode: str, relation: str, seed: int, cells: int, l2: bool
) -> None:
    (leaf,) = plan_of(asked(aggregate, tail), mode, relation).leaves
    bounded = leaf.in_l2() if l2 and leaf.keys else leaf
    check_leaf(bounded, mode, relation, tables_from(seed, wild=True), cells, 1, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_integers(engine: str) -> None:
    @settings(SETTINGS, max_examples=sized(4 if engine == "postgres" else 1, 100))
    @given(
        aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=4, max_size=4, unique=True),
        tail=st.sampled_from(TAILS),
        seed=st.integers(0, 10_000),
        cells=st.sampled_from([0, 1, 5]),
        l2=st.booleans(),
    )
    def asks(aggregates: list[str], tail: str, seed: int, cells: int, l2: bool) -> None:
        columns = ", ".join(f"{aggregate} AS z{place}" for place, aggregate in enumerate(aggregates))
        (leaf,) = plan_of(f"{WITH}{columns} FROM visits{tail}", "user").leaves
        bounded, _ = capped(leaf.in_l2() if l2 and leaf.keys else leaf, cells, 1)
        numbers = []
        for name in ("duckdb", engine):
            house(name, "user").furnish(tables_from(seed, wild=True))
            numbers.append(run(house(name, "user").backend, release_statement(bounded)).values)
        assert numbers[0] == numbers[1]

    asks()


@pytest.mark.parametrize(
    ("aggregate", "inner", "outer"),
    [
        ("AVG(x)", "AVG(x)", "AVG(LEAST(GREATEST(v, -5), 20))"),
        ("AVG(f, contribution_bounds_per_group => (-1, 2))", "AVG(f)", "AVG(LEAST(GREATEST(v, -1), 2))"),
        (
            "AVG(f, contribution_bounds_per_row => (-1, 2))",
            "AVG(CASE WHEN f IS NOT NULL THEN LEAST(GREATEST(f, -1), 2) END)",
            "AVG(v)",
        ),
        ("AVG(f) FILTER (WHERE b)", "AVG(f) FILTER (WHERE b)", "AVG(v)"),
        (
            "SUM(x, contribution_bounds_per_group => (2, 3))",
            "SUM(x)",
            "SUM(CASE WHEN v IS NOT NULL THEN LEAST(GREATEST(v, 2), 3) END)",
        ),
        ("COUNT(x, contribution_bounds_per_group => (2, 3))", "COUNT(x)", "SUM(LEAST(GREATEST(v, 2), 3))"),
    ],
)
@settings(SETTINGS, max_examples=sized(4, 100))
@given(seed=st.integers(0, 10_000))
def test_where_nothing_is_cut_they_are_what_plain_sql_says(
    aggregate: str, inner: str, outer: str, seed: int
) -> None:
    (leaf,) = plan_of(f"{WITH}{aggregate} AS z FROM visits WHERE cat = 1", "user").leaves
    engine = engine_of("user")
    furnish(engine, tables_from(seed, wild=False))
    numbers = run(engine, release_statement(leaf))
    plain = engine._run(
        tree(
            f"SELECT {outer} AS z FROM (SELECT {inner} AS v FROM visits "
            "WHERE cat = 1 AND user_id IS NOT NULL GROUP BY user_id) AS q"
        )
    )
    expected = plain.column("z").to_pylist()[0]
    sums = {}
    for place, part in enumerate(numbers.statement.parts):
        for column, name in enumerate(part.columns):
            step = leaf.measures[name].step
            sums[name] = sum(numbers.values.get((place, column), {}).values()) * step
    measures = leaf.aggregates[0].measures
    if aggregate.startswith("AVG"):
        total, count = (sums[name] for name in measures)
        found = leaf.measures[measures[0]].centre + total / count if count else None
    else:
        found = sums[measures[0]]
    if expected is None:
        assert not found
    else:
        assert found is not None and math.isclose(found, expected, abs_tol=1e-7)


def test_a_unit_counts_once_with_its_average() -> None:
    """The averages of three units are 16, 20 and, after clamping, 100; a unit without a value has none."""
    engine, tables = engine_of("user"), tables_from(1, wild=False)
    visits = tables["visits"].slice(0, 1)
    rows = [(1, 10), (1, 22), (2, 20), (3, 500), (3, 60), (4, None)]
    columns = {"user_id": [user for user, _ in rows], "x": [x for _, x in rows]}
    made = {
        name: pa.array(columns[name], visits.schema.field(name).type)
        if name in columns
        else pa.array(visits.column(name).to_pylist() * len(rows), visits.schema.field(name).type)
        for name in visits.column_names
    }
    furnish(engine, {"visits": pa.table(made)})
    asked_with = "AVG(x, contribution_bounds_per_group => (0, 100))"
    (leaf,) = plan_of(f"{WITH}{asked_with} AS z FROM visits", "user").leaves
    numbers = run(engine, release_statement(leaf))
    (part,) = numbers.statement.parts
    total, count = (
        next(iter(numbers.values[0, part.columns.index(name)].values())) * leaf.measures[name].step
        for name in leaf.aggregates[0].measures
    )
    assert count == 3 and math.isclose(50 + total / count, (16 + 20 + 100) / 3, abs_tol=1e-7)
