"""Every name resolved: a column gets its table, and a wrong name a sentence with the nearest right one."""

from __future__ import annotations

import importlib

import pytest
from sqlglot.errors import SqlglotError

from incrowd.errors import QueryError
from incrowd.query import parse
from incrowd.query.ownership import World
from incrowd.query.rules.qualify_names import qualify_names
from tests.backends.houses import catalog_of, engine_of, public_fields

qualify_names_module = importlib.import_module("incrowd.query.rules.qualify_names")
WORLD = World(catalog_of("user"), public_fields(engine_of("user")))


def qualified(sql: str) -> str:
    return qualify_names(parse(sql).tree, WORLD).sql("duckdb").replace('"', "")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT X FROM Visits", "SELECT visits.x AS x FROM visits AS visits"),
        ("SELECT m, w FROM steps", "SELECT steps.m AS m, steps.w AS w FROM steps AS steps"),
        (
            "SELECT q.* FROM (SELECT x FROM visits) AS q",
            "SELECT q.x AS x FROM (SELECT visits.x AS x FROM visits AS visits) AS q",
        ),
        (
            "SELECT x AS y, COUNT(*) AS n FROM visits GROUP BY y",
            "SELECT visits.x AS y, COUNT(*) AS n FROM visits AS visits GROUP BY visits.x",
        ),
        (
            "SELECT v.x FROM visits v JOIN steps s ON m = x",
            "SELECT v.x AS x FROM visits AS v JOIN steps AS s ON s.m = v.x",
        ),
    ],
)
def test_every_column_gets_its_table(sql: str, expected: str) -> None:
    assert qualified(sql) == expected


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT x FROM visit", "There is no table visit in the catalog, perhaps you mean visits."),
        (
            "SELECT x FROM main.visits",
            "There is no table visits in the catalog under a schema; write visits alone.",
        ),
        ("SELECT x FROM range(3)", "RANGE makes rows of its own and cannot stand in FROM; name a table"),
        ("SELECT x FROM glob('*')", "GLOB makes rows of its own and cannot stand in FROM; name a table"),
        ('SELECT x FROM ""', "A table in FROM has an empty name; choose from "),
        ("SELECT xx FROM visits", "There is no column xx in visits"),
        ("SELECT citi FROM visits", "perhaps you mean city."),
        (
            "SELECT user_id FROM visits AS v JOIN steps AS s ON v.user_id = s.user_id",
            "The column user_id is in several tables; write the table's name before it.",
        ),
        (
            "SELECT v.x FROM visits AS v JOIN steps AS v ON TRUE",
            "Two tables of one FROM are called v; give each a name of its own, with AS.",
        ),
        (
            'SELECT x AS "__u0" FROM visits',
            "Names that start with __, such as __u0, are reserved; use another.",
        ),
        ("SELECT __x FROM visits", "Names that start with __"),
        ("SELECT v.nosuch FROM visits AS v", "There is no column nosuch in visits"),
        (
            "SELECT m FROM visits JOIN steps ON visits.user_id = steps.user_id WHERE nosuch = 1",
            "There is no column nosuch in visits, steps",
        ),
        (
            (
                "SELECT COUNT(*) FROM visits WHERE x > 1 GROUP BY SUM(x, contribution_bounds_per_row => "
                "(0, 1)) + 0 * y"
            ),
            "There is no column y",
        ),
    ],
)
def test_a_wrong_name_is_named_with_the_nearest_right_one(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refusal:
        qualified(sql)
    assert said in str(refusal.value)


def test_bounds_survive_or_are_refused() -> None:
    assert qualified("SELECT SUM(x, contribution_bounds_per_row => (0, 1)) AS z FROM visits").startswith(
        "SELECT SUM(visits.x"
    )


def test_a_bound_that_qualification_drops_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = parse("SELECT SUM(x, contribution_bounds_per_row => (0, 1)) AS z FROM visits").tree
    plain = parse("SELECT SUM(x) AS z FROM visits").tree
    monkeypatch.setattr(qualify_names_module, "qualify", lambda tree, **options: plain)
    assert qualify_names(plain, WORLD) is plain
    with pytest.raises(QueryError, match="Contribution bounds must stand in the SELECT that aggregates"):
        qualify_names(bounded, WORLD)


def test_what_the_parser_cannot_understand_is_told_in_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tree: object, **options: object) -> None:
        raise SqlglotError("Too odd.\nLine 2 of it")

    monkeypatch.setattr(qualify_names_module, "qualify", refuse)
    with pytest.raises(QueryError) as refusal:
        qualified("SELECT x FROM visits")
    assert str(refusal.value) == "The SQL cannot be understood: Too odd."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Column 'citi' could not be resolved", "There is no column citi in visits, perhaps you mean city."),
        ("""Column '"v"."citi"' could not be resolved""", "There is no column citi in visits, perhaps"),
        ("""Column "v"."citi" could not be resolved""", "There is no column citi in visits, perhaps"),
        ("Unknown column: v.citi", "There is no column citi in visits, perhaps you mean city."),
        ("Unknown column: citi. Line 3", "There is no column citi in visits, perhaps you mean city."),
        ("Something went wrong", "There is no column ? in visits"),
        ("Column 'x' is ambiguous", "The column x is in several tables; write the table's name before it."),
        (
            "Alias already used: v",
            "Two tables of one FROM are called v; give each a name of its own, with AS.",
        ),
        ("Duplicate name 'v'", "Two tables of one FROM are called v; give each a name of its own, with AS."),
    ],
)
def test_a_fault_in_the_words_of_the_parser_is_told_in_the_users(text: str, said: str) -> None:
    tree = parse("SELECT x FROM visits AS v").tree
    assert qualify_names_module._name_fault(text, tree, WORLD).startswith(said)


def test_a_column_of_two_tables_is_in_several_whatever_the_parser_says() -> None:
    tree = parse("SELECT x FROM visits AS v JOIN steps AS s ON v.x = s.m").tree
    fault = qualify_names_module._name_fault("Column 'user_id' could not be resolved", tree, WORLD)
    assert fault == "The column user_id is in several tables; write the table's name before it."
