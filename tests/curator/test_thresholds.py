"""Private keys: the exact delta of the threshold, a unit with many groups included."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from incrowd import Curator
from incrowd.backends.statement import KEY_MASS
from incrowd.curator.thresholds import delta_of, threshold_for

from .repeating import answers


def exact_delta(threshold: int, epsilon: Fraction, distance: int, most_groups: int) -> mpmath.mpf:
    with mpmath.workdps(60):
        ratio = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator / (distance * KEY_MASS))
        worst = mpmath.mpf(0)
        for groups in range(1, most_groups + 1):
            gap = threshold - KEY_MASS // groups
            tail = ratio**gap / (1 + ratio) if gap >= 1 else 1 - ratio ** (1 - gap) / (1 + ratio)
            worst = max(worst, 1 - (1 - tail) ** groups)
        return worst


epsilons = st.fractions(Fraction(1, 50), Fraction(8), max_denominator=97)


@given(epsilons, st.sampled_from([1e-3, 1e-7, 1e-12]), st.sampled_from([1, 2]), st.sampled_from([1, 7, 60]))
@settings(max_examples=40, deadline=None)
def test_the_true_delta_never_exceeds_the_stated_one(
    epsilon: Fraction, delta: float, distance: int, most_groups: int
) -> None:
    least = threshold_for(epsilon, Fraction(delta), distance, most_groups)
    assert distance * exact_delta(least, epsilon, distance, most_groups) <= delta
    assert delta_of(least - 1, epsilon, distance, most_groups) * distance > delta * (1 - 1e-6)


def test_all_numbers_of_groups_up_to_the_mass_are_covered() -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**7)
    least = threshold_for(epsilon, delta, 1)
    assert exact_delta(least, epsilon, 1, KEY_MASS) <= delta


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
