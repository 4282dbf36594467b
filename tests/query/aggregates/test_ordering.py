"""Ranks: the histogram that each is read from, and the words it may be asked in."""

from __future__ import annotations

import pytest

from tests.query.asked import assert_refused, leaf_of, measures_of


def test_bounds_of_a_rank_are_not_lost_on_the_way_into_within_group() -> None:
    bounded = "PERCENTILE_CONT(0.5, contribution_bounds_per_row => (0, 5)) WITHIN GROUP (ORDER BY x)"
    (histogram,) = measures_of(bounded)
    assert (histogram.low, histogram.high) == (0, 6)
    assert len(leaf_of(f"{bounded} + {bounded.replace('5)', '6)')}").aggregates) == 2


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        (
            "PERCENTILE_CONT(x) WITHIN GROUP (ORDER BY f DESC)",
            "needs a constant rank between 0 and 1.",
        ),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY f, x)", "needs a rank"),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)


def test_a_rank_in_descending_order_is_counted_from_the_other_end() -> None:
    descending = "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC)"
    assert leaf_of(descending).aggregates[0].quantiles == (0.1,)
    assert leaf_of(descending.replace("CONT", "DISC")).aggregates[0].quantiles == (0.1,)
    assert len(leaf_of(f"{descending} + QUANTILE_CONT(x, 0.1)").measures) == 1
