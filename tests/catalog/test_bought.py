"""What tuning bought is read, kept and written like any other part of the owner's file."""

from __future__ import annotations

import datetime as dt

import pytest

from incrowd.catalog import Catalog, dump, parse
from incrowd.errors import CatalogError

TEXT = """\
sources: {main: {csv: visits.csv}}
tables:
  visits:
    unit: patient
    contribution: 8
    columns:
      patient: {type: integer}
      cost: {type: float, bounds: [0, 512], contribution: 4096}
      ward: {type: text, domain: [a, b]}
budget: {epsilon: 3.0, delta: 1e-6}
bought:
  visits:
    contribution: {epsilon: 0.25, at: 2026-11-16, answer: a1, up_to: 1, units: [90, 40, -3]}
    columns:
      cost:
        bounds: {epsilon: 0.1, at: 2026-11-16, answer: a1, declared: [0, 10000], outside: 3}
        contribution: {epsilon: 0.25, at: 2026-11-16, answer: a1, up_to: 0.5, units: [9, 80]}
      ward:
        domain: {epsilon: 0.2, delta: 1e-8, at: 2026-11-16, answer: a1, least: 120}
"""


def parsed(old: str = "", new: str = "") -> Catalog:
    assert old in TEXT
    return parse(TEXT.replace(old, new))


def test_what_was_bought_is_read_and_survives_being_written() -> None:
    catalog = parsed()
    rows = catalog.bought_of("visits").contribution
    assert rows is not None
    assert (rows.epsilon, rows.at, rows.up_to, rows.units) == (0.25, dt.date(2026, 11, 16), 1.0, (90, 40, -3))
    assert parse(dump(catalog)) == catalog


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("units: [90, 40, -3]", f"units: {[1] * 65}"),
        ("units: [90, 40, -3]", f"units: [{2**53 + 1}, 1]"),
        ("up_to: 1,", "up_to: 1e300,"),
        ("up_to: 1,", "up_to: 1e-300,"),
    ],
)
def test_a_census_that_no_tuning_writes_is_refused(old: str, new: str) -> None:
    """Caps are chosen from it after payment, when nothing may fail."""
    with pytest.raises(CatalogError, match="as tuning wrote"):
        parsed(old, new)


def test_a_table_about_which_nothing_was_bought_has_no_marks() -> None:
    assert parsed().bought_of("wards").contribution is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    contribution: 8\n", "", "bought.visits.contribution: the value that this entry is about"),
        (", contribution: 4096", "", "bought.visits.columns.cost.contribution: the value"),
        (", domain: [a, b]", "", "bought.visits.columns.ward.domain: the value"),
        ("bought:\n  visits", "bought:\n  visit", "there is no private table visit, perhaps you mean visits"),
        ("      ward:\n        domain", "      wart:\n        domain", "no column wart is declared"),
        ("units: [90, 40, -3]", "units: [90]", "expected the noisy numbers of units"),
        ("units: [90, 40, -3]", "units: [90, no]", "expected a whole number, not 'no'"),
        (
            "at: 2026-11-16, answer: a1, up_to: 1,",
            "at: soon, answer: a1, up_to: 1,",
            "expected a day such as",
        ),
        ("declared: [0, 10000]", "declared: 10000", "expected two values"),
    ],
)
def test_a_fault_is_named(old: str, new: str, said: str) -> None:
    with pytest.raises(CatalogError) as error:
        parsed(old, new)
    assert said in str(error.value) and str(error.value).count("\n") == 0
