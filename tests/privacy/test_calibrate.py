from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import bounded_range, calibrate, gaussian, laplace, least_sigma, pure, threshold


def test_one_gaussian_is_the_analytic_calibration() -> None:
    assert calibrate(lambda s: gaussian(1 / s), 1.0, 1e-6) == pytest.approx(least_sigma(1.0, 1e-6), rel=1e-8)


@pytest.mark.parametrize("start", [1e-6, 1.0, 1e6])
def test_the_least_noise_for_a_mixed_plan_is_within_budget_and_no_less_is(start: float) -> None:
    asked = []

    def plan(noise: float):  # type: ignore[no-untyped-def]
        asked.append(noise)
        return gaussian(1 / noise) * 20 + laplace(0.5 / noise) * 5

    noise = calibrate(plan, 0.8, 1e-6, start=start)
    assert plan(noise).epsilon(1e-6) <= 0.8
    assert plan(noise * (1 - 1e-6)).epsilon(1e-6) > 0.8
    assert len(asked) < 60  # one monotone solve


def test_pure_plans_need_no_delta() -> None:
    assert calibrate(lambda b: pure(1 / b) * 7, 1.0) == pytest.approx(7.0, rel=1e-8)
    noise = calibrate(lambda b: bounded_range(0.5 / b) + threshold(1e-7), 1.0, 1e-6)
    assert (bounded_range(0.5 / noise) + threshold(1e-7)).epsilon(1e-6) <= 1.0


def test_what_no_noise_can_mend_is_said() -> None:
    with pytest.raises(InvalidInput, match="No noise"):
        calibrate(lambda b: pure(1 / b) + threshold(1e-3), 1.0, 1e-6)
    with pytest.raises(InvalidInput, match="start"):
        calibrate(lambda b: pure(1 / b), 1.0, start=math.nan)


def test_an_epsilon_of_zero_is_found_by_bisection() -> None:
    # 2 Phi(1 / (2 sigma)) - 1 = 0.1 at sigma = 3.97892...; the curve says only inside or outside.
    sigma = calibrate(lambda noise: gaussian(1 / noise), 0.0, 0.1)
    assert sigma == pytest.approx(0.5 / NormalDist().inv_cdf(0.55), rel=1e-8)
    assert gaussian(1 / sigma).epsilon(0.1) == 0.0


def test_plans_that_cost_nothing_need_no_more_noise_than_the_least() -> None:
    # Free at the noise it starts from, and within 1 at delta 0.9 from far less noise on.
    sigma = calibrate(lambda noise: gaussian(1 / noise), 1.0, 0.9)
    assert gaussian(1 / sigma).epsilon(0.9) <= 1.0 < gaussian(1 / (sigma * (1 - 1e-6))).epsilon(0.9)
    assert calibrate(lambda noise: pure(1e-9), 1.0) < 1e-29


@pytest.mark.parametrize("start", [0.0, -1.0, math.inf, "1", None])
def test_a_start_that_is_no_noise_is_refused(start: object) -> None:
    with pytest.raises(InvalidInput, match="start"):
        calibrate(lambda b: pure(1 / b), 1.0, start=start)
