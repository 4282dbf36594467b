"""Which aggregate each column of an answer is: as it is, renamed, passed on, computed, or a key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd import Curator
from incrowd.curator.lineage import origins
from incrowd.curator.request import Request
from incrowd.query import Plan

PEOPLE = pa.table({"id": [1, 2], "age": [20, 30], "town": ["a", "b"]})
TOWNS = pa.table({"town": ["a", "b"], "county": ["N", "E"]})


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    with Curator.from_tables(
        people=PEOPLE,
        towns=TOWNS,
        unit="id",
        bounds={"age": (0, 100)},
        domains={"people.town": ["a", "b"]},
        public=["towns"],
        budget=(1.0, 1e-6),
    ) as made:
        yield made


def traced(curator: Curator, sql: str) -> dict[str, tuple[int, str] | None]:
    """By column, the leaf and the kind of its aggregate."""
    plan = curator.prepare(Request(sql)).plan
    return {name: origin and (origin[0], origin[1].kind) for name, origin in origins(plan).items()}


ASKED = "SELECT town, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY town"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM people", {"n": (0, "count")}),
        (ASKED, {"n": (0, "count"), "age": (0, "avg")}),
        ("SELECT COUNT(*) + 1 AS more FROM people", {"more": None}),
        ("SELECT COUNT(*) AS n, 2 * SUM(age) AS twice FROM people", {"n": (0, "count"), "twice": None}),
        (f"SELECT age AS mean, n FROM ({ASKED}) AS t WHERE n > 3", {"mean": (0, "avg"), "n": (0, "count")}),
        (f"SELECT v.m FROM (SELECT n AS m FROM ({ASKED}) AS t) AS v", {"m": (0, "count")}),
        (
            (
                "SELECT a.n AS n, b.s AS s FROM (SELECT COUNT(*) AS n FROM people) AS a, "
                "(SELECT SUM(age) AS s FROM people WHERE age > 30) AS b"
            ),
            {"n": (0, "count"), "s": (1, "sum")},
        ),
        (
            f"SELECT towns.county, t.n FROM ({ASKED}) AS t JOIN towns ON towns.town = t.town",
            {"n": (0, "count")},
        ),
    ],
)
def test_columns_are_followed_to_their_aggregates(
    curator: Curator, sql: str, expected: dict[str, tuple[int, str] | None]
) -> None:
    assert traced(curator, sql) == expected


def test_a_union_is_followed_nowhere(curator: Curator) -> None:
    sql = "SELECT COUNT(*) AS n FROM people UNION ALL SELECT SUM(age) FROM people"
    assert traced(curator, sql) == {"n": None}


def test_what_is_selected_from_nothing_is_computed() -> None:
    plan = Plan((), exp.select("n"), columns=("n", "absent"))
    assert origins(plan) == {"n": None, "absent": None}
