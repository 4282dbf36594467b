"""The running totals: what caps have spent, by day where they count days, and the hash that entries state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator.ledger.limits import Cap
from incrowd.curator.ledger.totals import Totals, charge_content, charge_lost
from incrowd.privacy import Capacity, Charge, pure

LIMIT = Capacity("pure", 0, 0, 0)
WHOLE, DAILY = (
    Cap(key, key, 1.0, 0.0, LIMIT, daily=daily) for key, daily in (("dataset", False), ("day:ana", True))
)
ASKED = pure(0.25).charge(0.0)
TEXT = st.text(st.characters(codec="ascii"), max_size=6)
ROWS = st.dictionaries(TEXT, st.tuples(TEXT, TEXT), max_size=4)


def test_a_charge_is_added_to_each_cap_and_a_daily_one_begins_anew() -> None:
    first = Totals({}).charged([WHOLE, DAILY], ASKED, "2030-01-01")
    again = first.charged([WHOLE, DAILY], ASKED, "2030-01-01")
    assert again.spent(WHOLE, "2030-01-01") == again.spent(DAILY, "2030-01-01") == ASKED + ASKED
    later = again.charged([WHOLE, DAILY], ASKED, "2030-01-02")
    assert later.spent(WHOLE, "2030-01-02") == ASKED + ASKED + ASKED
    assert later.spent(DAILY, "2030-01-02") == ASKED
    assert again.spent(DAILY, "2030-01-02") == Charge.nothing()
    # A clock set back opens no spent day again.
    assert later.spent(DAILY, "2030-01-01") == ASKED


@given(ROWS, ROWS, TEXT, TEXT)
def test_every_difference_changes_what_is_stated(
    one: dict[str, tuple[str, str]], two: dict[str, tuple[str, str]], day: str, terms: str
) -> None:
    stated = Totals(one).stated(day, terms)
    assert stated == Totals(dict(reversed(one.items()))).stated(day, terms)
    assert (stated == Totals(two).stated(day, terms)) is (one == two)
    assert stated != Totals(one).stated(day + "x", terms) and stated != Totals(one).stated(day, terms + "x")


def test_rows_that_no_curator_writes_state_nothing() -> None:
    assert Totals({"dataset": (None, "")}).stated("2030-01-01", "") == ""  # type: ignore[dict-item]


def test_the_owners_changes_are_no_caps() -> None:
    rows = {"dataset": ("", ""), "analyst:ana": ("", ""), "day:ana": ("", ""), "limit:ana": ("", "")}
    assert Totals(rows).caps() == {"dataset", "analyst:ana", "day:ana"}


def test_what_was_lost_is_charged_to_everybody() -> None:
    before = Totals({"analyst:ana": ("", charge_content(ASKED))})
    after = charge_lost(before, ["dataset", "analyst:ana", "day:ana"], ASKED, "2030-01-01")
    assert after.rows == {
        "dataset": ("", charge_content(ASKED)),
        "analyst:ana": ("", charge_content(ASKED + ASKED)),
        "day:ana": ("2030-01-01", charge_content(ASKED)),
    }
