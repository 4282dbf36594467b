"""Catalogs made in code are checked as files are."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.catalog import catalog_for
from incrowd.errors import CatalogError

TABLES = {
    "people": {
        "user_id": "int64",
        "age": "int64",
        "region": "string",
        "when": "timestamp[us]",
        "blob": "binary",
    },
    "regions": {"name": "large_string", "size": "double"},
}


def test_frames_get_a_catalog() -> None:
    catalog = catalog_for(
        TABLES,
        unit="user_id",
        bounds={"people.age": (18, 90)},
        domains={"region": "regions.name"},
        budget=(3.0, 1e-6),
        public=["regions"],
        contribution={"people": 5, "people.age": 200},
    )
    people = catalog.tables["people"]
    assert people.columns["age"].bounds == (18, 90)
    assert (people.contribution, people.columns["age"].contribution) == (5, 200)
    assert str(people.columns["region"].domain) == "regions.name"
    assert "blob" not in people.columns and people.columns["when"].type == "timestamp"
    assert not catalog.tables["regions"].private
    assert catalog.source_of("people").kind == "frame"
    assert (catalog.budget.epsilon, catalog.budget.delta) == (3.0, 1e-6)
    assert catalog.ledger_url is None


def test_units_may_differ_by_table() -> None:
    catalog = catalog_for(TABLES, unit={"people": ("user_id", "when"), "regions": "row"}, budget=1.0)
    assert str(catalog.tables["people"].unit) == "user_id per when"
    assert str(catalog.tables["regions"].unit) == "row"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"bounds": {"people.agee": (0, 1)}},
            r"bounds: there is no column people\.agee, perhaps you mean people\.age",
        ),
        ({"bounds": {"people.age": (9, 1)}}, r"tables\.people\.columns\.age\.bounds: "),
        ({"bounds": {"people.age": 9}}, r"tables\.people\.columns\.age\.bounds: "),
        ({"bounds": {"people.age": (0, float("nan"))}}, r"tables\.people\.columns\.age\.bounds\[1\]: "),
        ({"domains": {"nothing": [1]}}, "domains: there is no column nothing"),
        ({"public": ["region"]}, "public: there is no table region, perhaps you mean regions"),
        ({"unit": "user"}, r"tables\.people\.unit: no column user is declared"),
        ({"unit": {"peopl": "user_id"}}, "unit: there is no table peopl"),
        ({"unit": {"regions": "row"}}, r"tables\.people\.unit: .*whom it protects"),
        ({"unit": ("user_id",)}, "unit: expected a column"),
        ({"budget": (0.0, 0.0)}, r"budget\.epsilon: "),
        ({"budget": (1.0,)}, "budget: expected"),
        ({"relation": "both"}, r"tables\.people\.relation: "),
    ],
)
def test_wrong_arguments_are_told_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        catalog_for(TABLES, **{"unit": "user_id", "public": ["regions"], **wrong})


def test_an_ambiguous_column_must_be_qualified() -> None:
    tables = {"a": {"x": "integer"}, "b": {"x": "integer"}}
    with pytest.raises(CatalogError, match=r"bounds: x is in several tables; write a\.x or b\.x"):
        catalog_for(tables, bounds={"x": (0, 1)})


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"unit": "visit"}, r"unit: people\.visit is left out, for it is the index\.$"),
        ({"unit": ("user_id", "visit")}, r"unit: people\.visit is left out"),
        ({"bounds": {"visit": (0, 1)}}, r"bounds: people\.visit is left out"),
        ({"not_null": ["people.visit"]}, r"not_null: people\.visit is left out"),
    ],
)
def test_naming_what_was_left_out_tells_why_it_was(named: dict[str, Any], said: str) -> None:
    left_out = {"people": {"visit": "it is the index", "row": "it is a list"}}
    with pytest.raises(CatalogError, match=said):
        catalog_for(TABLES, left_out=left_out, **{"unit": "user_id", "public": ["regions"], **named})
    catalog_for(TABLES, left_out=left_out, unit="row", public=["regions"])


@pytest.mark.parametrize("said", ["bounds", "domains", "contribution"])
def test_what_is_said_of_columns_is_said_by_column(said: str) -> None:
    with pytest.raises(CatalogError, match=f"{said}: expected a dictionary"):
        catalog_for({"t": {"id": "int64"}}, unit="id", **{said: 1})  # type: ignore[arg-type]
