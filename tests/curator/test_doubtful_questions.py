"""A condition that no row can meet is told with the price, and beside the answer; never from the rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.curator import Curator

MISSPELT = "SELECT COUNT(*) AS n FROM rides WHERE payment = 'crad'"


def curator_of(payments: list[str | None], zones: list[str]) -> Curator:
    rides = pa.table({"payment": pa.array(payments, pa.string()), "zone": ["north"] * len(payments)})
    return Curator.from_tables(
        rides=rides,
        zones=pa.table({"name": zones}),
        public=["zones"],
        domains={"payment": ["card", "cash"], "rides.zone": "zones.name"},
        budget=(10.0, 1e-6),
    )


@pytest.fixture
def curator() -> Curator:
    return curator_of(["card", "cash", None] * 10, ["north", "south"])


def test_it_is_told_with_the_price_and_beside_the_answer(curator: Curator) -> None:
    said = "payment = 'crad' matches no row: payment can only be 'card' or 'cash'; did you mean 'card'?"
    assert said in curator.price(MISSPELT, epsilon=1.0).notes
    answer = curator.ask(MISSPELT, epsilon=1.0)
    assert said in answer.notes and said in curator.ask(MISSPELT, epsilon=1.0).notes
    assert said in str(answer)


def test_a_domain_in_a_public_table_is_looked_up(curator: Curator) -> None:
    (said,) = curator.price("SELECT COUNT(*) FROM rides WHERE zone = 'noth'", epsilon=1.0).notes
    assert said.endswith("zone can only be 'north' or 'south'; did you mean 'north'?") or "north" in said
    assert curator.price("SELECT COUNT(*) FROM rides WHERE zone = 'south'", epsilon=1.0).notes == ()


def test_rows_have_no_say_in_it() -> None:
    notes = {
        curator_of(payments, ["north"]).price(MISSPELT, epsilon=1.0).notes
        for payments in (["crad"] * 5, ["card"], [None])
    }
    assert len(notes) == 1


def test_a_pilot_tells_it_too(curator: Curator) -> None:
    sql = MISSPELT.replace("COUNT(*)", "COUNT(*) * 1.0 / COUNT(payment)")
    assert any("crad" in note for note in curator.price(sql, within=0.5).notes)
