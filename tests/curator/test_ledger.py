"""The ledger's front door: what it exports, and one payment through it."""

from __future__ import annotations

from pathlib import Path

from incrowd.catalog import SOLE_ANALYST, check
from incrowd.curator import ledger
from incrowd.curator.ledger import Head, Ledger
from incrowd.privacy import pure
from incrowd.privacy.amounts import UNITS


def test_every_name_that_is_exported_is_there() -> None:
    assert ledger.__all__ == sorted(ledger.__all__)
    assert all(hasattr(ledger, name) for name in ledger.__all__)


def test_a_payment_is_kept_recalled_and_verified(tmp_path: Path) -> None:
    tables = {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}}
    catalog = check({"sources": {"s": {"csv": "a.csv"}}, "tables": tables, "budget": {"epsilon": 1.0}})
    opened = Ledger.found(tmp_path / "test.ledger", catalog)
    opened.record(opened.reserve(SOLE_ANALYST, pure(0.25), "q", "v"), b"noisy")
    noted = str(opened.head())
    opened.close()
    again = Ledger.open(tmp_path / "test.ledger", catalog)
    assert again.recall("q", "v", SOLE_ANALYST) == b"noisy"
    assert again.remaining(SOLE_ANALYST)[0].spent.epsilon == UNITS // 4
    assert again.verify(Head.from_text(noted)).ok
    again.close()
