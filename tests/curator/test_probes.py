"""The questions of a tuning: about what is not declared yet, and in cells that each unit is in once."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd import Curator
from incrowd.catalog import catalog_for
from incrowd.curator.probes import probes_of
from tests.curator.test_tuning import VISITS, curator_of

TYPES = {"id": "int64", "day": "date32", "pay": "double", "age": "int64", "town": "string"}


def probed(delta: float = 1e-8, **settings: Any) -> list[tuple[str, str]]:
    bounds = {"pay": (-100, 10_000), "age": (0, 120)}
    catalog = catalog_for({"people": TYPES}, **{"unit": "id", "bounds": bounds, **settings})
    return [(probe.kind, probe.column) for probe in probes_of(catalog, "people", delta)]


def test_rows_totals_ranges_quantiles_and_keys_are_measured() -> None:
    assert probed() == [
        ("rows", ""),
        ("totals", "pay"),
        ("above", "pay"),
        ("below", "pay"),
        ("quantiles", "pay"),
        ("totals", "age"),
        ("quantiles", "age"),
        ("keys", "town"),
    ]


def test_what_is_declared_is_not_measured() -> None:
    declared = {"people": 3, "pay": 100, "age": 100}
    assert probed(contribution=declared, domains={"town": ["york"]}) == [
        ("above", "pay"),
        ("below", "pay"),
        ("quantiles", "pay"),
        ("quantiles", "age"),
    ]


def test_rows_that_are_units_have_no_totals_and_texts_need_a_delta() -> None:
    assert probed(unit="row", delta=0.0) == [
        ("above", "pay"),
        ("below", "pay"),
        ("quantiles", "pay"),
        ("quantiles", "age"),
    ]


@pytest.mark.parametrize("unit", ["patient", ("patient", "day"), "row"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_every_probe_can_be_asked_and_a_unit_moves_its_cells_by_one(unit: Any, relation: str) -> None:
    with curator_of(VISITS, unit=unit, relation=relation, bounds={"visits.cost": (-5.0, 512.0)}) as curator:
        for probe in probes_of(curator.catalog, "visits", 1e-8):
            rows = 1 if probe.kind == "quantiles" else None
            price = curator.price(
                probe.sql, 1.0, delta=1e-8 if probe.kind == "keys" else 0, contribution=rows
            )
            if probe.kind in ("rows", "totals", "above", "below"):
                assert [line.kind for line in price.lines] == ["sum"]
                assert price.caps == {"COUNT(*)": None}


def test_a_census_holds_each_unit_in_its_octave() -> None:
    with Curator.from_tables(
        visits=VISITS, unit="patient", bounds={"cost": (0.0, 512.0)}, budget=(1e6, 1e-6)
    ) as curator:
        (rows,) = [probe for probe in probes_of(curator.catalog, "visits", 0) if probe.kind == "rows"]
        cells = curator.ask(rows.sql, 1e4, delta=0.0).to_arrow().column("n").to_pylist()
        assert cells[:4] == [100, 0, 100, 0] and sum(cells) == 200
