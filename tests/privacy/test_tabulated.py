from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidInput
from incrowd.privacy import FiniteMechanism, event_range, name_and_shame


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.floats(0, 3))
def test_delta_is_the_worst_event(seed: int, outputs: int, epsilon: float) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), 2)
    events = ((np.arange(2**outputs)[:, None] >> np.arange(outputs)) & 1).astype(float)
    p, q = events @ rows[0], events @ rows[1]
    worst = max(float((p - math.exp(epsilon) * q).max()), float((q - math.exp(epsilon) * p).max()))
    assert FiniteMechanism(rows, [(0, 1)]).delta(epsilon) == pytest.approx(worst, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_epsilon_is_where_the_curve_meets_delta(seed: int, delta: float) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(4), 3)
    real = FiniteMechanism(rows, [(0, 1), (1, 2)])
    epsilon = real.epsilon(delta)
    assert real.delta(epsilon) <= delta + 1e-12
    if epsilon > 1e-6:
        assert real.delta(epsilon * (1 - 1e-6)) > delta - 1e-12
    assert real.curve([0.0, 1.0]) == [(0.0, real.delta(0)), (1.0, real.delta(1))]


def test_outputs_that_give_it_away_have_no_epsilon() -> None:
    table = [[0.9, 0.1, 0.0], [0.9, 0.0, 0.1]]
    real = FiniteMechanism(table, [(0, 1)])
    assert real.epsilon() == math.inf
    assert real.epsilon(0.05) == math.inf
    assert real.epsilon(0.1) == 0.0
    assert real.delta(100) == pytest.approx(0.1)


def test_all_of_delta_leaves_nothing_to_bound() -> None:
    coin = FiniteMechanism([[0.75, 0.25], [0.25, 0.75]], [(0, 1)])
    assert coin.epsilon(1.0) == coin.epsilon(0.5) == 0.0
    # 3/4 - e^epsilon / 4 = 1/4
    assert coin.epsilon(0.25) == pytest.approx(math.log(2), rel=1e-14)
    assert coin.epsilon(0.25) == FiniteMechanism([[0.75, 0.25], [0.25, 0.75]], [(1, 0)]).epsilon(0.25)
    apart = FiniteMechanism([[1.0, 0.0], [0.0, 1.0]], [(0, 1)])
    assert apart.epsilon(1.0) == 0.0
    assert apart.epsilon(0.999) == math.inf
    assert apart.delta(1000) == 1.0
    # A tenth for sure, then 0.6 - 0.2 e^epsilon = 0.1 of what is left.
    mixed = FiniteMechanism([[0.1, 0.6, 0.3], [0.0, 0.2, 0.8]], [(0, 1)])
    assert mixed.epsilon(0.2) == pytest.approx(math.log(2.5), rel=1e-14)
    # The other way round: 0.8 - 0.3 e^epsilon.
    assert mixed.epsilon(0.5) == pytest.approx(0.0, abs=1e-14)
    assert mixed.delta(math.log(2)) == pytest.approx(0.1 + 0.2)


def test_ranges_of_events_bind_on_both_sides() -> None:
    assert event_range(math.log(5 / 4), 0.2) == pytest.approx((0.16, 0.25))
    assert event_range(math.log(5 / 4), 0.5) == pytest.approx((0.4, 0.6))
    assert event_range(0, 0.3) == pytest.approx((0.3, 0.3))
    assert event_range(1000, 0.3) == pytest.approx((0.0, 1.0))
    assert event_range(0, 0.3, delta=0.1) == pytest.approx((0.2, 0.4))
    # 1 - 5/4 (1 - 9/10) = 7/8, and 1 - (1 - 9/10) / (5/4) = 23/25: the complement binds.
    assert event_range(math.log(5 / 4), 0.9) == pytest.approx((0.875, 0.92))
    assert event_range(math.log(5 / 4), 0.9, delta=0.01) == pytest.approx((0.865, 0.928))
    assert event_range(math.log(5 / 4), 0.1, delta=0.01) == pytest.approx((0.072, 0.135))
    assert event_range(0.1, 0.0, delta=0.2) == pytest.approx((0.0, 0.2))
    assert event_range(0.1, 1.0, delta=0.2) == pytest.approx((0.8, 1.0))


@given(st.integers(0, 2**32 - 1))
def test_no_event_of_a_real_mechanism_leaves_its_range(seed: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(4), 2)
    epsilon = FiniteMechanism(rows, [(0, 1)]).epsilon() * (1 + 1e-12)
    for subset in range(16):
        pick = np.array([subset >> i & 1 for i in range(4)], dtype=bool)
        low, high = event_range(epsilon, min(1.0, float(rows[0][pick].sum())))
        assert low - 1e-12 <= float(rows[1][pick].sum()) <= high + 1e-12


def test_additive_secrecy_publishes_people() -> None:
    shame = name_and_shame(people=1000)
    assert shame.additive_secrecy() == pytest.approx(0.001)  # looks harmless
    assert shame.epsilon() == math.inf  # and is not private at any epsilon
    assert np.asarray(shame.probabilities).sum(axis=1) == pytest.approx(1)  # somebody, every time
    assert name_and_shame(1, 3).additive_secrecy() == 1.0


@pytest.mark.parametrize(
    ("table", "pairs"),
    [
        ([], [(0, 1)]),
        ([[1.0]], []),
        ([[1.0]], [(0, 1)]),
        ([[0.5, 0.6]], [(0, 0)]),
        ([["a"]], [(0, 0)]),
        ([[-0.5, 1.5]], [(0, 0)]),
        ([[math.nan, 1.0]], [(0, 0)]),
    ],
)
def test_tables_that_are_no_mechanism_are_refused(
    table: list[list[float]], pairs: list[tuple[int, int]]
) -> None:
    with pytest.raises(InvalidInput):
        FiniteMechanism(table, pairs)
    with pytest.raises(InvalidInput):
        name_and_shame(0)
