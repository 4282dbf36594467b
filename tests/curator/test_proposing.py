"""From noisy censuses to proposals: what is not sure is not proposed, and numbers are rounded up."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd import Curator
from incrowd.curator import tuning
from incrowd.curator.proposing import _tidy
from tests.curator.test_tuning import ALMOST_EXACT, curator_of


def test_proposed_numbers_are_rounded_up() -> None:
    assert [_tidy(value) for value in (39.0625, 1024.0, 1448.15, 0.7071, 8.0)] == [39.1, 1030, 1450, 0.708, 8]


@given(st.floats(1e-9, 1e12))
def test_a_tidy_number_is_at_most_one_part_in_a_hundred_larger(value: float) -> None:
    assert value * (1 - 1e-9) <= _tidy(value) <= value * 1.0101


def test_what_cannot_be_told_from_noise_is_not_proposed() -> None:
    with curator_of() as curator:
        profile = curator.tune(0.02)
    assert profile.proposals == ()
    said = {reading.what: reading.interval for reading in profile.readings}
    assert "units cannot be seen" in said["rows per unit"]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_fewer_units_are_seen_with_more_epsilon(relation: str) -> None:
    with curator_of(relation=relation) as curator:
        unseen = {}
        for epsilon in (1.0, 10.0, ALMOST_EXACT):
            for measured in tuning.planned(curator, epsilon).measurements:
                unseen.setdefault(measured.said, []).append(measured.unseen)
    assert unseen and all(few[0] > few[1] >= few[2] >= 1 for few in unseen.values())


@pytest.mark.parametrize("bounds", [(-1000, 2**63 - 1), (10**18, 10**18 + 10**6)])
def test_bounds_beyond_exact_floats_are_left_alone(bounds: tuple[int, int]) -> None:
    """A distance that floats round could cut values off, or leave the type, after payment."""
    rows = pa.table({"id": range(300), "x": [bounds[0] + row % 3 for row in range(300)]})
    with Curator.from_tables(t=rows, unit="id", bounds={"t.x": bounds}, budget=(1e6, 0.0)) as curator:
        profile = curator.tune(ALMOST_EXACT)
    assert not [proposal for proposal in profile.proposals if proposal.field == "bounds"]
    assert [reading.interval for reading in profile.readings if reading.what == "range of values"] == [
        "declared bounds fit"
    ]
