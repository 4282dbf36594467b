"""Budgets that protect nobody are named, and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from incrowd.catalog import check, weak_promises
from incrowd.curator import Curator


def warnings_of(budget: dict[str, float], **sections: Any) -> list[str]:
    declared = {"sources": {"s": {"csv": "a.csv"}}, "tables": {"t": {"private": False}}, "budget": budget}
    return [sentence.partition(" ")[0] for sentence in weak_promises(check({**declared, **sections}))]


def test_a_promise_that_means_nothing_is_named() -> None:
    assert warnings_of({"epsilon": 20.0, "delta": 1e-3}) == []
    assert warnings_of({"epsilon": 1e6, "delta": 0.5}) == ["budget:", "budget:"]
    assert warnings_of({"epsilon": 1.0, "delta": 0.01}) == ["budget:"]
    groups = {"staff": {"epsilon": 30.0}, "few": {"epsilon": 1.0}}
    assert warnings_of({"epsilon": 40.0}, groups=groups) == ["budget:", "groups.staff:"]


def test_a_curator_warns_when_it_is_opened() -> None:
    with pytest.warns(UserWarning, match=r"epsilon 1e\+06 protects nobody"):
        Curator.from_tables(t=pa.table({"a": [1, 2]}), unit="row", budget=1e6).close()
