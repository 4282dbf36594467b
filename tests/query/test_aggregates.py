"""Aggregates as measures: which sums are asked for, how each is bounded, and that they answer the aggregate.

The model is DuckDB: the measures of an aggregate, summed over rows without any cap, give its plain value by
the formulas of the module.
"""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import QueryError
from incrowd.query import Leaf, Measure
from tests.backends.houses import plan_of, tables_from

ENGINE = duckdb.connect(":memory:")


def leaf_of(aggregate: str, mode: str = "user", source: str = "visits", **contribution: float) -> Leaf:
    (leaf,) = plan_of(f"SELECT {aggregate} AS z FROM {source}", mode, **contribution).leaves
    return leaf


def measures_of(aggregate: str, mode: str = "user", **contribution: float) -> list[Measure]:
    leaf = leaf_of(aggregate, mode, **contribution)
    (column,) = leaf.aggregates
    return [leaf.measures[name] for name in column.measures]


def summed(measure: Measure) -> tuple[float, int]:
    """The sum of a measure over all rows, clamped and centred, and the number of rows that count."""
    value = "CAST(1 AS DOUBLE)" if measure.value is None else measure.value.sql("duckdb")
    present = "TRUE" if measure.present is None else measure.present.sql("duckdb")
    rows = ENGINE.execute(f"SELECT {value} FROM visits WHERE {present}").fetchall()
    there = [value for (value,) in rows if value is not None and not math.isnan(value)]
    return math.fsum(min(max(term, measure.low), measure.high) - measure.centre for term in there), len(there)


def estimate(aggregate: str) -> float | None:
    """An aggregate from its measures, by the formulas."""
    leaf = leaf_of(aggregate)
    (column,) = leaf.aggregates
    measures = [leaf.measures[name] for name in column.measures]
    sums = [summed(measure)[0] for measure in measures]
    if column.kind in ("count", "sum"):
        return sums[0]
    n = sums[-1]
    if n == 0 or (column.sample and n == 1):
        return None
    scale = n / (n - 1) if column.sample else 1.0
    if column.kind == "avg":
        return measures[0].centre + sums[0] / n
    if column.kind == "var":
        spread = (sums[1] / n + measures[1].centre - (sums[0] / n) ** 2) * scale
        return math.sqrt(max(spread, 0.0)) if column.root else spread
    cross = sums[-2] / n - (sums[0] / n) * (sums[1] / n)
    if column.kind == "covar":
        return cross * scale
    spreads = [sums[2 + i] / n + measures[2 + i].centre - (sums[i] / n) ** 2 for i in (0, 1)]
    return None if min(spreads) <= 1e-12 else cross / math.sqrt(spreads[0] * spreads[1])


