"""What is left of a cap, in words and numbers, and which cap is the tightest."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.curator.ledger import Balance, balances
from incrowd.curator.ledger.limits import Cap
from incrowd.privacy import Capacity, Charge, capacity, gaussian, pure

LIMIT = Capacity("zcdp", 100, 50, 40)


@pytest.mark.parametrize(
    ("spent", "asked", "room"),
    [
        # The better of rho (90 of 20) and epsilon (30 of 60), and never more than delta allows.
        (Charge(10, 10, 0, None), Charge(60, 20, 0, None), "9/2"),
        (Charge(10, 99, 0, None), Charge(60, 20, 0, None), "1/2"),
        (Charge(10, 10, 40, None), Charge(60, 20, 30, None), "1/3"),
        (Charge(10, 10, 0, None), Charge(60, 20, 5, None), "9/2"),
        (Charge(90, 110, 60, None), Charge(60, 20, 5, None), "0"),
        (Charge(10, 10, 0, None), Charge(None, 20, 0, None), "9/2"),
        (Charge(None, 10, 0, None), Charge(60, None, 0, None), "-1"),
        (Charge(10, None, 0, None), Charge(60, 20, 0, None), "1/2"),
    ],
)
def test_the_tightest_cap_is_the_one_with_the_least_room(spent: Charge, asked: Charge, room: str) -> None:
    assert balances._room(LIMIT, spent, asked) == Fraction(room)


@pytest.mark.parametrize(
    ("spent", "share"),
    [
        (Charge(0, 0, 0, 0), 1.0),
        (Charge(30, 25, 0, None), 0.75),
        (Charge(10, 90, 0, None), 0.75),
        (Charge(None, 90, 0, None), 0.1),
        (Charge(90, None, 0, None), 0.0),
        (Charge(None, None, 0, None), 0.0),
    ],
)
def test_the_share_that_is_left_is_that_of_the_better_rule(spent: Charge, share: float) -> None:
    balance = Balance(Cap("dataset", "The dataset's budget", 1.0, 0.0, LIMIT), spent)
    assert balance.share == pytest.approx(share)
    assert Balance(Cap("a", "a", 0.0, 0.0, Capacity("pure", 0, 0, 0)), spent).share == 0.0


def test_a_balance_in_words_names_delta_where_there_is_one() -> None:
    limit = capacity(1.0)
    assert str(Balance(Cap("a", "Ana's budget", 1.0, 0.0, limit), Charge.nothing())) == (
        "Ana's budget: epsilon 1 left of epsilon 1"
    )
    told = Balance(Cap("a", "Ana's budget", 1.0, 1e-6, limit), pure(0.25).charge())
    assert repr(told) == "<Balance Ana's budget: epsilon 0.75 left of epsilon 1, delta 1e-06>"
    assert told.affordable == 0.75
    # Spent in a currency that the budget cannot hold: nothing is left to afford.
    assert Balance(told.cap, gaussian(1).charge()).affordable == 0.0
