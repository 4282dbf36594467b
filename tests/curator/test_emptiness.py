"""Public groups that may be empty are marked, from released numbers; NULL is a group where it is allowed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from incrowd.curator import Curator

PLENTY: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-9}
"""So little noise that an interval misses no count by more than 2 (by chance below 1e-6)."""


def curator_of(**options: Any) -> Curator:
    people = pa.table(
        {
            "id": list(range(400)),
            "town": ["bonn", "trier"] * 200,
            "key": ["a", None, "a", "b"] * 100,
            "grade": [1, 2, None, 3] * 100,
        }
    )
    declared = {
        "domains": {"town": ["bonn", "trier", "ulm", "köln"]},
        "bounds": {"grade": (1, 3)},
        "budget": (1e4, 1e-3),
    }
    return Curator.from_tables(people=people, unit="id", **{**declared, **options})


@pytest.fixture(scope="module")
def curator() -> Curator:
    return curator_of(not_null=["town"])


def marked(curator: Curator, sql: str) -> list[str]:
    answer = curator.ask(sql, **PLENTY)
    notes = [note for note in answer.notes if "may be empty" in note]
    assert all(note in str(answer) for note in notes)
    return notes


def test_groups_whose_interval_includes_zero_are_named(curator: Curator) -> None:
    assert marked(curator, "SELECT town, COUNT(*) AS n FROM people GROUP BY town ORDER BY town") == [
        "n: 2 of 4 groups may be empty, for the interval includes 0 (köln, ulm)."
    ]


def test_a_group_with_people_is_not(curator: Curator) -> None:
    assert marked(curator, "SELECT grade, COUNT(*) AS n FROM people WHERE grade > 1 GROUP BY grade") == []


def test_two_counts_of_the_same_groups_are_said_together(curator: Curator) -> None:
    (note,) = marked(curator, "SELECT town, COUNT(*) AS n, COUNT(DISTINCT id) AS m FROM people GROUP BY town")
    assert note.startswith("n, m: 2 of 4 groups")


def test_only_groups_that_the_answer_shows_are_named(curator: Curator) -> None:
    shown = "SELECT town, COUNT(*) AS n FROM people GROUP BY town HAVING COUNT(*) > 50"
    assert marked(curator, shown) == []


def test_many_groups_are_counted_and_few_named(curator: Curator) -> None:
    (note,) = marked(curator, "SELECT town, grade, COUNT(*) AS n FROM people WHERE grade = 2 GROUP BY ALL")
    assert "of 4 groups" in note
    case = "CASE WHEN grade > 1 THEN 'x' ELSE 'y' END AS c"
    wide = f"SELECT {case}, town, grade, COUNT(*) AS n FROM people GROUP BY ALL"
    (note,) = marked(curator, wide)
    assert " more)." in note and note.count("/") == 6


def test_a_number_over_all_rows_and_private_groups_are_never_marked(curator: Curator) -> None:
    assert marked(curator, "SELECT COUNT(*) AS n FROM people WHERE grade > 2 AND grade < 3") == []
    assert marked(curator, "SELECT key, COUNT(*) AS n FROM people GROUP BY key") == []


def test_a_condition_is_no_reason_to_call_a_group_empty(curator: Curator) -> None:
    sql = "SELECT grade, COUNT(*) FILTER (WHERE town = 'ulm') AS n FROM people GROUP BY grade"
    assert marked(curator, sql) == []


@pytest.mark.parametrize(
    ("key", "values"),
    [("key", {"a", "b"}), ("grade", {1, 2, 3}), ("key || '!'", {"a!", "b!"}), ("key = 'a'", {True, False})],
)
def test_null_is_a_group_where_the_owner_allows_it_and_nowhere_else(key: str, values: set) -> None:
    sql = f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY 1"
    allowed = curator_of().ask(sql, **PLENTY)
    assert {row["k"] for row in allowed} == {*values, None}
    declared = curator_of(not_null=["key", "grade"]).ask(sql, **PLENTY)
    assert {row["k"] for row in declared} == values
    assert all(table.column(0).null_count == 0 for table in declared.numbers())


def test_a_key_that_replaces_null_has_no_null_group(curator: Curator) -> None:
    answer = curator.ask("SELECT COALESCE(key, 'none') AS k, COUNT(*) AS n FROM people GROUP BY 1", **PLENTY)
    assert {row["k"] for row in answer} == {"a", "b", "none"}
