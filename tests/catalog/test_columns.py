"""Values of each type, bounds and domains: kept exactly as declared, or refused with what would do."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog.columns import Column, DomainFrom, Scalar, typed
from incrowd.catalog.types import NUMERIC, TYPES, Type
from tests.catalog.faults import fault_of

EAST = timezone(timedelta(hours=2))
NOON = datetime(2024, 2, 29, 12)
NO_DATE = "is not a date such as 2024-12-31"
NO_TIME = "is not a timestamp such as 2024-12-31 23:59:59"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3.0, "integer", 3),
        (Decimal(3), "integer", 3),
        (2**63 - 1, "integer", 2**63 - 1),
        (-(2**63), "integer", -(2**63)),
        (3, "float", 3.0),
        (Decimal("0.5"), "float", 0.5),
        (0.1, "decimal", Decimal("0.1")),
        ("0.10", "decimal", Decimal("0.10")),
        (3, "decimal", Decimal(3)),
        ("x", "text", "x"),
        (True, "boolean", True),
        ("2024-02-29", "date", date(2024, 2, 29)),
        (date(2024, 2, 29), "date", date(2024, 2, 29)),
        ("2024-02-29 12:00", "timestamp", NOON),
        (NOON.replace(hour=14, tzinfo=EAST), "timestamp", NOON),
        (NOON.replace(tzinfo=UTC), "timestamp", NOON),
        (date(2024, 2, 29), "timestamp", datetime(2024, 2, 29)),
        ("2024-02-29T14:00+02:00", "timestamp", NOON),
    ],
)
def test_a_value_of_a_type_is_read_as_one(value: object, kind: Type, expected: Scalar) -> None:
    read = typed(value, kind)
    assert read == expected and type(read) is type(expected) and str(read) == str(expected)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (True, "integer", "true is not a value of type integer"),
        ("3", "integer", "'3' is not a value of type integer"),
        (1.5, "integer", "1.5 is not a whole number; the column's type is integer"),
        (math.nan, "integer", "nan is not a whole number; the column's type is integer"),
        (math.inf, "integer", "inf is not a whole number; the column's type is integer"),
        (2**63, "integer", "9223372036854775808 is beyond the 64-bit integers"),
        (-(2**63) - 1, "integer", "-9223372036854775809 is beyond the 64-bit integers"),
        (math.inf, "float", "expected a finite number"),
        ("0.5", "float", "expected a number, not '0.5'"),
        (True, "float", "expected a number, not true"),
        (True, "decimal", "true is not a value of type decimal"),
        (b"1", "decimal", "b'1' is not a value of type decimal"),
        ("ten", "decimal", "'ten' is not a value of type decimal"),
        ("NaN", "decimal", "expected a finite number"),
        (math.inf, "decimal", "expected a finite number"),
        (1, "text", "1 is not a value of type text; put quotes around it"),
        (1, "boolean", "1 is not a value of type boolean"),
        ("2024-02-30", "date", f"'2024-02-30' {NO_DATE}"),
        (NOON, "date", f"2024-02-29 12:00:00 {NO_DATE}"),
        (7, "date", f"7 {NO_DATE}"),
        ("noon", "timestamp", f"'noon' {NO_TIME}"),
        (7, "timestamp", f"7 {NO_TIME}"),
        (
            datetime(1, 1, 1, tzinfo=EAST),
            "timestamp",
            "0001-01-01 00:00:00+02:00 leaves the calendar when it is turned into UTC",
        ),
    ],
)
def test_what_is_no_value_of_a_type_is_refused(value: object, kind: Type, said: str) -> None:
    assert fault_of(lambda: typed(value, kind)) == said


@pytest.mark.parametrize("kind", TYPES)
def test_no_type_has_null_or_a_placeholder_among_its_values(kind: Type) -> None:
    assert fault_of(lambda: typed(None, kind)) == "NULL is not a value; say nullable: true instead"
    assert fault_of(lambda: typed("FILL", kind)) == (
        "still says FILL; write a value that you know without looking at the data"
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_what_the_owner_wrote_and_a_float_has_no_minus_zero(value: float) -> None:
    assert float(typed(value, "decimal")) == value and str(typed(value, "decimal")) == str(
        Decimal(repr(value))
    )
    assert math.copysign(1, float(typed(0.0 * value, "float"))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("BIGINT", "'BIGINT' is not a type, perhaps you mean integer"),
        ("intger", "'intger' is not a type, perhaps you mean integer"),
        (
            "blob",
            "'blob' is not a type, choose from integer, float, decimal, text, boolean, date, timestamp",
        ),
        (7, "7 is not a type, choose from integer, float, decimal, text, boolean, date, timestamp"),
        ("FILL", "still says FILL; choose from integer, float, decimal, text, boolean, date, timestamp"),
    ],
)
def test_a_type_is_one_of_the_catalog_s(kind: object, said: str) -> None:
    assert fault_of(lambda: Column.model_validate({"type": kind, "bounds": [1, 0]})) == f"type: {said}"


def test_a_type_and_nothing_else_is_a_column() -> None:
    for kind in TYPES:
        column = Column(type=kind)
        assert (column.type, column.bounds, column.domain, column.nullable) == (kind, None, None, True)
        assert column.contribution is None and column.limits is None


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_bounds_are_in_order(low: int, high: int) -> None:
    if low <= high:
        assert Column(type="integer", bounds=(low, high)).limits == (low, high)
    else:
        assert fault_of(lambda: Column(type="integer", bounds=(low, high))) == (
            f"bounds: the lower bound {low} is above the upper bound {high}; write [{high}, {low}]"
        )


@pytest.mark.parametrize(
    ("kind", "bounds", "said"),
    [
        (
            "text",
            ["a", "b"],
            "bounds: a text column has no bounds; declare a domain if its values are public",
        ),
        ("boolean", [False, True], "bounds: a boolean column has no bounds; declare a domain if its values"),
        ("integer", 3, "bounds: expected two values, [low, high]"),
        ("integer", [1], "bounds: expected two values, [low, high]"),
        ("integer", [1, 2, 3], "bounds: expected two values, [low, high]"),
        ("integer", [1, 2.5], "bounds[1]: 2.5 is not a whole number; the column's type is integer"),
        ("date", [7, "2024-01-01"], f"bounds[0]: 7 {NO_DATE}"),
        ("float", [-1e308, 1e308], "bounds: the bounds are too far apart: their difference overflows"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(kind: str, bounds: object, said: str) -> None:
    assert fault_of(lambda: Column.model_validate({"type": kind, "bounds": bounds})).startswith(said)


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("float", (-8e307, 8e307)),
        ("decimal", (Decimal("0.1"), Decimal("0.1"))),
        ("date", (date(2024, 1, 1), date(2024, 1, 1))),
        ("timestamp", (NOON, NOON)),
    ],
)
def test_bounds_may_be_wide_or_a_single_value(kind: Type, bounds: tuple[Scalar, Scalar]) -> None:
    assert Column(type=kind, bounds=bounds).limits == bounds


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        (3, "domain: expected a list of values, or {from: public_table.column}"),
        ("a", "domain: expected a list of values, or {from: public_table.column}"),
        ([], "domain: an empty domain lets no row count; leave it out, or list the values"),
        ([1, "x"], "domain[1]: 'x' is not a value of type integer"),
        ([1, 2, 1.0], "domain[2]: 1 is listed twice"),
        ([0, 9], "domain[0]: 0 lies outside the bounds [1, 9]"),
        ([1, 10], "domain[1]: 10 lies outside the bounds [1, 9]"),
        ({"from": "regions"}, "domain: expected a list of values, or {from: public_table.column}"),
        ({"of": "regions.name"}, "domain: expected a list of values, or {from: public_table.column}"),
        ({"from": 7}, "domain: expected a list of values, or {from: public_table.column}"),
        (
            {"from": "regions.name", "or": 1},
            "domain: expected a list of values, or {from: public_table.column}",
        ),
    ],
)
def test_a_domain_that_is_none_is_refused(domain: object, said: str) -> None:
    fields = {"type": "integer", "bounds": [1, 9], "domain": domain}
    assert fault_of(lambda: Column.model_validate(fields)) == said


def test_a_domain_is_listed_or_looked_up_in_a_public_table() -> None:
    listed = Column(type="integer", domain=[3, 1.0, 9], bounds=(1, 9))
    assert listed.values == (3, 1, 9) and listed.limits == (1, 9)
    assert Column(type="integer", domain=(3, 1)).limits == (1, 3)
    assert Column(type="text", domain=["b", "a"]).limits is None
    assert Column(type="boolean", domain=[True]).limits is None and Column(type="boolean").limits is None
    origin = DomainFrom(table="regions", column="name.long")
    looked_up = Column(type="text", domain={"from": "regions.name.long"})
    assert looked_up.domain == origin == Column(type="text", domain=origin).domain
    assert str(origin) == "regions.name.long" and looked_up.values is None and looked_up.limits is None


def test_both_truth_values_are_public_unless_a_domain_says_otherwise() -> None:
    assert Column(type="boolean").values == (False, True) and Column(type="text").values is None
    assert Column(type="boolean", domain=[True]).values == (True,)
    assert Column(type="boolean", domain={"from": "regions.open"}).values is None


@pytest.mark.parametrize("kind", TYPES)
def test_only_numbers_have_a_contribution(kind: Type) -> None:
    if kind in NUMERIC:
        assert Column(type=kind, contribution=2).contribution == 2.0
    else:
        said = f"contribution: a {kind} column cannot be summed; leave contribution out"
        assert fault_of(lambda: Column(type=kind, contribution=2)) == said
