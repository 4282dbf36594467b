"""A proposal reads no data, says where bounds must come from, and loads once the owner has answered."""

from __future__ import annotations

import pytest

from incrowd.catalog import parse, propose, questions
from incrowd.errors import CatalogError

SCHEMA = {
    "people": {"user_id": "BIGINT", "age": "INTEGER", "income": "DECIMAL(18,2)", "sex": "VARCHAR"},
    "visits": {"user_id": "BIGINT", "day": "DATE", "tags": "VARCHAR[]", "ok": "BOOLEAN"},
}


def test_an_unfilled_proposal_does_not_load_and_says_what_to_fill() -> None:
    text = propose(SCHEMA)
    assert "leak" in text and "no row was read" in text
    assert "# bounds: [FILL, FILL]" in text and "perhaps user_id" in text
    with pytest.raises(CatalogError, match="FILL"):
        parse(text)


def test_a_filled_proposal_loads_with_the_answers() -> None:
    text = propose(
        SCHEMA,
        source={"duckdb": "hospital.duckdb"},
        unit={"people": "user_id", "visits": {"column": "user_id", "per": "day"}},
        bounds={"people.age": (0, 120)},
        domains={"people.sex": ("f", "m", "no")},
        budget=(3.0, 1e-6),
    )
    catalog = parse(text)
    people = catalog.tables["people"]
    assert people.columns["age"].bounds == (0, 120)
    assert people.columns["sex"].domain == ("f", "m", "no")
    assert people.columns["income"].type == "decimal" and people.columns["income"].bounds is None
    assert str(catalog.tables["visits"].unit) == "user_id per day"
    assert "tags" not in catalog.tables["visits"].columns


def test_wrong_answers_are_told() -> None:
    with pytest.raises(CatalogError, match=r"people\.agee: .*perhaps you mean people\.age\."):
        propose(SCHEMA, bounds={"people.agee": (0, 1)})
    with pytest.raises(CatalogError, match="there is no table persons"):
        propose(SCHEMA, unit={"persons": "row"})


def test_each_open_question_is_asked_once() -> None:
    asked = questions(SCHEMA)
    assert [(question.key, question.field) for question in asked] == [
        ("people", "unit"),
        ("people.user_id", "bounds"),
        ("people.age", "bounds"),
        ("people.income", "bounds"),
        ("people.sex", "domain"),
        ("visits", "unit"),
        ("visits.user_id", "bounds"),
        ("visits.day", "bounds"),
    ]