AGGREGATES = [
    *(
        "COUNT(*)",
        "COUNT(x)",
        "COUNT(f)",
        "COUNT_IF(x > 2)",
        "SUM(x)",
        "SUM(f)",
        "AVG(x)",
        "AVG(f)",
        "SUM(x + f)",
        "AVG(x * 2)",
        "SUM(b)",
        "AVG(b)",
    ),
    *(
        "VAR_POP(x)",
        "VAR_SAMP(f)",
        "VARIANCE(f)",
        "STDDEV(x)",
        "STDDEV_POP(f)",
        "STDDEV_SAMP(x)",
        "COVAR_POP(x, f)",
        "COVAR_SAMP(x, f)",
        "CORR(x, f)",
    ),
    *(
        "SUM(x) FILTER (WHERE f > 0)",
        "AVG(f) FILTER (WHERE x > 0)",
        "COUNT(*) FILTER (WHERE x IS NULL)",
        "VAR_POP(f) FILTER (WHERE b)",
        "COVAR_POP(x, f) FILTER (WHERE b)",
    ),
    *("COUNT_IF(x > 2) FILTER (WHERE b)", "COUNT(x) FILTER (WHERE f > 0)", "SUM(CASE WHEN b THEN x END)"),
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6))
def test_the_measures_of_an_aggregate_give_its_value(aggregate: str, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=False)["visits"])
    plain = aggregate.replace("(b)", "(CAST(b AS INTEGER))")
    ((expected,),) = ENGINE.execute(f"SELECT {plain} FROM visits").fetchall()
    answer = estimate(aggregate)
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        assert answer is None or answer == 0
    elif answer is not None:
        assert math.isclose(answer, expected, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("seed", range(3))
def test_wild_rows_stay_within_the_bounds_of_every_measure(aggregate: str, seed: int) -> None:
    ENGINE.register("visits", tables_from(seed, wild=True)["visits"])
    for measure in measures_of(aggregate):
        total, rows = summed(measure)
        assert abs(total) <= rows * measure.limit * (1 + 1e-9)
        assert not math.isnan(total)


@pytest.mark.parametrize(
    ("aggregate", "facts"),
    [
        ("COUNT(*)", [("row", "rows", 0, 1, 0, True)]),
        ("COUNT(DISTINCT user_id)", [("pair", "own", 0, 1, 0, True)]),
        ("SUM(x)", [("row", "own", -5, 20, 0, True)]),
        ("SUM(f)", [("row", "own", -2.5, 7.5, 0, False)]),
        ("AVG(x)", [("pair", "joint", -5, 20, 7.5, True), ("pair", "joint", 0, 1, 0, True)]),
        (
            "VAR_POP(f)",
            [
                ("pair", "joint", -2.5, 7.5, 2.5, False),
                ("pair", "joint", 0, 25, 12.5, False),
                ("pair", "joint", 0, 1, 0, True),
            ],
        ),
        (
            "COVAR_POP(x, f)",
            [
                ("pair", "joint", -5, 20, 7.5, True),
                ("pair", "joint", -2.5, 7.5, 2.5, False),
                ("pair", "joint", -62.5, 62.5, 0, False),
                ("pair", "joint", 0, 1, 0, True),
            ],
        ),
        ("SUM(x, contribution_bounds_per_row => (0, 3))", [("row", "own", 0, 3, 0, True)]),
        ("SUM(x, contribution_bounds_per_group => (0, 30))", [("pair", "own", 0, 30, 0, True)]),
        (
            "AVG(f, contribution_bounds_per_row => (0, 4))",
            [("pair", "joint", 0, 4, 2, False), ("pair", "joint", 0, 1, 0, True)],
        ),
        ("COUNT(*, contribution_bounds_per_group => (0, 7))", [("pair", "own", 0, 7, 0, True)]),
        ("SUM(x + 1)", [("row", "own", -4, 21, 0, True)]),
    ],
)
def test_each_measure_is_bounded_as_the_owner_or_the_question_says(
    aggregate: str, facts: list[tuple[Any, ...]]
) -> None:
    measured = [
        (measure.level, measure.weighing, measure.low, measure.high, measure.centre, measure.whole)
        for measure in measures_of(aggregate)
    ]
    assert measured == facts


@pytest.mark.parametrize(
    ("aggregate", "mode", "contribution", "caps"),
    [
        ("COUNT(*)", "user", {}, [None]),
        ("COUNT(*)", "user", {"rows": 3}, [3]),
        ("COUNT(*)", "row", {}, [1]),
        ("SUM(x)", "user", {"rows": 2}, [40]),
        ("SUM(x)", "row", {}, [20]),
        ("SUM(f)", "user", {}, [None]),
        ("AVG(x)", "user", {"rows": 4}, [4, 4]),
        ("COUNT(DISTINCT user_id)", "user", {}, [1]),
        ("SUM(x)", "user", {"groups": 2}, [None]),
        ("SUM(x, contribution_bounds_per_group => (-3, 2))", "user", {}, [3]),
        ("SUM(x, contribution_bounds_per_group => (-3, 2))", "row", {}, [3]),
        ("MEDIAN(x)", "user", {"rows": 5}, [5]),
    ],
)
def test_a_cap_is_rows_times_the_largest_value(
    aggregate: str, mode: str, contribution: dict[str, float], caps: list[float | None]
) -> None:
    assert [measure.cap for measure in measures_of(aggregate, mode, **contribution)] == caps


def test_a_declared_contribution_caps_the_sum_of_that_column_alone() -> None:
    assert [measure.cap for measure in leaf_of("SUM(w)", source="steps").measures.values()] == [2.5]
    assert [measure.cap for measure in leaf_of("SUM(w + 0)", source="steps").measures.values()] == [None]
    assert [measure.cap for measure in leaf_of("SUM(w)", "row", source="steps").measures.values()] == [1]


def test_counts_of_units_are_capped_by_groups() -> None:
    sql = (
        "SELECT city, COUNT(DISTINCT user_id) AS z, SUM(x, contribution_bounds_per_group => (0, "
        "9)) AS y FROM visits GROUP BY city"
    )
    for groups, caps in ((None, [None, None]), (3, [3, 27])):
        (leaf,) = plan_of(sql, "user", groups=groups).leaves
        assert [measure.cap for measure in leaf.measures.values()] == caps


@pytest.mark.parametrize(
    ("aggregate", "present"),
    [
        ("SUM(x)", [None]),
        ("COUNT(*)", [None]),
        ("COUNT(user_id)", ["visits.user_id"]),
        ("AVG(x)", ["visits.x", "visits.x"]),
        ("SUM(x) FILTER (WHERE b)", ["visits.b"]),
    ],
)
def test_a_row_counts_where_its_value_is_there(aggregate: str, present: list[str | None]) -> None:
    conditions = [
        None if measure.present is None else measure.present.sql("duckdb").replace('"', "")
        for measure in measures_of(aggregate)
    ]
    assert all(
        (one is None) == (two is None) and (two is None or two in (one or ""))
        for one, two in zip(conditions, present, strict=True)
    )


def test_nan_counts_as_absent_and_infinity_does_not() -> None:
    (_, number) = measures_of("AVG(f)")
    assert number.present is not None
    sql = (
        f"SELECT {number.present.sql('duckdb')} FROM (VALUES (CAST('nan' AS DOUBLE)), ('inf'), (1), "
        f"(NULL), ('-inf')) AS visits(f)"
    )
    assert [value for (value,) in ENGINE.execute(sql).fetchall()] == [False, True, True, None, True]


def test_flags_say_whether_presence_already_excludes_null_and_nan() -> None:
    plain, _ = measures_of("AVG(f)")
    filtered, _ = measures_of("AVG(f) FILTER (WHERE b)")
    sure, _ = [leaf_of("AVG(m)", source="steps").measures[name] for name in ("m0", "m1")]
    assert (plain.tested, plain.absent_if_null) == (False, True)
    assert (filtered.tested, filtered.absent_if_null) == (True, True)
    assert (sure.tested, sure.absent_if_null) == (False, True)
    assert [measure.tested for measure in measures_of("CORR(x, f)")[:4]] == [True] * 4
    quantile, *_ = measures_of("MEDIAN(x)")
    assert (quantile.tested, quantile.absent_if_null, quantile.buckets, quantile.low, quantile.high) == (
        False,
        True,
        26,
        -5,
        21,
    )


def test_columns_know_their_estimate() -> None:
    facts = {
        "COUNT(*)": ("count", False, False, True),
        "SUM(x)": ("sum", False, False, True),
        "SUM(f)": ("sum", False, False, False),
        "AVG(x)": ("avg", False, False, False),
        "VARIANCE(x)": ("var", True, False, False),
        "VAR_POP(x)": ("var", False, False, False),
        "STDDEV(x)": ("var", True, True, False),
        "STDDEV_POP(x)": ("var", False, True, False),
        "COVAR_SAMP(x, f)": ("covar", True, False, False),
        "COVAR_POP(x, f)": ("covar", False, False, False),
        "CORR(x, f)": ("corr", False, False, False),
        "MEDIAN(x)": ("quantile", False, False, True),
        "QUANTILE_CONT(f, 0.25)": ("quantile", False, False, False),
        "COUNT(DISTINCT user_id)": ("count", False, False, True),
        "COUNT(*, contribution_bounds_per_group => (0, 7))": ("sum", False, False, True),
    }
    for aggregate, expected in facts.items():
        (column,) = leaf_of(aggregate).aggregates
        assert (column.kind, column.sample, column.root, column.whole) == expected, aggregate
    assert leaf_of("QUANTILE_CONT(f, 0.25)").aggregates[0].quantiles == (0.25,)
    assert leaf_of("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY f)").aggregates[0].quantiles == (0.25,)
    assert leaf_of("MAX(x)").aggregates[0].note and not leaf_of("MEDIAN(x)").aggregates[0].note


def test_the_same_aggregate_is_one_column_and_other_bounds_are_another() -> None:
    assert len(leaf_of("SUM(x) + SUM(x)").aggregates) == 1
    bounded = "SUM(x, contribution_bounds_per_row => (0, {}))"
    assert len(leaf_of(f"{bounded.format(1)} + {bounded.format(2)} + {bounded.format(2)}").aggregates) == 2
    filtered = "SUM(x, contribution_bounds_per_row => (0, {})) FILTER (WHERE b)"
    assert len(leaf_of(f"{filtered.format(1)} + {filtered.format(2)}").aggregates) == 2
    assert [column.name for column in leaf_of("SUM(x) + COUNT(*) + AVG(x)").aggregates] == ["a0", "a1", "a2"]
    assert (
        len(leaf_of("AVG(x) + COUNT(x)").measures) == 3 and len(leaf_of("VAR_POP(x) + AVG(x)").measures) == 3
    )


def test_squares_vanish_before_float64_does() -> None:
    squares = measures_of("VAR_POP(f)")[1]
    assert squares.value is not None
    for value in ("2.5", "2.5000000000000004", "7.5", "-2.5"):
        ((square,),) = ENGINE.execute(
            f"SELECT {squares.value.sql('duckdb')} FROM (SELECT CAST('{value}' AS DOUBLE) AS f) AS visits"
        ).fetchall()
        assert abs(square - (float(value) - 2.5) ** 2) < 1e-9 and (square == 0 or square > 2.0**-230)
    small = measures_of("VAR_POP(f, contribution_bounds_per_row => (-1, 1))")[1]
    assert small.value is not None
    ((square,),) = ENGINE.execute(
        f"SELECT {small.value.sql('duckdb')} FROM (SELECT 1e-100 AS f) AS visits"
    ).fetchall()
    assert square == 0
    constant = measures_of("VAR_POP(f, contribution_bounds_per_row => (1, 1))")[1]
    assert constant.value is not None and (constant.low, constant.high) == (0, 0)


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("SUM(n * n * n)", None),
        (
            "AVG(LENGTH(t))",
            (
                "AVG needs bounds for t: ask the owner to declare them, or write AVG(LENGTH(t), "
                "contribution_bounds_per_row => (low, high))"
            ),
        ),
        ("SUM(user_id)", "SUM needs bounds for user_id"),
        (
            "SUM(DISTINCT x)",
            "SUM(DISTINCT ...) is not possible: one person may decide whether a value is there.",
        ),
        ("COUNT(DISTINCT x)", "can only count the protected unit"),
        ("COUNT(DISTINCT user_id % 2)", "can only count the protected unit"),
        ("COUNT(DISTINCT day)", "can only count the protected unit"),
        (
            "COUNT(*, contribution_bounds_per_row => (0, 1))",
            "counts each row once; bound it with contribution_bounds_per_group.",
        ),
        ("COVAR_POP(x, f, contribution_bounds_per_row => (0, 1))", "takes no contribution bounds"),
        ("STRING_AGG(t)", "is not an aggregate that can be released; use COUNT, SUM, AVG"),
        ("SUM(t)", "SUM needs numbers, but t is of type text."),
        ("AVG(d)", "AVG needs numbers"),
        (
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY f DESC)",
            "needs a rank, and WITHIN GROUP (ORDER BY one column).",
        ),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY f, x)", "needs a rank"),
        ("COUNT(x, f)", "takes one column here; LEAST and GREATEST compare several."),
        ("MAX(x, 3)", "MAX(x, 3) has an option that is not understood; leave it out."),
        (
            "SUM(x, contribution_bounds_per_row => (0, 1e61))",
            "The bounds of x are too wide for SUM; narrow them.",
        ),
        ("SUM(x) FILTER (WHERE x)", "FILTER needs a condition, but x is of type integer."),
        ("COUNT_IF(x)", "COUNT_IF needs a condition"),
        ("SUM(f, contribution_bounds_per_row => (0, 1e-80))", "too close to zero for SUM"),
        ("COUNT_IF(b, contribution_bounds_per_row => (0, 1))", "takes no bounds; write COUNT(*, "),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str | None) -> None:
    if said is None:
        assert measures_of(aggregate)[0].high == 2.0**120
        return
    with pytest.raises(QueryError) as refusal:
        leaf_of(aggregate)
    assert said in str(refusal.value)


def test_a_unit_per_day_is_counted_by_both_columns_or_within_its_day() -> None:
    assert leaf_of("COUNT(DISTINCT (user_id, day))", "per").measures["m0"].level == "pair"
    with pytest.raises(QueryError, match="can only count the protected unit"):
        leaf_of("COUNT(DISTINCT user_id)", "per")
    (leaf,) = plan_of("SELECT day, COUNT(DISTINCT user_id) AS z FROM visits GROUP BY day", "per").leaves
    assert leaf.measures["m0"].level == "pair"
    with pytest.raises(QueryError, match="can only count the protected unit"):
        plan_of("SELECT day, COUNT(DISTINCT day) AS z FROM visits GROUP BY day", "per")


def test_bounds_of_a_rank_are_not_lost_on_the_way_into_within_group() -> None:
    bounded = "PERCENTILE_CONT(0.5, contribution_bounds_per_row => (0, 5)) WITHIN GROUP (ORDER BY x)"
    (histogram,) = measures_of(bounded)
    assert (histogram.low, histogram.high) == (0, 6)
    assert len(leaf_of(f"{bounded} + {bounded.replace('5)', '6)')}").aggregates) == 2
