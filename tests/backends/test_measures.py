"""What DuckDB makes of a measure is what exact arithmetic in Python says, whatever the row holds."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from incrowd.backends.measures import (
    MOST,
    MOST_RELEASED,
    capped_sum,
    cell_of,
    counted,
    pair_value,
    steps_of,
    unit_sum,
    weight_of,
)
from incrowd.backends.totality.walk import Keys
from incrowd.backends.trees import column, text_of
from incrowd.query import Measure
from tests.sweep import sized

ODD = [
    *(None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.5, -1.5),
    *(1e308, -1e308, 0.1, 0.5, 2.0**53 + 2, 1e-17),
]
SETTINGS = settings(max_examples=sized(20, 60), deadline=None, derandomize=True, database=None)


def value_of(column: str = "x") -> exp.Expr:
    return exp.cast(exp.column(column), "DOUBLE")


def measures(level: str = "row", buckets: int = 0) -> st.SearchStrategy[Measure]:
    """Sums with any bounds, centre and cap."""
    ends = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted)

    def made(low_high: list[float], centred: bool, cap: float, whole: bool) -> Measure:
        low, high = low_high
        centre = (low + high) / 2 if centred and not buckets else 0.0
        return Measure(
            "m",
            level,
            "own",
            None,
            value_of(),
            low,
            high,
            centre,
            whole,
            cap,
            buckets=buckets,  # type: ignore[arg-type]
        )

    return st.builds(made, ends, st.booleans(), st.floats(1e-3, 1e6), st.booleans())


def computed(node: exp.Expr, values: list[float | None]) -> list[int | None]:
    """An expression over the column x, on rows with these values."""
    table = pa.table({"x": pa.array(values, pa.float64()), "place": list(range(len(values)))})
    with duckdb.connect() as connection:
        connection.register("rows", table)
        fetched = connection.sql(f"SELECT {text_of(node)} AS y FROM rows ORDER BY place").fetchall()
    return [value for (value,) in fetched]


def grid(value: float, exponent: int) -> int:
    """The nearest step, by the floating-point sum that the statement computes."""
    return math.floor(math.ldexp(value + math.ldexp(0.5, exponent), -exponent))


def steps(measure: Measure, value: float | None) -> int | None:
    if value is None or math.isnan(value):
        return None
    exponent = measure.exponent
    if value < measure.low:
        return math.floor(Fraction(measure.low - measure.centre) / Fraction(2) ** exponent + Fraction(1, 2))
    if value <= measure.high:
        return grid(value - measure.centre, exponent)
    return math.floor(Fraction(measure.high - measure.centre) / Fraction(2) ** exponent + Fraction(1, 2))


def around(measure: Measure) -> list[float | None]:
    """Odd values, and those next to the bounds."""
    ends = (measure.low, measure.high)
    return [*ODD, *ends, *(math.nextafter(end, to) for end in ends for to in (-math.inf, math.inf))]


@SETTINGS
@given(measures())
def test_steps_are_those_of_exact_arithmetic(measure: Measure) -> None:
    values = around(measure)
    answer = computed(steps_of(measure, measure.exponent), values)
    assert answer == [steps(measure, value) for value in values]
    assert all(count is None or abs(count) <= measure.limit_steps for count in answer)


@SETTINGS
@given(measures(buckets=7))
def test_cells_are_those_of_exact_arithmetic(measure: Measure) -> None:
    if measure.high == measure.low:
        return
    values = around(measure)
    width = (measure.high - measure.low) / measure.buckets

    def cell(value: float | None) -> int | None:
        if value is None or math.isnan(value):
            return None
        if value < measure.low:
            return 0
        if value >= measure.high:
            return measure.buckets - 1
        return min(math.floor((value - measure.low + width) / width) - 1, measure.buckets - 1)

    assert computed(cell_of(measure), values) == [cell(value) for value in values]


@SETTINGS
@given(measures(), measures(buckets=3))
def test_text_of_a_measure_reads_as_its_tree(measure: Measure, quantile: Measure) -> None:
    for node in (steps_of(measure, measure.exponent), cell_of(quantile), pair_value(measure, column("v"), 0)):
        keys, read = Keys(), parse_one(text_of(node), read="duckdb")
        assert keys.of(read) == keys.of(node)


def test_a_row_that_is_absent_has_no_steps() -> None:
    present = exp.GT(this=exp.column("x"), expression=exp.Literal.number(1))
    measure = Measure("m", "row", "own", present, value_of(), 0.0, 8.0, cap=8.0)
    assert computed(steps_of(measure, 0), [0.5, 2.0, None]) == [None, 2, None]


WHOLE = [0, 1, -1, 7, 2**31, -(2**31), 2**62 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1]


def summed(node: exp.Expr, values: list[int | None]) -> int | None:
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"v": pa.array(values, pa.int64())}))
        ((total,),) = connection.sql(f"SELECT {text_of(node)} FROM rows").fetchall()
    return None if total is None else int(total)


@SETTINGS
@given(st.lists(st.one_of(st.none(), st.sampled_from(WHOLE)), max_size=6), st.sampled_from([1, 5, 2**40]))
def test_sums_are_exact_and_stop_at_their_bounds(values: list[int | None], cap: int) -> None:
    there = [value for value in values if value is not None]
    total, weight = sum(there), sum(map(abs, there))
    assert summed(unit_sum(column("v")), values) == (total if abs(total) <= MOST else None)
    assert summed(weight_of(column("v"), True), values) == (weight if weight <= MOST else None)
    clamped = max(-MOST_RELEASED, min(MOST_RELEASED, total))
    assert summed(counted(exp.Sum(this=column("v"))), values) == clamped
    capped = min(sum(value if value is not None and value <= cap else cap for value in values), MOST_RELEASED)
    assert summed(capped_sum(column("v"), cap), values) == max(-MOST_RELEASED, capped)


@pytest.mark.parametrize("values", [[3, 4], [None], [], [-9, 2], [2**62, 2**62]])
def test_a_pair_is_clamped_as_a_whole(values: list[int | None]) -> None:
    measure = Measure("m", "pair", "own", None, value_of(), -2.0, 5.0, cap=5.0)
    total = sum(value or 0 for value in values)
    assert summed(pair_value(measure, column("v"), 0), values) == max(-2, min(5, total))
