"""Private keys: the exact delta of the threshold, a unit with many groups included."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from incrowd import Curator
from incrowd.backends.statement import KEY_MASS
from incrowd.curator.thresholds import delta_of, gaussian_tail, laplace_tail, threshold_for

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
