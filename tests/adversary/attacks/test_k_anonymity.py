"""Homogeneity, background knowledge and composition against k-anonymous tables."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.adversary.attacks.k_anonymity import candidates, k_anonymity, not_ruled_out, pinned
from incrowd.adversary.attacks.outcome import Report
from incrowd.adversary.data.hospitals import FIRST, SECOND, conditions
from incrowd.errors import InvalidInput
from incrowd.noise import SeededSource


@pytest.fixture(scope="module")
def census() -> Report:
    return k_anonymity(ks=(2, 4), source=SeededSource(1))


def shares(report: Report, k: int) -> dict[str, float]:
    return {attempt.against: attempt.success.value for attempt in report.attempts if attempt.x == k}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=20), st.data())
def test_candidates_are_the_values_of_the_class(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    classes, secrets = (np.array(column) for column in zip(*rows, strict=True))
    target = data.draw(st.integers(0, len(rows) - 1))
    possible = candidates(classes, secrets, np.array([target]), kinds=3)
    assert set(np.flatnonzero(possible[0]).tolist()) == {s for c, s in rows if c == rows[target][0]}
    assert pinned(possible)[0] == (len({s for c, s in rows if c == rows[target][0]}) == 1)


def test_the_hospitals_through_the_same_functions() -> None:
    kinds = sorted(
        {condition for table in (FIRST, SECOND) for ward in table for condition in ward.conditions}
    )
    first, second = (
        np.array([[kind in conditions(table, "13012", 28) for kind in kinds]]) for table in (FIRST, SECOND)
    )
    assert not pinned(first)[0] and not pinned(second)[0]
    assert pinned(first, second)[0] and kinds[int((first & second)[0].argmax())] == "AIDS"


def test_contradicting_knowledge_pins_nobody() -> None:
    assert not pinned(np.array([[True, False]]), np.array([[False, True]]))[0]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=10), st.integers(0, 4))
def test_background_knowledge_rules_out_so_many_and_never_the_truth(truth: list[int], excluded: int) -> None:
    secrets = np.array(truth)
    possible = not_ruled_out(secrets, 5, excluded, np.random.default_rng(0))
    assert (possible.sum(axis=1) == 5 - excluded).all()
    assert possible[np.arange(len(secrets)), secrets].all()


def test_two_releases_of_the_census_expose_several_times_as_many_as_one(census: Report) -> None:
    for k in (2, 4):
        one, more, two, private = shares(census, k).values()
        assert one < more and 4 * one < two
        assert private == 0.0
    assert shares(census, 2)["two releases, intersected"] > 0.3


def test_the_private_tables_stay_within_what_is_allowed(census: Report) -> None:
    assert census.holds
    private = [attempt for attempt in census.attempts if attempt.allowed is not None]
    assert len(private) == 2 and all(attempt.holds for attempt in private)


def test_a_large_epsilon_lets_the_attacker_be_sure_within_its_bound() -> None:
    report = k_anonymity(ks=(2,), shared=0.02, epsilon=8.0, source=SeededSource(2))
    (private,) = (attempt for attempt in report.attempts if attempt.allowed is not None)
    assert private.allowed is not None and 0.2 < private.success.value < private.allowed < 1.0


def test_the_report_is_plain_and_tells_the_worked_example(census: Report) -> None:
    told = json.loads(json.dumps(census.to_dict()))
    assert told["details"]["worked example"]["both"] == ["AIDS"]
    assert told["axis"] == "k"


def test_a_table_of_ones_own_with_missing_secrets_is_attacked() -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "age": rng.integers(20, 60, 400),
            "ill": pa.array([None if x < 0.1 else str(int(x * 5)) for x in rng.random(400)]),
        }
    )
    report = k_anonymity(table, quasi_identifiers=["age"], sensitive="ill", ks=(3,), shared=0.3, excluded=1)
    assert len(report.attempts) == 4
    with pytest.raises(InvalidInput, match="There is no column zip"):
        k_anonymity(table, quasi_identifiers=["zip"], sensitive="ill", excluded=1)
    with pytest.raises(InvalidInput, match="leave it out of quasi_identifiers"):
        k_anonymity(table, quasi_identifiers=["age", "ill"], sensitive="ill")
    with pytest.raises(InvalidInput, match="leaves one possible"):
        k_anonymity(table, quasi_identifiers=["age"], sensitive="ill", excluded=9)
    with pytest.raises(InvalidInput, match="shared must be a share"):
        k_anonymity(table, quasi_identifiers=["age"], sensitive="ill", excluded=1, shared=0.0)
    with pytest.raises(InvalidInput, match="Nobody is in both"):
        k_anonymity(table, quasi_identifiers=["age"], sensitive="ill", excluded=1, shared=1e-9)
