"""Numbers that are shown because they are large: two-sided coverage of those that are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from incrowd.curator.selected import Selected, lowest

Floats = NDArray[np.float64]
CASES = {
    "truncated": Selected("laplace", 10.0, 108.5, 108.5),
    "strongly truncated": Selected("laplace", 2.0, 5.0, 5.0),
    "laplace": Selected("laplace", 10.0, 140.0),
    "gaussian": Selected("gaussian", 40.0, 250.0),
}


def tail(selected: Selected, at: Floats) -> Floats:
    """P(X >= t), written out."""
    if selected.kind == "gaussian":
        return np.asarray(norm.sf(at / selected.scale))
    cut = math.exp(-selected.bound / selected.scale)
    far = np.exp(-np.abs(np.clip(at, -selected.bound, selected.bound)) / selected.scale)
    above = (far - cut) / 2 / (1 - cut)
    return np.where(at >= 0, above, 1 - above)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_intervals_of_what_is_shown_cover_between_the_confidence_and_half_of_what_is_left(
    name: str, confidence: float
) -> None:
    """Exactly, for every size: the chance that y with lowest(y) <= n <= y + h, given that y is shown."""
    selected = CASES[name]
    half = -math.log1p(-confidence) * selected.scale
    if selected.kind == "gaussian":
        half = float(norm.ppf((1 + confidence) / 2)) * selected.scale
    for size in np.concatenate((np.linspace(0.5, 2 * selected.least, 40), [10 * selected.least])):
        reach = min(selected.bound, (12 if selected.kind == "gaussian" else 40) * selected.scale)
        y = np.linspace(max(selected.least, size - reach), size + reach, 4_001)
        if y[0] >= y[-1]:
            continue
        ends = lowest(y, selected, confidence)
        assert (np.diff(ends) >= -1e-6).all() and (ends <= y).all() and (ends >= 0).all()
        highest = y[np.flatnonzero(ends <= size)[-1]] if ends[0] <= size else y[0]
        least = max(selected.least, size - half)
        shown = tail(selected, np.array([selected.least - size]))[0]
        held = tail(selected, np.array([least - size]))[0] - tail(selected, np.array([highest - size]))[0]
        assert confidence - 0.004 <= held / shown <= (1 + confidence) / 2 + 0.004, size


@pytest.mark.parametrize("name", CASES)
def test_far_above_the_threshold_nothing_changes_and_near_it_little_is_known(name: str) -> None:
    selected = CASES[name]
    far = np.array([selected.least + 50 * selected.scale])
    plain = -math.log(2 * 0.025) if selected.kind == "laplace" else norm.ppf(0.975)
    cut = selected.bound < 3 * selected.scale
    if not cut:
        assert lowest(far, selected, 0.95)[0] == pytest.approx(far[0] - plain * selected.scale, abs=0.01)
    near = np.array([selected.least + 0.01 * selected.scale])
    assert lowest(near, selected, 0.95)[0] < 0.05 * selected.least


@pytest.mark.parametrize("name", CASES)
def test_how_often_a_size_is_shown(name: str) -> None:
    selected = CASES[name]
    for size in (1.0, selected.least / 2, selected.least, selected.least * 1.5):
        expected = tail(selected, np.array([selected.least - size]))[0]
        assert selected.chance(size) == pytest.approx(expected, rel=1e-9)
    for chance in (0.5, 0.95):
        assert selected.chance(selected.size_for(chance)) == pytest.approx(chance, abs=1e-6)
    assert selected.size_for(0.5) == pytest.approx(selected.least, abs=0.01)
