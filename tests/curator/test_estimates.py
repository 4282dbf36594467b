"""Interval arithmetic on released numbers: the true value is inside whenever the box is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator import estimates
from incrowd.curator.estimates import MOST_FACTOR, Factor, Span, column
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
    variance = column(Aggregate("v", "var", "VAR", ("s", "q", "n"), sample=True), facts, parts)
    deviation = column(Aggregate("d", "var", "SD", ("s", "q", "n"), root=True), facts, parts)
    assert np.isclose(variance.value[0], x.var(ddof=1))
    assert np.isclose(deviation.value[0], x.std())


def test_counts_are_whole_and_their_interval_starts_at_zero() -> None:
    estimate = column(
        Aggregate("c", "count", "COUNT", ("n",), whole=True),
        {"n": measure("n", 0, 1)},
        {"n": span(3.4, 10)},
    )
    assert estimate.value[0] == 3 and estimate.low[0] == 0 and estimate.high[0] == 13


@pytest.mark.parametrize(
    ("value", "whole", "expected"),
    [
        (-3.4, True, (-3, -3, 6)),
        (-3.4, False, (-3.4, -3.4, 6.6)),
        (-12.5, False, (-12.5, -12.5, 0.0)),
        (4.5, False, (0.0, 4.5, 14.5)),
        (12.5, False, (2.5, 12.5, 22.5)),
    ],
)
def test_what_cannot_be_negative_keeps_its_noise_and_its_interval_reaches_down_to_it(
    value: float, whole: bool, expected: tuple[float, float, float]
) -> None:
    """What noise made negative is not raised to 0: sums over many groups would be too large."""
    total = Aggregate("a", "sum", "SUM", ("y",), whole=whole)
    estimate = column(total, {"y": measure("y", 0.0, 100.0)}, {"y": span(value, 10.0)})
    assert (estimate.low[0], estimate.value[0], estimate.high[0]) == pytest.approx(expected)


def test_what_can_be_negative_has_its_whole_interval() -> None:
    total = Aggregate("a", "sum", "SUM", ("y",))
    estimate = column(total, {"y": measure("y", -100.0, 100.0)}, {"y": span(-3.0, 10.0)})
    assert (estimate.low[0], estimate.value[0], estimate.high[0]) == (-13.0, -3.0, 7.0)


@given(st.floats(-50, 50), st.floats(1e-6, 3))
def test_a_whole_estimate_lies_in_its_own_interval_however_narrow(value: float, width: float) -> None:
    count = Aggregate("c", "count", "COUNT", ("n",), whole=True)
    signed = column(count, {"n": measure("n", -1, 1)}, {"n": span(value, width)})
    counted = column(count, {"n": measure("n", 0, 1)}, {"n": span(value, width)})
    for estimate in (signed, counted):
        assert estimate.low[0] <= estimate.value[0] <= estimate.high[0]


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
    exact = column(aggregate, BOUNDED, moments(0.0))
    assert np.allclose([exact.low[0], exact.value[0], exact.high[0]], truth, rtol=1e-9)
    for width in (1.0, 4.0):
        estimate = column(aggregate, BOUNDED, moments(width))
        assert np.isclose(estimate.value[0], truth, rtol=1e-9)
        assert np.isclose(truth - estimate.low[0], slope * width / ROWS, rtol=0.1)
        assert np.isclose(estimate.high[0] - truth, slope * width / ROWS, rtol=0.1)


@pytest.mark.parametrize("aggregate", [VARIANCE, DEVIATION, COVARIANCE, CORRELATION])
def test_an_interval_narrows_with_more_rows_and_less_noise(aggregate: Aggregate) -> None:
    def length(width: float, rows: float) -> float:
        estimate = column(aggregate, BOUNDED, moments(width, rows))
        return float(estimate.high[0] - estimate.low[0])

    assert 0 < length(1.0, 1e5) < 0.12 * length(1.0, 1e4)
    assert 0 < length(0.5, 1e4) < 0.6 * length(1.0, 1e4)


def test_a_sample_s_variance_divides_by_one_row_less() -> None:
    sample = Aggregate("a", "var", "VAR_SAMP", ("x", "xx", "n"), sample=True)
    estimate = column(sample, BOUNDED, moments(0.0, rows=5.0))
    assert np.isclose(estimate.value[0], VAR_X * 5 / 4) and np.isclose(estimate.high[0], VAR_X * 5 / 4)
    assert np.isclose(estimate.low[0], VAR_X)


def test_opposite_columns_are_correlated_negatively() -> None:
    opposite = {**moments(1.0), "xy": span((-COVAR + MEAN_X * MEAN_Y) * ROWS, 1.0)}
    estimate = column(CORRELATION, BOUNDED, opposite)
    assert np.isclose(estimate.value[0], -R) and estimate.high[0] < 0
    assert column(COVARIANCE, BOUNDED, opposite).high[0] < 0


FACTOR = Factor(1_000.0, 1_500.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("small", "large", "value"),
    [(1_000, 1_500, 1.5), (1_000, 900, 1.0), (1_000, 4_000, 4.0), (1_000, 9_000, 4.0), (-7, 5_000, 4.0)],
)
def test_a_factor_is_the_ratio_of_totals_between_one_and_four(
    small: float, large: float, value: float
) -> None:
    assert Factor(small, large, 0.0, 0.0, 0.0).value == value
    # A total that cannot be told from its noise is taken as large as that noise.
    assert Factor(1.0, 300.0, 200.0, 0.0, 0.0).value == 1.5


totals = st.floats(-1e6, 1e9)
deviations = st.floats(1e-3, 1e6)


@given(
    st.builds(Factor, totals, totals, deviations, deviations, st.floats(0.0, 1e12)),
    st.lists(numbers, min_size=1, max_size=5),
    st.floats(0.0, 1e6),
    st.floats(0.01, 0.999),
)
def test_a_scaled_interval_contains_the_scaled_noise(
    factor: Factor, sums: list[float], halfwidth: float, confidence: float
) -> None:
    values = np.array(sums)
    estimate = factor.scaled(values, halfwidth, confidence)
    assert 1.0 <= factor.value <= MOST_FACTOR
    assert np.array_equal(estimate.value, factor.value * values)
    slack = 1e-9 * (1 + np.abs(estimate.value) + factor.value * halfwidth)
    assert np.all(estimate.low <= estimate.value - factor.value * halfwidth + slack)
    assert np.all(estimate.high >= estimate.value + factor.value * halfwidth - slack)
    assert np.all(np.isfinite(estimate.low) & np.isfinite(estimate.high))


def half(factor: Factor, sums: float = 100.0, halfwidth: float = 10.0, confidence: float = 0.95) -> float:
    """Half of the length of the interval of one group among ten."""
    estimate = factor.scaled(np.array([sums, *[0.0] * 9]), halfwidth, confidence)
    assert np.isclose(estimate.high[0] - estimate.value[0], estimate.value[0] - estimate.low[0])
    return float(estimate.high[0] - estimate.value[0])


def test_a_group_may_lose_more_or_less_than_its_part() -> None:
    """Nothing is noisy but the group: 1.5 times its noise, and a quarter of the half that was added."""
    assert half(FACTOR) == pytest.approx(1.5 * 10 + 0.25 * 0.5 * 100)
    assert half(FACTOR, -100.0) == half(FACTOR)
    assert half(replace(FACTOR, large=1_000.0)) == pytest.approx(10.0)


def test_an_interval_widens_with_what_was_cut_and_the_noise_of_the_totals() -> None:
    """A tenth of the total has a tenth of the squares that were cut, and a tenth of the totals' noise."""
    nats = 1.04 * np.log(20) / 2**0.5
    uneven = 0.25 * 0.5 * 100
    cut = half(replace(FACTOR, cut_squares=4e4))
    assert cut == pytest.approx(np.hypot(15.0, nats * (4e4 / 10) ** 0.5) + uneven)
    large = half(replace(FACTOR, large_deviation=300.0))
    assert large == pytest.approx(np.hypot(15.0, nats * 30.0) + uneven)
    # The total under C, of which the group is a tenth, may be a deviation smaller: 700 instead of 1,000.
    small = half(replace(FACTOR, small_deviation=300.0))
    assert small == pytest.approx(np.hypot(15.0, nats * 1.5 * 300.0 * 100 / 700) + uneven)
    assert half(FACTOR) < large < small
    assert half(FACTOR) < cut < half(replace(FACTOR, cut_squares=8e4))


