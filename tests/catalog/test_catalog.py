"""What shows only between declared parts: names that exist, promises that nest, paths that lead somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.catalog import SOLE_ANALYST, Catalog
from incrowd.errors import CatalogError, NotPermitted
from tests.catalog.faults import fault_of

ID = {"id": {"type": "integer"}}
PEOPLE = {"source": "files", "unit": "id", "columns": ID}
REGIONS = {"source": "frame", "private": False, "columns": {"name": {"type": "text"}}}


def catalog(**fields: Any) -> Catalog:
    """A catalog of a private and a public table, with some of its fields replaced."""
    declared = {
        "sources": {"files": {"csv": "people.csv"}, "frame": {"frame": "regions"}},
        "tables": {"people": PEOPLE, "regions": REGIONS},
        "budget": {"epsilon": 2, "delta": 1e-6},
    }
    return Catalog.model_validate(declared | fields)


def region(**domain: Any) -> dict[str, Any]:
    """Tables of which one has a domain in another."""
    columns = {**ID, "region": {"type": "text", "domain": domain}}
    more = {"loose": {"source": "frame", "private": False}}
    return {"people": {**PEOPLE, "columns": columns}, "regions": REGIONS, **more}


@pytest.mark.parametrize("section", ["sources", "tables", "groups", "analysts"])
def test_a_section_has_names(section: str) -> None:
    assert fault_of(lambda: catalog(**{section: ["a"]})) == (
        f"{section}: expected names, each with its fields below it"
    )


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({}, "tables: declare at least one table"),
        (
            {"people": PEOPLE, "People": PEOPLE},
            "tables.People: people and People are one name in SQL; rename one",
        ),
        ({"a.b": PEOPLE}, "tables.a.b: a table's name must not hold a dot"),
        ({"people": {**PEOPLE, "source": None}}, "tables.people.source: say which source holds the rows"),
        (
            {"people": {**PEOPLE, "source": "file"}},
            "tables.people.source: there is no source file, perhaps you mean files",
        ),
        (
            {"regions": {**REGIONS, "path": "a.csv"}},
            "tables.regions.path: a frame source has no files to choose; use table",
        ),
        (
            {"people": {**PEOPLE, "table": "t"}},
            "tables.people.table: a csv source holds one table; leave this out",
        ),
        (
            {"regions": {**REGIONS, "table": "t"}},
            "tables.regions.table: a frame source holds one table; leave this out",
        ),
    ],
)
def test_a_table_has_a_name_and_a_source_of_its_own(tables: dict[str, Any], said: str) -> None:
    assert fault_of(lambda: catalog(tables=tables)) == said


@pytest.mark.parametrize(
    ("kind", "files", "named"),
    [
        ("csv", True, False),
        ("parquet", True, False),
        ("url", True, True),
        ("duckdb", False, True),
        ("frame", False, False),
    ],
)
def test_a_source_is_chosen_from_by_files_or_by_names(kind: str, files: bool, named: bool) -> None:
    for choice, possible in (({"path": "p"}, files), ({"table": "t"}, named)):
        fields = {
            "sources": {"s": {kind: "sc://h" if kind == "url" else "place"}},
            "tables": {"people": {"unit": "row", "columns": ID} | choice},
        }
        if possible:
            assert catalog(**fields).source_of("people").kind == kind
        else:
            assert f": a {kind} source " in fault_of(lambda fields=fields: catalog(**fields))  # type: ignore[misc]


def test_the_only_source_need_not_be_named() -> None:
    alone = catalog(sources={"s": {"csv": "a.csv"}}, tables={"t": {"unit": "row", "columns": ID}})
    assert alone.source_of("t").csv == ("a.csv",)
    assert catalog().source_of("regions").frame == "regions"


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ("region.name", "there is no public table region, perhaps you mean regions"),
        (
            "people.id",
            "people is private, and a domain is public; take it from a public table or list it",
        ),
        ("regions.nam", "regions declares no column nam, perhaps you mean name"),
    ],
)
def test_a_domain_comes_from_a_declared_public_column(origin: str, said: str) -> None:
    path = "tables.people.columns.region.domain"
    assert fault_of(lambda: catalog(tables=region(**{"from": origin}))) == f"{path}: {said}"
    for public in ("regions.name", "loose.any"):
        column = catalog(tables=region(**{"from": public})).tables["people"].columns["region"]
        assert str(column.domain) == public


def test_a_domain_has_the_type_of_its_column() -> None:
    tables = region(**{"from": "regions.name"})
    tables["regions"] = {**REGIONS, "columns": {"name": {"type": "integer"}}}
    assert fault_of(lambda: catalog(tables=tables)) == (
        "tables.people.columns.region.domain: regions.name is of type integer, but the column is of type text"
    )


@given(st.floats(0.1, 4), st.floats(0, 1e-5), st.sampled_from(["analysts", "groups"]))
def test_a_promise_is_refused_exactly_where_it_is_above_the_dataset_s(
    epsilon: float, delta: float, section: str
) -> None:
    def declared() -> Catalog:
        return catalog(**{section: {"ana": {"epsilon": epsilon, "delta": delta}}})

    if epsilon > 2:
        said = f"epsilon: {epsilon} is above the dataset's 2.0 and could never be reached"
    elif delta > 1e-6:
        said = f"delta: {delta} is above the dataset's 1e-06 and could never be reached"
    else:
        assert getattr(declared(), section)["ana"].epsilon == epsilon
        return
    assert fault_of(declared) == f"{section}.ana.{said}"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"analysts": {"ana": {"epsilon": 1, "per_day": {"epsilon": 1, "delta": 1e-5}}}},
            "analysts.ana.per_day.delta: a day's delta is above the total's",
        ),
        (
            {
                "groups": {"g": {"epsilon": 1}},
                "analysts": {"ana": {"epsilon": 1}, "bob": {"epsilon": 1.5, "groups": ["g"]}},
            },
            "analysts.bob.epsilon: 1.5 is above the 1.0 of the group g",
        ),
        (
            {"groups": {"g": {"epsilon": 1, "members": ["bob"]}}, "analysts": {"bob": {"epsilon": 1.5}}},
            "analysts.bob.epsilon: 1.5 is above the 1.0 of the group g",
        ),
        (
            {"defaults": {"epsilon": 2.5}},
            "defaults.epsilon: the default of one query is above the dataset's budget",
        ),
        (
            {"defaults": {"delta": 1e-5}},
            "defaults.delta: the default of one query is above the dataset's budget",
        ),
        (
            {"groups": {"staff": {"epsilon": 1}}, "analysts": {"ana": {"epsilon": 1, "groups": ["stuff"]}}},
            "analysts.ana.groups[0]: there is no group stuff, perhaps you mean staff",
        ),
        (
            {
                "groups": {"g": {"epsilon": 1, "members": ["ana", "anna"]}},
                "analysts": {"ana": {"epsilon": 1}},
            },
            "groups.g.members[1]: there is no analyst anna, perhaps you mean ana",
        ),
        ({"sharing": "everyone"}, "sharing: expected own, group or all, not 'everyone'"),
    ],
)
def test_promises_nest_and_people_are_known(fields: dict[str, Any], said: str) -> None:
    assert fault_of(lambda: catalog(**fields)) == said


def test_the_ends_of_promises_belong_to_them() -> None:
    whole = {"epsilon": 2, "delta": 1e-6}
    same = catalog(
        groups={"g": {**whole, "members": ["ana"]}},
        analysts={"ana": {**whole, "per_day": whole}},
        defaults=whole,
    )
    assert same.default_epsilon == 2 and same.default_delta == 1e-6


def test_a_delta_that_is_left_out_is_that_of_the_promise_above() -> None:
    people = catalog(
        groups={"g": {"epsilon": 1}},
        analysts={
            "ana": {"epsilon": 1, "delta": 1e-7, "per_day": {"epsilon": 1}},
            "bob": {"epsilon": 1, "per_day": {"epsilon": 1, "delta": 1e-8}},
        },
    )
    ana, bob = people.analysts["ana"], people.analysts["bob"]
    assert ana.per_day is not None and bob.per_day is not None
    assert people.delta_of(people.groups["g"]) == people.delta_of(bob) == 1e-6
    assert people.delta_of(ana) == people.delta_of(ana.per_day, ana) == 1e-7
    assert people.delta_of(bob.per_day, bob) == 1e-8


def test_who_asks_is_the_only_analyst_or_a_declared_one() -> None:
    assert catalog().analyst() == catalog().analyst(SOLE_ANALYST) == SOLE_ANALYST == "analyst"
    one = catalog(analysts={"ana": {"epsilon": 1}})
    assert one.analyst() == one.analyst("ana") == "ana"
    with pytest.raises(NotPermitted) as caught:
        one.analyst("eve")
    assert str(caught.value) == "There is no analyst 'eve' in the catalog; the owner adds one under analysts."
    two = catalog(analysts={"ana": {"epsilon": 1}, "bob": {"epsilon": 1}})
    with pytest.raises(NotPermitted) as caught:
        two.analyst()
    assert str(caught.value) == "Say who asks, with analyst=: choose from ana, bob."


def test_either_side_may_declare_a_membership() -> None:
    people = catalog(
        groups={"a": {"epsilon": 1, "members": ["ana"]}, "b": {"epsilon": 1}, "c": {"epsilon": 1}},
        analysts={"ana": {"epsilon": 1, "groups": ["c"]}, "bob": {"epsilon": 1}},
    )
    assert people.groups_of("ana") == ("a", "c") and people.groups_of("bob") == people.groups_of("eve") == ()


@pytest.mark.parametrize(("budget", "epsilon"), [(2.0, 0.1), (1.0, 0.1), (0.5, 0.05)])
def test_a_question_that_names_no_price_costs_little(budget: float, epsilon: float) -> None:
    small = catalog(budget={"epsilon": budget, "delta": 1e-6})
    assert small.default_epsilon == epsilon and small.default_delta == 1e-6 / 1000
    assert catalog(defaults={"delta": 0}).default_delta == 0


def test_tables_are_found_as_sql_finds_them() -> None:
    assert catalog().find("PEOPLE") == "people" and catalog().find("person") is None


def test_what_lies_beside_the_file_is_named_after_it(tmp_path: Path) -> None:
    alone = catalog()
    assert alone.ledger_url is None and alone.copies is None and alone.root == Path.cwd()
    here = alone.located(tmp_path / "ward.yaml")
    assert here.root == tmp_path.resolve() and here.ledger_url == str(tmp_path.resolve() / "ward.ledger")
    assert here.copies == tmp_path.resolve() / "ward.copies" and alone.copies is None
    named = catalog(ledger="spent.ledger").located(tmp_path / "ward.yaml")
    assert named.ledger_url == str(tmp_path.resolve() / "spent.ledger")
    assert catalog(ledger="postgresql://h/d").ledger_url == "postgresql://h/d"


@pytest.mark.parametrize(
    ("source", "path", "patterns"),
    [
        ({"csv": ["a.csv", "/b.csv"]}, None, ["{root}/a.csv", "/b.csv"]),
        ({"parquet": ["a", "b"]}, ["x", "y"], ["{root}/a/x", "{root}/a/y", "{root}/b/x", "{root}/b/y"]),
        ({"duckdb": "a.duckdb"}, None, ["{root}/a.duckdb"]),
        ({"frame": "a"}, None, []),
        ({"url": "sc://h"}, None, []),
        ({"url": "sc://h"}, ["s3://a/b", "c"], ["s3://a/b", "{root}/c"]),
    ],
)
def test_paths_start_from_the_folder_of_the_file(
    source: dict[str, Any], path: list[str] | None, patterns: list[str], tmp_path: Path
) -> None:
    table = {"unit": "row", "columns": ID, "path": path}
    here = catalog(sources={"s": source}, tables={"people": table}).located(tmp_path / "c.yaml")
    assert here.patterns("people") == tuple(pattern.format(root=tmp_path.resolve()) for pattern in patterns)


def files_of(root: Path, *paths: str) -> list[str]:
    """The names of the files that a table has at these paths."""
    sources = {"s": {"csv": list(paths)}}
    here = catalog(sources=sources, tables={"people": {"unit": "row", "columns": ID}}).located(
        root / "c.yaml"
    )
    return [str(Path(file).relative_to(root.resolve())) for file in here.files("people")]


def test_a_file_is_listed_once_however_many_paths_lead_to_it(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "[x].csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub.csv").mkdir()
    (tmp_path / "c.copies").mkdir()
    (tmp_path / "c.copies/d.csv").write_text("d")
    (tmp_path / "z.csv").symlink_to(tmp_path / "a.csv")
    assert files_of(tmp_path, "*.csv", "b.csv") == ["[x].csv", "a.csv", "b.csv"]
    assert files_of(tmp_path, "**/?.csv") == ["a.csv", "b.csv"]
    assert files_of(tmp_path, "[x].csv") == ["[x].csv"]


def test_a_path_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a")
    for missing in ("none.csv", "*.parquet"):
        with pytest.raises(CatalogError) as caught:
            files_of(tmp_path, "a.csv", missing)
        place = tmp_path.resolve() / missing
        assert str(caught.value) == f"sources.s: no file at {place}, which table people needs."


def test_a_folder_in_the_place_of_files_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "people.csv").mkdir()
    with pytest.raises(CatalogError) as caught:
        files_of(tmp_path, "people.csv")
    assert str(caught.value) == (
        f"sources.s: {tmp_path.resolve() / 'people.csv'} is a folder, and table people needs files; name "
        "those in it, as in people.csv/*.csv."
    )
