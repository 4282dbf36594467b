"""The names that others build on: a change here is a change of the promise, and must be made on purpose."""

from __future__ import annotations

import importlib

import pytest

NAMES = {
    "incrowd": [
        "Answer",
        "BackendError",
        "BudgetExceeded",
        "CatalogError",
        "Curator",
        "IncrowdError",
        "InvalidInput",
        "LedgerError",
        "NotPermitted",
        "QueryError",
        "Refused",
        "__version__",
    ],
    "incrowd.curator": [
        "Answer",
        "Balance",
        "Curator",
        "Ledger",
        "Line",
        "Price",
    ],
    "incrowd.data": [
        "adult",
        "adult_path",
    ],
    "incrowd.explain": [
        "Belief",
        "Meaning",
        "explain_epsilon",
        "read_releases",
    ],
    "incrowd.mechanisms": [
        "Covariance",
        "DistanceToProperty",
        "Estimate",
        "Exponential",
        "Gaussian",
        "Grid",
        "Histogram",
        "INTEGERS",
        "InterquartileRange",
        "Laplace",
        "Maximum",
        "Mean",
        "Mechanism",
        "Minimum",
        "PartitionSelection",
        "Passed",
        "PermuteAndFlip",
        "PrivateRange",
        "Processed",
        "ProposeTestRelease",
        "Quantile",
        "RandomizedResponse",
        "Relation",
        "ReportNoisyMax",
        "Sensitivity",
        "SmoothSensitivity",
        "SparseSession",
        "SparseVector",
        "StableHistogram",
        "StableMode",
        "SubsampleAndAggregate",
        "UnboundedQuantile",
        "Variance",
        "order_statistic",
        "textbook_sigma",
    ],
    "incrowd.noise": [
        "SeededSource",
        "Source",
        "SystemSource",
        "bernoulli",
        "bernoulli_exp",
        "categorical",
        "discrete_gaussian",
        "discrete_gaussian_pmf",
        "discrete_gaussian_sf",
        "discrete_laplace",
        "discrete_laplace_pmf",
        "discrete_laplace_sf",
        "geometric",
        "uniform",
    ],
    "incrowd.privacy": [
        "Account",
        "Capacity",
        "Charge",
        "Event",
        "Filter",
        "FiniteMechanism",
        "Guarantee",
        "Real",
        "Remaining",
        "Row",
        "UNITS",
        "affordable",
        "approximate",
        "bounded_range",
        "calibrate",
        "capacity",
        "compare",
        "compose",
        "event_range",
        "fits",
        "gaussian",
        "laplace",
        "least_sigma",
        "name_and_shame",
        "poisson",
        "pure",
        "randomized_response",
        "read",
        "refusal",
        "remaining",
        "shuffled",
        "threshold",
        "to_dp_accounting",
        "without_replacement",
        "zcdp",
    ],
}


@pytest.mark.parametrize("module", NAMES)
def test_the_exported_names_are_these(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(NAMES[module])


@pytest.mark.parametrize("module", NAMES)
def test_every_exported_name_exists_and_says_what_it_is(module: str) -> None:
    found = importlib.import_module(module)
    for name in NAMES[module]:
        thing = getattr(found, name)
        if callable(thing) and hasattr(thing, "__module__") and str(thing.__module__).startswith("incrowd"):
            assert thing.__doc__, f"{module}.{name} has no docstring"
