"""The ledger's clock: days never go back by themselves, and leaps are not believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator.ledger.clock import LEAP, counted_day, day_of, is_leap, moment_of, moved_to, shown_day
from incrowd.curator.ledger.totals import Totals, charge_content
from incrowd.errors import InvalidInput, LedgerError
from incrowd.privacy import Charge, pure

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def test_a_moment_is_that_of_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert day_of(moment_of(datetime(2030, 1, 2, 3, tzinfo=east))) == "2030-01-01"
    with pytest.raises(InvalidInput, match="must have a time zone"):
        moment_of(datetime(2030, 1, 1))
    assert moment_of(None).tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_a_day_never_goes_back_and_a_leap_opens_none(moment: datetime, before: datetime) -> None:
    last = day_of(before)
    leapt = (moment.date() - before.date()).days > LEAP.days
    assert is_leap(moment, last) is leapt
    assert shown_day(moment, last) == (last if leapt else max(last, day_of(moment)))
    if leapt:
        with pytest.raises(LedgerError, match="set the clock right"):
            counted_day(moment, last, "a.ledger")
    else:
        assert counted_day(moment, last, "a.ledger") == max(last, day_of(moment))


def test_what_was_charged_from_the_corrected_day_on_counts_on_that_day() -> None:
    spent = pure(0.5).charge(0.0)
    rows = {
        "dataset": ("", charge_content(spent)),
        "day:ana": ("2099-01-01", charge_content(Charge.nothing())),
        "day:bob": ("2030-01-01", charge_content(spent)),
    }
    moved = moved_to(Totals(rows), "2030-05-01", {"day:ana": spent})
    assert moved.rows == {**rows, "day:ana": ("2030-05-01", charge_content(spent))}
