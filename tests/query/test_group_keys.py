"""Group keys: the values that are listed are exactly those that can occur, by DuckDB over the domain.

A value too few drops a group in silence; a value too many is a line of pure noise in the answer.
"""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query import Key, bound, parse
from tests.backends.houses import plan_of

COLOURS = {"red": 1, "green": 2, "blue": 3}
DOMAINS: dict[str, list[Any]] = {
    "k": [1, 2, 3],
    "w": [-1, 0, 1, 2, None],
    "c": ["a", "b", "cd", None],
    "p": [*COLOURS, None],
    "q": list(COLOURS),
    "b": [True, False, None],
}
ROWS = pa.Table.from_pylist(
    [dict(zip(DOMAINS, row, strict=True)) for row in itertools.product(*DOMAINS.values())]
)
PUBLIC = pa.table({"name": [*COLOURS, None, "red"]})


def catalog() -> Catalog:
    """Columns with a domain of each sort: listed, counted through, looked up, without NULL and with it."""
    columns = {
        "id": {"type": "integer"},
        "k": {"type": "integer", "domain": DOMAINS["k"], "nullable": False},
        "w": {"type": "integer", "bounds": [-1, 2]},
        "c": {"type": "text", "domain": ["a", "b", "cd"]},
        "p": {"type": "text", "domain": {"from": "colours.name"}},
        "q": {"type": "text", "domain": {"from": "colours.name"}, "nullable": False},
        "b": {"type": "boolean"},
        "s": {"type": "text"},
        "n": {"type": "integer", "bounds": [0, 20000]},
        "f": {"type": "float", "bounds": [0, 1]},
        "d": {"type": "date"},
        "e": {"type": "date", "bounds": ["2020-01-01", "2020-01-03"], "nullable": False},
    }
    tables: dict[str, Any] = {"t": {"source": "t", "unit": "id", "columns": columns}}
    tables["colours"] = {"source": "colours", "private": False, "columns": {"name": {"type": "text"}}}
    sources = {"t": {"frame": "t"}, "colours": {"frame": "colours"}}
    return check({"sources": sources, "tables": tables, "budget": {"epsilon": 1.0}})


CATALOG = catalog()
ENGINE = duckdb.connect(":memory:")
ENGINE.register("t", ROWS)
ENGINE.register("colours", PUBLIC)


def key_of(expression: str, where: str = "") -> Key:
    (leaf,) = bound(
        parse(f"SELECT {expression} AS z, COUNT(*) AS n FROM t {where} GROUP BY 1"), CATALOG
    ).leaves
    return leaf.keys[0]


def listed(key: Key) -> list[Any]:
    """The values of a public key, as a curator looks them up."""
    if key.values is not None:
        return list(key.values)
    domain = key.domain if isinstance(key.domain, str) else key.domain.sql("duckdb")  # type: ignore[union-attr]
    return [value for (value,) in ENGINE.execute(f"SELECT v FROM ({domain}) AS d").fetchall()]


def occurring(expression: str, where: str = "") -> set[Any]:
    return {value for (value,) in ENGINE.execute(f"SELECT DISTINCT {expression} FROM t {where}").fetchall()}


