"""What the owner's file may say, and the sentence for each mistake in it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from incrowd.catalog import Catalog, load, parse
from incrowd.errors import CatalogError, NotPermitted

GOOD = """
sources:
  hospital: {duckdb: hospital.duckdb}
  regions: {csv: regions.csv}
tables:
  people:
    source: hospital
    unit: {column: user_id, per: day}
    contribution: 10
    columns:
      user_id: {type: integer, nullable: false}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
      age: {type: integer, bounds: [0, 1.2e2]}
      income: {type: decimal, bounds: [0, 0.1], contribution: 5}
      seen: {type: timestamp, bounds: [2024-01-01, 2024-01-01T12:00:00+02:00]}
      answer: {type: text, domain: [yes, no, "null"]}
      region: {type: text, domain: {from: regions.name}}
      smoker: {type: boolean}
  regions:
    source: regions
    private: false
    columns:
      name: {type: text}
budget: {epsilon: 3, delta: 1e-6}
groups:
  staff: {epsilon: 2.5, members: [ana]}
analysts:
  ana: {epsilon: 1, per_day: {epsilon: 0.5}, max_epsilon: 0.25}
  bob: {epsilon: 1, delta: 0, groups: [staff]}
"""


def test_a_full_file_is_read_with_typed_values() -> None:
    catalog = parse(GOOD)
    people = catalog.tables["people"]
    assert people.unit is not None
    assert (people.unit.column, people.unit.per, str(people.unit)) == ("user_id", "day", "user_id per day")
    assert people.private and people.relation == "add-remove"
    columns = people.columns
    assert columns["age"].bounds == (0, 120) and type(columns["age"].bounds[1]) is int
    assert columns["day"].bounds == (date(2024, 1, 1), date(2024, 12, 31))
    assert columns["income"].bounds == (Decimal(0), Decimal("0.1"))
    assert columns["seen"].bounds == (datetime(2024, 1, 1), datetime(2024, 1, 1, 10))
    assert columns["answer"].domain == ("yes", "no", "null")
    assert str(columns["region"].domain) == "regions.name"
    assert columns["smoker"].values == (False, True)
    assert catalog.budget.delta == 1e-6
    ana = catalog.analysts["ana"]
    assert ana.per_day is not None
    assert catalog.delta_of(ana) == catalog.delta_of(ana.per_day, ana) == 1e-6
    assert catalog.delta_of(catalog.analysts["bob"]) == 0.0
    assert catalog.groups_of("ana") == catalog.groups_of("bob") == ("staff",)


# Each row: what to replace in the good file, by what, and what the sentence must hold.
MISTAKES = [
    (
        "age: {type: integer, bounds: [0, 1.2e2]}",
        "age: {type: integer, bound: [0, 120]}",
        "bound'",
        "mean bounds",
    ),
    ("bounds: [0, 1.2e2]", "bounds: [120, 0]", "tables.people.columns.age.bounds:", "write [0, 120]"),
    ("bounds: [0, 1.2e2]", "bounds: [0]", "tables.people.columns.age.bounds:", "two values"),
    ("bounds: [0, 1.2e2]", "bounds: [0, 1.5]", "tables.people.columns.age.bounds[1]:", "whole number"),
    ("bounds: [0, 1.2e2]", "bounds: [0, .inf]", "tables.people.columns.age.bounds[1]:", "whole number"),
    ("bounds: [0, 1.2e2]", "bounds: [0, 1e19]", "tables.people.columns.age.bounds[1]:", "64-bit"),
    ("bounds: [0, 1.2e2]", "bounds: [FILL, 120]", "tables.people.columns.age.bounds[0]:", "FILL"),
    ("bounds: [0, 1.2e2]", "bounds: [true, 120]", "tables.people.columns.age.bounds[0]:", "true"),
    ("bounds: [0, 1.2e2]", "bounds: [null, 120]", "tables.people.columns.age.bounds[0]:", "NULL"),
    ("integer, bounds: [0, 1.2e2]", "float, bounds: [-1.7e308, 1.7e308]", "age.bounds:", "overflows"),
    ("integer, bounds: [0, 1.2e2]", "float, bounds: [.nan, 1]", "age.bounds[0]:", "finite"),
    ("integer, bounds: [0, 1.2e2]", "text, bounds: [a, b]", "age.bounds:", "domain"),
    ("age: {type: integer", "age: {type: string", "tables.people.columns.age.type:", "perhaps you mean text"),
    ("age: {type: integer, ", "age: {", "tables.people.columns.age.type:", "missing"),
    (
        "[2024-01-01, 2024-12-31]",
        "[2024-01-01, 2024-13-31]",
        "tables.people.columns.day.bounds[1]",
        "2024-13-31",
    ),
    ("[2024-01-01, 2024-12-31]", "[soon, 2024-12-31]", "tables.people.columns.day.bounds[0]", "'soon'"),
    ('[yes, no, "null"]', "[yes, no, yes]", "tables.people.columns.answer.domain[2]:", "listed twice"),
    ('[yes, no, "null"]', "[yes, null]", "tables.people.columns.answer.domain[1]:", "nullable"),
    ('[yes, no, "null"]', "[1, 2]", "tables.people.columns.answer.domain[0]:", "quotes"),
    ('[yes, no, "null"]', "[]", "tables.people.columns.answer.domain:", "empty"),
    ('[yes, no, "null"]', "yes", "tables.people.columns.answer.domain:", "list"),
    (
        "bounds: [0, 1.2e2]",
        "bounds: [0, 9], domain: [3, 10]",
        "tables.people.columns.age.domain[1]:",
        "outside",
    ),
    ("{from: regions.name}", "{from: people.age}", "tables.people.columns.region.domain:", "private"),
    ("{from: regions.name}", "{from: region.name}", "tables.people.columns.region.domain:", "mean regions"),
    ("{from: regions.name}", "{from: regions.nam}", "tables.people.columns.region.domain:", "mean name"),
    (
        "{from: regions.name}",
        "{from: regions}",
        "tables.people.columns.region.domain:",
        "public_table.column",
    ),
    ("name: {type: text}", "name: {type: integer}", "tables.people.columns.region.domain:", "type"),
    ("unit: {column: user_id, per: day}", "", "tables.people.unit:", "whom it protects"),
    ("unit: {column: user_id, per: day}", "unit: FILL", "tables.people.unit:", "FILL"),
    ("unit: {column: user_id, per: day}", "unit: userid", "tables.people.unit:", "perhaps you mean user_id"),
    ("unit: {column: user_id, per: day}", "unit: [user_id]", "tables.people.unit:", "a list"),
    ("per: day}", "per: dya}", "tables.people.unit.per:", "perhaps you mean day"),
    ("per: day}", "per: user_id}", "tables.people.unit.per:", "another column"),
    ("unit: {column: user_id, per: day}", "unit: row", "tables.people.contribution:", "row"),
    ("user_id: {type: integer,", "user_id: {type: float,", "tables.people.unit:", "float"),
    ("smoker: {type", "Age: {type", "tables.people.columns.Age:", "one name in SQL"),
    ("smoker: {type", "age: {type", "tables.people.columns.age:", "twice"),
    ("    private: false", "    private: false\n    unit: row", "tables.regions.unit:", "protects nobody"),
    ("    private: false", "    private: 1", "tables.regions.private:", "true or false"),
    ("    private: false", "    private: nope", "tables.regions.private:", "true or false"),
    ("contribution: 10", "contribution: 0", "tables.people.contribution:", "at least 1"),
    ("contribution: 10", "relation: swap", "tables.people.relation:", "replace"),
    ("source: hospital", "source: hopsital", "tables.people.source:", "perhaps you mean hospital"),
    ("source: hospital", "path: a.csv", "tables.people.source:", "which source"),
    ("{csv: regions.csv}", "{csv: regions.csv, url: sc://h}", "sources.regions:", "exactly one"),
    ("{csv: regions.csv}", "{}", "sources.regions:", "exactly one"),
    ("{csv: regions.csv}", "regions.csv", "sources.regions:", "duckdb, csv, parquet"),
    ("{csv: regions.csv}", "{csv: [1]}", "sources.regions.csv:", "path"),
    ("{epsilon: 3, delta", "{epsilon: 0, delta", "budget.epsilon:", "above 0"),
    ("{epsilon: 3, delta", "{epsilon: -1, delta", "budget.epsilon:", "above 0"),
    ("{epsilon: 3, delta", "{epsilon: .nan, delta", "budget.epsilon:", "finite"),
    ("{epsilon: 3, delta", "{epsilon: .inf, delta", "budget.epsilon:", "finite"),
    ("{epsilon: 3, delta", "{epsilon: true, delta", "budget.epsilon:", "number"),
    ("{epsilon: 3, delta", "{epsilon: '3', delta", "budget.epsilon:", "number"),
    ("{epsilon: 3, delta", "{epsilon: FILL, delta", "budget.epsilon:", "FILL"),
    ("{epsilon: 3, delta: 1e-6}", "{epsilon: 3, delta: 1}", "budget.delta:", "below 1"),
    ("{epsilon: 3, delta: 1e-6}", "{epsilon: 3, delta: -1e-9}", "budget.delta:", "at least 0"),
    ("{epsilon: 3, delta: 1e-6}", "{epsilon: 3, threshold_share: 1}", "budget.threshold_share:", "share"),
    ("{epsilon: 3, delta: 1e-6}", "{delta: 1e-6}", "budget.epsilon:", "missing"),
    ("budget: {epsilon: 3, delta: 1e-6}", "", "budget:", "missing"),
    ("ana: {epsilon: 1,", "ana: {epsilon: 4,", "analysts.ana.epsilon:", "above the dataset's 3"),
    ("ana: {epsilon: 1,", "ana: {epsilon: 2.7,", "analysts.ana.epsilon:", "group staff"),
    (
        "bob: {epsilon: 1, delta: 0",
        "bob: {epsilon: 1, delta: 1e-5",
        "analysts.bob.delta:",
        "above the dataset's",
    ),
    ("per_day: {epsilon: 0.5}", "per_day: {epsilon: 1.5}", "analysts.ana.per_day.epsilon:", "lifetime"),
    (
        "per_day: {epsilon: 0.5}",
        "per_day: {epsilon: 0.5, delta: 1e-3}",
        "analysts.ana.per_day.delta:",
        "above",
    ),
    ("max_epsilon: 0.25", "max_epsilon: 2", "analysts.ana.max_epsilon:", "cap per query"),
    ("members: [ana]", "members: [anna]", "groups.staff.members[0]:", "perhaps you mean ana"),
    ("members: [ana]", "members: ana", "groups.staff.members:", "[ana]"),
    ("groups: [staff]", "groups: [stuff]", "analysts.bob.groups[0]:", "perhaps you mean staff"),
    ("groups: [staff]", "groups: [staff, staff]", "analysts.bob.groups:", "twice"),
    ("\nanalysts:", "\nanalyst:", "analyst:", "perhaps you mean analysts"),
    ("budget: {epsilon", "sharing: everyone\nbudget: {epsilon", "sharing:", "own, group or all"),
    ("budget: {epsilon", "defaults: {confidence: 95}\nbudget: {epsilon", "defaults.confidence:", "0.95"),
    ("budget: {epsilon", "defaults: {epsilon: 5}\nbudget: {epsilon", "defaults.epsilon:", "above"),
    ("budget: {epsilon", "<<: {a: 1}\nbudget: {epsilon", "merge keys", "line 24"),
]


@pytest.mark.parametrize(("old", "new", "path", "said"), MISTAKES)
def test_a_mistake_is_one_sentence_with_the_path_to_it(old: str, new: str, path: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(CatalogError) as caught:
        parse(GOOD.replace(old, new), name="curator.yaml")
    message = str(caught.value)
    assert path in message and said in message
    assert message.startswith("curator.yaml, line ") and message.endswith(".")
    assert "\n" not in message and "pydantic" not in message and "validation" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("# only a comment", "empty"),
        ("a: [1", "line 1"),
        ("a: b\n c: d", "line 2"),
        ("- a\n- b", "expected fields"),
        ("just words", "expected fields"),
        ("a: \x07", "not YAML"),
        ("a: &x [*x]", "too deeply"),
        ("? [a]\n: 1", "plain text"),
        ("tables: {}\nbudget: {epsilon: 1}", "at least one table"),
        ("tables: [a]\nbudget: {epsilon: 1}", "expected names"),
    ],
)
def test_what_is_no_catalog_at_all_is_told_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(CatalogError, match=r"^catalog") as caught:
        parse(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_line_of_the_fault_is_that_of_the_field() -> None:
    with pytest.raises(CatalogError, match=r"^catalog, line 13: tables\.people\.columns\.age\.bounds: "):
        parse(GOOD.replace("bounds: [0, 1.2e2]", "bounds: [9, 1]"))


def test_names_that_look_like_values_are_names() -> None:
    text = "sources: {s: {csv: a.csv}}\nbudget: {epsilon: 1}\ntables:\n  no:\n    unit: row\n    columns:\n"
    catalog = parse(text + "      2024: {type: integer}\n      null: {type: text}\n      1e3: {type: date}\n")
    assert list(catalog.tables) == ["no"]
    assert list(catalog.tables["no"].columns) == ["2024", "null", "1e3"]


def test_paths_start_from_the_file_and_the_ledger_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "hospital.yaml"
    file.write_text(GOOD)
    catalog = load(file)
    assert catalog.patterns("people") == (str(tmp_path / "hospital.duckdb"),)
    assert catalog.ledger_url == str(tmp_path / "hospital.ledger")
    with pytest.raises(CatalogError, match=r"^sources\.regions: no file at .*regions\.csv"):
        catalog.files("regions")
    (tmp_path / "regions.csv").write_text("name\n")
    assert catalog.files("regions") == (str(tmp_path / "regions.csv"),)


def test_a_ledger_may_be_named_or_be_a_url(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(GOOD + "ledger: spent/account.ledger\n")
    assert load(file).ledger_url == str(tmp_path / "spent/account.ledger")
    assert parse(GOOD + "ledger: postgresql://host/db\n").ledger_url == "postgresql://host/db"
    assert parse(GOOD).ledger_url is None


def test_a_csv_source_may_be_a_folder_with_files_per_table(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("v2.csv", "v1.csv", "w.csv"):
        (tmp_path / "data" / name).write_text("id\n")
    file = tmp_path / "c.yaml"
    file.write_text(
        "sources: {d: {csv: data}}\nbudget: {epsilon: 1}\n"
        "tables: {v: {path: 'v*.csv', unit: row, columns: {id: {type: integer}}}}\n"
    )
    files = load(file).files("v")
    assert [Path(path).name for path in files] == ["v1.csv", "v2.csv"]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"There is no file .*incrowd init"):
        load(tmp_path / "none.yaml")
    with pytest.raises(CatalogError, match="is a folder"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    with pytest.raises(CatalogError, match="UTF-8"):
        load(tmp_path / "latin.yaml")


def test_only_declared_analysts_may_ask() -> None:
    catalog = parse(GOOD)
    assert catalog.analyst("ana") == "ana"
    with pytest.raises(NotPermitted, match="'eve'"):
        catalog.analyst("eve")
    with pytest.raises(NotPermitted, match="Say who asks"):
        catalog.analyst(None)
    alone = parse(GOOD[: GOOD.index("groups:\n")])
    assert alone.analyst() == "analyst"
    with pytest.raises(NotPermitted):
        alone.analyst("ana")


def test_a_catalog_cannot_be_changed() -> None:
    catalog = parse(GOOD)
    with pytest.raises(ValueError, match="frozen"):
        catalog.budget.epsilon = 9.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        catalog.budget = catalog.budget  # type: ignore[misc]


def test_defaults_stay_within_the_budget() -> None:
    catalog: Catalog = parse(GOOD)
    assert catalog.default_epsilon == 0.1
    assert 0 < catalog.default_delta < catalog.budget.delta
    assert parse(GOOD + "defaults: {epsilon: 0.3, delta: 0}").default_epsilon == 0.3
    assert parse(GOOD + "defaults: {epsilon: 0.3, delta: 0}").default_delta == 0.0


def test_lookups_ignore_case_as_sql_does() -> None:
    catalog = parse(GOOD)
    assert catalog.find("PEOPLE") == "people" and catalog.find("folk") is None
    assert catalog.tables["people"].find("AGE") == "age" and catalog.tables["people"].find("ages") is None
