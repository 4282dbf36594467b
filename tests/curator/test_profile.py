"""A profile: its readings as tables, and its proposals in the catalog, each marked as bought."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incrowd.catalog import Catalog
from incrowd.curator.profile import Profile, applied, listed, without_bought
from tests.curator.test_tuning import ALMOST_EXACT, curator_of


@pytest.fixture(scope="module")
def tuned() -> Iterator[tuple[Catalog, Profile]]:
    with curator_of() as curator:
        before = curator.catalog
        yield before, curator.tune(ALMOST_EXACT)


def test_proposals_are_applied_with_their_marks(tuned: tuple[Catalog, Profile]) -> None:
    before, profile = tuned
    after = applied(before, profile.proposals)
    assert after == profile.catalog and before.bought == {}
    table = after.tables["visits"]
    assert table.contribution == 4 and table.columns["cost"].bounds == (0.0, 39.1)
    marks = after.bought_of("visits")
    assert marks.contribution is not None and marks.columns["cost"].bounds is not None
    assert tuple(marks.columns["cost"].bounds.declared) == (0.0, 10_000.0)


def test_without_what_was_bought_the_declared_values_are_back(tuned: tuple[Catalog, Profile]) -> None:
    before, profile = tuned
    back = without_bought(profile.catalog, ["visits"])
    assert back.tables == before.tables and back.bought == {}
    assert without_bought(profile.catalog, []) == profile.catalog


def test_a_profile_is_a_table_a_text_and_json(tuned: tuple[Catalog, Profile]) -> None:
    _, profile = tuned
    rows = profile.to_arrow().to_pylist()
    assert len(rows) == len(profile.readings) == len(profile.to_pandas())
    assert sum(row["epsilon"] for row in rows) == pytest.approx(ALMOST_EXACT, rel=1e-4)
    assert sum(row["proposed"] for row in rows) == len(profile.proposals)
    state = profile.to_json()
    assert state["epsilon"] == ALMOST_EXACT and not state["recalled"] and state["readings"] == rows
    assert [tuple(proposal["path"]) for proposal in state["proposals"]] == [
        proposal.path for proposal in profile.proposals
    ]
    assert "rows per unit" in str(profile) and "(epsilon 10000" in repr(profile)
    assert profile._repr_html_().startswith("<")


def test_long_lists_are_cut() -> None:
    assert listed([1, 2]) == "[1, 2]"
    assert listed(list(range(9))) == "[0, 1, 2, 3, 4, 5, ... 9 values]"
