"""Interval arithmetic on released numbers: the true value is inside whenever the box is."""

from __future__ import annotations

import numpy as np
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
    for found, truth in (
        (one + other, true_a + true_b),
        (one - other, true_a - true_b),
        (one * other, true_a * true_b),
        (one.squared(), true_a**2),
    ):
        assert found.low[0] - slack <= truth <= found.high[0] + slack


@given(numbers, offsets, st.floats(2, 1e6), offsets)
def test_a_ratio_contains_every_true_value_with_at_least_one_row(
    total: float, dt: float, rows: float, dr: float
) -> None:
    width = 5.0
    truth_rows = max(1.0, rows + dr * width)
    found = span(total, width).per(span(rows, width))
    truth = (total + dt * width) / truth_rows
    assert found.low[0] - 1e-6 * (1 + abs(truth)) <= truth <= found.high[0] + 1e-6 * (1 + abs(truth))


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
    found = column(
        Aggregate("c", "count", "COUNT", ("n",), whole=True),
        {"n": measure("n", 0, 1)},
        {"n": span(3.4, 10)},
        None,
    )
    assert found.value[0] == 3 and found.low[0] == 0 and found.high[0] == 13
