"""The SELECT above a leaf: windows move over the released table, and what they read is released once."""

from __future__ import annotations

import pytest

from incrowd.errors import QueryError
from tests.backends.houses import plan_of


def outer_of(sql: str) -> str:
    return plan_of(sql, "user").outer.sql("duckdb").replace('"', "")


@pytest.mark.parametrize(
    ("sql", "outer"),
    [
        (
            "SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY city",
            "SELECT k0 AS city, a0 / SUM(a0) OVER () AS share FROM released_0 ORDER BY k0",
        ),
        (
            "SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY city",
            "SELECT k0 AS city, RANK() OVER (ORDER BY a0 DESC) AS r FROM released_0 ORDER BY k0",
        ),
        (
            (
                "SELECT city, COUNT(*) AS m FROM visits GROUP BY city "
                "QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY m DESC) <= 2"
            ),
            (
                "SELECT k0 AS city, a0 AS m FROM released_0 "
                "QUALIFY ROW_NUMBER() OVER (PARTITION BY k0 ORDER BY a0 DESC) <= 2 ORDER BY k0"
            ),
        ),
        (
            "SELECT city, LAG(SUM(x), 1, 0) OVER (ORDER BY city) AS b FROM visits GROUP BY city",
            "SELECT k0 AS city, LAG(a0, 1, 0) OVER (ORDER BY k0) AS b FROM released_0 ORDER BY k0",
        ),
        (
            "SELECT city, SUM(COUNT(*)) FILTER (WHERE city = 'a') OVER () AS a FROM visits GROUP BY city",
            "SELECT k0 AS city, SUM(a0) FILTER(WHERE k0 = 'a') OVER () AS a FROM released_0 ORDER BY k0",
        ),
        (
            (
                "SELECT city, SUM(COUNT(*)) OVER w AS t FROM visits GROUP BY city "
                "HAVING COUNT(*) > 5 WINDOW w AS (ORDER BY city ROWS 3 PRECEDING)"
            ),
            (
                "SELECT k0 AS city, SUM(a0) OVER (ORDER BY k0 ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) "
                "AS t FROM released_0 WHERE a0 > 5 ORDER BY k0"
            ),
        ),
        (
            "SELECT city, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY ALL",
            "SELECT k0 AS city, a0 AS n, SUM(a0) OVER () AS t FROM released_0 ORDER BY k0",
        ),
        (
            "SELECT city FROM visits GROUP BY city QUALIFY RANK() OVER (ORDER BY SUM(x)) = 1",
            "SELECT k0 AS city FROM released_0 QUALIFY RANK() OVER (ORDER BY a0) = 1 ORDER BY k0",
        ),
    ],
)
def test_windows_run_over_released_numbers(sql: str, outer: str) -> None:
    assert outer_of(sql) == outer


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY city",
        "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY city",
        "SELECT city FROM visits GROUP BY city QUALIFY RANK() OVER (ORDER BY COUNT(*)) < 3",
    ],
)
def test_what_windows_compute_is_free(sql: str) -> None:
    plain = plan_of("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "user")
    assert plan_of(sql, "user").fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT city, SUM(x) OVER (PARTITION BY city) FROM visits GROUP BY city", "x must be in GROUP BY"),
        ("SELECT DISTINCT city, COUNT(*) OVER (PARTITION BY city) FROM visits", "with GROUP BY"),
        ("SELECT city, RANK() OVER v FROM visits GROUP BY city WINDOW w AS (ORDER BY city)", "no window v"),
        ("SELECT city, RANK() OVER (ORDER BY x) FROM visits GROUP BY city", "x must be in GROUP BY"),
    ],
)
def test_windows_over_rows_are_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plan_of(sql, "user")


@pytest.mark.parametrize(
    ("sql", "outer"),
    [
        (
            "SELECT city, COUNT(*) / (SELECT COUNT(*) FROM visits) AS s FROM visits GROUP BY city",
            "SELECT k0 AS city, a0 / (SELECT a0 AS count FROM released_0) AS s FROM released_1 ORDER BY k0",
        ),
        (
            "SELECT (SELECT COUNT(*) FROM visits) - (SELECT COUNT(*) FROM visits) AS d",
            "SELECT (SELECT a0 AS count FROM released_0) - (SELECT a0 AS count FROM released_0) AS d",
        ),
        (
            (
                "SELECT city FROM visits GROUP BY city HAVING COUNT(*) > (SELECT AVG(q.m) FROM "
                "(SELECT city, COUNT(*) AS m FROM visits GROUP BY city) AS q)"
            ),
            (
                "SELECT k0 AS city FROM released_0 WHERE a0 > (SELECT AVG(q.m) AS avg_m FROM "
                "(SELECT k0 AS city, a0 AS m FROM released_0 ORDER BY k0) AS q) ORDER BY k0"
            ),
        ),
        (
            "SELECT q.m FROM (SELECT COUNT(*) AS m FROM visits) q WHERE q.m > (SELECT COUNT(*) FROM steps)",
            (
                "SELECT q.m AS m FROM (SELECT a0 AS m FROM released_0) AS q "
                "WHERE q.m > (SELECT a0 AS count FROM released_1)"
            ),
        ),
        (
            "SELECT COUNT(*) * (SELECT COUNT(*) FROM cities) AS m FROM visits",
            "SELECT a0 * (SELECT COUNT(*) AS count FROM cities AS cities) AS m FROM released_0",
        ),
    ],
)
def test_sub_queries_in_expressions_are_releases_of_their_own(sql: str, outer: str) -> None:
    assert outer_of(sql) == outer


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits)",
            "ask for its number by itself first",
        ),
        (
            "SELECT SUM(x - (SELECT MIN(x) FROM visits)) FROM visits",
            "read it as visits AS inside and add inside.user_id = visits.user_id to its WHERE; or ask for",
        ),
        ("SELECT COUNT(*) FILTER (WHERE x > (SELECT AVG(x) FROM visits)) FROM visits", "ask for its number"),
        ("SELECT COUNT(*), (SELECT x FROM visits) FROM visits", "would show the rows of people"),
        (
            "SELECT city, (SELECT COUNT(*) FROM visits v WHERE v.city = visits.city) FROM visits GROUP BY 1",
            "cannot look at visits.city .* JOIN the results",
        ),
        (
            "SELECT city, (SELECT COUNT(*) FROM cities c WHERE c.city = visits.city) FROM visits GROUP BY 1",
            "cannot look at visits.city .* join its table in FROM",
        ),
    ],
)
def test_sub_queries_that_would_look_at_rows_are_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plan_of(sql, "user")


def test_the_advice_about_whose_rows_a_sub_query_reads_works_as_typed() -> None:
    asked = "SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits AS inside WHERE {})"
    with pytest.raises(QueryError, match=r"add inside\.user_id = visits\.user_id to its WHERE"):
        plan_of("SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits)", "user")
    assert plan_of(asked.format("inside.user_id = visits.user_id"), "user").leaves
