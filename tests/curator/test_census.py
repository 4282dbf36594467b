"""Caps chosen privately: the census counts units by powers of two, and no cap is too wide to be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import Curator
from incrowd.backends import census_statement
from incrowd.backends.measures import BALL_BITS, CENSUS_CELLS
from incrowd.curator import census, contribution, pricing
from incrowd.curator.affording import price_of
from incrowd.curator.census import WIDEST_CAP, ChosenCaps, _counts, choose_caps
from incrowd.curator.contribution import Caps, Situation
from incrowd.curator.prices import Line
from incrowd.curator.released import Stated
from incrowd.curator.request import Request
from incrowd.query import Centre

ROWS = [1, 2, 2, 3, 4, 5, 8, 9]
"""How many rows each unit has."""
IDS = [unit for unit, rows in enumerate(ROWS) for _ in range(rows)]
PEOPLE = pa.table({"id": IDS, "pay": [10.0] * len(IDS), "town": ["york"] * len(IDS)})


def curator_of(people: pa.Table, **changes: Any) -> Curator:
    settings: dict[str, Any] = {
        "unit": "id",
        "bounds": {"pay": (0, 16)},
        "domains": {"town": ["york", "hull"]},
        "budget": (1e6, 1e-6),
        **changes,
    }
    return Curator.from_tables(people=people, **settings)


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with curator_of(PEOPLE) as made:
        yield made


COUNT = "SELECT COUNT(*) AS n FROM people"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"


def cells_of(curator: Curator, sql: str) -> list[int]:
    """Units per cell of the census, without noise, up to the last that holds one."""
    (leaf,) = curator.prepare(Request(sql)).plan.leaves
    counts = _counts(curator.backend.run(census_statement(leaf).tree), 0)
    assert len(counts) == CENSUS_CELLS + 1
    cells = counts - np.append(counts[1:], 0)
    return list(np.trim_zeros(cells, "b"))


def test_the_census_counts_units_by_powers_of_two(curator: Curator) -> None:
    """Cell 0 holds units of one row, cell j those of more than 2^(j - 1) up to 2^j rows."""
    assert cells_of(curator, COUNT) == [1, 2, 2, 2, 1]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
@settings(max_examples=10)
def test_each_unit_is_in_the_cell_of_its_rows(rows: list[int]) -> None:
    ids = [unit for unit, count in enumerate(rows) for _ in range(count)]
    expected = np.bincount([(count - 1).bit_length() for count in rows])
    with curator_of(pa.table({"id": ids, "pay": [1.0] * len(ids), "town": ["york"] * len(ids)})) as made:
        assert cells_of(made, COUNT) == expected.tolist()


def test_units_without_a_row_that_counts_are_in_no_cell(curator: Curator) -> None:
    assert cells_of(curator, f"{COUNT} WHERE pay > 100") == []
    assert cells_of(curator, f"{COUNT} WHERE id > 5") == [0, 0, 0, 1, 1]


def chosen(curator: Curator, sql: str, epsilon: float = 1e5, **options: Any) -> ChosenCaps:
    question = curator.prepare(Request(sql, epsilon, **options))
    price = price_of(question, curator.catalog)
    (leaf,), (keys,) = question.plan.leaves, question.keys
    return choose_caps(0, leaf, price, curator.backend, keys, None)


def test_a_large_budget_cuts_nobody(curator: Curator) -> None:
    assert list(chosen(curator, COUNT).caps.values()) == [16.0]
    assert list(chosen(curator, BY_TOWN).caps.values()) == [16.0]


def test_the_cap_of_a_sum_is_in_values(curator: Curator) -> None:
    """The heaviest unit has 9 rows of 10, which is at most 128 in powers of two times 16."""
    assert list(chosen(curator, "SELECT SUM(pay) AS s FROM people").caps.values()) == [128.0]


def test_measures_of_an_average_share_one_cap_around_one_centre(curator: Curator) -> None:
    """All values are 10. The heaviest unit's nine rows weigh half each."""
    of_average = chosen(curator, AVERAGE)
    (cap,), (centre,) = of_average.caps.values(), of_average.centres.values()
    assert 4.5 <= cap <= 32 and centre.middle == pytest.approx(10, abs=0.1) and centre.spread < 0.5


