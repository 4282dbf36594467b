"""Charges as text: every whole number comes back as it was, and anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd import LedgerError
from incrowd.curator.ledger.charges import FIELDS, charge_from_json, charge_from_text, charge_to_text, covers
from incrowd.privacy import Charge, gaussian, pure

AMOUNTS = st.integers(0, 2**300)
CHARGES = st.builds(
    Charge,
    epsilon=st.none() | AMOUNTS,
    rho=st.none() | AMOUNTS,
    delta=AMOUNTS,
    mu2=st.none() | AMOUNTS,
)
REFUSED = "A charge in the ledger cannot be read; run incrowd ledger verify."


@given(CHARGES)
def test_a_charge_comes_back_from_text_and_from_json(charge: Charge) -> None:
    content = charge_to_text(charge)
    assert charge_from_text(content) == charge
    assert charge_from_json(json.dumps(content)) == charge


@given(CHARGES)
def test_no_reader_of_json_rounds_a_charge(charge: Charge) -> None:
    """Numbers beyond 2^53 are text, which a reader with floats keeps."""
    assert all(text is None or isinstance(text, str) for text in charge_to_text(charge).values())


def test_the_fields_are_those_of_a_charge() -> None:
    assert set(FIELDS) == set(Charge._fields)
    assert charge_to_text(Charge(2**70, None, 3, 4)) == {
        "epsilon": str(2**70),
        "rho": None,
        "delta": "3",
        "mu2": "4",
    }


WHOLE: dict[str, Any] = {"epsilon": "1", "rho": "1", "delta": "1", "mu2": "1"}


@pytest.mark.parametrize(
    "content",
    [
        {**WHOLE, "epsilon": "-1"},
        {**WHOLE, "epsilon": "1.5"},
        {**WHOLE, "epsilon": ""},
        {**WHOLE, "rho": "many"},
        {**WHOLE, "delta": None},
        {**WHOLE, "mu2": ["1"]},
        {"epsilon": "1", "rho": "1", "delta": "1"},
        {},
        [],
        None,
        "text",
    ],
)
def test_what_is_no_charge_is_refused(content: Any) -> None:
    for read in (lambda: charge_from_text(content), lambda: charge_from_json(json.dumps(content))):
        with pytest.raises(LedgerError) as refused:
            read()
        assert str(refused.value) == REFUSED


@pytest.mark.parametrize("text", ["", "{", "nothing", "[1"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(LedgerError) as refused:
        charge_from_json(text)
    assert str(refused.value) == REFUSED


@given(CHARGES, CHARGES)
def test_a_sum_covers_its_parts_and_a_charge_covers_itself(one: Charge, other: Charge) -> None:
    assert covers(one, one)
    assert covers(one + other, one) and covers(one + other, other)


@given(CHARGES, st.sampled_from(FIELDS))
def test_one_unit_less_in_any_currency_does_not_cover(charge: Charge, name: str) -> None:
    amount = getattr(charge, name)
    more = charge._replace(**{name: 1 if amount is None else amount + 1})
    if amount is None:
        assert covers(charge, more) and not covers(more, charge)
    else:
        assert covers(more, charge) and not covers(charge, more)


def test_only_an_unbounded_payment_covers_an_unbounded_cost() -> None:
    unbounded = gaussian(0.1).charge()
    assert unbounded.epsilon is None and pure(5.0).charge().epsilon is not None
    assert not covers(pure(5.0).charge()._replace(rho=unbounded.rho, mu2=unbounded.mu2), unbounded)
    assert covers(Charge(None, None, 0, None), Charge(None, None, 0, None))
