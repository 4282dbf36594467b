"""One suite for every engine: whatever is asked and whatever a row holds, the integers before noise are those
of DuckDB, to the bit. An engine that passes answers questions; nothing else is asked of it.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import Statement, census_statement, distinct_values, release_statement
from incrowd.backends.trees import text_of
from incrowd.query import measure, plan
from tests.backends.engines import ENGINES, house
from tests.backends.grammar import Asked, questions
from tests.backends.houses import capped, plan_of, run, tables_from
from tests.backends.test_integrity import SETTINGS
from tests.backends.test_totality import CONDITIONS, EXPRESSIONS, extremes
from tests.backends.windows_asked import KEYS, NUMBERS, asked, grouped
from tests.sweep import WHOLE, sized

ASKED = int(os.environ.get("INCROWD_ENGINE_QUESTIONS", "0"))
"""How many questions each engine is asked; more by hand. By default as many as the engine's speed allows."""
QUICK = {"postgres": sized(25, 300), "spark": sized(3, 50), "spark connect": sized(1, 20)}
STEPS = {"spark": sized(32, 16), "spark connect": sized(128, 64)}
"""Spark Connect runs the statements of Spark: a part of the expressions is enough to prove the way there."""
CHUNKS = [
    (engine, start) for engine in ENGINES for start in range(0, len(EXPRESSIONS), STEPS.get(engine, 16))
]
BOUNDS = "contribution_bounds_per_row => (-1e9, 1e9)"


def same(engine: str, mode: str, statement: Statement) -> None:
    """The statement's integers, on the engine and on the reference."""
    expected = run(house("duckdb", mode).backend, statement)
    answer = run(house(engine, mode).backend, statement)
    assert answer.values == expected.values, text_of(statement.tree)


def furnish(engine: str, mode: str, tables: dict[str, pa.Table]) -> None:
    for name in ("duckdb", engine):
        house(name, mode).furnish(tables)


@pytest.mark.parametrize("engine", ENGINES)
def test_generated_questions_have_the_same_integers(engine: str) -> None:
    @settings(SETTINGS, max_examples=ASKED or QUICK.get(engine, 20))
    @given(
        asked=questions(),
        seed=st.integers(0, 10_000),
        cells=st.sampled_from([0, 1, 2, 5, 21, 45]),
        generous=st.sampled_from([0, 5]),
        rows=st.sampled_from([None, None, 1, 3]),
        groups=st.sampled_from([None, None, 1, 2]),
        l2=st.booleans(),
    )
    def asks(
        asked: Asked, seed: int, cells: int, generous: int, rows: int | None, groups: int | None, l2: bool
    ) -> None:
        furnish(engine, asked.mode, tables_from(seed, wild=True))
        for leaf in plan_of(asked.sql, asked.mode, rows=rows, groups=groups).leaves:
            chosen = leaf.in_l2() if l2 and leaf.units and leaf.keys else leaf
            bounded, large = capped(chosen, cells, generous)
            same(engine, asked.mode, release_statement(bounded, large))
            if chosen.uncapped:
                same(engine, asked.mode, census_statement(chosen))

    asks()


