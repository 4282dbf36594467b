"""Long chains of operators are balanced, mean the same and are planned."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from incrowd import Curator, QueryError
from incrowd.query import growth
from incrowd.query.balancing import LONGEST_CHAIN, balanced

NUMBERS = pa.table({"id": range(100), "k": [place % 9 for place in range(100)]})


@pytest.fixture
def curator() -> Curator:
    return Curator.from_tables(t=NUMBERS, unit="id", bounds={"k": (0, 9)}, budget=(1e6, 0.0))


@pytest.mark.parametrize("operator", ["+", "*", "AND", "OR"])
def test_a_long_chain_keeps_its_terms_in_order_and_is_shallow(operator: str) -> None:
    names = [f"x{place}" for place in range(1_000)]
    tree = parse_one(f"SELECT {f' {operator} '.join(names)} AS y")
    assert isinstance(tree, exp.Query)
    flat = balanced(tree)
    assert [column.name for column in flat.find_all(exp.Column, bfs=False)] == names
    assert max(column.depth for column in flat.find_all(exp.Column)) < 25


@pytest.mark.parametrize("sql", ["SELECT 1 - 2 - 3", "SELECT " + " + ".join("x" * LONGEST_CHAIN)])
def test_short_chains_and_other_operators_stay_as_they_are(sql: str) -> None:
    tree = parse_one(sql)
    assert isinstance(tree, exp.Query)
    assert balanced(tree.copy()) == tree


def test_long_questions_are_planned_and_answered_rightly(curator: Curator) -> None:
    either = " OR ".join(f"k = {value}" for value in range(3, 403))
    total = " + ".join(["k"] * 200)
    for sql, truth in (
        (f"SELECT COUNT(*) AS n FROM t WHERE {either}", sum(place % 9 >= 3 for place in range(100))),
        (f"SELECT SUM({total}) AS n FROM t", 200 * sum(place % 9 for place in range(100))),
    ):
        (row,) = curator.ask(sql, epsilon=1e5, contribution=1).to_arrow().to_pylist()
        assert row["n"] == pytest.approx(truth, abs=1)


def test_planning_ends_in_time(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LONGEST_PLANNING", 0.0)
    with pytest.raises(QueryError, match="was not planned after 0 seconds"):
        curator.price("SELECT COUNT(*) AS n FROM t WHERE k > 3 AND k < 5", epsilon=1.0)
