"""Questions that try to get around the protected unit: each once opened a door, or looks as if it might."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.backends import DuckDB, distinct_values, release_statement
from incrowd.backends.trees import text_of
from incrowd.catalog.loading import check
from incrowd.errors import QueryError
from incrowd.query import Contribution, Leaf, bound, parse
from tests.backends.engines import house
from tests.backends.houses import check_leaf, engine_of, furnish, plan_of, tables_from


def only_leaf(sql: str, mode: str = "user", **contribution: float | None) -> Leaf:
    (leaf,) = plan_of(sql, mode, **contribution).leaves
    return leaf


@pytest.mark.parametrize(
    "name", ['a" UNION ALL SELECT "grp" FROM "visits" --', "a') --", 'x"."y', "Grün\u200b"]
)
def test_names_of_the_analyst_cannot_leave_the_sql_that_lists_public_keys(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    engine = engine_of("user")
    furnish(engine, tables_from(5, wild=True))
    plain = only_leaf("SELECT CONCAT(v.city, '') AS k, COUNT(*) AS n FROM visits AS v GROUP BY 1", rows=1)
    leaf = only_leaf(
        f"SELECT CONCAT({quoted}.{quoted}, '') AS k, COUNT(*) AS n "
        f"FROM (SELECT city AS {quoted} FROM visits) AS {quoted} GROUP BY 1",
        rows=1,
    )
    domains = [grouped.keys[0].domain for grouped in (plain, leaf)]
    listed = [engine.run(distinct_values(domain)).sort_by("v") for domain in domains if domain is not None]
    assert len(listed) == 2 and listed[0] == listed[1]


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT SUM(s.x) FROM (SELECT x, x AS "__u0" FROM visits) AS s',
        'SELECT COUNT(*) FROM (SELECT x AS "__ROW", x FROM visits) AS s',
        'WITH "__rows" AS (SELECT x FROM visits) SELECT COUNT(*) FROM "__rows"',
    ],
)
def test_a_column_of_the_analyst_cannot_pass_for_the_unit(sql: str) -> None:
    with pytest.raises(QueryError, match="reserved"):
        plan_of(sql, "user")


@pytest.mark.parametrize(
    ("mode", "sql"),
    [
        ("user", "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.user_id = b.user_id"),
        ("user", "SELECT a.x, COUNT(*) FROM visits AS a JOIN visits AS b USING (user_id) GROUP BY a.x"),
        (
            "user",
            "SELECT s.user_id, COUNT(*) FROM visits AS v LEFT JOIN steps AS s USING (user_id) GROUP BY 1",
        ),
        ("user", "SELECT v.user_id % 2, v.user_id + 0, COUNT(*) FROM visits AS v GROUP BY 1, 2"),
        ("per", "SELECT day, COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY day"),
        ("row", "SELECT c.region, COUNT(*) FROM visits AS v JOIN cities AS c ON v.city = c.city GROUP BY 1"),
        ("row", "SELECT COUNT(*) FROM (SELECT city FROM visits WHERE b) AS v CROSS JOIN cities AS c"),
    ],
)
def test_what_multiplies_or_renames_rows_keeps_to_the_sensitivity(mode: str, sql: str) -> None:
    leaf = only_leaf(sql, mode, rows=1, groups=1)
    for seed in range(8):
        check_leaf(leaf, mode, "add-remove", tables_from(seed, wild=True), 0, 1, most=9)


def test_one_row_per_unit_needs_no_census() -> None:
    inner = "SELECT user_id, COUNT(*) AS n, MIN(city) AS c FROM visits GROUP BY user_id"
    leaf = only_leaf(
        f"SELECT p.c, COUNT(*), SUM(LEAST(p.n, 9)), COUNT(DISTINCT p.user_id) FROM ({inner}) AS p GROUP BY 1"
    )
    assert not leaf.uncapped and leaf.units == ()
    assert [measure.cap for measure in leaf.measures.values()] == [1.0, 9.0, 1.0]
    joined = only_leaf(f"SELECT COUNT(*) FROM ({inner}) AS p JOIN ({inner}) AS q ON p.user_id = q.user_id")
    assert not joined.uncapped
    assert only_leaf(f"SELECT COUNT(*) FROM ({inner}) AS p JOIN cities AS c ON p.c = c.city").uncapped


def test_what_is_asked_twice_is_measured_once() -> None:
    leaf = only_leaf(
        "SELECT COUNT(*), COUNT(1), COUNT(s.user_id), AVG(s.m), STDDEV(s.m) FROM steps AS s", rows=2
    )
    assert len(leaf.measures) == 4  # all rows, those with a number, its sum and its squares
    assert only_leaf("SELECT SUM(b), COUNT(b) FROM visits", rows=1).aggregates[0].whole


def test_names_with_spaces_quotes_and_other_scripts_reach_the_engine() -> None:
    columns = {
        "ÄID": {"type": "integer"},
        "Größe cm": {"type": "integer", "bounds": [0, 9]},
        'a"b': {"type": "text"},
    }
    catalog = check(
        {
            "sources": {"s": {"frame": "s"}},
            "tables": {"Straße": {"unit": "ÄID", "columns": columns}},
            "budget": {"epsilon": 1.0},
        }
    )
    sql = 'SELECT "A""B", SUM("GRÖSSE CM"), COUNT(DISTINCT Äid) FROM "STRAßE" GROUP BY 1'
    with pytest.raises(QueryError, match="There is no column"):
        bound(parse(sql), catalog)  # ß and SS are not one letter
    (leaf,) = bound(parse(sql.replace("GRÖSSE", "GRößE")), catalog, None, Contribution(1, 1)).leaves
    assert leaf.keys[0].label == 'a"b'
    frame = pa.table({"ÄID": [1, 2], "Größe cm": [3, 4], 'a"b': ["x", "y"]})
    assert DuckDB(catalog, {"s": frame}).run(release_statement(leaf).tree).num_rows == 4


@pytest.mark.parametrize("rows", [0, -1, 1.5, 2**31])
def test_a_contribution_that_is_no_count_is_refused(rows: float) -> None:
    with pytest.raises(QueryError, match="whole number"):
        plan_of("SELECT COUNT(*) FROM visits", "user", rows=rows)


def test_deep_questions_are_refused_not_crashed() -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE " + "NOT (" * 400 + "b" + ")" * 400
    with pytest.raises(QueryError, match=r"deep|large"):
        plan_of(sql, "user")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) FROM visits AS v WHERE v.t = '\ud800'", "half a character"),
        ('SELECT COUNT(*) AS "\udfff" FROM visits AS v', "half a character"),
        ("SELECT COUNT(*) FROM visits AS v WHERE v.t = 'a\0'", "NUL"),
        ("SELECT COUNT(*) FROM visits AS v WHERE SUBSTRING(v.t) = 'a'", "too few arguments"),
    ],
)
def test_what_no_engine_is_given_is_refused_in_words(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plan_of(sql, "user")


def test_comments_neither_reach_the_engine_nor_tell_expressions_apart() -> None:
    plain = only_leaf("SELECT city, SUM(x) FROM visits WHERE t = '*/' GROUP BY city", rows=1)
    commented = only_leaf(
        "SELECT city /* */, SUM(x -- /* \n) FROM visits WHERE t /*+ x */ = '*/' GROUP BY city -- '", rows=1
    )
    assert text_of(release_statement(commented).tree) == text_of(release_statement(plain).tree)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(x + - -5) FROM visits",
        "SELECT COUNT(y) FROM (SELECT user_id, SUM(LEAST(ABS(f), 0.0)) AS y FROM visits GROUP BY 1) AS q",
        "SELECT COUNT(*) FROM (SELECT NULL AS k, x FROM visits) AS q WHERE k = 5 OR k = 'a' OR k",
        "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n, user_id, 2 AS k FROM visits GROUP BY user_id, k) AS q",
        "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n, 2 AS k FROM visits GROUP BY user_id, k) AS q",
        "SELECT COUNT(*) FROM (SELECT user_id, TRUE AS k FROM visits GROUP BY user_id, k) AS q",
        "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, NULL AS k, 'a' AS l FROM visits) AS q",
    ],
)
def test_odd_constants_are_planned_and_run_on_every_database(sql: str) -> None:
    statement = release_statement(only_leaf(sql, rows=1))
    ran = []
    for engine in ("duckdb", "postgres"):
        home = house(engine, "user")
        home.furnish(tables_from(5, wild=False))
        ran.append(home.backend.run(statement.tree).to_pylist())
    assert ran[0] == ran[1]


def doubled(times: int) -> str:
    sql = "SELECT user_id, t AS y FROM visits"
    for place in range(times):
        sql = f"SELECT user_id, MAX(CONCAT(y || y, y)) AS y FROM ({sql}) AS q{place} GROUP BY user_id"
    return f"SELECT SUM(LENGTH(y), contribution_bounds_per_row => (0, 100000)) FROM ({sql}) AS q"


def test_a_text_that_is_doubled_again_and_again_stays_short() -> None:
    engine = engine_of("user")
    table = tables_from(0, wild=False)
    rows = table["visits"].slice(0, 1)
    place = rows.schema.get_field_index("t")
    furnish(engine, {**table, "visits": rows.set_column(place, "t", pa.array(["secret"]))})
    leaf = only_leaf(doubled(30))
    (row,) = engine.run(release_statement(leaf).tree).to_pylist()
    assert row["n0"] * leaf.measures["m0"].step == 20_000
