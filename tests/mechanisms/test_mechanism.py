"""Mechanisms are plain values: parameters as given, equal by them, pickled, copied and never changed."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import incrowd.mechanisms as room
from incrowd.errors import InvalidInput
from incrowd.mechanisms import (
    INTEGERS,
    Covariance,
    DistanceToProperty,
    Exponential,
    Gaussian,
    Grid,
    Histogram,
    InterquartileRange,
    Laplace,
    Maximum,
    Mean,
    Mechanism,
    Minimum,
    PartitionSelection,
    PermuteAndFlip,
    PrivateRange,
    Processed,
    ProposeTestRelease,
    Quantile,
    RandomizedResponse,
    ReportNoisyMax,
    SmoothSensitivity,
    SparseVector,
    StableHistogram,
    StableMode,
    SubsampleAndAggregate,
    TruncatedLaplace,
    UnboundedQuantile,
    Variance,
)

MECHANISMS = [
    Laplace(1.0),
    Laplace(scale=Fraction(1, 3), sensitivity=0.1, grid=Fraction(1, 1024), size=3),
    Laplace(Fraction(1, 10), grid=INTEGERS),
    TruncatedLaplace(1.0, 1e-6, sensitivity=3, largest=1),
    Gaussian(1.0, 1e-6),
    Gaussian(rho=0.5, sensitivity=1.0, grid=Grid(-10, integers=False)),
    Gaussian(scale=Decimal("2.5")),
    Histogram(1.0, 1e-6, relation="replace"),
    Histogram(scale=2),
    StableHistogram(1.0, 1e-6, groups=3, noise="laplace"),
    Mean(1.0),
    Mean(1.0, low=0, high=9.5, relation="replace"),
    Variance(np.float64(0.5), low=0, high=9, share=0.25),
    Covariance(1.0, 1e-6, columns=2, bounds=[(0, 1), (0, 1)]),
    Covariance(1.0, columns=1),
    RandomizedResponse(1.0, categories=5),
    RandomizedResponse(truth=0.75),
    SmoothSensitivity(1.0),
    SmoothSensitivity(1.0, 1e-6, grid=0.5),
    ProposeTestRelease(1.0, 1e-6, bound=1),
    StableMode(1.0, 1e-6, relation="replace"),
    DistanceToProperty(1.0),
    InterquartileRange(2.0, 1e-6),
    SubsampleAndAggregate(len, 1.0, blocks=10, low=0, high=5, aggregate="mean"),
    Exponential(1.0),
    PermuteAndFlip(1.0, sensitivity=3, monotone=True),
    ReportNoisyMax(1.0, sensitivity=0.5, grid=0.125),
    SparseVector(1.0, threshold=10, hits=2, values=0.5),
    Quantile(1.0, low=0, high=20),
    Quantile(1.0, q=[0.25, 0.5], low=0.0, high=1.0),
    UnboundedQuantile(2.0, low=-1.5),
    Maximum(1.0, low=0, high=20, beyond=1),
    Minimum(1.0, low=0, high=20),
    PartitionSelection(1.0, 1e-5),
    PrivateRange(1.0, relation="replace"),
    Laplace(1.0).then(abs),
]
KINDS = [
    kind
    for kind in (getattr(room, name) for name in room.__all__)
    if isinstance(kind, type) and issubclass(kind, Mechanism) and kind is not Mechanism
]
every = pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)


def test_every_public_mechanism_is_tested_here():
    assert {type(m) for m in MECHANISMS} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fields_are_the_parameters_and_all_but_the_privacy_parameters_are_named(kind):
    fields = {field.name for field in dataclasses.fields(kind)}
    parameters = inspect.signature(kind).parameters
    assert fields == set(parameters)
    positional = [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    assert set(positional) <= {"epsilon", "delta", "function", "mechanism"}
    if "epsilon" in positional and kind is not SubsampleAndAggregate:
        assert positional[0] == "epsilon"


@every
def test_parameters_are_kept_as_given_and_never_change(m):
    given = {field.name: getattr(m, field.name) for field in dataclasses.fields(m)}
    again = type(m)(**given)
    assert again == m and hash(again) == hash(m)
    assert all(getattr(again, name) is value for name, value in given.items())
    for name in given:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(m, name, 1)


@every
def test_a_copy_is_equal_and_promises_the_same(m):
    _ = m.privacy
    for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m), dataclasses.replace(m)):
        assert twin == m and hash(twin) == hash(m) and twin.privacy == m.privacy
    assert set(m.__getstate__()) == {field.name for field in dataclasses.fields(m)}


def test_mechanisms_are_equal_when_their_parameters_are():
    assert len(set(MECHANISMS)) == len(MECHANISMS)
    assert Laplace(0.1) == Laplace(Decimal("0.1")) == Laplace(Fraction(1, 10)) == Laplace(np.float32(0.1))
    assert Laplace(scale=2) != Laplace(0.5)  # other parameters, though the same noise
    assert Exponential(1.0) != PermuteAndFlip(1.0) and Laplace(1.0) != 1.0
    assert Quantile(1, q=[0.5], low=0, high=1) == Quantile(1.0, q=np.array([0.5]), low=0, high=1)
    assert Quantile(1, q=[0.5], low=0, high=1) != Quantile(1, q=0.5, low=0, high=1)


def test_a_whole_sensitivity_is_another_parameter_than_a_real_one():
    """1 releases integers and 1.0 reals, so nothing may take one for the other."""
    assert Laplace(1.0, sensitivity=1) != Laplace(1.0, sensitivity=1.0)
    assert Quantile(1.0, low=0, high=1) != Quantile(1.0, low=0.0, high=1.0)
    assert Mean(1.0, low=0, high=1) == Mean(1.0, low=np.int64(0), high=Fraction(1))


def test_a_class_that_keeps_no_parameters_is_compared_by_identity():
    class Plain(Mechanism):
        def __init__(self, number):
            self.number = number

        privacy = Laplace(1.0).privacy

        def release(self, value, source=None):
            return self.number

    one, other = Plain(1), Plain(2)
    assert one != other and one == one and len({one, other}) == 2
    assert copy.copy(one).number == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_half_width_is_asked_for_by_confidence(kind):
    if hasattr(kind, "halfwidth"):
        names = list(inspect.signature(kind.halfwidth).parameters)
        assert names[1] == "confidence"
    else:
        assert kind in (Processed, PrivateRange, InterquartileRange)


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Histogram, RandomizedResponse])
def test_one_calibration_is_given(kind):
    with pytest.raises(InvalidInput, match="exactly one calibration"):
        kind()
