"""Differencing: the classic defences fall to it, the curator does not."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.adversary.attacks.differencing import (
    Ploy,
    difference,
    differencing,
    direct,
    three_sets,
    tipped,
    tracker,
)
from incrowd.errors import InvalidInput

ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([None, 0, 1]), st.sampled_from([None, 0, 1])), max_size=12
)


@settings(max_examples=40)
@given(ROWS, st.booleans())
def test_every_ploy_adds_up_to_the_targets_secret_whatever_the_table(
    rows: list[tuple[bool, int | None, int | None]], bit: bool
) -> None:
    people = pa.table(
        {
            "who": ["other"] * len(rows) + ["target"],
            "secret": [int(row[0]) for row in rows] + [int(bit)],
            "a": pa.array([row[1] for row in rows] + [1], pa.int64()),
            "b": pa.array([row[2] for row in rows] + [None], pa.int64()),
        }
    )
    target, secret = "(who = 'target')", "secret = 1"
    ploys = [
        direct(target, secret),
        difference(target, secret),
        difference(target, secret, "a = 1"),
        tracker(target, secret, "a = 1"),
        tracker(target, secret, "b = 1"),
        three_sets(target, secret, "a = 1", "b = 1"),
        three_sets(target, secret, "a = 0", "b = 0"),
    ]
    for ploy in ploys:
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {where})" for where in ploy.sets)
        (answers,) = duckdb.execute(f"SELECT {counts} FROM people").fetchall()
        assert ploy.reveal(answers) == bit
    assert people.num_rows == len(rows) + 1


def test_a_refusal_reveals_nothing() -> None:
    assert Ploy(("a", "b"), (1, -1)).reveal([3, None]) is None


@given(st.integers(2, 12), st.booleans(), st.lists(st.integers(0, 100), min_size=1, max_size=40))
def test_a_tipped_count_proves_the_secret_and_the_edge_always_tips(
    to: int, bit: bool, crowds: list[int]
) -> None:
    def rounded(count: int) -> int:
        return (2 * count + to) // (2 * to) * to

    steps = [rounded(crowd + bit) - rounded(crowd) for crowd in crowds]
    at_the_edge = any((2 * crowd + to) % (2 * to) >= 2 * to - 2 for crowd in crowds)
    assert tipped(steps) == (bit and at_the_edge)


@pytest.mark.statistical
def test_the_classic_defences_fall_and_the_curator_stays_under_its_bound() -> None:
    """`holds` accuses by chance below 1e-6 for each of 3 attempts; the seed fixes the rest."""
    report = differencing(epsilon=1.0, people=400, targets=6, seed=5)
    attempts = {attempt.against: attempt for attempt in report.attempts}
    for name, attempt in attempts.items():
        if "curator" in name:
            assert attempt.allowed is not None and attempt.allowed == pytest.approx(1 / (1 + np.exp(-1)))
        elif "directly" not in name and "rounded to 5: two" not in name:
            assert attempt.success.value == 1.0, name
    assert len(attempts) == 11 and report.holds


def test_an_epsilon_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="positive number"):
        differencing(epsilon=0.0)
