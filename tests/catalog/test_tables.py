"""Sources and tables: one place for the rows, and one protected unit for each private table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.tables import Source, Table, Unit
from tests.catalog.faults import fault_of

KINDS = {"duckdb": "a.duckdb", "csv": "a.csv", "parquet": ["a", "b"], "url": "sc://host", "frame": "people"}
COLUMNS = {"id": {"type": "integer"}, "day": {"type": "date"}, "cost": {"type": "float"}}


def private(**fields: Any) -> Table:
    """A private table of a few columns."""
    return Table.model_validate({"unit": "id", "columns": COLUMNS} | fields)


@given(st.sets(st.sampled_from(sorted(KINDS))))
def test_a_source_is_exactly_one_of_five(kinds: set[str]) -> None:
    fields = {kind: place for kind, place in KINDS.items() if kind in kinds}
    if len(fields) == 1:
        assert Source.model_validate(fields).kind == next(iter(fields))
    else:
        said = f"not {' and '.join(fields)}" if fields else "none is given"
        assert fault_of(lambda: Source.model_validate(fields)) == (
            f"expected exactly one of duckdb, csv, parquet, url or frame, {said}"
        )


@pytest.mark.parametrize("paths", [[], "", " ", ["a", ""], [7], 7, {"a": "b"}])
def test_paths_are_texts(paths: object) -> None:
    assert (
        fault_of(lambda: Source.model_validate({"csv": paths})) == "csv: expected a path, or a list of paths"
    )


def test_one_path_may_be_written_without_brackets() -> None:
    assert Source.model_validate({"csv": "a.csv"}).csv == ("a.csv",)
    assert Source.model_validate({"parquet": ["b", "a"]}).parquet == ("b", "a")


def test_a_source_of_any_kind_takes_a_timeout() -> None:
    assert Source(url="sc://host", timeout=5).timeout == 5
    assert Source(csv="people.csv", timeout=5).timeout == 5


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("4GB", 4 << 30),
        ("500 MB", 500 << 20),
        ("1.5gib", 3 << 29),
        (1 << 30, 1 << 30),
        ("200000KB", 200_000 << 10),
    ],
)
def test_memory_is_an_amount_with_its_unit(written: str | int, amount: int) -> None:
    assert Source(csv="people.csv", memory=written).memory == amount


@pytest.mark.parametrize("written", ["4", "lots", "-4GB", "", "4 GB ", 4, 0.5, True, ["4GB"], "1e3GB"])
def test_memory_without_a_unit_is_refused(written: object) -> None:
    said = fault_of(lambda: Source(csv="people.csv", memory=written))
    assert said.startswith("memory: expected an amount of memory, such as 500MB or 4GB, not ")


def test_memory_is_enough_to_work_with_and_not_a_servers() -> None:
    assert Source(csv="a.csv", memory="1000TB").memory == 1000 << 40
    assert fault_of(lambda: Source(csv="a.csv", memory="99999999TB")) == (
        "memory: must be at most 1000TB, not '99999999TB'; leave it out for the engine's own limit"
    )
    assert "not 1125899906842624001" in fault_of(lambda: Source(csv="a.csv", memory=1125899906842624001))
    assert fault_of(lambda: Source(csv="a.csv", memory="1MB")) == "memory: must be at least 100MB, not '1MB'"
    assert "is set at the server" in fault_of(lambda: Source(url="postgresql://host/db", memory="4GB"))


def test_a_unit_is_a_row_a_column_or_a_column_within_a_partition() -> None:
    row, person, daily = Unit(), Unit(column="id"), Unit(column="id", per="day")
    assert (row.is_row, person.is_row, daily.is_row) == (True, False, False)
    assert (row.columns, person.columns, daily.columns) == ((), ("id",), ("id", "day"))
    assert (str(row), str(person), str(daily)) == ("row", "id", "id per day")
    assert private(unit="row").unit == row and private().unit == person
    assert private(unit={"column": "id", "per": "day"}).unit == daily == private(unit=daily).unit


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("FILL", "unit: still says FILL; name the column that identifies a person, or write row"),
        ({"per": "day"}, "unit: expected row, a column, or {column: user_id, per: day}"),
        ({"column": "id", "per": "ID"}, "unit.per: the partition must be another column than the unit"),
        (["id"], "unit: expected row, a column, or {column: user_id, per: day}, not a list"),
        (7, "unit: expected row, a column, or {column: user_id, per: day}, not 7"),
        ("ids", "unit: no column ids is declared, perhaps you mean id"),
        ({"column": "ids", "per": "day"}, "unit.column: no column ids is declared, perhaps you mean id"),
        ({"column": "id", "per": "dya"}, "unit.per: no column dya is declared, perhaps you mean day"),
        (
            "cost",
            (
                "unit: cost is a float column, which is computed with in floating point and cannot identify "
                "a unit; declare it as integer or text"
            ),
        ),
        (
            None,
            "unit: a private table must say whom it protects: row, or the column that identifies",
        ),
    ],
)
def test_a_unit_that_protects_nobody_is_refused(unit: object, said: str) -> None:
    assert fault_of(lambda: private(unit=unit)).startswith(said)


def test_a_partition_without_a_unit_is_refused() -> None:
    assert fault_of(lambda: Unit(per="day")) == (
        "column: say which column holds the unit, as in {column: user_id, per: day}"
    )


@pytest.mark.parametrize("column", ["id", "day", "cost"])
@pytest.mark.parametrize("kind", ["integer", "text", "date", "timestamp", "boolean", "float", "decimal"])
def test_columns_that_identify_units_are_not_computed_with_in_floating_point(column: str, kind: str) -> None:
    unit = {"column": column, "per": "day"} if column != "day" else {"column": "id", "per": "day"}
    columns = {"id": {"type": "text"}, "day": {"type": "date"}} | {column: {"type": kind}}
    if kind in ("float", "decimal"):
        assert fault_of(lambda: private(unit=unit, columns=columns)).startswith(
            f"unit: {column} is a {kind} column, which is computed with in floating point"
        )
    else:
        assert private(unit=unit, columns=columns).type_of(column) == kind


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"columns": None}, "columns: a private table must declare the columns that may be asked about"),
        ({"columns": {}}, "columns: a private table must declare the columns that may be asked about"),
        ({"columns": ["id"]}, "columns: expected column names, each with its type"),
        ({"relation": "swap"}, "relation: expected add-remove or replace, not 'swap'"),
        ({"table": "t", "path": "p"}, "path: give either table, a name in a database, or path, files of the"),
        (
            {"columns": {**COLUMNS, "Id": {"type": "text"}}},
            "columns.Id: id and Id are one name in SQL; rename one",
        ),
        (
            {"unit": "row", "contribution": 2},
            "contribution: each row is a unit of its own and contributes 1; leave contribution out",
        ),
        ({"contribution": 0}, "contribution: must be a whole number of at least 1, not 0"),
        ({"max_rows": 1.5}, "max_rows: must be a whole number of at least 1, not 1.5"),
    ],
)
def test_a_private_table_that_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    assert fault_of(lambda: private(**fields)).startswith(said)


def test_a_private_table_says_whom_it_protects_and_how_much_one_unit_counts() -> None:
    table = private(contribution=3, relation="replace", max_rows=10, path="a.csv")
    assert table.private and table.contribution == 3 and table.relation == "replace"
    assert table.path == ("a.csv",) and table.max_rows == 10 and private().relation == "add-remove"
    assert private(unit="row", contribution=1).contribution == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"unit": "row"}, "unit: a public table protects nobody; leave unit out or say private: true"),
        (
            {"contribution": 1},
            "contribution: a public table protects nobody; leave contribution out or say private: true",
        ),
        ({"relation": "replace"}, "relation: a public table has no neighbours; leave relation out"),
    ],
)
def test_a_public_table_protects_nobody(fields: dict[str, Any], said: str) -> None:
    assert fault_of(lambda: Table.model_validate({"private": False} | fields)) == said
    assert Table.model_validate({"private": False, "columns": None}).columns == {}


def test_columns_are_found_as_sql_finds_them() -> None:
    table = private()
    assert table.find("ID") == "id" and table.find("ids") is None
    assert table.type_of("day") == "date" and table.type_of("DAY") is None


def test_a_timeout_is_one_that_every_engine_can_count() -> None:
    assert Source(csv="a.csv", timeout=2_000_000).timeout == 2_000_000
    said = fault_of(lambda: Source(csv="a.csv", timeout=2_000_001))
    assert said == "timeout: must be at most 2,000,000 seconds, not 2000001"
