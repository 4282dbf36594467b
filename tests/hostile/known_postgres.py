"""Known attacks on PostgreSQL: long texts, policies, views, swaps, domains, collations, settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from incrowd import Curator
from tests.hostile.known import COUNTS, Opening, by_file, compare, declaration
from tests.hostile.neighbour import (
    Broken,
    Limits,
    attempt,
    check_alike,
    check_opening,
    check_question,
    numbers,
)
from tests.hostile.postgres_stores import Database
from tests.hostile.values import MARK

ONE = (Limits(rows=1, groups=1),)
TWO = (Limits(rows=1, groups=1), Limits(rows=3, groups=2, l2=True))


def _sides(
    database: Database,
    folder: Path,
    columns: dict[str, object],
    setups: Sequence[Sequence[str]],
    **table: object,
) -> list[Opening]:
    """An opening for each side; `{s}` in the statements is the side's schema, which has a table t."""
    openings = []
    for place, statements in enumerate(setups):
        schema = f"k_{secrets.token_hex(6)}"
        database.run(
            f"CREATE SCHEMA {schema}", *(statement.replace("{s}", schema) for statement in statements)
        )
        home = folder / str(place)
        home.mkdir(parents=True, exist_ok=True)
        declared = declaration({"url": database.url}, columns, table=f"{schema}.t", **table)
        openings.append(by_file(home, declared))
    return openings


def long_texts(database: Database, folder: Path, size: int = 140_000_000) -> None:
    """A text so long that the server's own functions raise on it."""
    made = [
        "CREATE TABLE {s}.t (id integer, k text)",
        "INSERT INTO {s}.t SELECT i, 'flu' FROM generate_series(1, 5) AS i",
    ]
    mine = [*made, f"INSERT INTO {{s}}.t VALUES (77, repeat('x', {size}))"]
    sides = _sides(database, folder, {"id": "integer", "k": "text"}, (made, mine))
    asked = [
        "SELECT COUNT(*) AS n FROM t WHERE TRIM(k) = 'flu'",
        "SELECT COUNT(*) AS n FROM t WHERE UPPER(k) = 'FLU'",
    ]
    asked += [
        "SELECT COUNT(*) AS n FROM t WHERE k ILIKE 'FLU%'",
        "SELECT TRIM(k) AS c, COUNT(*) AS n FROM t GROUP BY 1",
    ]
    asked += [
        "SELECT COUNT(*) AS n FROM t WHERE REPLACE(k, 'x', 'y') = 'flu'",
        "SELECT COUNT(*) AS n FROM t WHERE k LIKE '%u'",
    ]
    compare(*sides, asked, limits=ONE)


NUMERICS = (
    ("1e-210", "1e-220"),
    ("100000000000000001", "100000000000000003"),
    ("1e300", "2e300"),
    ("7", "7.0000000001"),
)


def exact_numerics(database: Database, folder: Path) -> None:
    """Two numeric ids that float64 takes for one."""
    for number, (theirs, mine) in enumerate(NUMERICS):
        for kind in ("decimal", "integer", "text"):
            made = ["CREATE TABLE {s}.t (id numeric, k text)", f"INSERT INTO {{s}}.t VALUES ({theirs}, 'a')"]
            more = [*made, f"INSERT INTO {{s}}.t SELECT {mine}, 'b' FROM generate_series(1, 9)"]
            sides = _sides(database, folder / f"{number}{kind}", {"id": kind, "k": "text"}, (made, more))
            compare(
                *sides,
                ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", COUNTS[1]],
                limits=ONE,
            )


_ROWS = "CREATE TABLE {s}.r AS SELECT 1 AS id, (i % 5)::text AS k FROM generate_series(1, {many}) AS i"
VOLATILE = (
    ("ALTER TABLE {s}.r RENAME TO t", "ALTER TABLE {s}.t ENABLE ROW LEVEL SECURITY",
     "ALTER TABLE {s}.t FORCE ROW LEVEL SECURITY",
     "CREATE POLICY p ON {s}.t USING (random() < 0.4)"),
    ("ALTER TABLE {s}.r RENAME TO t", "ALTER TABLE {s}.t ENABLE ROW LEVEL SECURITY",
     "ALTER TABLE {s}.t FORCE ROW LEVEL SECURITY", "CREATE POLICY p ON {s}.t USING (chance(k) < 0.4)"),
    ("CREATE VIEW {s}.t AS SELECT * FROM {s}.r TABLESAMPLE BERNOULLI (40)",),
    ("CREATE VIEW {s}.t AS SELECT * FROM {s}.r WHERE chance(k) < 0.4",),
    ("CREATE VIEW {s}.t AS SELECT id, CASE WHEN random() < 0.5 THEN k ELSE 'z' END AS k FROM {s}.r",),
)  # fmt: skip
READINGS = (
    "SELECT k, COUNT(*) AS n FROM t WHERE k < '3' GROUP BY k",
    "SELECT k, COUNT(DISTINCT id) AS n FROM t WHERE k <> 'z' GROUP BY k",
    "SELECT m, COUNT(*) AS n FROM (SELECT id, k, COUNT(*) AS m FROM t GROUP BY id, k) GROUP BY m",
)


