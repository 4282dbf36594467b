"""The table of types: every kind has a whole row, and each name that is known means exactly one type."""

from __future__ import annotations

import re
from typing import get_args

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.types import (
    NUMERIC,
    SQL_TYPES,
    TIMES,
    TYPES,
    VALUE_TYPES,
    Kind,
    Type,
    arrow_type,
    column_type,
    is_wide,
    kind_of,
)

KNOWN = {
    "integer": [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UBIGINT",
        "int8",
        "uint32",
        "int4",
        "serial",
    ],
    "float": ["DOUBLE", "FLOAT", "REAL", "double precision", "float64", "halffloat", "half_float", "float8"],
    "decimal": ["DECIMAL(18,2)", "NUMERIC", "decimal128(20, 9)", "numeric(10)"],
    "text": [
        "VARCHAR",
        "TEXT",
        "string",
        "large_string",
        "character varying(10)",
        "uuid",
        "ENUM('a', 'b')",
        "bpchar",
    ],
    "boolean": ["BOOLEAN", "bool"],
    "date": ["DATE", "date32[day]", "date64[ms]"],
    "timestamp": [
        "TIMESTAMP",
        "TIMESTAMP_NS",
        "timestamp[us, tz=UTC]",
        "TIMESTAMP WITH TIME ZONE",
        "datetime64[ns]",
    ],
}
UNKNOWN = [
    "INTEGER[]",
    "INTEGER[3]",
    "STRUCT(a INTEGER)",
    "MAP(VARCHAR, INTEGER)",
    "list<item: int64>",
    "BLOB",
    "interval",
]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KNOWN.items() for name in names])
def test_a_known_name_has_its_type_whatever_its_case(kind: str, name: str) -> None:
    assert column_type(name) == column_type(f" {name.lower()} ") == kind


@pytest.mark.parametrize(
    "name", [*UNKNOWN, "", "nosuch", "union(num integer)", "dictionary<values=string>", "time"]
)
def test_a_nested_or_unknown_name_has_none(name: str) -> None:
    assert column_type(name) is None


@given(st.sampled_from([name for names in KNOWN.values() for name in names]))
def test_a_list_of_anything_is_no_column_of_it(name: str) -> None:
    assert column_type(f"{name}[]") is None and column_type(f"list<{name}>") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", "integer"),
        ("1.5::DOUBLE", "float"),
        ("1.5", "decimal"),
        ("'a'", "text"),
        ("TRUE", "boolean"),
        ("DATE '2020-01-01'", "date"),
        ("TIMESTAMP '2020-01-01'", "timestamp"),
        ("[1]", None),
    ],
)
def test_what_duckdb_and_arrow_report_of_one_value_is_the_same_type(value: str, kind: str | None) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT {value} AS x")
        assert column_type(str(relation.types[0])) == kind
        assert column_type(str(relation.to_arrow_table().schema.field("x").type)) == kind
    assert kind is None or kind in TYPES


def test_arrow_types_have_theirs() -> None:
    assert column_type(str(pa.large_utf8())) == "text" and column_type(str(pa.uint8())) == "integer"


def test_the_table_has_a_row_for_each_type_and_kind() -> None:
    assert set(VALUE_TYPES) == {*get_args(Type), *get_args(Kind)}
    assert {row.kind for row in VALUE_TYPES.values()} == set(get_args(Kind))
    assert all(VALUE_TYPES[kind].kind == kind for kind in get_args(Kind))
    assert all(row.name == name for name, row in VALUE_TYPES.items())
    assert kind_of("decimal") == "float" and {"integer", "float", "decimal"} == NUMERIC


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_a_type_is_carried_in_sql_and_arrow_by_a_type_that_means_its_kind(name: str) -> None:
    assert kind_of(column_type(SQL_TYPES[name]) or "") == {"null": "text"}.get(name, kind_of(name))
    # Numbers of more digits than a float holds, and NULLs of no type, come back as text.
    assert column_type(str(arrow_type(name))) == {"decimal": "text", "null": "text"}.get(name, name)


def test_a_name_means_one_type() -> None:
    names = [*(name for known in KNOWN.values() for name in known), *TYPES, "string_view", "int2", "logical"]
    for name in names:
        word = re.sub(r"[(\[].*", "", name.lower()).strip()
        rows = [row.name for row in VALUE_TYPES.values() if re.fullmatch(row.engine_names, word)]
        assert rows == [column_type(name)]


def test_the_catalog_s_own_names_are_read_as_themselves() -> None:
    assert [column_type(name) for name in TYPES] == list(TYPES)


def test_an_analyst_may_cast_to_each_kind_by_distinct_names_of_which_one_carries_it() -> None:
    names = [name for row in VALUE_TYPES.values() for name in row.cast_names]
    assert len(names) == len(set(names))
    for row in VALUE_TYPES.values():
        castable = row.name not in ("decimal", "null")
        assert (row.sql in row.cast_names) == bool(row.cast_names) == castable
        assert {kind_of(column_type(name.replace("NTZ", "")) or "") for name in row.cast_names} <= {row.kind}


def test_numbers_and_times_have_examples_of_bounds_and_others_none() -> None:
    assert {name for name, row in VALUE_TYPES.items() if row.example_bounds} == NUMERIC | TIMES
    assert {"date", "timestamp"} == TIMES


@pytest.mark.parametrize("name", TYPES)
def test_distinct_values_stay_distinct_under_the_own_type_and_as_text_but_for_floats(name: Type) -> None:
    distinct = VALUE_TYPES[name].distinct_as
    assert not VALUE_TYPES["float"].distinct_as and "float" not in distinct and "decimal" not in distinct
    if name != "float":
        assert "text" in distinct and (name == "decimal" or name in distinct)


@pytest.mark.parametrize(
    ("stored", "declared"), [("timestamp", "date"), ("text", "boolean"), ("integer", "boolean")]
)
def test_values_are_not_distinct_under_a_coarser_type(stored: Type, declared: Type) -> None:
    assert declared not in VALUE_TYPES[stored].distinct_as


def test_wide_integers_are_those_that_do_not_fit_into_64_bits() -> None:
    integers = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"]
    for name in [*integers, *("U" + name for name in integers)]:
        ((low, high),) = duckdb.execute(f"SELECT {_ends(name)}").fetchall()
        assert is_wide(name) == (low < -(2**63) or high >= 2**63), name
    assert is_wide("uint64") and not is_wide("int64") and not is_wide("VARCHAR")


def _ends(name: str) -> str:
    """The least and the largest value of one of DuckDB's integer types, as SQL."""
    bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}[name.removeprefix("U")]
    low, high = (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return f"'{low}'::{name}, '{high}'::{name}"


@pytest.mark.parametrize("ask", [kind_of, arrow_type])
def test_a_name_that_is_no_type_has_no_row(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(KeyError):
        ask("BIGINT")