def test_a_cap_that_somebody_named_is_not_chosen(curator: Curator) -> None:
    class Untouched:
        def run(self, *_: object) -> None:
            raise AssertionError("no census is needed")

    question = curator.prepare(Request(COUNT, 1.0, contribution=3))
    price = price_of(question, curator.catalog)
    (leaf,) = question.plan.leaves
    untouched: Any = Untouched()
    assert choose_caps(0, leaf, price, untouched, None, None) == ChosenCaps()


@pytest.mark.parametrize("best", [1.0, 12.0, 2.0**WIDEST_CAP, 2.0**WIDEST_CAP + 1, 2.0**CENSUS_CELLS])
def test_a_cap_of_rows_is_never_above_two_to_the_32(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, best: float
) -> None:
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(best, best * 8))
    for sql in (COUNT, BY_TOWN, "SELECT MEDIAN(pay) AS a FROM people"):
        caps = chosen(curator, sql)
        assert list(caps.caps.values()) == [min(best, 2.0**32)]
        assert all(large <= 2.0**32 for large in caps.generous.values())
        assert all(stated.cap <= 2.0**32 for stated in caps.stated.values())
    (ball,) = chosen(curator, AVERAGE).caps.values()
    assert ball == min(best, 2.0**32) / 2**BALL_BITS


@pytest.mark.parametrize(("large", "expected"), [(4.0, {}), (8.0, {"m0": 8.0})])
def test_a_generous_cap_is_used_where_it_is_above_the_cap(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, large: float, expected: dict[str, float]
) -> None:
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(4.0, large))
    assert chosen(curator, BY_TOWN).generous == {}
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 3)
    caps = chosen(curator, BY_TOWN)
    assert list(caps.caps.values()) == [4.0] and caps.generous == expected
    assert chosen(curator, BY_TOWN, rescale=False).generous == {}


def stated(curator: Curator, sql: str, **options: Any) -> Stated:
    (only,) = chosen(curator, sql, **options).stated.values()
    return only


def test_a_number_is_about_the_cap_that_its_sums_are_scaled_to(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight units have 1, 2, 2, 3, 4, 5, 8 and 9 rows; there is hardly any noise."""
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(2.0, 8.0, 30.0))
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 3)
    assert stated(curator, BY_TOWN) == Stated(8.0, 1, 30.0, 6.0)
    assert stated(curator, BY_TOWN, rescale=False) == Stated(2.0, 5, 30.0)
    medians = chosen(curator, "SELECT MEDIAN(pay) AS a FROM people").stated
    assert medians == {"m0": Stated(2.0, 5, 30.0)}


def test_an_average_is_about_rows_at_the_centre(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows at the centre weigh 1 and 64 steps; units have 1 to 9 rows, all of them at the centre."""
    centre = Centre(10.0, 4.0)
    monkeypatch.setattr(census, "centre_of", lambda *_: centre)
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(128.0, 256.0, 64.0**2))
    average = chosen(curator, AVERAGE)
    assert average.stated == dict.fromkeys(("m0", "m1"), Stated(4.0, 3, 1.0))
    assert average.centres == {"x0": centre}
    # The cap is far above what nine of ten units weigh: their counts weigh more, and need less noise.
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(2.0**12, 2.0**12))
    average = chosen(curator, AVERAGE)
    (rows,) = average.rows.values()
    assert rows == 2.0 * 2 * 2**9 / 2**12
    # Such a cap cuts units that weigh more than a quarter of it did in the census.
    assert set(average.stated.values()) == {Stated(32.0, 0, 0.0)}


