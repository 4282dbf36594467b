"""Short tests and what they are written out as are true on the same rows, by DuckDB."""

from __future__ import annotations

import pytest

from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules.expand_tests import expand_tests
from tests.backends.houses import catalog_of
from tests.query.one_table import computed, corner_rows

WORLD = World(catalog_of("user"), {})


def expanded(test: str) -> str:
    tree = expand_tests(parse(f"SELECT COUNT(*) FROM visits WHERE {test}").tree, WORLD)
    where: str = tree.args["where"].this.sql("duckdb")
    return where


@pytest.mark.parametrize(
    "test",
    [
        "x = ANY([0, 3, NULL])",
        "x <> ALL([0, 3, NULL])",
        "x > ANY([0, 3])",
        "x <= ALL([0, 3])",
        "LIST_CONTAINS([0, NULL, 3], x)",
        "ARRAY_CONTAINS([0, 3], x)",
        "CONTAINS(['a', ''], s)",
        "x NOT IN [0, 3]",
    ],
)
def test_a_short_test_is_true_where_its_long_form_is(test: str) -> None:
    given = corner_rows("x", "s")
    long = expanded(test)
    assert long != test
    assert [bool(value) for value in computed(long, given)] == [
        bool(value) for value in computed(test, given)
    ]


@pytest.mark.parametrize(
    ("test", "plain"),
    [
        ("x BETWEEN SYMMETRIC 3 AND 0", "x >= 0 AND x <= 3"),
        ("x BETWEEN SYMMETRIC y AND k", "(x >= y AND x <= k) OR (x >= k AND x <= y)"),
        ("x NOT BETWEEN SYMMETRIC 3 AND 0", "NOT (x >= 0 AND x <= 3)"),
        ("(x, s) IN ((0, 'a'), (3, NULL))", "(x = 0 AND s = 'a') OR (x = 3 AND s = NULL)"),
        ("(x, s) NOT IN ((0, 'a'), (3, ''))", "NOT ((x = 0 AND s = 'a') OR (x = 3 AND s = ''))"),
        ("s LIKE ALL ('a%', '%')", "s LIKE 'a%' AND s LIKE '%'"),
        ("s NOT LIKE ANY ('a%', '1%')", "s NOT LIKE 'a%' OR s NOT LIKE '1%'"),
        ("NVL2(x, x > 0, TRUE)", "CASE WHEN x IS NOT NULL THEN x > 0 ELSE TRUE END"),
        ("SAFE_DIVIDE(x, y - 1) > 1", "x / NULLIF(y - 1, 0) > 1"),
    ],
)
def test_what_duckdb_cannot_read_means_what_others_mean_by_it(test: str, plain: str) -> None:
    given = corner_rows("x", "s", "y")
    assert computed(expanded(test), given) == computed(plain, given)
