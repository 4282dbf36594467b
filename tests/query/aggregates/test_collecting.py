"""Columns of one leaf: one for each aggregate, of the right kind, and nothing that has no family."""

from __future__ import annotations

import pytest

from tests.query.asked import assert_refused, leaf_of


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


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        ("STRING_AGG(t)", "STRING_AGG(t) cannot be released, as it would publish values of rows"),
        ("COUNT(x, f)", "takes one column here; LEAST and GREATEST compare several."),
        ("MAX(x, 3)", "MAX(x, 3) cannot be released, as it would show the values of several rows"),
        ("SUM(x) FILTER (WHERE x)", "FILTER needs a condition, but x is of type integer."),
    ],
)
def test_what_cannot_be_bounded_is_refused(aggregate: str, said: str) -> None:
    assert_refused(aggregate, said)