def test_the_interval_of_a_clamped_factor_reaches_as_far_as_the_ratio_of_the_totals() -> None:
    """The totals say 9 times, and the factor is 4: 900 must be inside."""
    clamped = replace(FACTOR, large=9_000.0)
    assert half(clamped, halfwidth=0.0) == pytest.approx(0.25 * 3 * 100 + 5 * 100)
    assert half(replace(FACTOR, large=4_000.0), halfwidth=0.0) == pytest.approx(0.25 * 3 * 100)


def test_an_empty_group_may_have_lost_a_little_by_chance() -> None:
    """A group without a row in sight has a quarter of the share of an average one: a fortieth of ten."""
    cut = replace(FACTOR, cut_squares=4e4)
    assert half(cut, 0.0, 0.0) == pytest.approx(1.04 * np.log(20) / 2**0.5 * (4e4 / 40) ** 0.5)
    assert half(FACTOR, 0.0) == pytest.approx(15.0)


def test_an_interval_widens_with_confidence() -> None:
    noisy = replace(FACTOR, cut_squares=4e4, large_deviation=300.0)
    lengths = [half(noisy, confidence=confidence) for confidence in (0.5, 0.9, 0.95, 0.999)]
    assert lengths == sorted(set(lengths))


def scaled_groups(cap: int, likelier: float) -> tuple[float, float]:
    """How often the true sum of a group is inside at 95%, and half the mean length over the mean error.

    2,000 units with up to 32 rows are put into one of 20 groups at random, 1,000 times anew. Heavy units are
    likelier in half of the groups by a part.
    """
    draw = np.random.default_rng(7)
    rows = (2 ** (np.arange(2_000) % 6)).astype(float)
    kept = np.minimum(rows, cap)
    cut_squares = float(((rows - kept) ** 2).sum())
    inside, lengths, errors = [], [], []
    for _ in range(1_000):
        moved = (rows > cap) & (draw.random(2_000) < likelier)
        groups = np.where(moved, draw.integers(0, 10, 2_000), draw.integers(0, 20, 2_000))
        truth = np.bincount(groups, rows, 20)
        sums = np.bincount(groups, kept, 20) + draw.laplace(0, 2 * cap, 20)
        small, large = (
            float(weights.sum() + draw.laplace(0, 10 * most)) for weights, most in ((kept, cap), (rows, 32))
        )
        factor = Factor(small, large, 2**0.5 * 10 * cap, 2**0.5 * 320, cut_squares)
        estimate = factor.scaled(sums, 2 * cap * np.log(20), 0.95)
        inside.append(np.mean((estimate.low <= truth) & (truth <= estimate.high)))
        lengths.append(np.mean(estimate.high - estimate.low) / 2)
        errors.append(np.mean(np.abs(estimate.value - truth)))
    return float(np.mean(inside)), float(np.mean(lengths) / np.mean(errors))


@pytest.mark.statistical
@pytest.mark.parametrize("cap", [6, 8, 16])
def test_the_sum_of_a_group_is_inside_as_often_as_stated(cap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval of Gaussian errors reaches 2.5 times their mean size, one of Laplace errors 3 times."""
    monkeypatch.setattr(estimates, "UNEVEN", 0.0)
    inside, length = scaled_groups(cap, likelier=0.0)
    assert 0.95 <= inside < 0.997 and length < 4


@pytest.mark.statistical
@pytest.mark.parametrize("cap", [2, 6, 8, 16])
def test_the_sum_of_a_group_is_inside_where_heavy_units_are_uneven(cap: int) -> None:
    inside, length = scaled_groups(cap, likelier=0.25)
    assert inside >= 0.95 and length < 6
