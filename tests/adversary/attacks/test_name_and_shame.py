"""Name and shame: private by the letter of (0, delta), and somebody's whole record in public."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from incrowd.adversary.attacks.name_and_shame import NameAndShame, name_and_shame
from incrowd.errors import InvalidInput
from incrowd.noise import SeededSource
from incrowd.privacy.tabulated import FiniteMechanism


def test_it_is_exactly_zero_delta_private_and_has_no_finite_epsilon() -> None:
    """Two people, whose other record is fixed; rows are the first one's record (or her absence), outputs are
    what is published of each."""
    delta = 0.1
    first = [[delta, 0, 1 - delta], [0, delta, 1 - delta], [0, 0, 1.0]]
    table = [[p * q for p in row for q in (delta, 1 - delta)] for row in first]
    mechanism = FiniteMechanism(table, [(0, 1), (0, 2), (1, 2)])
    assert mechanism.delta(0.0) == pytest.approx(delta)
    assert mechanism.epsilon(delta * 0.99) == math.inf
    assert NameAndShame(delta).privacy.delta(0.0) == delta


def test_whole_records_are_published_with_their_places() -> None:
    records = [{"name": "ann", "ill": True}, {"name": "bob", "ill": False}]
    assert NameAndShame(1.0).release(records) == list(enumerate(records))
    assert NameAndShame(0.0).release(records) == [] == NameAndShame(0.5).release([])


def test_somebody_is_exposed_as_often_as_the_formula_says() -> None:
    """Fixed bits; within 6 standard deviations of 2,000 runs."""
    mechanism, people, runs = NameAndShame(0.01), 50, 2_000
    seen = mechanism.picks(people, runs, SeededSource(3)).any(axis=1).sum()
    expected = 1 - 0.99**people
    assert mechanism.exposes_somebody(people) == pytest.approx(expected)
    assert abs(seen - runs * expected) < 6 * stats.binom.std(runs, expected)
    assert NameAndShame(1.0).exposes_somebody(3) == 1.0 and NameAndShame(1.0).exposes_somebody(0) == 0.0


@pytest.mark.statistical
def test_a_large_delta_exposes_somebody_a_small_one_nobody_and_both_keep_their_promise() -> None:
    """Some of 400 names shows at delta 1e-8 with probability below 4e-6, and two of them below 1e-11; nobody
    is exposed at delta 0.1 with probability 1e-18; `holds` accuses by chance below 1e-6 for each attempt."""
    report = name_and_shame(people=400, deltas=(1e-8, 0.1), runs=20, seed=1)
    attempts = {(attempt.against.split(":")[1].strip(), attempt.x): attempt for attempt in report.attempts}
    assert attempts["somebody among 400", 0.1].success.value == 1.0
    assert attempts["a given person's name", 1e-8].success.hits <= 1
    assert report.holds and np.isfinite([attempt.success.value for attempt in report.attempts]).all()
    assert report.details["one record at random"]["epsilon"] == "infinite"


@pytest.mark.parametrize("deltas", [(), (0.0,), (0.3,), (math.nan,)])
def test_deltas_out_of_reach_are_refused(deltas: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="between 0 and 1/4"):
        name_and_shame(deltas=deltas)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        NameAndShame(1.5)
