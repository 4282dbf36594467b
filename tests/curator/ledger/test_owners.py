"""A ledger is opened by whoever founded it, and by nobody else."""

from __future__ import annotations

import pytest

from incrowd.curator.ledger.owners import owner_of_tables, same_owner, stranger

PEOPLE, BOTH, SHOPS = (owner_of_tables(names) for names in (["people"], ["visits", "people"], ["shops"]))


@pytest.mark.parametrize(
    ("recorded", "own", "same"),
    [
        ("one", "one", True),
        ("", "", True),
        ("one", "two", False),
        ("one", "", False),
        ("", "one", False),
        (PEOPLE, PEOPLE, True),
        (PEOPLE, BOTH, True),
        (BOTH, PEOPLE, True),
        (PEOPLE, SHOPS, False),
        (PEOPLE, "", False),
        (PEOPLE, "one", False),
        ("one", PEOPLE, False),
        ("", PEOPLE, True),
        ("tables {", PEOPLE, False),
        ("tables 1", PEOPLE, False),
    ],
)
def test_the_owner_is_the_same_file_or_shares_a_table(recorded: str, own: str, same: bool) -> None:
    assert same_owner(recorded, own) is same


def test_a_stranger_is_told_whose_the_ledger_is() -> None:
    assert "with id one, not to this one; name this file's own" in stranger("a", "one", "two")
    assert "without id, not to these tables; name their own" in stranger("a", "", PEOPLE)
    assert "tables in memory (people, visits), not to this one" in stranger("a", BOTH, "one")