def test_what_is_stated_of_a_sum_is_in_values(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heaviest row may be 16, which is 2^20 in the census. Units have 10, 20, 20, ..., 80 and 90."""
    monkeypatch.setattr(contribution, "choose", lambda *_: Caps(2.0**21, 2.0**22, 2.0**40))
    assert stated(curator, "SELECT SUM(pay) AS s FROM people") == Stated(64.0, 2, 256.0)


def told(curator: Curator, monkeypatch: pytest.MonkeyPatch, sql: str, **options: Any) -> Situation:
    """What `contribution.choose` is told about a question, besides the noisy cells."""
    seen: list[Situation] = []

    def choose(_: object, situation: Situation) -> Caps:
        seen.append(situation)
        return Caps(1.0, 1.0)

    monkeypatch.setattr(contribution, "choose", choose)
    chosen(curator, sql, 8.0, **options)
    return seen[0]


AVERAGE = "SELECT AVG(pay) AS a FROM people"


def test_the_choice_knows_the_budget_the_groups_and_the_use(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(curator, monkeypatch, COUNT, delta=0.0) == Situation(
        "total", pytest.approx(8 * 0.54 / 1.54), pytest.approx(8 / 1.54), far=11
    )
    few = told(curator, monkeypatch, BY_TOWN, delta=0.0)
    assert (few.epsilon, few.epsilon_sums) == pytest.approx((8 * 0.15 / 1.15, 8 / 1.15))
    assert (few.groups, few.use, few.epsilon_totals) == (3, "total", 0.0)
    monkeypatch.setattr(pricing, "SCALED_GROUPS", 3)
    grouped = told(curator, monkeypatch, BY_TOWN, delta=0.0)
    shares = (grouped.epsilon, grouped.epsilon_sums, grouped.epsilon_totals)
    assert shares == pytest.approx([8 * share / 1.25 for share in (0.15, 1.0, 0.1)])
    assert (grouped.groups, grouped.distance, grouped.use) == (3, 1, "rescaled")
    plain = told(curator, monkeypatch, BY_TOWN, delta=0.0, rescale=False)
    assert (plain.use, plain.epsilon_totals) == ("sum", 0.0)
    assert told(curator, monkeypatch, AVERAGE).use == "joint"
    # Of a median's epsilon, half draws the point; three ranks come from a tree of two levels.
    median = told(curator, monkeypatch, "SELECT MEDIAN(pay) AS a FROM people")
    assert median.use == "rank" and median.epsilon_sums == pytest.approx(8 / 1.15 / 2)
    ranks = ", ".join(f"QUANTILE_CONT(pay, {rank}) AS a{place}" for place, rank in enumerate((0.1, 0.5, 0.9)))
    assert told(curator, monkeypatch, f"SELECT {ranks} FROM people").epsilon_sums < 8 / 1.15 / 2
    private = told(curator, monkeypatch, "SELECT pay, COUNT(*) AS n FROM people GROUP BY pay")
    assert private.groups is None


def test_the_choice_knows_what_a_unit_weighs(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of 16 is 2^20 steps of the census; rows, and groups, are counted."""
    amounts = told(curator, monkeypatch, "SELECT SUM(pay) AS s FROM people")
    assert (amounts.row, amounts.counts, amounts.paired, amounts.far) == (2.0**20, False, False, 24)
    rows = told(curator, monkeypatch, COUNT)
    assert (rows.row, rows.counts, rows.paired) == (1.0, True, False)
    ball = told(curator, monkeypatch, AVERAGE)
    assert (ball.row, ball.counts, ball.paired, ball.far) == (64.0, True, False, None)
    people = told(curator, monkeypatch, "SELECT town, COUNT(DISTINCT id) AS n FROM people GROUP BY town")
    assert (people.row, people.counts, people.paired) == (1.0, True, True)


def test_replacing_a_unit_moves_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator_of(PEOPLE, relation="replace") as made:
        assert told(made, monkeypatch, COUNT).distance == 2


def test_gaussian_noise_counts_as_laplace_noise_of_its_width() -> None:
    """Laplace noise of scale b has the standard deviation sqrt(2) b."""
    laplace = Line(0, "sum", "m0", "", "laplace", epsilon=Fraction(1, 2))
    gaussian = Line(0, "sum", "m0", "", "gaussian", mu=0.5)
    assert laplace.epsilon_like == 0.5
    assert gaussian.epsilon_like == pytest.approx(2**0.5 * 0.5)
