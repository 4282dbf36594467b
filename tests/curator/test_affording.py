"""Which epsilon a request means: its own, its SQL's, the owner's, or the cheapest that is accurate enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import Curator, InvalidInput, NotPermitted, QueryError
from incrowd.curator.affording import NEAREST, price_of
from incrowd.curator.prices import LEAST_SHARE, Price
from incrowd.curator.request import Request

PEOPLE = pa.table({"id": [1, 1, 2], "age": [20, 30, 40]})
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with Curator.from_tables(people=PEOPLE, unit="id", bounds={"age": (0, 100)}, budget=(5.0, 1e-6)) as made:
        yield made


def priced(curator: Curator, sql: str, epsilon: Any = None, **options: Any) -> Price:
    return price_of(curator.prepare(Request(sql, epsilon, **options)), curator.catalog)


def test_the_request_wins_over_the_sql_and_the_sql_over_the_owner(curator: Curator) -> None:
    named = COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.7)")
    assert priced(curator, named, 0.3).epsilon == 0.3
    assert priced(curator, named).epsilon == 0.7
    assert priced(curator, COUNT).epsilon == curator.catalog.default_epsilon


def test_the_whole_budget_may_be_asked_and_nothing_above(curator: Curator) -> None:
    assert priced(curator, COUNT, 5.0).epsilon == 5.0
    with pytest.raises(NotPermitted) as refused:
        priced(curator, COUNT, 5.01)
    assert str(refused.value) == "epsilon 5.01 is above the dataset's whole budget of 5; ask for less."


@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), float("nan"), "1"])
def test_an_epsilon_that_is_no_positive_number_is_refused(curator: Curator, epsilon: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        priced(curator, COUNT, epsilon)
    assert str(refused.value) == f"epsilon must be a positive number, not {epsilon!r}."


@given(st.floats(3.0, 3_000.0), st.sampled_from([0.5, 0.9, 0.99]))
@settings(max_examples=15)
def test_within_buys_the_cheapest_epsilon_that_is_accurate_enough(within: float, confidence: float) -> None:
    with Curator.from_tables(people=PEOPLE, unit="id", budget=(5.0, 0.0)) as curator:
        options = {"contribution": 2, "confidence": confidence}
        cheapest = priced(curator, COUNT, within=within, **options)
        width = cheapest.halfwidths["n"]
        assert width is not None and width <= within
        less = priced(curator, COUNT, cheapest.epsilon / NEAREST**2, **options).halfwidths["n"]
        assert less is not None and less > within


def test_the_widest_of_several_columns_decides(curator: Curator) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(age) AS s FROM people"
    price = priced(curator, sql, within=5_000, contribution=1)
    widths = {name: width for name, width in price.halfwidths.items() if width is not None}
    assert widths["n"] < widths["s"] <= 5_000
    assert widths["s"] == pytest.approx(5_000, rel=1e-5)


def test_an_epsilon_beside_within_is_the_most(curator: Curator) -> None:
    cheapest = priced(curator, COUNT, within=50, contribution=1).epsilon
    assert priced(curator, COUNT, 2 * cheapest, within=50, contribution=1).epsilon == pytest.approx(cheapest)
    with pytest.raises(NotPermitted) as refused:
        priced(curator, COUNT, cheapest / 2, within=50, contribution=1)
    assert str(refused.value) == (
        f"Answers within 50 at 95% confidence would need an epsilon above {cheapest / 2:g}; "
        "accept a larger error."
    )


def test_an_error_that_any_noise_keeps_costs_the_least_epsilon_that_can_be_drawn() -> None:
    """A search that meets an epsilon too little to be drawn goes on above it."""
    with Curator.from_tables(people=PEOPLE, unit="id", budget=(0.1, 0.0)) as curator:
        assert priced(curator, COUNT, within=1e9, contribution=1).epsilon == pytest.approx(LEAST_SHARE)
        width = priced(curator, COUNT, within=50, contribution=1).halfwidths["n"]
        assert width == pytest.approx(50, rel=1e-5)


@pytest.mark.parametrize("within", [0, -3, float("inf"), float("nan"), "5"])
def test_an_error_that_is_no_positive_number_is_refused(curator: Curator, within: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        priced(curator, COUNT, within=within, contribution=1)
    assert str(refused.value) == f"within must be a positive number, not {within!r}."


@pytest.mark.parametrize(
    "sql", [COUNT, "SELECT AVG(age) AS a FROM people", f"SELECT n / 2 AS h FROM ({COUNT}) AS t"]
)
def test_an_error_that_is_not_known_beforehand_is_priced_as_a_pilot_and_the_rest(
    curator: Curator, sql: str
) -> None:
    price = priced(curator, sql, 0.5, within=5)
    pilot, rest = price.steps
    assert (pilot.epsilon, rest.epsilon, price.epsilon) == (0.05, 0.45, 0.5)
    assert pilot.delta + rest.delta == pytest.approx(price.delta)
    assert price.lines == (
        *(replace(line, label=f"{line.label}, in the pilot") for line in pilot.lines),
        *rest.lines,
    )
    assert price.charge == pilot.charge + rest.charge
    assert priced(curator, sql, within=5).epsilon == curator.catalog.default_epsilon
    assert "pilot" in str(price) and "pilot of epsilon 0.05" in price.notes[0]


def test_a_pilot_too_small_to_be_drawn_is_refused_before_anything_is_spent(curator: Curator) -> None:
    with pytest.raises(
        InvalidInput, match=r"^A pilot with a tenth of epsilon would .* epsilon 0.0001 is too"
    ):
        priced(curator, "SELECT AVG(age) AS a FROM people", 1e-3, within=5)


def test_an_error_of_numbers_without_intervals_cannot_be_asked_for(curator: Curator) -> None:
    sql = f"SELECT n % 7 AS s FROM ({COUNT}) AS t"
    with pytest.raises(QueryError, match=r"^within= needs a number with an interval, and this question has"):
        priced(curator, sql, within=5)
