"""What PostgreSQL computes while rows are read, in views and policies, fails on no row and is read once; and
a table stays the one that was checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import psycopg
import pytest
from sqlglot import exp

from incrowd.backends import postgres, postgres_relations, postgres_snapshot, release_statement
from incrowd.backends.postgres import Postgres
from incrowd.backends.translation import Dialect, translate
from incrowd.catalog import Catalog
from incrowd.errors import BackendError, CatalogError
from incrowd.query import Contribution, bound, parse
from tests import servers
from tests.backends.houses import run
from tests.backends.parsing import tree
from tests.backends.postgres_neighbours import QUESTIONS, check_neighbours, execute, facts, hostile, visits
from tests.backends.test_postgres import said_by

BY_GROUP = "SELECT grp, COUNT(*) AS n FROM visits GROUP BY grp"


@pytest.fixture(scope="module")
def shared() -> Iterator[str]:
    with servers.postgres().database() as url:
        execute(
            url,
            "CREATE FUNCTION fair(text) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT random() < 0.05'",
            "CREATE FUNCTION plain(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'",
            "CREATE TYPE mood AS ENUM ('a', 'b')",
            "CREATE TABLE odd (person text, grp text, x integer, note text, xs integer[], wide jsonb, "
            "bits bit varying, mood mood)",
        )
        yield url


@pytest.fixture
def database(shared: str) -> str:
    """A table of visits in one database for all tests here."""
    visits(shared, "text", "'ann'", "'bob'")
    return shared


def opened(url: str, *statements: str, table: str = "seen") -> str:
    """What is said when a view is opened; nothing where it is accepted."""
    execute(url, "DROP VIEW IF EXISTS seen, seen_below CASCADE", *statements)
    try:
        Postgres(facts(url, table=table)).close()
    except CatalogError as refused:
        return str(refused)
    return ""


ACCEPTED = [
    "SELECT * FROM visits",
    "SELECT person, grp, x, note FROM visits WHERE x > 0 AND note <> 'x' OR grp IS NULL",
    "SELECT person, grp, x, note FROM visits WHERE grp IN ('a', 'b') AND x IS DISTINCT FROM 3",
    "SELECT v.person, v.grp, w.x, v.note FROM visits AS v JOIN visits AS w ON v.person = w.person",
    "SELECT v.person, v.grp, w.x, v.note FROM visits AS v LEFT JOIN visits AS w USING (person)",
    "SELECT person, CASE WHEN x > 1 THEN 'a' ELSE 'b' END AS grp, x::bigint AS x, note FROM visits",
    "SELECT person, COALESCE(grp, 'a') AS grp, x, note FROM visits",
    "SELECT person, grp, NULLIF(x, 3) AS x, x::text AS note FROM visits",
    "SELECT * FROM visits UNION ALL SELECT * FROM visits",
    "WITH w AS (SELECT * FROM visits) SELECT * FROM w",
    "SELECT * FROM visits TABLESAMPLE BERNOULLI (50)",
    "SELECT * FROM visits WHERE random() < 0.5",
    "SELECT * FROM visits WHERE note = current_user",
    "SELECT * FROM visits WHERE x = ANY (ARRAY[x, x, 3]) AND note IN ('a', 'b', 'c')",
    "SELECT person, grp, x, COALESCE(x, 1)::text AS note FROM visits",
    "SELECT person, grp, x, CASE WHEN x > 1 THEN mood END::text AS note FROM odd",
    'SELECT person, grp, x, note COLLATE "C" AS note FROM (SELECT * FROM visits WHERE x < 5 + 5) AS s',
]
REFUSED = [
    "SELECT person, grp, note::integer AS x, note FROM visits",
    "SELECT person, grp, x, (note::date)::text AS note FROM visits",
    "SELECT person, grp, 10 / x AS x, note FROM visits",
    "SELECT person, grp, x + 2147483647 AS x, note FROM visits",
    "SELECT person, grp, x, upper(note) AS note FROM visits",
    "SELECT person, grp, x, note || 'x' AS note FROM visits",
    "SELECT person, grp, x::smallint AS x, note FROM visits",
    "SELECT person, grp, x, plain(note) AS note FROM visits",
    "SELECT * FROM visits WHERE fair(note)",
    "SELECT * FROM visits WHERE note LIKE '%x'",
    "SELECT * FROM visits WHERE note ~ '('",
    "SELECT * FROM visits WHERE sqrt(x) > 1",
    "SELECT * FROM visits WHERE x = current_setting('no.such')::integer",
    "SELECT * FROM visits WHERE x > (SELECT avg(x) FROM visits)",
    "SELECT * FROM visits WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.x > visits.x)",
    "SELECT person, max(grp) AS grp, max(x) AS x, max(note) AS note FROM visits GROUP BY person",
    "SELECT DISTINCT * FROM visits",
    "SELECT DISTINCT ON (person) * FROM visits",
    "SELECT * FROM visits UNION SELECT * FROM visits",
    "SELECT * FROM visits EXCEPT ALL SELECT * FROM visits",
    "SELECT * FROM visits ORDER BY x LIMIT 3",
    "SELECT person, grp, row_number() OVER ()::integer AS x, note FROM visits",
    "SELECT person, grp, generate_series(1, x) AS x, note FROM visits",
    "SELECT v.person, v.grp, s AS x, v.note FROM visits AS v, generate_series(1, 3) AS s",
    "SELECT * FROM visits WHERE ctid = '(0,1)'",
    "SELECT person, grp, x, visits::text AS note FROM visits",
    "SELECT * FROM visits TABLESAMPLE SYSTEM (50)",
    "SELECT * FROM visits TABLESAMPLE BERNOULLI (50) REPEATABLE (1)",
    "WITH RECURSIVE w AS (SELECT * FROM visits UNION ALL SELECT * FROM w WHERE x < 0) SELECT * FROM w",
    "SELECT person, grp, x, xmin::text AS note FROM visits",
    "SELECT person, grp, x, note::varchar(3)::text AS note FROM visits",
    "SELECT person, grp, x, note FROM visits WHERE x = ANY (string_to_array(note, ',')::int[])",
    "SELECT person, grp, x, note FROM odd WHERE 5 <> ALL (ARRAY[xs, ARRAY[1]])",
    "SELECT person, grp, x, note FROM odd WHERE ARRAY[xs, NULL] IS NOT NULL",
    "SELECT * FROM visits WHERE note = ANY (ARRAY[note, note, note])",
    "SELECT * FROM visits WHERE ARRAY[note, note] IS NOT NULL",
    "SELECT person, grp, x, xs::text AS note FROM odd",
    "SELECT person, grp, x, wide::text AS note FROM odd",
    "SELECT person, grp, x, bits::text AS note FROM odd",
    "SELECT person, grp, x, COALESCE(bits, bits)::text AS note FROM odd",
]


@pytest.mark.parametrize("definition", ACCEPTED)
def test_a_view_that_cannot_fail_is_read(database: str, definition: str) -> None:
    assert opened(database, f"CREATE VIEW seen AS {definition}") == ""


@pytest.mark.parametrize("definition", REFUSED)
def test_a_view_that_may_fail_on_a_row_is_refused_at_the_opening(database: str, definition: str) -> None:
    said = opened(database, f"CREATE VIEW seen AS {definition}")
    assert "tables.visits: the view seen" in said and "materialized view" in said


@pytest.mark.parametrize("definition", REFUSED[:3])
def test_what_is_refused_is_refused_below_a_view_and_accepted_at_rest(database: str, definition: str) -> None:
    made = f"CREATE VIEW seen_below AS {definition}"
    below = opened(database, made, "CREATE VIEW seen AS SELECT * FROM seen_below")
    assert "tables.visits: the view seen_below" in below
    rested = f"CREATE MATERIALIZED VIEW rested AS {definition} WITH NO DATA"
    assert opened(database, rested, table="rested") == ""


def test_a_view_with_a_cast_that_raises_is_what_the_walk_is_for(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake put back: without the walk, one unit's row makes every question fail."""
    view = "SELECT person, grp, note::integer AS x, note FROM visits"
    execute(database, "UPDATE visits SET note = '1'", f"CREATE VIEW seen AS {view}")
    monkeypatch.setattr(postgres_relations, "fault", lambda tops, functions: None)
    with pytest.raises(BackendError):
        check_neighbours(
            database,
            facts(database, table="seen"),
            [hostile("'eve'", "'x'")],
            ["SELECT SUM(x) AS s FROM visits"],
        )


