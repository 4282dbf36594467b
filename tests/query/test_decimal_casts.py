"""Casts to DECIMAL: rounded to its digits, NULL beyond them, and bounds that hold."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.query.one_table import computed, corner_rows, refuted, typed


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("CAST('1.25' AS DECIMAL(4, 1))", 1.3),
        ("CAST('-1.25' AS DECIMAL(4, 1))", -1.3),
        ("CAST('1234.5' AS DECIMAL(4, 1))", None),
        ("CAST('999.96' AS DECIMAL(4, 1))", None),
        ("CAST('x' AS DECIMAL)", None),
        ("'1.23456'::DECIMAL", 1.235),
        ("CAST(7 AS DECIMAL(10))", 7.0),
        ("CAST(TRUE AS DECIMAL(3, 0))", 1.0),
    ],
)
def test_a_decimal_is_rounded_to_its_digits(sql: str, value: float | None) -> None:
    assert computed(typed(sql).sql, corner_rows()) == [value]


@pytest.mark.parametrize("column", ["x", "f", "g", "n", "u", "s", "b"])
@pytest.mark.parametrize("to", ["DECIMAL(3, 1)", "DECIMAL(2, 1)", "DECIMAL(38, 0)", "DECIMAL"])
def test_what_is_claimed_of_a_decimal_holds(column: str, to: str) -> None:
    assert not refuted(typed(f"CAST({column} AS {to})"), corner_rows(column))


def test_a_decimal_that_has_room_is_never_null() -> None:
    assert (
        not typed("CAST(g AS DECIMAL(10, 2))").nullable and typed("CAST(g AS DECIMAL(1, 0))").high is not None
    )


@pytest.mark.parametrize("to", ["DECIMAL(38, 20)", "DECIMAL(39, 2)"])
def test_more_digits_than_there_are_is_refused(to: str) -> None:
    with pytest.raises(QueryError, match="has up to 38 digits, and up to 18 of them after the point"):
        typed(f"CAST(x AS {to})")
