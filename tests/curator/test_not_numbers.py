"""NaN is NULL wherever it would be shown."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.curator.not_numbers import without_nan

NAN = math.nan


@pytest.fixture(scope="module")
def curator() -> Curator:
    people = pa.table({"id": range(40), "g": ["nan"] * 20 + ["Nancy"] * 20})
    domains = {"g": ["nan", "Nancy"]}
    return Curator.from_tables(people=people, unit="id", domains=domains, budget=(1e4, 0.0), not_null=["g"])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("z / z", None),
        ("[z / z, 1.0]", [None, 1.0]),
        ("[[z / z], []]", [[None], []]),
        ("{'a': z / z, 'b': 2}", {"a": None, "b": 2}),
        ("[{'a': [z / z]}]", [{"a": [None]}]),
        ("map([1], [z / z])", [(1, None)]),
        ("array_value(z / z, 1.0)", [None, 1.0]),
        ("CAST(z / z AS TEXT)", None),
        ("'x ' || z / z", None),
        ("format('{}!', z / z)", None),
        ("[CAST(z / z AS TEXT), 'a']", [None, "a"]),
        ("to_json(CAST(z / z AS FLOAT))", None),
        ("CAST([z / z] AS TEXT)", None),
        ("union_value(num := z / z)", None),
        ("list(z / z) OVER ()", [None]),
        ("'Nancy ' || n", "Nancy 40"),
        ("1 / z", math.inf),
    ],
)
def test_nan_is_never_shown(curator: Curator, made: str, expected: object) -> None:
    inner = "SELECT COUNT(*) AS n FROM people"
    sql = f"SELECT {made} AS v FROM (SELECT n, CAST(n - n AS DOUBLE) AS z FROM ({inner}) AS p) AS q"
    answer = curator.ask(sql, epsilon=50.0, contribution=1)
    assert answer.to_arrow().column("v").to_pylist() == [expected]


def test_a_text_that_says_nan_is_left_alone(curator: Curator) -> None:
    sql = "SELECT g || '!' AS v FROM (SELECT g, COUNT(*) AS n FROM people GROUP BY g) AS q ORDER BY 1"
    answer = curator.ask(sql, epsilon=50.0, contribution=1)
    assert [row["v"] for row in answer] == ["Nancy!", "nan!"]


def test_a_table_without_nan_is_the_same_table() -> None:
    table = pa.table({"t": ["Nan Madol", "a"], "l": [[1.0], None], "s": [{"a": 1.5}, {"a": None}]})
    assert without_nan(table, texts=False) == table
    assert without_nan(pa.table({"l": [[NAN]]}), texts=False).to_pydict() == {"l": [[None]]}