def moved_most(engine: Postgres, catalog: Catalog, times: int) -> float:
    """The most that all rows together, which are one unit's, count for in parts of their sensitivity."""
    (leaf,) = bound(parse(BY_GROUP), catalog, None, Contribution(rows=1.0, groups=1.0)).leaves
    bound_ = leaf.measures["m0"].sensitivity_steps
    statement = release_statement(leaf)
    return max(sum(run(engine, statement).values[0, 0].values()) / bound_ for _ in range(times))


VOLATILE = {
    "a view that samples": ("CREATE VIEW seen AS SELECT * FROM visits TABLESAMPLE BERNOULLI (5)",),
    "a view with random()": ("CREATE VIEW seen AS SELECT * FROM visits WHERE random() < 0.05",),
    "a policy that samples": (
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (random() < 0.05)",
    ),
    "a policy below a view": (
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (random() < 0.05)",
        "CREATE VIEW seen AS SELECT * FROM visits",
    ),
}


@pytest.mark.parametrize("name", VOLATILE)
def test_rows_that_differ_between_readings_are_read_once(database: str, name: str) -> None:
    execute(database, "TRUNCATE visits", hostile("'eve'", rows=300), *VOLATILE[name])
    catalog = facts(database, table="seen" if "view" in name else "visits")
    engine = Postgres(catalog)
    assert moved_most(engine, catalog, 10) <= 1
    engine.close()


