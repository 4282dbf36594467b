"""Private keys: the exact delta of the threshold, a unit with many groups included."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from incrowd import Curator
from incrowd.backends.statement import KEY_MASS
from incrowd.curator.prices import Line
from incrowd.curator.thresholds import (
    count_delta_of,
    count_threshold_for,
    delta_of,
    gaussian_tail,
    laplace_tail,
    threshold_for,
)
from incrowd.mechanisms import TruncatedLaplace
from incrowd.query import Measure

from .repeating import answers


def exact_delta(threshold: int, kind: str, scale: Fraction, norm: int, most_groups: int) -> mpmath.mpf:
    """delta(T) in many digits, from the mass function of the noise that is really drawn."""
    with mpmath.workdps(50):
        b = mpmath.mpf(scale.numerator) / scale.denominator
        ratio = mpmath.exp(-1 / b)
        worst = mpmath.mpf(0)
        for groups in range(1, most_groups + 1):
            weight = KEY_MASS // groups if norm == 1 else math.isqrt(KEY_MASS**2 // groups)
            gap = threshold - weight
            if kind == "gaussian":
                tail = mpmath.erfc((gap - mpmath.mpf(1) / 2) / b / mpmath.sqrt(2)) / 2
            else:
                tail = ratio**gap / (1 + ratio) if gap >= 1 else 1 - ratio ** (1 - gap) / (1 + ratio)
            worst = max(worst, 1 - (1 - tail) ** groups)
        return worst


scales = st.fractions(Fraction(100), Fraction(200_000), max_denominator=97)
TAILS = {"laplace": laplace_tail, "gaussian": gaussian_tail}


@given(
    st.sampled_from(["laplace", "gaussian"]),
    scales,
    st.sampled_from([1e-3, 1e-7, 1e-12]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 7, 60]),
)
@settings(max_examples=60, deadline=None)
def test_the_true_delta_never_exceeds_the_stated_one(
    kind: str, scale: Fraction, delta: float, distance: int, norm: int, most_groups: int
) -> None:
    tail = TAILS[kind](float(scale))
    least = threshold_for(tail, Fraction(delta), distance, norm, most_groups)
    assert distance * exact_delta(least, kind, scale, norm, most_groups) <= delta
    assert delta_of(least - 1, tail, norm, most_groups) * distance > delta * (1 - 1e-6)


@pytest.mark.parametrize(("kind", "norm"), [("laplace", 1), ("gaussian", 2)])
def test_all_numbers_of_groups_up_to_the_mass_are_covered(kind: str, norm: int) -> None:
    scale, delta = Fraction(KEY_MASS), Fraction(1, 10**7)
    least = threshold_for(TAILS[kind](float(scale)), delta, 1, norm)
    assert exact_delta(least, kind, scale, norm, KEY_MASS) <= delta


def counting(cap: int) -> Measure:
    """A count of units in L2, of which one counts in `cap` groups at most."""
    return Measure("m0", "pair", "own", None, None, 0, 1, cap=float(cap), norm=2)


def exact_count_delta(threshold: int, scale: float, count: Measure, groups: int) -> float:
    """The chance that some of the groups of one unit alone is shown, in many digits."""
    weight = count.limit_steps
    if groups > count.rows_cap:
        weight = math.isqrt(count.limit_steps**2 * count.rows_cap // groups)
    with mpmath.workdps(50):
        gap = threshold - weight - mpmath.mpf(1) / 2
        tail = mpmath.erfc(gap / mpmath.mpf(scale) / mpmath.sqrt(2)) / 2
        return float(1 - (1 - tail) ** groups)


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("cap", [1, 6, 40, 3_000, 2**20])
@pytest.mark.parametrize(("mu", "delta"), [(0.02, 5e-7), (0.3, 1e-9), (2.0, 1e-3)])
def test_a_count_that_decides_keeps_delta_for_every_number_of_groups(
    mu: float, delta: float, cap: int, distance: int
) -> None:
    """Also for numbers between those that are tried; and the threshold is not needlessly high."""
    count = counting(cap)
    scale = count.sensitivity_steps * distance / mu
    tail = gaussian_tail(scale)
    least = count_threshold_for(tail, Fraction(delta), distance, count)
    most = count.most_groups
    tried = {*range(1, 40), cap - 1, cap, cap + 1, 2_047, 2_048, 4_095, 4_096, 4_097, 5_000, most - 1, most}
    tried |= {round(most ** (place / 97)) for place in range(98)}
    numbers = [groups for groups in tried if 1 <= groups <= most]
    worst = max(exact_count_delta(least, scale, count, groups) for groups in numbers)
    assert distance * worst <= delta
    assert distance * worst >= delta * 0.9
    assert distance * count_delta_of(least - 1, tail, count) > delta * (1 - 1e-6)


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_a_count_in_l1_keeps_delta_for_every_number_of_groups(cap: int, distance: int) -> None:
    """Units alone in 1 to 2^20 groups, each group with the weight that the statement gives it."""
    count = replace(counting(cap), norm=1)
    line = Line(0, "sum", "m0", "", "thresholded", Fraction(1, 2), delta=Fraction(1, 10**6))
    noise = line.mechanism(count, distance)
    assert isinstance(noise, TruncatedLaplace)
    groups = np.unique(np.geomspace(1, 2**20, 2_000).astype(np.int64))
    weights = np.where(groups <= cap, count.limit_steps, count.limit_steps * cap // groups)
    scale, last = noise.noise_scale, -(noise.bound + 1) / noise.noise_scale
    chance = math.exp(last) * np.expm1(weights / scale) / (1 + math.exp(-1 / scale) - 2 * math.exp(last))
    shown = -np.expm1(groups * np.log1p(-chance)) * distance
    assert 0.999e-6 < shown.max() <= 1e-6
    # The mutant: a bound for what a unit adds to one group, not to all of them.
    narrow = TruncatedLaplace(Fraction(1, 2), Fraction(1, 10**6), sensitivity=count.limit_steps)
    last = -(narrow.bound + 1) / scale
    chance = math.exp(last) * np.expm1(weights / scale) / (1 + math.exp(-1 / scale) - 2 * math.exp(last))
    assert cap * distance == 1 or (groups * chance).max() > 1e-5


def test_a_threshold_for_units_in_one_group_is_too_low_for_those_in_many() -> None:
    """The mutants: the number of groups ignored, the weight left out, the bound on groups ignored."""
    count = counting(6)
    scale, delta = count.sensitivity_steps / 0.3, Fraction(1, 10**6)
    tail = gaussian_tail(scale)
    least = count_threshold_for(tail, delta, 1, count)
    alone = next(
        height
        for height in range(0, least, count.limit_steps // 4)
        if exact_count_delta(height, scale, count, 1) <= delta
    )
    assert alone < least and exact_count_delta(alone, scale, count, count.most_groups) > 100 * delta
    assert exact_count_delta(least, scale, count, 40 * count.most_groups) > 10 * delta
    strong = count.sensitivity_steps / 30
    needed = count_threshold_for(gaussian_tail(strong), delta, 1, count)
    assert exact_count_delta(needed - count.limit_steps, strong, count, 6) > 100 * delta


@pytest.mark.statistical
@pytest.mark.parametrize("groups", [1, 3, 40])
def test_the_groups_of_one_unit_alone_are_shown_no_more_often_than_delta(groups: int) -> None:
    """1,000 releases of a table with one person in it; failure below 1e-7 if delta is right."""
    table = pa.table({"id": [7] * groups, "place": [f"p{i}" for i in range(groups)]})
    delta, runs = 0.02, 1_000
    with Curator.from_tables(visits=table, unit="id", budget=(5.0, 0.5)) as curator:
        made = answers(curator, "SELECT DISTINCT place FROM visits", runs, epsilon=1.0, delta=delta)
        seen = sum(answer.released[0].table.num_rows > 0 for answer in made)
    assert binom.sf(seen - 1, runs, delta) > 1e-7


def test_a_key_that_many_share_is_shown() -> None:
    table = pa.table({"id": list(range(3_000)), "place": ["home"] * 2_999 + ["hideout"]})
    with Curator.from_tables(visits=table, unit="id", budget=(5.0, 1e-6)) as curator:
        shown = curator.ask("SELECT place, COUNT(DISTINCT id) AS n FROM visits GROUP BY place", epsilon=2.0)
        assert shown.to_arrow().column("place").to_pylist() == ["home"]
