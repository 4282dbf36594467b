"""Slopes and intercepts from boxes: they hold whatever is in the box, and say where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.curator.estimates import Floats, Span
from incrowd.curator.regressions import intercept, slope, sum_of_squares
from incrowd.query import Measure

rng = np.random.default_rng(5)


def span(value: float, half: float) -> Span:
    return Span.around(np.array([value]), half)


def inside(box: Span, times: int = 2_000) -> Floats:
    return rng.uniform(box.low[0], box.high[0], times)


def test_every_slope_of_the_box_is_inside() -> None:
    covariance, variance = span(-3.0, 4.0), span(5.0, 2.0)
    made = slope(covariance, variance)
    slopes = inside(covariance) / inside(variance)
    assert (made.low[0] <= slopes).all() and (slopes <= made.high[0]).all()
    assert made.value[0] == pytest.approx(-0.6)
    assert (made.low[0], made.high[0]) == pytest.approx((-7 / 3, 1 / 3)), "no wider than the corners"


@pytest.mark.parametrize("half", [5.0, 9.0])
def test_a_variance_that_may_be_zero_leaves_any_slope_and_a_flat_line(half: float) -> None:
    made = slope(span(1.0, 0.5), span(5.0, half))
    assert (made.value[0], made.low[0], made.high[0]) == (0.0, -np.inf, np.inf)
    facts = [
        Measure(name, "row", "rows", None, None, 0, 1, centre, False) for name, centre in (("s", 4), ("t", 7))
    ]
    met = intercept(made, (span(1.0, 0.5), span(2.0, 0.5)), facts)
    assert (met.value[0], met.low[0], met.high[0]) == (9.0, -np.inf, np.inf)


def test_every_intercept_of_the_box_is_inside() -> None:
    facts = [
        Measure(name, "row", "rows", None, None, 0, 1, centre, False) for name, centre in (("s", 4), ("t", 7))
    ]
    sloping, means = span(0.5, 0.25), (span(1.0, 0.5), span(2.0, 0.5))
    made = intercept(sloping, means, facts)
    met = (inside(means[1]) + 7) - inside(sloping) * (inside(means[0]) + 4)
    assert (made.low[0] <= met).all() and (met <= made.high[0]).all()
    assert made.value[0] == pytest.approx(9 - 0.5 * 5)


def test_a_sum_of_squares_is_the_variance_times_the_rows_and_no_rows_are_fewer_than_none() -> None:
    made = sum_of_squares(span(5.0, 2.0), span(3.0, 10.0))
    assert (made.value[0], made.low[0], made.high[0]) == (15.0, 0.0, 91.0)
