"""Whatever a role, a database or a URL sets, a statement means the same."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from incrowd.backends import postgres_snapshot
from incrowd.backends.postgres import Postgres
from incrowd.backends.postgres_session import SPEED, settle
from tests import servers
from tests.backends.parsing import tree
from tests.backends.postgres_neighbours import check_neighbours, execute, facts, hostile, visits

HOSTILE = {
    "transform_null_equals": "on",
    "gin_fuzzy_search_limit": "1",
    "row_security": "off",
    "search_path": "hidden, public",
    "TimeZone": "Pacific/Kiritimati",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "quote_all_identifiers": "on",
    "client_encoding": "LATIN1",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "on",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "xmloption": "document",
    "xmlbinary": "hex",
    "exit_on_error": "on",
    "synchronize_seqscans": "off",
    "constraint_exclusion": "on",
    "enable_seqscan": "off",
    "enable_hashagg": "off",
    "force_parallel_mode": "on",
    "statement_timeout": "5000",
    "lock_timeout": "1000",
    "idle_in_transaction_session_timeout": "9999",
    "work_mem": "64",
}
QUESTIONS = (
    "SELECT grp, COUNT(*) AS n FROM visits GROUP BY grp",
    "SELECT COUNT(*) AS n FROM visits WHERE (x = NULL) IS NULL AND at < '2024-02-03'",
    "SELECT CAST(day AS TEXT) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT CAST(at AS TEXT) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits WHERE note = 'a\\b' OR note = '€' OR CAST(note AS DATE) > '2024-01-02'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(CAST(x AS DOUBLE) / 3 AS BIGINT) = 1 AND x = 3",
)
RAW = "SELECT person, x, note, day, at, at < '2024-02-03' AS early, (x = NULL) IS NULL AS unknown FROM visits"


def furnish(url: str) -> None:
    visits(url, "text", "'ann'")
    execute(
        url,
        "ALTER TABLE visits ADD day date, ADD at timestamptz",
        "INSERT INTO visits SELECT 'p' || i, 'a', i % 5, "
        "(ARRAY['€', E'a\\\\b', '2024-02-03', NULL])[i % 4 + 1], "
        "DATE '2024-02-01' + i % 4, TIMESTAMPTZ '2024-02-02 22:00Z' + i * INTERVAL '1 hour' "
        "FROM generate_series(1, 12) AS i",
        # What stands first on a hostile path, in place of what statements call.
        "CREATE SCHEMA hidden",
        "CREATE FUNCTION hidden.round(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0::numeric'",
        "CREATE FUNCTION hidden.length(text) RETURNS integer LANGUAGE sql AS 'SELECT 0'",
    )


MORE = {"day": {"type": "date"}, "at": {"type": "timestamp"}}


def rows(url: str) -> list[str]:
    """All rows of the table, as statements read them."""
    engine = Postgres(facts(url, **MORE))
    answer = engine._run(tree(RAW)).to_pylist()
    engine.close()
    return sorted(map(str, answer))


@pytest.mark.parametrize("level", ["role in database", "database", "url"])
def test_hostile_settings_change_nothing(postgres_database: str, level: str) -> None:
    furnish(postgres_database)
    expected = rows(postgres_database)
    url, name = postgres_database, postgres_database.rsplit("/", 1)[1]
    with psycopg.connect(postgres_database, autocommit=True) as owner:
        known = {row[0] for row in owner.execute("SELECT name FROM pg_settings")}
        chosen = {key: value for key, value in HOSTILE.items() if key in known}
        if level == "url":
            # A backslash before each space: libpq reads the options as words.
            words = " ".join(f"-c {key}={value.replace(' ', chr(92) + ' ')}" for key, value in chosen.items())
            url += "?" + "options=" + "".join(f"%{byte:02x}" for byte in words.encode())
        else:
            for key, value in chosen.items():
                target = f"DATABASE {name}"
                if level != "database":
                    target = f"ROLE {servers.OWNER} IN {target}"
                given = value if key == "search_path" else f"'{value}'"
                owner.execute(f"ALTER {target} SET {key} = {given}".encode())
    with psycopg.connect(url) as other:
        assert other.execute("SHOW transform_null_equals").fetchone() == ("on",)
    assert rows(url) == expected
    eve = hostile("'eve'", "'€'").replace("INTO visits", "INTO public.visits (person, grp, x, note)")
    check_neighbours(url, facts(url, **MORE), [eve], QUESTIONS)


def test_a_setting_that_is_left_is_caught(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(postgres_database)
    expected = rows(postgres_database)
    hostile_url = postgres_database + "?options=-c%20transform_null_equals%3Don"
    assert rows(hostile_url) == expected

    def careless(connection: psycopg.Connection[Any], seconds: int) -> None:
        connection.execute("SET LOCAL TimeZone = 'UTC'")

    monkeypatch.setattr(postgres_snapshot, "settle", careless)
    assert rows(postgres_database) == expected
    assert rows(hostile_url) != expected


def test_every_setting_that_means_something_is_put_back(postgres_database: str) -> None:
    """Found by a rule: of all that a role may set, what stays different is about speed alone.

    How a transaction begins is said by each BEGIN.
    """
    listing = "SELECT name, setting FROM pg_settings WHERE context = 'user' AND name NOT LIKE 'transaction_%'"
    with psycopg.connect(postgres_database) as plain:
        settle(plain, 7)
        expected = dict(plain.execute(listing.encode()).fetchall())
    with psycopg.connect(postgres_database) as other:
        kinds = other.execute(
            "SELECT name, vartype, COALESCE(enumvals[array_length(enumvals, 1)], max_val), setting "
            "FROM pg_settings WHERE context = 'user' AND name NOT LIKE 'transaction_%'"
        ).fetchall()
        changed = 0
        for name, kind, most, now in kinds:
            value = ("off" if now == "on" else "on") if kind == "bool" else most
            try:
                with other.transaction():
                    other.execute("SELECT set_config(%s, %s, false)", (name, value))
                    changed += 1
            except psycopg.Error:
                continue  # not with this value
        assert changed > 80
        settle(other, 7)
        settled = dict(other.execute(listing.encode()).fetchall())
    wrong = {name for name in expected if settled[name] != expected[name] and not re.fullmatch(SPEED, name)}
    assert wrong == set()