EXPRESSIONS = [
    *(
        "k",
        "w",
        "c",
        "p",
        "q",
        "k + 1",
        "-k",
        "k * w",
        "w % 2",
        "ABS(w)",
        "k = 2",
        "c = 'a'",
        "b IS NULL",
        "k > 1 AND w > 0",
    ),
    *(
        "CASE WHEN k = 1 THEN 'one' ELSE c END",
        "COALESCE(c, 'none')",
        "UPPER(c)",
        "LENGTH(c)",
        "c || q",
        "LEFT(p, 1)",
        "CASE WHEN w > 0 THEN 'up' END",
    ),
    *(
        "k IN (1, 2)",
        "COALESCE(w, k)",
        "CAST(k AS TEXT)",
        "p = 'red'",
        "NULLIF(k, 2)",
        "q",
        "LEAST(k, w)",
        "w IS NULL",
        "k / 2",
        "w / k",
    ),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_listed_keys_are_the_values_over_the_domain(expression: str) -> None:
    values = listed(key_of(expression))
    assert len(values) == len(set(values))
    assert set(values) == occurring(expression)


CONDITIONS = st.sampled_from(
    [
        *(
            "k = 1",
            "k = 2",
            "k IN (1, 3)",
            "k IN (2)",
            "2 = k",
            "w IN (0, 1)",
            "w = 0",
            "c IN ('a', 'cd')",
            "c = 'b'",
            "c = 'zz'",
            "b",
            "NOT k = 1",
        ),
        *(
            "k <> 2",
            "w > 0",
            "c IS NULL",
            "k NOT IN (1)",
            "q IN ('red', 'blue')",
            "p = 'green'",
            "k = w",
            "k IN (1, NULL)",
            "c LIKE 'c%'",
            "k = 1 + 1",
        ),
    ]
)
WHERES = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: f"({both[0]} AND {both[1]})"),
        st.tuples(inner, inner).map(lambda both: f"({both[0]} OR {both[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["k", "w", "c", "p", "q", "k + w", "UPPER(c)", "k = 2", "COALESCE(c, q)"]), WHERES)
def test_no_where_drops_a_key_that_can_still_occur(expression: str, where: str) -> None:
    assert occurring(expression, f"WHERE {where}") <= set(listed(key_of(expression, f"WHERE {where}")))


@pytest.mark.parametrize("column", ["k", "w", "c", "q"])
@pytest.mark.parametrize(
    "where",
    [
        "{0} = {1}",
        "{0} IN ({1}, {2})",
        "({0} = {1})",
        "{0} = {1} AND b",
        "b AND {0} IN ({1}, {2})",
        "{0} IN ({1}, {2}) AND {0} IN ({2}, {1})",
        "{0} IN ({1}, {2}) AND {0} = {2}",
        "(b AND ({0} = {1}))",
        "{0} IN ({1}, {1})",
    ],
)
def test_conditions_on_the_key_leave_exactly_the_keys_that_can_occur(column: str, where: str) -> None:
    one, two = (repr(value) for value in DOMAINS[column][:2])
    clause = "WHERE " + where.format(column, one, two)
    values = listed(key_of(column, clause))
    assert len(values) == len(set(values))
    assert set(values) == occurring(column, clause)


@pytest.mark.parametrize(
    "where",
    [
        "k = 1 OR k = 2",
        "k = 1 OR b",
        "NOT k = 1",
        "k <> 1",
        "k = w",
        "k IN (1, w)",
        "k IN (1, NULL)",
        "b",
        "k = 1.0",
        "k = '1' OR b",
    ],
)
def test_only_what_every_row_must_satisfy_narrows_the_keys(where: str) -> None:
    if "'1'" in where:
        where = "c = 'a' OR b"
    assert set(listed(key_of("k", f"WHERE {where}"))) == {1, 2, 3}


def test_a_column_without_a_domain_is_public_where_the_question_lists_its_values() -> None:
    assert listed(key_of("s", "WHERE s IN ('x', 'y') AND b")) == ["x", "y"]
    assert not key_of("s", "WHERE s = 'x' OR s = 'y'").public and not key_of("s", "WHERE s <> 'x'").public
    assert listed(key_of("n", "WHERE n = 15000")) == [15000]
    assert not key_of("f", "WHERE f = 0.5").public


def test_what_cannot_be_listed_is_private() -> None:
    for expression in ("s", "n", "f", "d", "n + 1", "s || c", "n + k", "LENGTH(s)"):
        assert not key_of(expression).public, expression


def test_expressions_over_large_domains_are_listed_by_their_own_values() -> None:
    assert set(listed(key_of("n % 3"))) == {0, 1, 2, None}
    assert set(listed(key_of("n > 5"))) == {True, False, None}
    assert set(listed(key_of("MONTH(d)"))) == {*range(1, 13), None}
    assert set(listed(key_of("CASE WHEN n > 5 THEN 'many' ELSE 'few' END"))) == {"many", "few"}
    assert not key_of("n + 1").public
    assert len(listed(key_of("e"))) == 3 and len(set(listed(key_of("k * 10 + w")))) == 13


def test_a_constant_makes_one_group() -> None:
    for expression in ("7", "'x'", "1 = 1"):
        assert len(listed(key_of(expression))) == 1 or expression == "1 = 1"


def test_as_many_combinations_as_are_allowed_are_listed() -> None:
    assert key_of("k + w").public
    assert key_of("n + 0 * k", "WHERE n IN (1, 2)").public


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT id, COUNT(*) FROM t GROUP BY id",
            (
                "Grouping by id would single out each protected unit; group by something that many of "
                "them share, or count them with COUNT(DISTINCT id)."
            ),
        ),
        ("SELECT NULL, COUNT(*) FROM t GROUP BY NULL", "GROUP BY NULL makes no groups; leave it out."),
    ],
)
def test_what_makes_no_groups_of_many_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        bound(parse(sql), CATALOG)
    assert str(refusal.value) == said


def test_a_key_is_of_its_kinds_own_type() -> None:
    names = {"k": "BIGINT", "k + 1": "BIGINT", "f": "DOUBLE", "c": "VARCHAR", "b": "BOOLEAN", "e": "DATE"}
    for expression, name in names.items():
        key = key_of(expression)
        assert key.name == "k0"
        value = "CAST(0.5 AS DOUBLE) AS f, DATE '2020-01-01' AS e"
        sql = f"SELECT TYPEOF({key.sql.sql('duckdb')}) FROM (SELECT *, {value} FROM t) AS t LIMIT 1"
        assert ENGINE.execute(sql).fetchone() == (name,)
    assert key_of("UPPER(c)").label == "UPPER(c)" and key_of("c").label == "c"


def test_one_zero_of_two_is_a_key() -> None:
    (leaf,) = plan_of("SELECT f, COUNT(*) FROM visits GROUP BY f", "user").leaves
    sql = leaf.keys[0].sql.sql("duckdb")
    assert (
        str(
            duckdb.execute(
                f'SELECT {sql} FROM (SELECT CAST(\'-0.0\' AS DOUBLE) AS "f") AS "visits"'
            ).fetchone()
        )
        == "(0.0,)"
    )
