"""Clopper-Pearson bounds: their coverage, exactly, and their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from incrowd.adversary.audit.binomial import at_least, at_most


@pytest.mark.parametrize("trials", [1, 7, 60, 400])
@pytest.mark.parametrize("error", [0.2, 1e-3, 1e-7])
@pytest.mark.parametrize("chance", [1e-4, 0.03, 0.5, 0.97, 1.0])
def test_each_bound_is_wrong_no_more_often_than_stated(trials, error, chance):
    hits = np.arange(trials + 1)
    masses = binom.pmf(hits, trials, chance)
    assert masses[at_least(hits, trials, error) > chance].sum() <= error
    assert masses[at_most(hits, trials, error) < chance].sum() <= error


def test_bounds_are_those_of_the_beta_distribution():
    hits = np.arange(1, 5_000, 37)
    assert np.allclose(at_least(hits, 5_000, 1e-6), beta.ppf(1e-6, hits, 5_001 - hits), rtol=1e-7)
    assert np.allclose(at_most(hits, 5_000, 1e-6), beta.isf(1e-6, hits + 1, 5_000 - hits), rtol=1e-7)


def test_nothing_seen_and_everything_seen():
    assert at_least(0, 100, 0.01) == 0 and at_most(100, 100, 0.01) == 1
    assert at_most(0, 100, 0.01) == pytest.approx(1 - 0.01 ** (1 / 100))
    assert at_least(100, 100, 0.01) == pytest.approx(0.01 ** (1 / 100))
    assert math.isfinite(float(at_most(0, 10**9, 1e-12)))
