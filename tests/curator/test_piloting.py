"""Accuracy whose price depends on the data: a pilot says which epsilon is needed."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd import BudgetExceeded, Curator
from incrowd.curator import piloting
from incrowd.curator.piloting import halfwidths
from tests.sweep import sized

ROWS = 8_000
AVERAGE = "SELECT AVG(x) AS a FROM t"


def curator(budget: float = 100.0, unit: str = "row", rows: int = ROWS) -> Curator:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "id": rng.integers(0, max(rows // 4, 1), rows),
            "g": np.arange(rows) % 4,
            "x": np.clip(rng.normal(40, 10, rows), 0, 100),
            "d": pa.array(rng.integers(18_000, 19_000, rows), pa.int32()).cast(pa.date32()),
        }
    )
    bounds = {"x": (0, 100), "d": ("2015-01-01", "2024-01-01")}
    with pytest.warns(UserWarning, match="protects nobody") if budget > 20 else contextlib.nullcontext():
        return Curator.from_tables(
            t=table, unit=unit, bounds=bounds, domains={"g": [0, 1, 2, 3]}, budget=(budget, 1e-6)
        )


def spent(made: Curator) -> float:
    return made.catalog.budget.epsilon - made.budget()[0].affordable


TRIED = sized(3, 10)
RIGHT = 0.4
"""The epsilon at which a plain answer is as wide as is asked for, of at most 1."""


def asked_within(sql: str, unit: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A few times: the width over what was asked, and the price over the right one."""
    plain = [halfwidths(curator(unit=unit).ask(sql, RIGHT))["a"] for _ in range(TRIED)]
    right = float(np.median(plain))
    widths, prices = [], []
    for _ in range(TRIED):
        answer = curator(unit=unit).ask(sql, 1.0, within=right)
        widths.append(halfwidths(answer)["a"] / right)
        prices.append(answer.paid[0] / RIGHT)
    return np.array(widths), np.array(prices)


@pytest.mark.parametrize(
    "sql",
    [
        AVERAGE,
        "SELECT g, AVG(x) AS a FROM t GROUP BY g",
        "SELECT VAR_POP(x) AS a FROM t",
        "SELECT g, SUM(x) / COUNT(*) AS a FROM t GROUP BY g",
    ],
)
def test_the_answer_is_as_wide_as_was_asked_and_costs_what_is_needed(sql: str) -> None:
    """Widths vary with the noise of counts, by a part in 100 here: ten deviations from these limits."""
    widths, prices = asked_within(sql, "row")
    assert (widths <= 1.1).all() and (widths >= 0.7).all(), widths
    assert (prices <= 1.5).all(), prices


@pytest.mark.parametrize(
    ("sql", "unit"),
    [
        ("SELECT MEDIAN(x) AS a FROM t", "row"),
        ("SELECT g, QUANTILE_CONT(x, 0.9) AS a FROM t GROUP BY g", "row"),
        ("SELECT g, STDDEV(x) AS a FROM t GROUP BY g", "row"),
        (AVERAGE, "id"),
        ("SELECT g, COUNT(*) AS a FROM t GROUP BY g", "id"),
    ],
)
def test_what_is_bought_from_the_data_is_met_about(sql: str, unit: str) -> None:
    """Ends at powers of two, caps and centres differ from one ask to the next: by a factor of 2, not of 4."""
    widths, prices = asked_within(sql, unit)
    assert np.median(widths) <= 2.1, widths
    assert (prices <= 1.0005 / RIGHT).all(), prices


def test_the_same_request_again_is_free() -> None:
    made = curator()
    first = made.ask(AVERAGE, 0.1, within=0.15)
    before = made.budget()[0].spent
    again = made.ask(AVERAGE, 0.1, within=0.15)
    assert first.pilot is not None and again.to_arrow() == first.to_arrow()
    assert again.paid == (0.0, 0.0) and again.recalled and made.budget()[0].spent == before
    assert "on record, free" in repr(again)


def test_a_pilot_that_is_accurate_enough_is_the_answer() -> None:
    made = curator()
    answer = made.ask(AVERAGE, 1.0, within=50)
    assert answer.pilot is None and answer.paid[0] == 0.1 and answer.shortfall == ""


def test_what_is_not_enough_is_answered_with_what_it_would_take() -> None:
    made = curator()
    answer = made.ask(AVERAGE, 0.1, within=0.01)
    assert answer.pilot is not None and answer.paid[0] == pytest.approx(0.1)
    width = halfwidths(answer)["a"]
    assert width > 0.01 and answer.shortfall in answer.notes and answer.shortfall in str(answer)
    said = float(answer.shortfall.split()[-1].rstrip("."))
    assert answer.shortfall.startswith(f"a is ± {width:.3g} and not ± 0.01, as was asked: it takes")
    assert halfwidths(made.ask(AVERAGE, said))["a"] <= 0.0125
    assert answer.cost.epsilon(0.0) == pytest.approx(0.1)


def test_empty_tables_are_answered_too() -> None:
    answer = curator(rows=0).ask(AVERAGE, 0.5, within=0.01)
    assert answer.shortfall and answer.paid[0] == pytest.approx(0.5)


def test_groups_that_are_all_hidden_are_no_error() -> None:
    sql = "SELECT id, AVG(x) AS a FROM t GROUP BY id"
    answer = curator().ask(sql, 0.5, within=1.0)
    assert len(answer) == 0 and "no number" in answer.shortfall


def test_a_price_spends_nothing_and_both_steps_have_to_fit() -> None:
    made = curator(budget=0.3)
    price = made.price(AVERAGE, 0.3, within=0.01)
    assert price.fits and price.remaining[0].affordable == pytest.approx(0.0, abs=1e-9)
    assert spent(made) == 0.0
    made.ask("SELECT COUNT(*) FROM t", 0.1)
    assert not made.price(AVERAGE, 0.25, within=0.01).fits
    with pytest.raises(BudgetExceeded):
        made.ask(AVERAGE, 0.25, within=0.01)
    assert spent(made) == pytest.approx(0.1)


def test_a_budget_that_others_use_up_meanwhile_leaves_the_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    made = curator(budget=0.3)

    def use_up(*_: Any) -> None:
        made.ask("SELECT COUNT(*) FROM t", 0.2)

    monkeypatch.setattr(piloting, "_needed", use_up)
    answer = made.ask(AVERAGE, 0.25, within=0.01)
    assert answer.paid[0] == 0.025 and answer.shortfall.startswith("Only the pilot is answered")


def test_dates_count_in_days() -> None:
    answer = curator().ask("SELECT MEDIAN(d) AS m FROM t", 1.0)
    (low,), (high,) = (answer.to_arrow(True).column(f"m_{end}").to_pylist() for end in ("low", "high"))
    assert (high - low).days / 2 <= halfwidths(answer)["m"] <= (high - low).days
