"""Engines that count people: what each defence shows and what it refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd import BudgetExceeded
from incrowd.adversary.attacks.defences import (
    Curated,
    Exact,
    OverlapAuditing,
    Rounding,
    SizeAuditing,
    Suppressing,
)
from incrowd.errors import InvalidInput

TABLE = pa.table({"person": list(range(10)), "secret": [1, 0] * 5, "town": ["york", None] * 5})


def up_to(*ends: int) -> list[str]:
    return [f"person < {end}" for end in ends]


def test_the_truth_counts_rows_for_which_the_where_is_true() -> None:
    assert Exact(TABLE).counts([*up_to(0, 3, 10), "town = 'york'", "town <> 'york'"]) == [0, 3, 10, 5, 0]


def test_rounding_goes_to_the_nearest_multiple_and_never_steps_down() -> None:
    assert Rounding(Exact(TABLE), 5).counts(up_to(*range(11))) == [0, 0, 0, 5, 5, 5, 5, 5, 10, 10, 10]
    assert Rounding(Exact(TABLE), 4).counts(up_to(1, 2, 5, 6)) == [0, 4, 4, 8]


def test_small_counts_are_suppressed_and_stay_so_behind_rounding() -> None:
    assert Suppressing(Exact(TABLE), 3).counts(up_to(0, 2, 3, 10)) == [None, None, 3, 10]
    assert Rounding(Suppressing(Exact(TABLE), 3), 5).counts(up_to(2, 3)) == [None, 5]


def test_size_auditing_refuses_small_sets_and_small_complements() -> None:
    assert SizeAuditing(Exact(TABLE), 3).counts(up_to(2, 3, 7, 8)) == [None, 3, 7, None]


def test_overlap_auditing_refuses_what_is_close_to_an_answered_set_or_its_complement() -> None:
    engine = OverlapAuditing(Exact(TABLE), 3)
    assert engine.counts(up_to(4)) == [4]
    assert engine.counts([*up_to(4, 5, 6, 7), "person >= 5", "person >= 4"]) == [4, None, None, 7, None, 6]


def test_the_curator_grants_each_call_its_epsilon_once() -> None:
    with Curated(TABLE, 1.0, calls=2) as engine:
        first = engine.counts(up_to(3, 5))
        assert len(first) == 2 and all(isinstance(count, int) for count in first)
        engine.counts(["secret = 1"])
        with pytest.raises(BudgetExceeded):
            engine.curator.ask("SELECT COUNT(*) FROM people", epsilon=0.1, analyst="analyst 0")


def test_a_curator_without_calls_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one call"):
        Curated(TABLE, 1.0, calls=0)
