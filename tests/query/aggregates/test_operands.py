"""What an aggregate is about: when it counts, between which bounds, and what cannot be bounded."""

from __future__ import annotations

import pytest

from tests.query.asked import ENGINE, assert_refused, leaf_of, measures_of


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


def test_bounds_are_derived_through_products() -> None:
    assert measures_of("SUM(n * n * n)")[0].high == 2.0**120


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        (
            "AVG(LENGTH(t))",
            (
                "AVG needs bounds for LENGTH(t): t is no number with bounds. Write AVG(LENGTH(t), "
                "contribution_bounds_per_row => (0, 1)), with what you expect for 0 and 1."
            ),
        ),
        ("SUM(user_id)", "SUM needs bounds for user_id"),
        (
            "SUM(DISTINCT x)",
            "SUM(DISTINCT x) cannot be released, as one person may decide whether a value is there; ",
        ),
        ("SUM(t)", "SUM needs numbers, but t is of type text."),
        ("AVG(d)", "AVG needs numbers"),
        (
            "SUM(x, contribution_bounds_per_row => (0, 1e61))",
            "The bounds of x are too wide for SUM; narrow them.",
        ),
        ("SUM(f, contribution_bounds_per_row => (0, 1e-80))", "too close to zero for SUM"),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)
