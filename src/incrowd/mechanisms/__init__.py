"""Randomised algorithms: each one is noise, its guarantee and its accuracy, with the theorem beside it.

This room knows neither tables nor budgets. A mechanism is a frozen value; `release` draws, `privacy` says
what one release guarantees, `halfwidth` how far off it may be, and `then` post-processes for free.
"""

from incrowd.mechanisms.additive.covariance import Covariance
from incrowd.mechanisms.additive.gaussian import Gaussian, textbook_sigma
from incrowd.mechanisms.additive.grid import INTEGERS, Grid
from incrowd.mechanisms.additive.histogram import Histogram
from incrowd.mechanisms.additive.laplace import Laplace
from incrowd.mechanisms.additive.mean import Mean
from incrowd.mechanisms.additive.stable_histogram import StableHistogram
from incrowd.mechanisms.additive.truncated_laplace import TruncatedLaplace
from incrowd.mechanisms.additive.variance import Variance
from incrowd.mechanisms.mechanism import Mechanism, Processed
from incrowd.mechanisms.randomized_response import Estimate, RandomizedResponse
from incrowd.mechanisms.robust.propose_test_release import (
    DistanceToProperty,
    InterquartileRange,
    Passed,
    ProposeTestRelease,
    StableMode,
)
from incrowd.mechanisms.robust.smooth_sensitivity import SmoothSensitivity, order_statistic
from incrowd.mechanisms.robust.subsample_and_aggregate import SubsampleAndAggregate
from incrowd.mechanisms.selection.exponential import Exponential
from incrowd.mechanisms.selection.extremes import Maximum, Minimum
from incrowd.mechanisms.selection.partition_selection import PartitionSelection
from incrowd.mechanisms.selection.permute_and_flip import PermuteAndFlip
from incrowd.mechanisms.selection.private_range import PrivateRange
from incrowd.mechanisms.selection.quantile import Quantile
from incrowd.mechanisms.selection.report_noisy_max import ReportNoisyMax
from incrowd.mechanisms.selection.sparse_vector import SparseSession, SparseVector
from incrowd.mechanisms.selection.unbounded_quantile import UnboundedQuantile
from incrowd.mechanisms.sensitivity import Relation, Sensitivity

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
    "TruncatedLaplace",
    "UnboundedQuantile",
    "Variance",
    "order_statistic",
    "textbook_sigma",
]
