"""Arithmetic of two numbers: the ends it claims, and where its result may be NULL."""

from __future__ import annotations

import pytest

from tests.query.one_table import computed, corner_rows, refuted, typed


@pytest.mark.parametrize(
    ("sql", "low", "high", "nullable"),
    [
        ("-(y)", -4, -1, False),
        ("x * y", -20, 80, True),
        ("x * x", 0, 400, True),
        ("y - y", -3, 3, False),
        ("x / g", -10, 40, True),
        ("y // y", 0, 4, False),
        ("y % 3", 0, 2, False),
        ("y / x", None, None, True),
    ],
)
def test_ends_are_those_of_the_operands(
    sql: str, low: float | None, high: float | None, nullable: bool
) -> None:
    claim = typed(sql)
    assert (claim.low, claim.high, claim.nullable) == (low, high, nullable)
    assert not refuted(claim, corner_rows("x", "y", "g"))


def test_a_division_by_zero_is_null() -> None:
    row = {**corner_rows()[0], "x": 0, "y": 4}
    assert [computed(typed(sql).sql, [row])[0] for sql in ("y / x", "y % x", "y // x")] == [None] * 3
