from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any

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
    threshold,
    to_dp_accounting,
    without_replacement,
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


class Written:
    """Stands for the library, whose pins exclude ours: writes down which events are made of what."""

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        return lambda *arguments: (name.removesuffix("DpEvent"), *arguments)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: Written())


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (gaussian(0.5), ("Gaussian", math.nextafter(2.0, 0))),
        (gaussian(4.0), ("Gaussian", math.nextafter(0.25, 0))),
        (laplace(0.25), ("Laplace", math.nextafter(4.0, 0))),
        (laplace(0.5, steps=4), ("DiscreteLaplace", 0.125, 4)),
        (pure(0.25), ("DiscreteLaplace", 0.25, 1)),
        (randomized_response(0.25), ("DiscreteLaplace", 0.25, 1)),
        (bounded_range(0.25), ("DiscreteLaplace", 0.25, 1)),
        (zcdp(0.25), ("ZC", 0.25)),
        (poisson(gaussian(0.5), 0.125), ("PoissonSampled", 0.125, ("Gaussian", math.nextafter(2.0, 0)))),
    ],
)
def test_each_release_becomes_its_event_rounded_to_the_safe_side(
    release: Guarantee, expected: tuple[Any, ...]
) -> None:
    assert to_dp_accounting(release * 3) == ("Composed", [("SelfComposed", expected, 3)])


@pytest.mark.usefixtures("written")
def test_a_plan_is_composed_of_its_releases_and_nothing_of_nothing() -> None:
    both = to_dp_accounting(pure(0.5) * 2 + zcdp(0.25))
    assert both[0] == "Composed"
    assert sorted(both[1], key=repr) == sorted(
        [("SelfComposed", ("DiscreteLaplace", 0.5, 1), 2), ("SelfComposed", ("ZC", 0.25), 1)], key=repr
    )
    assert to_dp_accounting(Guarantee()) == ("NoOp",)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("release", "said"),
    [
        (poisson(gaussian(1.0), 0.1).group(2), "groups of people in a Poisson sample"),
        (without_replacement(gaussian(1.0), 10, 100), "samples without replacement"),
        (approximate(1.0, 1e-6), "delta of its own"),
        (threshold(1e-6), "delta of its own"),
    ],
)
def test_what_the_library_has_no_event_for_is_refused(release: Guarantee, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        to_dp_accounting(release)
