"""Replay on every engine: the numbers before noise, with and without one unit, and with other rows of it.

What DuckDB bounds, the others bound by returning the same integers (test_engines); here their own numbers are
held to what is stated: row sums, pairs, histograms, key weights, totals and the census, in L1 and in L2,
under add-remove and under replace.
"""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.backends import census_statement, release_statement, statement
from tests.backends.engines import house
from tests.backends.grammar import Asked, questions
from tests.backends.houses import (
    capped,
    check_census,
    check_sensitivity,
    plan_of,
    run,
    tables_from,
    with_a_unit_replaced,
    without_each_unit,
)
from tests.backends.test_integrity import SETTINGS
from tests.sweep import sized

ASKED = int(os.environ.get("INCROWD_ENGINE_QUESTIONS", "0"))
QUICK = {"duckdb": sized(12, 300), "postgres": sized(6, 100), "spark": sized(1, 10)}
"""How many questions each engine is asked. Spark Connect runs the statements of Spark."""


@pytest.mark.parametrize("engine", QUICK)
def test_one_unit_moves_the_engines_own_numbers_by_at_most_what_is_stated(engine: str) -> None:
    @settings(SETTINGS, max_examples=ASKED or QUICK[engine])
    @given(
        asked=questions(),
        relation=st.sampled_from(["add-remove", "replace"]),
        seed=st.integers(0, 10_000),
        other=st.integers(0, 10_000),
        cells=st.sampled_from([0, 1, 2, 5, 21]),
        generous=st.sampled_from([1, 5]),
        rows=st.sampled_from([None, None, 1, 3]),
        groups=st.sampled_from([None, None, 1, 2]),
        l2=st.booleans(),
    )
    def replays(
        asked: Asked,
        relation: str,
        seed: int,
        other: int,
        cells: int,
        generous: int,
        rows: int | None,
        groups: int | None,
        l2: bool,
    ) -> None:
        home, tables = house(engine, asked.mode), tables_from(seed, wild=True)
        (leaf, *_) = plan_of(asked.sql, asked.mode, relation, rows=rows, groups=groups).leaves
        chosen = leaf.in_l2() if l2 and leaf.units and leaf.keys else leaf
        if relation == "add-remove":
            neighbours = list(itertools.islice(without_each_unit(tables, asked.mode, leaf.tables), 1))
        else:
            neighbours = [with_a_unit_replaced(tables, tables_from(other, wild=True), asked.mode)]
        bounded, large = capped(chosen, cells, generous)
        release = release_statement(bounded, large)
        census = census_statement(chosen) if chosen.uncapped else None
        home.furnish(tables)
        before, counted = run(home.backend, release), census and run(home.backend, census)
        for neighbour in neighbours:
            home.furnish(neighbour)
            check_sensitivity(bounded, large, before, run(home.backend, release), leaf.distance)
            if census is not None and counted is not None:
                check_census(counted, run(home.backend, census), leaf.distance)

    replays()


def test_the_replay_notices_a_unit_that_counts_for_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    home, tables = house("duckdb", "user"), tables_from(4, wild=False)
    (leaf,) = plan_of("SELECT v.cat, COUNT(*) FROM visits AS v GROUP BY v.cat", "user", rows=1).leaves
    monkeypatch.setattr(statement, "_shrunk", lambda value, weight, cap: value)
    unbounded = release_statement(leaf)
    home.furnish(tables)
    before = run(home.backend, unbounded)
    home.furnish(next(without_each_unit(tables, "user", leaf.tables)))
    with pytest.raises(AssertionError):
        check_sensitivity(leaf, {}, before, run(home.backend, unbounded))
