"""Randomised algorithms: each one is noise, its guarantee and its accuracy, with the theorem beside it.

This room knows neither tables nor budgets. A mechanism is a frozen value; `release` draws, `privacy` says
what one release guarantees, `halfwidth` how far off it may be, and `then` post-processes for free.
"""

from incrowd.mechanisms.covariance import Covariance
from incrowd.mechanisms.exponential import Exponential
from incrowd.mechanisms.extremes import Maximum, Minimum
from incrowd.mechanisms.gaussian import Gaussian, textbook_sigma
from incrowd.mechanisms.grid import INTEGERS, Grid
from incrowd.mechanisms.histogram import Histogram
from incrowd.mechanisms.laplace import Laplace
from incrowd.mechanisms.mean import Mean
from incrowd.mechanisms.mechanism import Mechanism, Processed
from incrowd.mechanisms.partition_selection import PartitionSelection
from incrowd.mechanisms.permute_and_flip import PermuteAndFlip
from incrowd.mechanisms.private_range import PrivateRange
from incrowd.mechanisms.propose_test_release import (
    DistanceToProperty,
    InterquartileRange,
    Passed,
    ProposeTestRelease,
    StableMode,
)
from incrowd.mechanisms.quantile import Quantile
from incrowd.mechanisms.randomized_response import Estimate, RandomizedResponse
from incrowd.mechanisms.relations import Relation, Sensitivity
from incrowd.mechanisms.report_noisy_max import ReportNoisyMax
from incrowd.mechanisms.smooth_sensitivity import SmoothSensitivity, order_statistic
from incrowd.mechanisms.sparse_vector import SparseSession, SparseVector
from incrowd.mechanisms.stable_histogram import StableHistogram
from incrowd.mechanisms.subsample_and_aggregate import SubsampleAndAggregate
from incrowd.mechanisms.unbounded_quantile import UnboundedQuantile
from incrowd.mechanisms.variance import Variance

__all__ = [
    "INTEGERS",
    "Covariance",
    "DistanceToProperty",
    "Estimate",
    "Exponential",
    "Gaussian",
    "Grid",
    "Histogram",
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
]