@pytest.mark.parametrize("name", ["a view that samples", "a policy that lies", "swapped for a sampling one"])
def test_rows_that_are_read_twice_are_caught(
    database: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistakes put back. About 15 of 300 rows are weighed, and 15 others are counted at 1 / 15 each: 40
    times in a row they come to at most 1 with a chance below (2/3)^40 < 1e-7.
    """
    lies = (
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (fair(note))",
    )
    swapped = name.startswith("swapped")
    made = () if swapped else VOLATILE.get(name, lies)
    execute(database, "TRUNCATE visits", hostile("'eve'", rows=300), *made)

    def twice(
        statement: exp.Query, dialect: Dialect, tables: Mapping[str, exp.Query], once: Collection[str]
    ) -> exp.Query:
        return translate(statement, dialect, tables)

    catalog = facts(database, table="seen" if "view" in name else "visits")
    if swapped:
        for module in (postgres, postgres_snapshot):
            monkeypatch.setattr(module, "unchanged", lambda connection, held: True)
    else:
        monkeypatch.setattr(postgres, "translate", twice)
        monkeypatch.setattr(postgres_relations, "fault", lambda tops, functions: None)
    engine = Postgres(catalog)
    if swapped:
        execute(database, *CHANGES["swapped for a view"])
    assert moved_most(engine, catalog, 40) > 1
    engine.close()


@pytest.mark.parametrize(
    "policy", ["fair(note)", "x > 10 / x", "x = current_setting('no.such')::integer", "note::integer > 0"]
)
def test_row_level_security_that_may_fail_or_lie_is_refused(database: str, policy: str) -> None:
    execute(
        database,
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY mine ON visits USING ({policy})",
    )
    assert "row-level security of visits" in said_by(lambda: Postgres(facts(database)))
    # It does not hold for the owner now, so it is not evaluated.
    execute(database, "ALTER TABLE visits NO FORCE ROW LEVEL SECURITY")
    engine = Postgres(facts(database))
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 10}]
    # And if it does hold later, the table is not the one that was opened.
    execute(database, "ALTER TABLE visits FORCE ROW LEVEL SECURITY")
    assert "has changed since" in said_by(lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits")))
    engine.close()


def test_row_level_security_that_cannot_fail_is_kept(database: str) -> None:
    execute(
        database,
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (person = 'ann' OR person = current_user)",
    )
    engine = Postgres(facts(database))
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 5}]
    engine.close()


CHANGES = {
    "swapped for a view": (
        "ALTER TABLE visits RENAME TO later",
        "CREATE VIEW visits AS SELECT * FROM later TABLESAMPLE BERNOULLI (5)",
    ),
    "swapped for a table": ("ALTER TABLE visits RENAME TO later", "CREATE TABLE visits AS TABLE later"),
    "another type": ("ALTER TABLE visits ALTER person TYPE varchar(7)",),
    "another collation": ('ALTER TABLE visits ALTER person TYPE text COLLATE "POSIX"',),
    "a policy": (
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON visits USING (random() < 0.05)",
    ),
    "a schema of the same name": (
        "CREATE SCHEMA other",
        "CREATE TABLE other.visits AS TABLE visits",
        "ALTER SCHEMA public RENAME TO first",
        "ALTER SCHEMA other RENAME TO public",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_changed_after_the_opening_is_not_read(postgres_database: str, name: str) -> None:
    visits(postgres_database, "text", "'ann'", "'bob'")
    engine = Postgres(facts(postgres_database))
    engine.refresh(["visits"])
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 10}]
    execute(postgres_database, *CHANGES[name])
    assert "has changed since it was opened" in said_by(
        lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits"))
    )
    # And it is said before anything is spent.
    with pytest.raises(CatalogError, match=r"tables\.visits: its definition has changed"):
        engine.refresh(["visits"])
    engine.close()


def test_a_view_of_which_something_changed_is_not_read(database: str) -> None:
    execute(database, "CREATE VIEW seen_below AS TABLE visits", "CREATE VIEW seen AS TABLE seen_below")
    engine = Postgres(facts(database, table="seen"))
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 10}]
    execute(database, "CREATE OR REPLACE VIEW seen_below AS SELECT * FROM visits WHERE x > 0")
    assert "has changed since" in said_by(lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits")))
    engine.close()


def test_nobody_changes_a_table_while_it_is_read(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(postgres_database, "text", "'ann'", "'bob'")
    engine = Postgres(facts(postgres_database))
    streamed = postgres._streamed
    tried = []

    def meddled(connection: psycopg.Connection[object], text: str) -> object:
        for statement in ("ALTER TABLE visits RENAME TO later", "DROP TABLE visits"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                execute(postgres_database, "SET lock_timeout = 50", statement)
            tried.append(statement)
        # The name of a schema cannot be locked: this one is found out afterwards.
        execute(postgres_database, *CHANGES["a schema of the same name"])
        return streamed(connection, text)

    monkeypatch.setattr(postgres, "_streamed", meddled)
    assert "has changed since" in said_by(lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits")))
    assert len(tried) == 2
    engine.close()


def test_partitions_may_come_and_go(postgres_database: str) -> None:
    execute(
        postgres_database,
        "CREATE TABLE visits (person text, grp text, x integer, note text) PARTITION BY LIST (grp)",
        "CREATE TABLE visits_a PARTITION OF visits FOR VALUES IN ('a')",
        "INSERT INTO visits VALUES ('ann', 'a', 1, 'flu')",
    )
    engine = Postgres(facts(postgres_database))
    execute(
        postgres_database,
        "CREATE TABLE visits_b PARTITION OF visits FOR VALUES IN ('b')",
        "INSERT INTO visits VALUES ('bob', 'b', 1, 'flu')",
    )
    assert engine.run(tree("SELECT COUNT(*) AS n FROM visits")).to_pylist() == [{"n": 2}]
    engine.close()


def test_foreign_tables_are_refused_alone_and_as_parts(postgres_database: str) -> None:
    name = postgres_database.rsplit("/", 1)[1]
    admin = servers.postgres().url(name, servers.SUPERUSER)
    visits(postgres_database, "text", "'ann'")
    execute(
        admin,
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE far (person text, grp text, x integer, note text) SERVER nowhere",
        f"ALTER FOREIGN TABLE far OWNER TO {servers.OWNER}",
    )
    assert "foreign table" in said_by(lambda: Postgres(facts(postgres_database, table="far")))
    engine = Postgres(facts(postgres_database))
    execute(postgres_database, "ALTER FOREIGN TABLE far INHERIT visits")
    assert "foreign table" in said_by(lambda: Postgres(facts(postgres_database)))
    assert "has changed since" in said_by(lambda: engine.run(tree("SELECT COUNT(*) AS n FROM visits")))
    execute(postgres_database, "CREATE VIEW seen AS TABLE visits")
    assert "foreign table" in said_by(lambda: Postgres(facts(postgres_database, table="seen")))
    engine.close()


def test_tables_of_which_others_inherit_and_stored_columns_are_read(postgres_database: str) -> None:
    visits(postgres_database, "text", "'ann'")
    execute(
        postgres_database,
        "ALTER TABLE visits ADD twice integer GENERATED ALWAYS AS (x * 2) STORED",
        "CREATE TABLE child (more integer) INHERITS (visits)",
        "INSERT INTO child VALUES ('bob', 'a', 1, 'flu')",
    )
    check_neighbours(
        postgres_database,
        facts(postgres_database, twice={"type": "integer", "bounds": [0, 9]}),
        ["INSERT INTO child SELECT 'eve', 'b', 2, 'flu' FROM generate_series(1, 500)"],
        [*QUESTIONS[:3], "SELECT SUM(twice) AS s FROM visits"],
    )


def test_a_virtual_column_is_read_if_it_cannot_fail(postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as owner:
        if owner.info.server_version < 180_000:
            return  # there are none
    visits(postgres_database, "text", "'ann'")
    execute(postgres_database, "ALTER TABLE visits ADD big boolean GENERATED ALWAYS AS (x > 3) VIRTUAL")
    Postgres(facts(postgres_database)).close()
    execute(postgres_database, "ALTER TABLE visits ADD part integer GENERATED ALWAYS AS (10 / x) VIRTUAL")
    assert "a generated column of visits" in said_by(lambda: Postgres(facts(postgres_database)))


def test_no_error_keeps_the_servers_own(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visits(postgres_database, "text", "'ann'")
    engine = Postgres(facts(postgres_database))
    failing = "SELECT CAST(note AS integer) AS n FROM public.visits"
    monkeypatch.setattr(engine, "statement", lambda sql: failing)
    with pytest.raises(BackendError) as raised:
        engine.run(tree("SELECT COUNT(*) AS n FROM visits"))
    seen = raised.value
    assert "flu" not in str(seen)
    assert seen.__context__ is None and seen.__cause__ is None
    engine.close()
    for failed in (lambda: engine.version(["visits"]), lambda: Postgres(facts("postgresql://127.0.0.1:1/x"))):
        with pytest.raises(Exception, match="cannot be reached") as other:
            failed()
        assert other.value.__context__ is None and other.value.__cause__ is None
