"""Limits as the owner changed them, and analysts who are retired."""

from __future__ import annotations

from incrowd.catalog import check
from incrowd.curator.ledger.limits import Caps
from incrowd.curator.ledger.steering import Change, changed, in_force, with_retired
from incrowd.curator.ledger.totals import Totals

CATALOG = check(
    {
        "sources": {"s": {"csv": "a.csv"}},
        "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
        "analysts": {"ana": {"epsilon": 0.3}},
    }
)
CAPS, NOTHING = Caps.of(CATALOG), Totals({})


def test_without_changes_the_caps_are_those_of_the_file() -> None:
    assert in_force(CAPS, NOTHING) is CAPS


def test_changes_add_up_as_decimal_numbers() -> None:
    totals = changed(NOTHING, "analyst:ana", Change.of(0.1, 0.0))
    totals = changed(totals, "analyst:ana", Change.of(0.2, 0.0))
    assert in_force(CAPS, totals).caps["analyst:ana"].epsilon == 0.6
    back = changed(totals, "analyst:ana", Change.of(0.3, 0.0, lower=True))
    assert in_force(CAPS, back).caps["analyst:ana"].limit == CAPS.caps["analyst:ana"].limit


def test_a_limit_below_nothing_holds_nothing() -> None:
    lowered = changed(NOTHING, "analyst:ana", Change.of(5.0, 0.5, lower=True))
    cap = in_force(CAPS, lowered).caps["analyst:ana"]
    assert (cap.epsilon, cap.delta, cap.limit.main, cap.limit.epsilon) == (0.0, 0.0, 0, 0)


def test_the_retired_hold_no_caps_until_that_is_undone() -> None:
    retired = with_retired(NOTHING, "ana", "2030-01-01")
    left = in_force(CAPS, retired)
    assert left.holders == {"owner": ("dataset",)} and left.retired == {"ana": "2030-01-01"}
    assert in_force(CAPS, with_retired(retired, "ana", "")) is CAPS
