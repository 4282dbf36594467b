"""A running account prints what the plan costs, whatever is added and in whatever order."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    Account,
    Guarantee,
    bounded_range,
    gaussian,
    laplace,
    poisson,
    pure,
    threshold,
    zcdp,
)


@pytest.mark.parametrize("delta", [0, 1, 2, -1])
def test_an_account_needs_a_delta_between_its_ends(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        Account(delta)


def followed(delta: float, *releases: Guarantee) -> list[Account]:
    """An account asked after every release, and one asked only at the end; each must price the plan."""
    asked, silent = Account(delta), Account(delta)
    plan = Guarantee()
    for release in releases:
        asked.add(release)
        silent.add(release)
        plan = plan + release
        assert asked.guarantee() == plan
        assert asked.epsilon() == pytest.approx(plan.epsilon(delta), rel=1e-6)
    assert silent.epsilon() == plan.epsilon(delta)
    return [asked, silent]


def test_each_release_costs_what_the_plan_does() -> None:
    followed(0.01, gaussian(0.3), laplace(0.1), pure(0.2) * 2, threshold(1e-3), gaussian(0.5))


def test_sampled_and_ranged_releases_leave_the_line() -> None:
    followed(0.01, gaussian(0.3) + laplace(0.1), poisson(gaussian(0.5), 0.25), laplace(0.1))
    followed(0.01, gaussian(0.3) + pure(0.1), bounded_range(0.5))
    followed(0.01, gaussian(0.3) + laplace(0.1), zcdp(0.01), laplace(0.1))


def test_the_sum_of_epsilons_is_kept_where_it_is_less() -> None:
    account = Account(1e-12)
    account.add(pure(0.5))
    account.epsilon()
    loose = account._line
    assert loose is not None
    loose.delta = lambda epsilon: math.exp(-50 * epsilon)  # type: ignore[method-assign]
    loose.c = 50.0
    # exp(-50 epsilon) = 1e-12 at 0.5526: above the sum of what was added, then below it.
    assert account.epsilon() == 0.5
    account._pure = Fraction(6, 10)
    assert account.epsilon() == pytest.approx(math.log(1e12) / 50, rel=1e-9)


def test_thresholds_use_up_the_delta() -> None:
    account = Account(1e-6)
    account.add(pure(0.1) * 20)
    assert account.epsilon() < 2
    account.add(threshold(1e-6))
    assert account.epsilon() == 2.0
    account.add(threshold(Fraction(1, 10**12)))
    assert account.epsilon() == math.inf
    noisy = Account(1e-6)
    noisy.add(gaussian(0.3) + laplace(0.1))
    assert noisy.epsilon() < 2
    noisy.add(threshold(1e-6))
    assert noisy.epsilon() == math.inf


def test_the_line_is_kept_while_epsilon_hardly_moves_and_chosen_anew_beyond() -> None:
    account = Account(0.01)
    account.add(gaussian(0.3) + laplace(0.1))
    account.epsilon()
    line = account._line
    assert line is not None
    account.add(laplace(0.01))
    account.epsilon()
    assert account._line is line
    account.add(gaussian(0.6))
    account.epsilon()
    assert account._line is not line
    account.add(zcdp(0.01))
    account.epsilon()
    assert account._line is None


def test_masses_of_delta_compose() -> None:
    account = Account(0.5)
    account.add(threshold(0.25) + laplace(1))
    account.add(threshold(0.25))
    # 1 - (3/4)^2 = 7/16 is below a half, and a third one is not.
    assert math.isfinite(account.epsilon())
    assert account.epsilon() == pytest.approx((laplace(1) + threshold(0.25) * 2).epsilon(0.5), rel=1e-7)
    account.add(threshold(0.25))
    assert account.epsilon() == math.inf
