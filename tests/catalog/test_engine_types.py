"""Type names of engines and frames: each known one has its type, and nested ones have none."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog import TYPES
from incrowd.catalog.engine_types import column_type

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
    relation = duckdb.sql(f"SELECT {value} AS x")
    assert relation is not None
    assert column_type(str(relation.types[0])) == kind
    assert column_type(str(relation.to_arrow_table().schema.field("x").type)) == kind
    assert kind is None or kind in TYPES


def test_arrow_types_have_theirs() -> None:
    assert column_type(str(pa.large_utf8())) == "text" and column_type(str(pa.uint8())) == "integer"
