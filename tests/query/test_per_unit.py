"""Aggregation inside one unit: what stands in GROUP BY."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.backends import release_statement
from incrowd.backends.trees import text_of
from incrowd.curator.request import Request

CONSTANTS = [
    *("ROUND(1e300)", "FLOOR(1e300)", "CEIL(1e19)", "ABS(9223372036854775807)", "TRUNC(-1e308)", "1e300"),
    *("CAST('x' AS INTEGER)", "1 / 0", "LN(0)", "NULL", "CAST('9999-99-99' AS DATE)", "7", "'a'", "TRUE"),
    *("9223372036854775807", "-9223372036854775807 - 9", "POWER(1e70, 4)", "EXP(700)", "1 = 1"),
]


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize(
    "inner", ["SELECT DISTINCT id, {} AS c FROM t {}", "SELECT id, {} AS c FROM t {} GROUP BY id, c"]
)
def test_a_constant_key_answers_whether_or_not_a_row_passes(constant: str, inner: str) -> None:
    """A key whose type no constant fits would raise as soon as one row came by: an exact oracle."""
    table = pa.table({"id": ["ann", "bob"], "disease": ["hiv", "flu"]})
    curator = Curator.from_tables(t=table, unit="id", budget=(1.0, 0.0))
    for who in ("ann", "bob"):
        sql = f"SELECT COUNT(*) AS n FROM ({inner})".format(
            constant, f"WHERE id = '{who}' AND disease = 'hiv'"
        )
        plan = curator.prepare(Request(sql, contribution=1)).plan
        (leaf,) = plan.leaves
        found = curator._backend.run(release_statement(leaf).tree).to_pylist()
        assert sum(row["n0"] or 0 for row in found) == leaf.measures["m0"].sensitivity_steps * (who == "ann")


def test_public_rows_are_grouped_by_a_constant_alone() -> None:
    people = pa.table({"id": [1, 2], "k": [1.0, 2.0]})
    curator = Curator.from_tables(
        t=people, c=pa.table({"n": [1, 2, 3]}), public=["c"], unit="id", budget=(1.0, 0.0)
    )
    counted = "SELECT ROUND(1e300) AS r, COUNT(*) AS m FROM c GROUP BY r"
    sql = f"SELECT COUNT(*) AS n FROM t JOIN ({counted}) AS p ON t.k < p.m"
    plan = curator.prepare(Request(sql, contribution=1)).plan
    (leaf,) = plan.leaves
    found = curator._backend.run(release_statement(leaf).tree).to_pylist()
    assert sum(row["n0"] for row in found) == 2 * leaf.measures["m0"].sensitivity_steps


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT_IF(NULL) AS n FROM t", "SELECT COUNT(*) FILTER (WHERE NULL) AS n FROM t",
     "SELECT SUM(CASE WHEN NULL THEN 1 ELSE 0 END) AS n FROM t"],
)  # fmt: skip
def test_a_bare_null_is_a_condition_that_holds_nowhere(sql: str) -> None:
    curator = Curator.from_tables(t=pa.table({"id": [1, 2]}), unit="id", budget=(1.0, 0.0))
    (leaf,) = curator.prepare(Request(sql, contribution=1)).plan.leaves
    tree = release_statement(leaf).tree
    assert "WHEN NULL" not in text_of(tree)
    assert sum(row["n0"] or 0 for row in curator._backend.run(tree).to_pylist()) == 0


@pytest.mark.parametrize("words", ["NOT LIKE 'f%'", "NOT ILIKE 'F%'", "!~~ 'f%'"])
def test_not_like_is_the_opposite_of_like(words: str) -> None:
    table = pa.table({"id": [1, 2, 3], "s": ["flu", "cold", "fever"]})
    curator = Curator.from_tables(t=table, unit="id", budget=(1.0, 0.0))
    (leaf,) = curator.prepare(
        Request(f"SELECT COUNT(*) AS n FROM t WHERE s {words}", contribution=1)
    ).plan.leaves
    found = curator._backend.run(release_statement(leaf).tree).to_pylist()
    assert sum(row["n0"] for row in found) == leaf.measures["m0"].sensitivity_steps
