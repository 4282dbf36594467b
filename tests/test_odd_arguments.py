"""Whatever is passed to a public name, what comes out is a result or an IncrowdError in one sentence."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from incrowd import IncrowdError, explain, mechanisms, noise, privacy
from incrowd.mechanisms import Laplace


class Hostile:
    """An object whose every question raises."""

    def __float__(self) -> float:
        raise OSError("a row")

    __int__ = __index__ = __bool__ = __len__ = __iter__ = __hash__ = __str__ = __repr__ = __float__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise OSError("a row")

    __lt__ = __gt__ = __le__ = __ge__ = __eq__  # type: ignore[assignment]


ODD: list[Any] = [
    Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e400"), Decimal("1e-400"),
    Decimal("1e999999"), Fraction(1, 3), Fraction(1, 10**400), Fraction(10**400, 3),
    np.float64(0.5), np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int64(2), np.int8(2),
    np.uint64(2**64 - 1), np.bool_(True), np.array(0.5), np.array(2), np.array("x"), np.array([0.5]),
    np.array([]), np.array([[1.0]]), np.float64("nan"), np.float64("inf"), np.datetime64("2024-01-01"),
    10**400, -(10**400), 10**5000, 5e-324, -5e-324, 1e-320, 1e-300, 1e308, -1e308, -0.0, 0.0, float("nan"),
    float("inf"), -float("inf"), -1, 0, 1, 2, 3, 0.5, 1 - 2**-53, 2**53, 2**63, 2**64, True, False, None,
    "", "0.5", "x", "x" * 10_000, "\ud800", "a\x00b", b"1", bytearray(b"1"), [1], [], [None], [[1], 2],
    (1, 2), {}, {"a": 1}, {1: 2}, set(), object(), 1j, dt.date(2024, 1, 1), float, len, range(3), iter([1]),
    Hostile(),
]  # fmt: skip


NUMBERS = [1, 2, 3, 4, 5]
COUNTS = {"a": 30}
USUAL: dict[str, dict[str, Any]] = {
    "Covariance": {"epsilon": 1.0, "delta": None, "relation": "add-remove", "share": 0.4, "columns": 2},
    "DistanceToProperty": {"epsilon": 1.0},
    "Exponential": {"epsilon": 1.0, "sensitivity": 1, "monotone": False},
    "Gaussian": {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1, "grid": None, "size": 1},
    "Grid": {"exponent": 0, "integers": True},
    "Histogram": {"epsilon": 1.0, "relation": "add-remove"},
    "InterquartileRange": {"epsilon": 1.0, "delta": 1e-6},
    "Laplace": {"epsilon": 1.0, "sensitivity": 1, "grid": None, "size": 1},
    "Maximum": {"epsilon": 1.0, "low": 0, "high": 10, "beyond": None, "grid": None},
    "Mean": {"epsilon": 1.0, "relation": "add-remove", "share": 0.4, "low": 0, "high": 10},
    "Minimum": {"epsilon": 1.0, "low": 0, "high": 10},
    "PartitionSelection": {"epsilon": 1.0, "delta": 1e-6, "groups": 1, "relation": "add-remove"},
    "PermuteAndFlip": {"epsilon": 1.0, "sensitivity": 1, "monotone": False},
    "PrivateRange": {"epsilon": 1.0, "relation": "add-remove", "share": 0.25},
    "ProposeTestRelease": {"epsilon": 1.0, "delta": 1e-6, "bound": 0, "share": 0.5, "grid": None},
    "Quantile": {"epsilon": 1.0, "q": 0.5, "low": 0, "high": 10, "relation": "add-remove", "grid": None},
    "RandomizedResponse": {"epsilon": 1.0, "categories": 2},
    "ReportNoisyMax": {"epsilon": 1.0, "sensitivity": 1, "monotone": False, "grid": None},
    "SmoothSensitivity": {"epsilon": 1.0, "delta": None, "degrees": 3, "share": None},
    "SparseVector": {"epsilon": 1.0, "threshold": 0, "hits": 1, "sensitivity": 1, "values": 0, "grid": None},
    "StableHistogram": {"epsilon": 1.0, "delta": 1e-6, "groups": 1, "relation": "add-remove", "noise": None},
    "StableMode": {"epsilon": 1.0, "delta": 1e-6, "relation": "add-remove"},
    "SubsampleAndAggregate": {
        "function": len, "epsilon": 1.0, "blocks": 5, "low": 0, "high": 10, "aggregate": "median",
        "default": None, "seconds": 10, "patience": None, "megabytes": 1024, "workers": None, "start": "fork",
    },
    "TruncatedLaplace": {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1, "largest": None},
    "UnboundedQuantile": {"epsilon": 1.0, "q": 0.5, "low": 0, "unit": 1, "share": 0.3, "doublings": 50},
    "Variance": {"epsilon": 1.0, "relation": "add-remove", "share": 0.4, "low": 0, "high": 10},
    "order_statistic": {"values": NUMBERS, "rank": 2, "low": 0, "high": 10, "beta": 0.1},
    "textbook_sigma": {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 1},
    "Account": {"delta": 1e-6},
    "Filter": {"epsilon": 1.0, "delta": 1e-6, "kind": None, "threshold_share": 0.25},
    "FiniteMechanism": {"probabilities": [[0.5, 0.5], [0.4, 0.6]], "neighbours": [(0, 1)]},
    "Guarantee": {"counts": ()},
    "approximate": {"epsilon": 1.0, "delta": 1e-6},
    "bounded_range": {"epsilon": 1.0},
    "calibrate": {"plan": privacy.gaussian, "epsilon": 1.0, "delta": 1e-6, "start": 1.0},
    "capacity": {"epsilon": 1.0, "delta": 1e-6, "kind": None, "threshold_share": 0.25},
    "compare": {"guarantee": privacy.pure(0.1), "delta": 1e-6},
    "event_range": {"epsilon": 1.0, "probability": 0.5, "delta": 0.0},
    "gaussian": {"mu": 1.0},
    "laplace": {"epsilon": 1.0, "steps": None},
    "least_sigma": {"eps": 1.0, "target": 1e-6, "sensitivity": 1},
    "name_and_shame": {"people": 3, "values": 2},
    "poisson": {"guarantee": privacy.pure(0.1), "rate": 0.1},
    "pure": {"epsilon": 1.0},
    "randomized_response": {"epsilon": 1.0, "categories": 2},
    "read": {"value": 1.0},
    "shuffled": {"guarantee": privacy.randomized_response(1.0), "reports": 10**5, "delta": 1e-6},
    "threshold": {"delta": 1e-6},
    "without_replacement": {"guarantee": privacy.pure(0.5), "sample": 10, "population": 100, "delta": 0.0},
    "zcdp": {"rho": 1.0, "delta": 0.0},
    "explain_epsilon": {"epsilon": 1.0, "delta": 0.0, "priors": (0.1, 0.5)},
    "read_releases": {"words": ["laplace:0.1*20"]},
}  # fmt: skip
"""Every public name that takes arguments, with usual ones."""
FIXED: dict[str, dict[str, Any]] = {"Covariance": {"bounds": [(0, 1), (0, 1)]}, "read": {"what": "x"}}
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "Covariance": {"release": {"value": [[0.1, 0.2]] * 5}, "halfwidth": {"confidence": 0.9, "records": 100}},
    "DistanceToProperty": {"release": {"value": 3}, "halfwidth": {"confidence": 0.9}},
    "Exponential": {
        "release": {"utilities": NUMBERS},
        "probabilities": {"utilities": NUMBERS},
        "halfwidth": {"confidence": 0.9, "candidates": 2},
    },
    "Gaussian": {
        "release": {"value": 3},
        "halfwidth": {"confidence": 0.9, "count": 1},
        "pmf": {"outcome": 1, "value": 0},
    },
    "Histogram": {
        "release": {"value": [1, 2], "categories": None, "edges": None},
        "halfwidth": {"confidence": 0.9, "count": 1},
    },
    "InterquartileRange": {"release": {"value": NUMBERS}},
    "Laplace": {
        "release": {"value": 3},
        "halfwidth": {"confidence": 0.9, "count": 1},
        "pmf": {"outcome": 1, "value": 0},
    },
    "Maximum": {
        "release": {"value": NUMBERS},
        "halfwidth": {"confidence": 0.9},
        "probabilities": {"values": NUMBERS},
        "target": {"n": 3},
    },
    "Minimum": {"target": {"n": 3}},
    "Mean": {
        "release": {"value": NUMBERS},
        "halfwidth": {"confidence": 0.9, "records": 10, "radius": None},
    },
    "PartitionSelection": {"release": {"value": COUNTS}},
    "PermuteAndFlip": {
        "release": {"utilities": NUMBERS},
        "halfwidth": {"confidence": 0.9, "candidates": 2},
    },
    "PrivateRange": {"release": {"value": NUMBERS}},
    "ProposeTestRelease": {"halfwidth": {"confidence": 0.9}, "chance": {"distance": 3}},
    "Quantile": {
        "release": {"value": NUMBERS},
        "halfwidth": {"confidence": 0.9},
        "probabilities": {"values": NUMBERS},
        "rate": {"share": 0.5},
    },
    "RandomizedResponse": {
        "release": {"value": 1},
        "estimate": {"reports": [0, 1, 1], "confidence": 0.9},
        "halfwidth": {"confidence": 0.9, "reports": 3},
        "expected_error": {"reports": 10},
        "tail": {"error": 1, "reports": 3},
        "sample_size": {"alpha": 0.1, "epsilon": 1.0, "confidence": 0.9, "categories": 2},
    },
    "ReportNoisyMax": {"release": {"utilities": NUMBERS}, "halfwidth": {"confidence": 0.9, "candidates": 2}},
    "SmoothSensitivity": {
        "halfwidth": {"confidence": 0.9, "bound": 1},
        "release": {"value": (1.0, 0.5)},
        "release_rank": {"values": NUMBERS, "rank": 2, "low": 0, "high": 10},
    },
    "SparseVector": {
        "release": {"value": NUMBERS},
        "halfwidth": {"confidence": 0.9, "questions": 1},
        "probability": {"questions": [1, 2], "answers": [True, False]},
    },
    "StableHistogram": {"release": {"value": COUNTS}, "halfwidth": {"confidence": 0.9, "count": 1}},
    "StableMode": {
        "release": {"value": ["a", "a", "b"]},
        "halfwidth": {"confidence": 0.9},
        "distance": {"lead": 3},
    },
    "SubsampleAndAggregate": {
        "halfwidth": {"confidence": 0.9},
        "combine": {"answers": NUMBERS},
        "partition": {"value": NUMBERS, "units": None},
    },
    "TruncatedLaplace": {"release": {"value": 3}, "halfwidth": {"confidence": 0.9, "count": 1}},
    "UnboundedQuantile": {"release": {"value": NUMBERS}, "within": {"doublings": 3}},
    "Variance": {
        "release": {"value": NUMBERS},
        "halfwidth": {"confidence": 0.9, "records": 10, "radius": None},
    },
    "Account": {"add": {"guarantee": privacy.pure(0.1)}},
    "Filter": {"fits": {"guarantee": privacy.pure(0.1)}, "reserve": {"guarantee": privacy.pure(0.1)}},
    "FiniteMechanism": {
        "curve": {"epsilons": [0.1]},
        "delta": {"epsilon": 0.1},
        "epsilon": {"delta": 0.0},
    },
    "zcdp": {
        "epsilon": {"delta": 1e-6},
        "delta": {"epsilon": 1.0},
        "group": {"k": 2},
        "posterior": {"prior": 0.5, "delta": 0.01},
        "renyi": {"alpha": 2},
        "charge": {"delta": 0.0},
    },
    "explain_epsilon": {"at": {"prior": 0.5}},
}
"""What can be asked of what those names give, with usual arguments."""


def refused_at_most(act: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What an act gives; None if it is refused in one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return act(*arguments, **named)
    except IncrowdError as error:
        assert str(error).strip() and "\n" not in str(error) and len(str(error)) < 500
        return None


def public(name: str) -> Any:
    room = next(room for room in (mechanisms, privacy, explain) if name in room.__all__)
    return getattr(room, name)


@pytest.mark.parametrize("name", USUAL)
def test_odd_arguments_are_refused_in_a_sentence_or_taken(name: str) -> None:
    build, usual = public(name), {**FIXED.get(name, {}), **USUAL[name]}
    for argument in USUAL[name]:
        for odd in ODD:
            thing = refused_at_most(build, **{**usual, argument: odd})
            if isinstance(thing, mechanisms.Mechanism | privacy.Guarantee):
                refused_at_most(repr, thing)
            if isinstance(thing, mechanisms.Mechanism):
                refused_at_most(thing._repr_html_)
    for method, arguments in METHODS.get(name, {}).items():
        thing = build(**usual)
        for argument in arguments:
            for odd in ODD:
                refused_at_most(getattr(thing, method), **{**arguments, argument: odd})


CAPACITY, NOTHING = privacy.capacity(1.0), privacy.Charge.nothing()
ON_CHARGES: dict[str, dict[str, Any]] = {
    "fits": {"limit": CAPACITY, "spent": NOTHING, "asked": NOTHING},
    "affordable": {"limit": CAPACITY, "spent": NOTHING},
    "remaining": {"limit": CAPACITY, "spent": NOTHING},
    "refusal": {"limit": CAPACITY, "spent": NOTHING, "asked": NOTHING},
}


@pytest.mark.parametrize("name", ON_CHARGES)
def test_what_is_no_capacity_and_no_charge_is_refused(name: str) -> None:
    for argument in ON_CHARGES[name]:
        for odd in ODD:
            with pytest.raises(IncrowdError):
                refused = public(name)(**{**ON_CHARGES[name], argument: odd})
                raise AssertionError(refused)


def test_saved_states_are_read_or_refused() -> None:
    for odd in ODD:
        refused_at_most(privacy.Charge.from_dict, odd)
        refused_at_most(privacy.Filter.from_dict, odd)
        refused_at_most(privacy.Charge.from_dict, dict.fromkeys(("epsilon", "rho", "delta", "mu2"), odd))
    assert privacy.Charge.from_dict(NOTHING.to_dict()) == NOTHING


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize("name", [name for name in noise.__all__ if name.startswith("discrete_")])
def test_odd_points_scales_and_sizes_of_noise_are_refused_or_taken(name: str) -> None:
    law = getattr(noise, name)
    for odd in [*ODD, DEEP, (DEEP,), "x" * 100_000]:
        if name.endswith(("_pmf", "_sf")):
            refused_at_most(law, odd, 1)
            refused_at_most(law, 1, odd)
        elif not (isinstance(odd, int | np.integer) and odd > 2**20):  # a size that memory may hold
            refused_at_most(law, odd)
            refused_at_most(law, 1, size=odd)


def test_odd_seeds_are_refused_or_taken() -> None:
    for odd in [*ODD, DEEP, "x" * 100_000]:
        refused_at_most(noise.SeededSource, odd)


def test_mass_is_taken_at_every_number_and_at_arrays_of_them() -> None:
    assert noise.discrete_laplace_pmf(10**400, 1) == noise.discrete_gaussian_sf(10**400, 1) == 0
    assert noise.discrete_laplace_sf(-(10**400), 1) == noise.discrete_gaussian_sf(-(10**400), 600) == 1
    one = [noise.discrete_gaussian_sf(k, 2) for k in (-1, 0, 5)]
    for several in ([-1, 0, 5], np.array([-1, 0, 5]), [-1, Fraction(0), 5.0]):
        assert list(noise.discrete_gaussian_sf(several, 2)) == one


def test_a_record_whose_class_refuses_to_be_a_key_ends_no_release() -> None:
    class Strange:
        def __hash__(self) -> int:
            raise OSError("a row")

    class Silent:
        def __repr__(self) -> str:
            raise OSError("a row")

    for record in (Strange(), Silent()):
        for mechanism in (
            mechanisms.StableHistogram(1.0, delta=1e-6),
            mechanisms.StableMode(1.0, delta=1e-6),
        ):
            refused_at_most(mechanism.release, ["a", record])
        refused_at_most(mechanisms.Histogram(1.0).release, ["a", record], categories=["a"])


def test_every_public_name_is_covered() -> None:
    told = {"INTEGERS", "Mechanism", "Processed", "Passed", "Estimate", "Relation", "Sensitivity"}
    told |= {"SparseSession", "UNITS", "Capacity", "Charge", "Event", "Real", "Remaining", "Row", "Belief"}
    told |= {"Meaning", "compose", "to_dp_accounting", *ON_CHARGES}
    names = {name for room in (mechanisms, privacy, explain) for name in room.__all__}
    assert names == told | set(USUAL)
    with pytest.raises(IncrowdError):
        privacy.compose(privacy.pure(1.0), 1)  # type: ignore[arg-type]


HALVES = [Decimal("0.5"), np.float64(0.5), np.float32(0.5), np.float16(0.5), np.array(0.5), Fraction(1, 2)]


@pytest.mark.parametrize("half", HALVES, ids=lambda half: type(half).__name__)
def test_a_number_of_any_library_is_that_number(half: Any) -> None:
    assert Laplace(epsilon=half).privacy == Laplace(epsilon=0.5).privacy
    assert privacy.pure(half) == privacy.pure(0.5)
    assert explain.explain_epsilon(half) == explain.explain_epsilon(0.5)
    assert mechanisms.Quantile(1.0, q=half, low=0, high=np.array(10)).shares == (Fraction(1, 2),)
