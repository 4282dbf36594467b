"""A payment: spent once, recorded once, and free for a question that is on record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incrowd import BudgetExceeded, LedgerError
from incrowd.catalog import SOLE_ANALYST, check
from incrowd.curator.ledger import Ledger
from incrowd.curator.paying import Payment
from incrowd.privacy import Charge, pure
from incrowd.privacy.amounts import UNITS


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    tables = {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}}
    catalog = check({"sources": {"s": {"csv": "a.csv"}}, "tables": tables, "budget": {"epsilon": 1.0}})
    opened = Ledger.open(None, catalog)
    yield opened
    opened.close()


def recall(ledger: Ledger, question: str = "q", version: str = "v1") -> Payment:
    return Payment.recall(ledger, SOLE_ANALYST, question, version)


def spent(ledger: Ledger) -> Charge:
    return ledger.remaining(SOLE_ANALYST)[0].spent


def test_recalling_spends_nothing(ledger: Ledger) -> None:
    payment = recall(ledger)
    assert (payment.recorded, payment.recalled, payment.reservation) == (None, False, None)
    assert payment == Payment(ledger, SOLE_ANALYST, "q", "v1")
    assert spent(ledger) == Charge.nothing()


def test_a_price_is_spent_when_it_is_reserved_and_not_again_when_it_is_recorded(ledger: Ledger) -> None:
    payment = recall(ledger).reserve(pure(0.25))
    assert spent(ledger).epsilon == UNITS // 4
    assert not payment.recalled and payment.recorded is None
    payment.record(b"noisy")
    assert payment.recorded == b"noisy" and not payment.recalled
    assert spent(ledger).epsilon == UNITS // 4


def test_the_same_question_on_the_same_data_is_on_record(ledger: Ledger) -> None:
    recall(ledger).reserve(pure(0.25)).record(b"noisy")
    again = recall(ledger)
    assert again.recorded == b"noisy" and again.recalled
    assert recall(ledger, question="other").recorded is None
    assert recall(ledger, version="v2").recorded is None


def test_what_was_never_recorded_stays_spent_and_is_not_recalled(ledger: Ledger) -> None:
    recall(ledger).reserve(pure(0.25))
    assert recall(ledger).recorded is None
    assert spent(ledger).epsilon == UNITS // 4


def test_a_payment_above_the_budget_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    payment = recall(ledger)
    with pytest.raises(BudgetExceeded):
        payment.reserve(pure(1.5))
    assert payment.reservation is None and spent(ledger) == Charge.nothing()
    assert payment.reserve(pure(1.0)).reservation is not None


def test_reserving_leaves_the_first_payment_unpaid(ledger: Ledger) -> None:
    payment = recall(ledger)
    payment.reserve(pure(0.25))
    with pytest.raises(LedgerError) as refused:
        payment.record(b"noisy")
    assert str(refused.value) == "Nothing was reserved for this release, so it cannot be recorded."
    assert recall(ledger).recorded is None


def test_a_payment_is_recorded_once(ledger: Ledger) -> None:
    payment = recall(ledger).reserve(pure(0.25))
    payment.record(b"first")
    with pytest.raises(LedgerError):
        payment.record(b"second")
    assert recall(ledger).recorded == b"first"
