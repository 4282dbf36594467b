"""One unit of a PostgreSQL table, as strange as its type allows, moves no other unit's numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import psycopg
import pytest
from sqlglot import exp

from incrowd.backends import postgres_reading
from incrowd.backends.postgres import Postgres
from incrowd.backends.postgres_reading import LONGEST, _spelled
from incrowd.backends.postgres_relations import Column
from incrowd.errors import BackendError, CatalogError
from tests import servers
from tests.backends.parsing import tree
from tests.backends.postgres_neighbours import QUESTIONS, check_neighbours, execute, facts, hostile, visits
from tests.backends.test_postgres import said_by

EXACT = [
    # the column's type, as what it is declared, the units that are there, the one that comes
    ("numeric", "text", ["100000000000000001"], "100000000000000003"),
    ("numeric", "text", ["1e-210"], "1e-220"),
    ("numeric", "text", ["1.5", "'Infinity'"], "'NaN'"),
    ("numeric(30, 4)", "text", ["12345678901234567890.1234"], "12345678901234567890.1235"),
    ("numeric", "integer", ["1", "9223372036854775807"], "1.4"),
    ("numeric", "integer", ["9223372036854775807", "1e30"], "9223372036854775807.4"),
    ("numeric", "integer", ["-9223372036854775808"], "-9223372036854775808.4"),
    ("bigint", "text", ["9007199254740993"], "9007199254740992"),
    ("bigint", "integer", ["9007199254740993"], "9007199254740992"),
    ("timestamptz", "timestamp", ["'2024-01-01 01:00:00.000001+01'"], "'2024-01-01 00:00:00.000002Z'"),
    ("timestamptz", "text", ["'2024-01-01 01:00+01'"], "'2024-01-01 01:00Z'"),
    ("timestamptz", "timestamp", ["'infinity'", "'-infinity'"], "'294276-12-31 23:59:59Z'"),
    ("timestamp", "timestamp", ["'4713-01-01 BC'"], "'4713-01-02 BC'"),
    ("date", "date", ["'5874897-12-31'"], "'infinity'"),
    ("date", "timestamp", ["'5874897-12-31'", "'2020-01-01'"], "'infinity'"),
    ("boolean", "integer", ["true"], "false"),
    ("uuid", "text", ["'00000000-0000-0000-0000-00000000000a'"], "'00000000-0000-0000-0000-00000000000b'"),
    ("text", "text", ["'ann'", "'Ann'"], "'ANN'"),
    ("text", "text", ["'é'", "'1'"], "'e' || chr(769)"),
    ("text", "text", ["'ann'"], "'ann '"),
    ("char(6)", "text", ["'ann'"], "' ann'"),
    ("varchar(10)", "text", ["'ann'"], "'ann '"),
    ("text", "date", ["'2020-01-01'"], "'2020-1-1'"),
    ("bird", "text", ["'robin'"], "'Robin'"),
    ("inner_domain", "text", ["'ann'"], "'bob'"),
    ("outer_number", "integer", ["1"], "2.5"),
    ("outer_moment", "timestamp", ["'2024-01-01 00:00Z'"], "'2024-01-01 00:00:00.000001Z'"),
]
TYPES = (
    "CREATE TYPE bird AS ENUM ('robin', 'Robin')",
    "CREATE DOMAIN outer_domain AS varchar(20) CHECK (VALUE <> '')",
    "CREATE DOMAIN inner_domain AS outer_domain",
    "CREATE DOMAIN some_number AS numeric",
    "CREATE DOMAIN outer_number AS some_number",
    "CREATE DOMAIN some_moment AS timestamptz",
    "CREATE DOMAIN outer_moment AS some_moment",
    'CREATE TYPE public."string" AS (a text)',
)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """One database for all tests here, each with a table of its own: making one takes longer than a test."""
    with servers.postgres().database() as url:
        execute(url, *TYPES)
        yield url


@pytest.mark.parametrize(("kind", "declared", "people", "comes"), EXACT)
def test_two_units_are_never_read_as_one(
    database: str, kind: str, declared: str, people: list[str], comes: str
) -> None:
    visits(database, kind, *people)
    check_neighbours(database, facts(database, declared), [hostile(comes)], QUESTIONS[:2])


REFUSED = [
    ("numeric", "decimal"),
    ("real", "text"),
    ("double precision", "integer"),
    ("text", "integer"),
    ("text", "timestamp"),
    ("text", "boolean"),
    ("timestamp", "date"),
    ("timestamptz", "date"),
    ("bigint", "boolean"),
    ("bpchar", "text"),
    ("money", "text"),
    ("bytea", "text"),
    ("interval", "text"),
    ("bit(8)", "text"),
    ("int[]", "text"),
    ("time", "text"),
    ("jsonb", "text"),
    ("inet", "text"),
    ('"char"', "text"),
    ("name", "text"),
    ('public."string"', "text"),
    ("oid", "integer"),
]


@pytest.mark.parametrize(("kind", "declared"), REFUSED)
def test_a_unit_that_cannot_be_read_exactly_is_refused_at_the_opening(
    database: str, kind: str, declared: str
) -> None:
    visits(database, kind)
    said = said_by(lambda: Postgres(facts(database, declared)))
    assert "person" in said


def test_a_unit_whose_collation_calls_different_texts_equal_is_refused(database: str) -> None:
    assert _spelled(Column("text", None, deterministic=False), "text") is not None
    if not has_icu(database):
        return  # such a server has no such collation
    visits(database, "text COLLATE alike", "'ann'")
    assert "calls different texts equal" in said_by(lambda: Postgres(facts(database)))
    execute(
        database,
        "CREATE DOMAIN alike_text AS text COLLATE alike",
        "CREATE DOMAIN outer_text AS alike_text",
        "ALTER TABLE visits ALTER person TYPE outer_text",
    )
    assert "calls different texts equal" in said_by(lambda: Postgres(facts(database)))


def has_icu(url: str) -> bool:
    try:
        execute(
            url,
            "CREATE COLLATION IF NOT EXISTS alike "
            "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        )
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidParameterValue):
        return False
    return True


@pytest.mark.parametrize("collation", ["alike", "POSIX", "tr-x-icu"])
def test_a_spelling_of_one_unit_moves_no_other_row(database: str, collation: str) -> None:
    has_icu(database)
    with psycopg.connect(database) as owner:
        known = owner.execute("SELECT 1 FROM pg_collation WHERE collname = %s", (collation,)).fetchone()
    column = "text" if known is None else f'text COLLATE "{collation}"'
    visits(database, "text", "'ann'", "'bob'", note=column)
    execute(database, f"ALTER TABLE visits ALTER grp TYPE {column}")
    # Sorts first, so that it would stand for all that are equal to it.
    add = [
        "CREATE TABLE later AS SELECT * FROM visits",
        "TRUNCATE visits",
        hostile("'eve'", "'FLU'"),
        "INSERT INTO visits SELECT 'eve', 'A', 1, 'FLÜ'",
        "INSERT INTO visits SELECT * FROM later",
    ]
    check_neighbours(database, facts(database), add)


def test_long_texts_are_cut_and_never_raise(database: str) -> None:
    visits(database, "text", "'ann'", "'bob'")
    add = [hostile("'eve'", "repeat('flu', 134000000)", 1), hostile("'eve'", "repeat('ä', 70000000)", 1)]
    check_neighbours(database, facts(database), add, QUESTIONS[3:])
    execute(database, "DELETE FROM visits WHERE note LIKE 'ää%'")
    check_neighbours(
        database,
        facts(database),
        (),
        [
            "SELECT COUNT(*) AS n FROM visits WHERE note ILIKE '%x' OR CONTAINS(note, 'y')",
            "SELECT LOWER(note) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
            "SELECT REPLACE(note, 'lu', 'x') || note AS k, COUNT(*) AS n FROM visits GROUP BY 1",
        ],
    )
    engine = Postgres(facts(database))
    longest = engine.run(tree("SELECT MAX(LENGTH(note)) AS n FROM visits")).column("n").to_pylist()
    assert longest == [LONGEST]
    engine.close()


def test_text_that_is_not_cut_is_caught(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    visits(database, "text", "'ann'")
    monkeypatch.setattr(postgres_reading, "_cut", lambda text: text)
    with pytest.raises(BackendError):
        check_neighbours(
            database,
            facts(database),
            [hostile("'eve'", "repeat('x', 140000000)", 1)],
            ["SELECT COUNT(*) AS n FROM visits WHERE TRIM(note) = 'a'"],
        )


def test_a_unit_with_a_long_name_is_nobody(database: str) -> None:
    visits(database, "text", f"repeat('ä', {LONGEST})", f"repeat('b', {LONGEST}) || '1'", "'ann'")
    add = [hostile(f"repeat('b', {LONGEST}) || '2'", rows=20)]
    check_neighbours(database, facts(database), add, QUESTIONS[:3])
    engine = Postgres(facts(database))
    answer = engine.run(tree("SELECT COUNT(DISTINCT person) AS n FROM visits")).to_pylist()
    assert answer == [{"n": 2}]  # as long as it may be, and short
    engine.close()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("9223372036854775807.4", 2**63 - 1),
        ("9223372036854775807.5", None),
        ("-9223372036854775808.4", -(2**63)),
        ("2.5", 3),
        ("-2.5", -3),
        ("'NaN'", None),
        ("'Infinity'", None),
        ("1e100000", None),
        ("1e-16000", 0),
    ],
)
def test_a_numeric_declared_integer_is_the_nearest_one(database: str, value: str, read: int | None) -> None:
    visits(database, "text", x="numeric")
    execute(database, f"INSERT INTO visits VALUES ('a', 'a', {value}, 'n')")
    engine = Postgres(facts(database))
    assert engine.run(tree("SELECT x FROM visits")).column("x").to_pylist() == [read]
    engine.close()


def test_domains_over_domains_are_what_they_are_made_of(database: str) -> None:
    execute(
        database,
        "DROP TABLE IF EXISTS visits CASCADE",
        "CREATE DOMAIN some_day AS date",
        "CREATE DOMAIN a_day AS some_day",
        "CREATE DOMAIN some_bird AS bird",
        "CREATE TABLE visits (person inner_domain, grp some_bird, x outer_number, note outer_domain)",
        "ALTER TABLE visits ADD d a_day, ADD at outer_moment",
        "INSERT INTO visits VALUES ('ann', 'robin', 2, 'n', '2020-01-02', '2020-01-02 00:00+01')",
    )
    more = {"d": {"type": "date"}, "at": {"type": "timestamp"}}
    engine = Postgres(facts(database, **more))
    assert engine._run(tree("SELECT person, grp, x, note, d, at FROM visits")).to_pylist() == [
        {
            "person": "ann",
            "grp": "robin",
            "x": 2,
            "note": "n",
            "d": dt.date(2020, 1, 2),
            "at": dt.datetime(2020, 1, 1, 23),
        }
    ]
    engine.close()


def test_units_read_as_floats_are_caught(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    """The mistake put back: a numeric that goes through float64."""

    def through_float(column: exp.Column) -> exp.Expr:
        return exp.cast(exp.cast(column, "DOUBLE"), "TEXT")

    visits(database, "numeric", "100000000000000001")
    monkeypatch.setattr(postgres_reading, "_digits", through_float)
    # It raises on some numerics, so the walk refuses it even before units are merged.
    with pytest.raises(CatalogError):
        check_neighbours(database, facts(database), [hostile("100000000000000003")])


def test_units_that_are_rounded_are_caught(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    whole = postgres_reading._whole
    visits(database, "numeric", "1")
    monkeypatch.setattr(postgres_reading, "_whole", lambda column, exact: whole(column, False))
    with pytest.raises(AssertionError):
        check_neighbours(database, facts(database, "integer"), [hostile("1.4")])


def test_units_that_are_cut_are_caught(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    visits(database, "text", f"repeat('b', {LONGEST}) || '1'")
    monkeypatch.setattr(postgres_reading, "_whole_text", postgres_reading._cut)
    add = [hostile(f"repeat('b', {LONGEST}) || '2'", rows=20)]
    with pytest.raises(AssertionError):
        check_neighbours(database, facts(database), add, QUESTIONS[:1])


def test_a_collation_that_stays_on_is_caught(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    if not has_icu(database):
        return
    visits(database, "text", "'ann'", note="text COLLATE alike")
    monkeypatch.setattr(postgres_reading, "_collated", lambda text: text)
    with pytest.raises(AssertionError):
        check_neighbours(
            database,
            facts(database),
            [
                "CREATE TABLE later AS SELECT * FROM visits",
                "TRUNCATE visits",
                hostile("'eve'", "'FLU'", 5),
                "INSERT INTO visits SELECT * FROM later",
            ],
            [QUESTIONS[4], "SELECT note, COUNT(*) AS n FROM visits GROUP BY note"],
        )
