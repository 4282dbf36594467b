"""Quantiles and means of diffprivlib and OpenDP, as functions without arguments; None where not installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

Release = Callable[[], Any]
Bounds = tuple[float, float]
INSTALLED = {name for name in ("diffprivlib", "opendp") if importlib.util.find_spec(name) is not None}


def diffprivlib(tool: str, values: np.ndarray, epsilon: float, bounds: Bounds, *more: Any) -> Release | None:
    """diffprivlib's tool of that name (records are replaced)."""
    if "diffprivlib" not in INSTALLED:
        return None
    from diffprivlib import tools  # type: ignore[import-not-found, unused-ignore]

    return lambda: getattr(tools, tool)(values, *more, epsilon=epsilon, bounds=bounds)


def opendp_quantile(
    values: np.ndarray, q: float, epsilon: float, bounds: Bounds, whole: bool
) -> Release | None:
    """OpenDP's quantile (records are added or removed) over every whole number or 10,001 candidates."""
    if "opendp" not in INSTALLED:
        return None
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")
    candidates = np.linspace(*bounds, 10_001)
    if whole and bounds[1] - bounds[0] <= 10_000:
        candidates = np.arange(bounds[0], bounds[1] + 1)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def make(scale: float) -> Any:
        return dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=[float(c) for c in candidates], alpha=q, scale=scale
        )

    mechanism = dp.binary_search_chain(make, d_in=1, d_out=epsilon, T=float)
    data = [float(v) for v in values]
    return lambda: mechanism(data)


def opendp_mean(values: np.ndarray, epsilon: float, bounds: Bounds, kind: str = "mean") -> Release | None:
    """OpenDP's mean or variance of a known number of records (two changes replace one)."""
    if "opendp" not in INSTALLED:
        return None
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib", "idealized-numerics")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values)), dp.symmetric_distance()
    trim = dp.t.make_clamp(*space, bounds=bounds)
    middle = (trim.output_domain, trim.output_metric)
    step = trim >> (dp.t.make_mean(*middle) if kind == "mean" else dp.t.make_variance(*middle, ddof=0))
    mechanism = dp.binary_search_chain(
        lambda s: step >> dp.m.then_laplace(scale=s), d_in=2, d_out=epsilon, T=float
    )
    data = [float(v) for v in values]
    return lambda: mechanism(data)