def volatile(database: Database, folder: Path) -> None:
    """Policies and views that show other rows each time: one unit stays within its bound in each draw."""
    for number, statements in enumerate(VOLATILE):
        setups = [[_ROWS.replace("{many}", many), *statements] for many in ("0", "40")]
        sides = _sides(database, folder / str(number), {"id": "integer", "k": "text"}, setups)
        compare(*sides, READINGS, limits=TWO)


def swapped(database: Database, folder: Path) -> None:
    """A table that gives way to a view, with the same name and columns, after the curator was opened."""
    setups = [[_ROWS.replace("{many}", many), "ALTER TABLE {s}.r RENAME TO t"] for many in ("0", "40")]
    names: list[str] = []

    class Noted(Database):
        def run(self, *statements: str) -> None:
            names.extend(
                statement.split()[-1] for statement in statements if statement.startswith("CREATE SCHEMA")
            )
            database.run(*statements)

    noted = object.__new__(Noted)
    noted.url = database.url
    sides = _sides(noted, folder, {"id": "integer", "k": "text"}, setups)
    one, two = (attempt(side) for side in sides)
    assert check_opening(one, two, (MARK,))
    for schema in names:
        view = f"CREATE VIEW {schema}.t AS SELECT id, k FROM {schema}.r WHERE chance(k) < 0.4"
        database.run(f"ALTER TABLE {schema}.t RENAME TO r", view)
    try:
        for sql in READINGS:
            for limits in TWO * 2:
                try:
                    check_question((one.value, two.value), sql, limits, (MARK,), whole=True)
                except Broken as broken:
                    if broken.what != "an accepted question always fails":
                        raise  # a table that is no more may fail, alike on both sides
    finally:
        one.value.close()
        two.value.close()


RAISING = (
    "CREATE VIEW {s}.t AS SELECT id, CAST(k AS integer)::text AS k FROM {s}.r",
    "CREATE VIEW {s}.t AS SELECT id, (1 / CASE WHEN k LIKE 'zq%' THEN 0 ELSE 1 END)::text AS k FROM {s}.r",
    "CREATE VIEW {s}.t AS SELECT id, (SELECT o.k FROM {s}.r AS o WHERE o.k LIKE 'zq%') AS k FROM {s}.r",
    "CREATE VIEW {s}.t AS SELECT id, k FROM {s}.r WHERE 5 <> ALL (ARRAY[j, ARRAY[1]])",
    "CREATE VIEW {s}.t AS SELECT id, wide::text AS k FROM {s}.r",
)


