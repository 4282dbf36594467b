from __future__ import annotations

import importlib.util

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import (
    Guarantee,
    approximate,
    bounded_range,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    to_dp_accounting,
    zcdp,
)

INSTALLED = importlib.util.find_spec("dp_accounting") is not None
PLANS = [
    laplace(0.1) * 3,
    gaussian(0.5) + pure(0.3) * 2,
    laplace(0.2, steps=4) * 5 + bounded_range(0.1),
    randomized_response(0.1) * 20,
    poisson(gaussian(1.0), 0.05) * 10,
    Guarantee(),
]


@pytest.mark.parametrize("plan", PLANS)
def test_the_peer_prices_our_events_no_lower_than_we_do(plan: Guarantee) -> None:
    if not INSTALLED:
        with pytest.raises(InvalidInput, match="not installed"):
            to_dp_accounting(plan)
        return
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    peer = PLDAccountant()
    peer.compose(to_dp_accounting(plan))
    assert peer.get_epsilon(1e-6) >= plan.epsilon(1e-6) * (1 - 1e-3)


def test_releases_with_a_delta_of_their_own_have_no_event_there() -> None:
    with pytest.raises(InvalidInput, match="delta of its own" if INSTALLED else "not installed"):
        to_dp_accounting(approximate(1.0, 1e-6))


def test_concentrated_releases_are_passed_on() -> None:
    if INSTALLED:
        assert "ZCDpEvent" in repr(to_dp_accounting(zcdp(0.1)))
