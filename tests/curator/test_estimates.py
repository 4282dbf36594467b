"""Interval arithmetic on released numbers: the true value is inside whenever the box is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator.estimates import Span, column
from incrowd.query import Aggregate, Measure

numbers = st.floats(-1e6, 1e6)
offsets = st.floats(-1.0, 1.0)


def span(value: float, width: float) -> Span:
    return Span.around(np.array([value]), width)


@given(numbers, offsets, numbers, offsets, st.floats(0.1, 100))
def test_operations_contain_every_true_value_of_the_box(
    a: float, da: float, b: float, db: float, width: float
) -> None:
    one, other = span(a, width), span(b, width)
    true_a, true_b = a + da * width, b + db * width
    slack = 1e-6 * (1 + abs(true_a)) * (1 + abs(true_b))
    for estimate, truth in (
        (one + other, true_a + true_b),
        (one - other, true_a - true_b),
        (one * other, true_a * true_b),
        (one.squared(), true_a**2),
    ):
        assert estimate.low[0] - slack <= truth <= estimate.high[0] + slack


@given(numbers, offsets, st.floats(2, 1e6), offsets)
def test_a_ratio_contains_every_true_value_with_at_least_one_row(
    total: float, dt: float, rows: float, dr: float
) -> None:
    width = 5.0
    truth_rows = max(1.0, rows + dr * width)
    estimate = span(total, width).per(span(rows, width))
    truth = (total + dt * width) / truth_rows
    assert estimate.low[0] - 1e-6 * (1 + abs(truth)) <= truth <= estimate.high[0] + 1e-6 * (1 + abs(truth))


def measure(name: str, low: float, high: float, centre: float = 0.0) -> Measure:
    return Measure(name, "row", "rows", None, None, low, high, centre)


def test_moments_without_noise_give_the_textbook_figures() -> None:
    x = np.array([1.0, 4.0, 9.0, 2.0])
    low, high, centre = 0.0, 10.0, 5.0
    parts = {
        "s": span(float((x - centre).sum()), 0.0),
        "q": span(float(((x - centre) ** 2 - 12.5).sum()), 0.0),
        "n": span(4.0, 0.0),
    }
    facts = {"s": measure("s", low, high, centre), "q": measure("q", 0, 25.0, 12.5), "n": measure("n", 0, 1)}
    average = column(Aggregate("a", "avg", "AVG", ("s", "n")), facts, parts, None)
    variance = column(Aggregate("v", "var", "VAR", ("s", "q", "n"), sample=True), facts, parts, None)
    deviation = column(Aggregate("d", "var", "SD", ("s", "q", "n"), root=True), facts, parts, None)
    assert np.isclose(average.value[0], x.mean())
    assert np.isclose(variance.value[0], x.var(ddof=1))
    assert np.isclose(deviation.value[0], x.std())


def test_counts_are_whole_and_their_interval_starts_at_zero() -> None:
    estimate = column(
        Aggregate("c", "count", "COUNT", ("n",), whole=True),
        {"n": measure("n", 0, 1)},
        {"n": span(3.4, 10)},
        None,
    )
    assert estimate.value[0] == 3 and estimate.low[0] == 0 and estimate.high[0] == 13


@given(st.floats(-50, 50), st.floats(1e-6, 3))
def test_a_whole_estimate_lies_in_its_own_interval_however_narrow(value: float, width: float) -> None:
    count = Aggregate("c", "count", "COUNT", ("n",), whole=True)
    signed = column(count, {"n": measure("n", -1, 1)}, {"n": span(value, width)}, None)
    assert signed.low[0] <= signed.value[0] <= signed.high[0]


ROWS, CENTRE = 10_000.0, 50.0
BOUNDED = {
    "x": measure("x", 0.0, 100.0, CENTRE),
    "y": measure("y", 0.0, 100.0, CENTRE),
    "xx": measure("xx", 0.0, 2500.0, 1250.0),
    "yy": measure("yy", 0.0, 2500.0, 1250.0),
    "xy": measure("xy", -2500.0, 2500.0),
    "n": measure("n", 0.0, 1.0),
}
MEAN_X, MEAN_Y, VAR_X, VAR_Y, COVAR = 10.0, -5.0, 100.0, 225.0, 30.0
"""Moments around the centre of the bounds: the average of x is 60, that of y is 45."""


def moments(width: float, rows: float = ROWS) -> dict[str, Span]:
    """Sums over rows with these moments, each within `width` of what it was computed from."""
    means = {
        "x": MEAN_X,
        "y": MEAN_Y,
        "xx": VAR_X + MEAN_X**2 - 1250.0,
        "yy": VAR_Y + MEAN_Y**2 - 1250.0,
        "xy": COVAR + MEAN_X * MEAN_Y,
        "n": 1.0,
    }
    return {name: span(mean * rows, width) for name, mean in means.items()}


AVERAGE = Aggregate("a", "avg", "AVG", ("x", "n"))
VARIANCE = Aggregate("a", "var", "VAR_POP", ("x", "xx", "n"))
DEVIATION = Aggregate("a", "var", "STDDEV_POP", ("x", "xx", "n"), root=True)
COVARIANCE = Aggregate("a", "covar", "COVAR_POP", ("x", "y", "xy", "n"))
CORRELATION = Aggregate("a", "corr", "CORR", ("x", "y", "xx", "yy", "xy", "n"))

# To first order, a ratio s / n moves by (width of s + |s / n| width of n) / n.
RATIO_X, RATIO_Y = 1 + MEAN_X, 1 - MEAN_Y
RATIO_XX = 1 + abs(VAR_X + MEAN_X**2 - 1250.0)
RATIO_YY = 1 + abs(VAR_Y + MEAN_Y**2 - 1250.0)
RATIO_XY = 1 + abs(COVAR + MEAN_X * MEAN_Y)
SLOPE_VAR_X, SLOPE_VAR_Y = RATIO_XX + 2 * MEAN_X * RATIO_X, RATIO_YY - 2 * MEAN_Y * RATIO_Y
SLOPE_COVAR = RATIO_XY + abs(MEAN_X) * RATIO_Y + abs(MEAN_Y) * RATIO_X
R = COVAR / (VAR_X * VAR_Y) ** 0.5
SLOPE_CORR = SLOPE_COVAR / (VAR_X * VAR_Y) ** 0.5 + R * (SLOPE_VAR_X / VAR_X + SLOPE_VAR_Y / VAR_Y) / 2


@pytest.mark.parametrize(
    ("aggregate", "truth", "slope"),
    [
        (AVERAGE, CENTRE + MEAN_X, RATIO_X),
        (VARIANCE, VAR_X, SLOPE_VAR_X),
        (DEVIATION, VAR_X**0.5, SLOPE_VAR_X / (2 * VAR_X**0.5)),
        (COVARIANCE, COVAR, SLOPE_COVAR),
        (CORRELATION, R, SLOPE_CORR),
    ],
    ids=lambda value: value.label if isinstance(value, Aggregate) else "",
)
def test_an_interval_over_many_rows_is_as_wide_as_its_noise(
    aggregate: Aggregate, truth: float, slope: float
) -> None:
    """Neither the declared bounds nor twice as wide: both ends lie where the first-order error puts them."""
    exact = column(aggregate, BOUNDED, moments(0.0), None)
    assert np.allclose([exact.low[0], exact.value[0], exact.high[0]], truth, rtol=1e-9)
    for width in (1.0, 4.0):
        estimate = column(aggregate, BOUNDED, moments(width), None)
        assert np.isclose(estimate.value[0], truth, rtol=1e-9)
        assert np.isclose(truth - estimate.low[0], slope * width / ROWS, rtol=0.1)
        assert np.isclose(estimate.high[0] - truth, slope * width / ROWS, rtol=0.1)


@pytest.mark.parametrize("aggregate", [AVERAGE, VARIANCE, DEVIATION, COVARIANCE, CORRELATION])
def test_an_interval_narrows_with_more_rows_and_less_noise(aggregate: Aggregate) -> None:
    def length(width: float, rows: float) -> float:
        estimate = column(aggregate, BOUNDED, moments(width, rows), None)
        return float(estimate.high[0] - estimate.low[0])

    assert 0 < length(1.0, 1e5) < 0.12 * length(1.0, 1e4)
    assert 0 < length(0.5, 1e4) < 0.6 * length(1.0, 1e4)


def test_an_average_of_hardly_any_rows_is_only_known_to_lie_in_its_bounds() -> None:
    estimate = column(AVERAGE, BOUNDED, moments(200.0, rows=1.0), None)
    assert (estimate.low[0], estimate.high[0]) == (0.0, 100.0)


def test_a_sample_s_variance_divides_by_one_row_less() -> None:
    sample = Aggregate("a", "var", "VAR_SAMP", ("x", "xx", "n"), sample=True)
    estimate = column(sample, BOUNDED, moments(0.0, rows=5.0), None)
    assert np.isclose(estimate.value[0], VAR_X * 5 / 4) and np.isclose(estimate.high[0], VAR_X * 5 / 4)
    assert np.isclose(estimate.low[0], VAR_X)


def test_opposite_columns_are_correlated_negatively() -> None:
    opposite = {**moments(1.0), "xy": span((-COVAR + MEAN_X * MEAN_Y) * ROWS, 1.0)}
    estimate = column(CORRELATION, BOUNDED, opposite, None)
    assert np.isclose(estimate.value[0], -R) and estimate.high[0] < 0
    assert column(COVARIANCE, BOUNDED, opposite, None).high[0] < 0


def test_a_factor_scales_a_sum_and_both_ends() -> None:
    factor = Span(np.array([2.0]), np.array([1.5]), np.array([3.0]))
    total = Aggregate("a", "sum", "SUM", ("y",))
    estimate = column(total, BOUNDED, {"y": span(100.0, 10.0)}, factor)
    assert (estimate.value[0], estimate.low[0], estimate.high[0]) == (200.0, 135.0, 330.0)
    signed = {"y": measure("y", -100.0, 100.0)}
    estimate = column(total, signed, {"y": span(-100.0, 10.0)}, factor)
    assert (estimate.value[0], estimate.low[0], estimate.high[0]) == (-200.0, -330.0, -135.0)