def raising_views(database: Database, folder: Path) -> None:
    """A view that raises on the neighbour's row."""
    for number, view in enumerate(RAISING):
        made = [
            "CREATE TABLE {s}.r (id integer, k text, j integer[], wide numeric[])",
            "INSERT INTO {s}.r SELECT i, '1', '{1}', '{1}' FROM generate_series(1, 5) AS i",
        ]
        huge = "array_fill(1e131071::numeric, ARRAY[9000])"
        mine = [
            *made,
            f"INSERT INTO {{s}}.r SELECT 77, '{MARK}', '{{1,2}}', {huge} FROM generate_series(1, 2)",
        ]
        sides = _sides(
            database, folder / str(number), {"id": "integer", "k": "text"}, ((*made, view), (*mine, view))
        )
        compare(*sides, ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", *COUNTS], limits=ONE)


def domains(database: Database, folder: Path) -> None:
    """A domain over a domain, of text with a collation, of numbers, of moments."""
    kinds = [("text COLLATE caseless", "'flu'", "'FLU'", "text"), ("numeric", "1", "'NaN'", "decimal")]
    kinds += [("timestamp", "'2020-01-01'", "'infinity'", "timestamp"), ("char(4)", "'a'", "'A'", "text")]
    for number, (base, theirs, mine, kind) in enumerate(kinds):
        database.run(
            f"CREATE DOMAIN inner_{number} AS {base}", f"CREATE DOMAIN outer_{number} AS inner_{number}"
        )
        made = [f"CREATE TABLE {{s}}.t (id integer, k outer_{number})"]
        made += [f"INSERT INTO {{s}}.t SELECT i, {theirs} FROM generate_series(1, 12) AS i"]
        more = [made[0], f"INSERT INTO {{s}}.t VALUES (77, {mine})", made[1]]
        sides = _sides(database, folder / str(number), {"id": "integer", "k": kind}, (made, more))
        compare(
            *sides, ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", "SELECT COUNT(k) AS n FROM t"], limits=ONE
        )


def collations(database: Database, folder: Path) -> None:
    """Nondeterministic collations: of keys they do not matter, of units they are refused."""
    for number, name in enumerate(("caseless", "accentless", "plain")):
        made = [
            f"CREATE TABLE {{s}}.t (id integer, k text COLLATE {name})",
            "INSERT INTO {s}.t SELECT i, 'flu' FROM generate_series(1, 12) AS i",
        ]
        more = [made[0], "INSERT INTO {s}.t VALUES (77, 'FLU'), (77, 'flü'), (77, 'ﬂu')", made[1]]
        sides = _sides(database, folder / str(number), {"id": "integer", "k": "text"}, (made, more))
        asked = ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", "SELECT COUNT(*) AS n FROM t WHERE k = 'flu'"]
        asked += [
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, k FROM t)",
            "SELECT COUNT(*) AS n FROM t WHERE k LIKE 'f%'",
        ]
        asked += ["SELECT CASE k WHEN 'flu' THEN 1 ELSE 2 END AS c, COUNT(*) AS n FROM t GROUP BY 1"]
        compare(*sides, asked, limits=ONE)
    people = [
        "CREATE TABLE {s}.t (id text COLLATE caseless, k text)",
        "INSERT INTO {s}.t VALUES ('ann', 'a'), ('ANN', 'b')",
    ]
    (side,) = _sides(database, folder / "unit", {"id": "text", "k": "text"}, (people,))
    outcome = attempt(side)
    if outcome.error is None:
        outcome.value.close()
        raise Broken("a unit column whose collation makes one id of two is not refused", "caseless")
    check_alike(outcome, outcome, ())


SETTINGS = (
    ("transform_null_equals", "on"),
    ("extra_float_digits", "-15"),
    ("datestyle", "'German, DMY'"),
    ("timezone", "'Asia/Kathmandu'"),
    ("search_path", "'pg_catalog'"),
    ("row_security", "off"),
)


def settings(database: Database, folder: Path) -> None:
    """What a role may have set for itself moves no number."""
    made = ["CREATE TABLE {s}.t (id integer, k text, f float8, d timestamptz)"]
    row = "i, CASE WHEN i % 2 = 0 THEN 'ab' END, 0.1 * i, '2020-01-01 23:00+00'"
    made.append(f"INSERT INTO {{s}}.t SELECT {row} FROM generate_series(1, 9) AS i")
    columns: dict[str, object] = {
        "id": "integer",
        "k": "text",
        "f": {"type": "float", "bounds": [0, 1]},
        "d": "timestamp",
    }
    (side,) = _sides(database, folder, columns, (made,))
    asked = [
        "SELECT COUNT(*) AS n FROM t WHERE k = NULL OR k LIKE 'b%'",
        "SELECT CAST(d AS TEXT) AS c, SUM(f) AS s FROM t GROUP BY 1",
        "SELECT f, DAY(d) AS c, COUNT(*) AS n FROM t GROUP BY f, 2",
    ]

    def exact_answers() -> list[object]:
        with side() as curator:
            return [_exact(curator, sql) for sql in asked]

    plain = exact_answers()
    name = database.url.rpartition("/")[2]
    for setting, value in SETTINGS:
        try:
            database.run(f"ALTER DATABASE {name} SET {setting} = {value}")
            if exact_answers() != plain:
                raise Broken("a setting moves a number", setting)
        finally:
            database.run(f"ALTER DATABASE {name} RESET {setting}")


def _exact(curator: Curator, sql: str) -> object:
    from incrowd.backends import release_statement
    from incrowd.curator.request import Request

    plan = curator.prepare(Request(sql, contribution=1, groups=1)).plan
    return [numbers(curator._backend, release_statement(leaf))[0].values for leaf in plan.leaves]


POSTGRES_ATTACKS: tuple[Callable[[Database, Path], None], ...] = (
    exact_numerics,
    volatile,
    swapped,
    raising_views,
    domains,
    collations,
    settings,
    long_texts,
)