@pytest.mark.parametrize(("engine", "start"), CHUNKS)
def test_every_expression_has_the_same_value_on_the_worst_of_rows(engine: str, start: int) -> None:
    furnish(engine, "row", extremes())
    chunk = EXPRESSIONS[start : start + 16]
    sums = ", ".join(f"SUM({expression}, {BOUNDS}) AS a{place}" for place, expression in enumerate(chunk))
    (leaf,) = plan_of(f"SELECT {sums} FROM visits AS v", "row").leaves
    same(engine, "row", release_statement(leaf))
    # On Spark a statement takes a second: every expression is summed, and one of four is also a key.
    keyed = chunk if WHOLE or engine == "postgres" else chunk[start // 16 % 4 :: 4]
    for first in range(0, len(keyed), 4):
        keys = ", ".join(
            f"{expression} AS k{place}" for place, expression in enumerate(keyed[first : first + 4])
        )
        (leaf,) = plan_of(f"SELECT {keys}, COUNT(*) FROM visits AS v GROUP BY ALL", "row").leaves
        same(engine, "row", release_statement(leaf))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_condition_keeps_the_same_rows(engine: str) -> None:
    furnish(engine, "user", extremes())
    counts = ", ".join(
        f"COUNT(*) FILTER (WHERE {condition}) AS a{place}" for place, condition in enumerate(CONDITIONS)
    )
    (leaf,) = plan_of(f"SELECT {counts} FROM visits AS v", "user", rows=2).leaves
    same(engine, "user", release_statement(leaf))
    for condition in CONDITIONS[: sized(1, len(CONDITIONS))]:
        (leaf,) = plan_of(f"SELECT COUNT(*) FROM visits AS v WHERE {condition}", "user", rows=2).leaves
        same(engine, "user", release_statement(leaf))


@pytest.mark.parametrize("engine", ENGINES)
def test_values_that_a_declaration_allows_are_the_same(engine: str) -> None:
    furnish(engine, "row", extremes())
    counted = ("v.x", "v.cat", "v.city", "v.d", "v.ts", "(v.x, v.grp)", "FLOOR(v.x / 5)", "MONTH(v.d)", "v.b")
    counts = ", ".join(f"COUNT(DISTINCT {value}) AS a{place}" for place, value in enumerate(counted))
    (leaf,) = plan_of(f"SELECT {counts} FROM visits AS v", "row").leaves
    same(engine, "row", release_statement(leaf))


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_of_dates_and_timestamps_have_the_same_integers(engine: str) -> None:
    furnish(engine, "row", extremes())
    ranks = "MEDIAN(v.d), MAX(v.ts), MIN(v.ts) FILTER (WHERE v.x > 0)"
    (leaf,) = plan_of(f"SELECT {ranks} FROM visits AS v", "row").leaves
    same(engine, "row", release_statement(leaf))


@pytest.mark.parametrize(
    "engine", ENGINES if WHOLE else [name for name in ENGINES if name != "spark connect"]
)
def test_empty_tables_and_one_unit_with_every_row_have_the_same_integers(engine: str) -> None:
    sql = (
        "SELECT v.cat, COUNT(*), SUM(v.f), COUNT(DISTINCT v.user_id), MEDIAN(v.x) FROM visits AS v GROUP BY 1"
    )
    (leaf,) = plan_of(sql, "user").leaves
    worst = extremes()
    skewed = worst["visits"].set_column(
        worst["visits"].column_names.index("user_id"),
        "user_id",
        pa.array([7] * worst["visits"].num_rows, pa.int64()),
    )
    # On Spark, what the census of three measures adds takes as long as all the rest.
    quick = engine == "spark" and not WHOLE
    (counted,) = plan_of("SELECT COUNT(*) FROM visits", "user").leaves if quick else (leaf,)
    for visits in (worst["visits"].slice(0, 0), skewed):
        furnish(engine, "user", {**worst, "visits": visits})
        bounded, large = capped(leaf, 3, 5)
        same(engine, "user", release_statement(bounded, large))
    same(engine, "user", census_statement(counted))


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_units_in_too_many_groups_are_left_out_alike_where_a_count_decides(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "MOST_GROUPS", 2)
    monkeypatch.setattr(plan, "FEW_SHOWN", 0)
    sql = "SELECT v.grp, COUNT(DISTINCT v.user_id) FROM visits AS v GROUP BY 1"
    (leaf,) = plan_of(sql, "user", groups=1).leaves
    assert leaf.shown_by == "m0"
    furnish(engine, "user", tables_from(5, wild=True))
    for bounded in (leaf, leaf.in_l2()):
        same(engine, "user", release_statement(bounded))


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_bins_are_listed_alike(engine: str) -> None:
    for expression in ("FLOOR(v.f / 2) * 2", "CAST(ROUND(v.f) AS TEXT)", "CEIL(v.f) / 4"):
        (leaf,) = plan_of(f"SELECT {expression} AS k, COUNT(*) FROM visits AS v GROUP BY 1", "row").leaves
        (key,) = leaf.keys
        assert key.public and key.domain is not None
        listed = [
            sorted(
                map(str, house(name, "row").backend.run(distinct_values(key.domain)).column("v").to_pylist())
            )
            for name in ("duckdb", engine)
        ]
        assert listed[0] == listed[1] and len(listed[0]) > 4


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "spark connect"])
def test_windows_over_one_persons_rows_have_the_same_integers(engine: str) -> None:
    """Ties, NULL, NaN and zeros of both signs are ordered alike; Spark takes several seconds a statement."""
    for tables in (extremes(), tables_from(1, wild=True))[: sized(1 if engine == "spark" else 2, 2)]:
        furnish(engine, "user", tables)
        (leaf,) = plan_of(asked(NUMBERS, BOUNDS), "user", rows=3).leaves
        same(engine, "user", release_statement(leaf))
        for key in KEYS[: sized(1 if engine == "spark" else len(KEYS), len(KEYS))]:
            (leaf,) = plan_of(grouped(key), "user", rows=3, groups=3).leaves
            same(engine, "user", release_statement(leaf))
