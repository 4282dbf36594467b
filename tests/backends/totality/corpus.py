"""Every statement that the suites of this folder run, in the words of each engine, without the engines.

PostgreSQL's and Spark's statements need the types of the tables only, so no server is started here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.backends import (
    census_statement,
    postgres_sql,
    range_statement,
    release_statement,
    spark_columns,
    spark_sql,
)
from incrowd.backends.postgres_reading import reader
from incrowd.backends.postgres_relations import Column
from incrowd.backends.sources import projection
from incrowd.backends.spark_files import stored_as
from incrowd.backends.totality import Prover
from incrowd.backends.translation import translate
from incrowd.query import Leaf
from tests.backends import test_totality as lists
from tests.backends.grammar import Asked, questions
from tests.backends.houses import capped, catalog_of, engine_of, plan_of

POSTGRES_TYPES = {
    "visits": {
        **dict.fromkeys(("user_id", "day", "x", "n", "cat"), "bigint"),
        **dict.fromkeys(("city", "grp", "t"), "text"),
        "f": "double precision",
        "p": "numeric",
        "b": "boolean",
        "d": "date",
        "ts": "timestamp without time zone",
    },
    "steps": {"user_id": "bigint", "day": "bigint", "m": "bigint", "w": "double precision"},
    "cities": {"city": "text", "region": "text", "size": "bigint"},
}
SPARK_TYPES = {
    table: {
        column: {
            "text": "string",
            "double precision": "double",
            "numeric": "decimal(20,9)",
            "timestamp without time zone": "timestamp[us]",
        }.get(kind, kind)
        for column, kind in columns.items()
    }
    for table, columns in POSTGRES_TYPES.items()
}


def statements_of(leaf: Leaf, cells: int = 45, generous: int = 5, l2: bool = False) -> Iterator[exp.Query]:
    """The release and the census of a leaf."""
    if l2 and leaf.units and leaf.keys:
        leaf = leaf.in_l2()
    if leaf.values:
        yield range_statement(leaf).tree
    bounded, large = capped(leaf, cells, generous)
    yield release_statement(bounded, large).tree
    if leaf.uncapped:
        yield census_statement(leaf).tree


def questions_asked() -> Iterator[tuple[str, dict[str, int]]]:
    """The questions of the fixed lists: every expression, condition and pair of bounds."""
    bounds = "contribution_bounds_per_row => (-1e9, 1e9)"
    for expression in lists.EXPRESSIONS:
        for stated in (bounds, bounds.replace("row", "group")):
            yield f"SELECT SUM({expression}, {stated}) AS a FROM visits AS v", {}
        yield f"SELECT {expression} AS k, COUNT(*) FROM visits AS v GROUP BY k", {"rows": 1}
    for condition in lists.CONDITIONS:
        inner = (
            "SELECT user_id, MIN(v.f) AS f, SUM(v.x) AS s, AVG(v.f) AS a, MAX(v.d) AS d "
            f"FROM visits AS v WHERE {condition} GROUP BY user_id"
        )
        caps = {"rows": 2, "groups": 2}
        yield f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM visits AS v WHERE {condition}", caps
        yield (
            f"SELECT YEAR(p.d), COUNT(*), AVG(LEAST(GREATEST(p.s, -9), 9)) FROM ({inner}) AS p GROUP BY 1",
            caps,
        )
    for low, high in BOUNDS:
        text = f"contribution_bounds_per_row => ({low!r}, {high!r})"
        for column in ("v.x", "v.f", "v.n"):
            names = ("SUM", "AVG", "VAR_POP", "MEDIAN", "MAX")
            asked = ", ".join(f"{name}({column}, {text})" for name in names)
            per_group = f"SUM({column}, {text.replace('per_row', 'per_group')})"
            yield f"SELECT v.cat, {asked}, {per_group} AS g FROM visits AS v GROUP BY v.cat", {}


BOUNDS = [
    (0, 0),
    (5, 5),
    (-1e60, 1e60),
    (0, 1e-58),
    (-1e-59, 1e-60),
    (1e17, 1e17 + 16),
    (-1, 2**62),
    (-0.3, 0.7),
]


@functools.cache
def rows() -> tuple[exp.Query, ...]:
    """The rows of a question for each expression and condition, without what is made of them."""
    queries = []
    for expression in (*lists.EXPRESSIONS, *lists.CONDITIONS):
        (leaf,) = plan_of(
            f"SELECT {expression} AS k, COUNT(*) FROM visits AS v GROUP BY k", "user", rows=1
        ).leaves
        queries.append(leaf.rows)
    return tuple(queries)


@functools.cache
def fixed(count: int) -> tuple[tuple[str, exp.Query], ...]:
    """Mode and tree of the statements of some questions of the fixed lists, in DuckDB's words."""
    asked = list(questions_asked())
    statements = []
    for place, (sql, contribution) in enumerate(asked[:: max(1, len(asked) // count)]):
        (leaf,) = plan_of(sql, "user", **contribution).leaves
        statements += [("user", statement) for statement in statements_of(leaf, (0, 45)[place % 2])]
    return tuple(statements)


@functools.cache
def generated(count: int) -> tuple[tuple[str, exp.Query], ...]:
    """The same of generated questions."""
    statements: list[tuple[str, exp.Query]] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(
        asked=questions(),
        cells=st.sampled_from([0, 1, 2, 5, 21, 24, 45]),
        generous=st.sampled_from([0, 1, 5]),
        rows=st.sampled_from([None, None, 1, 3]),
        groups=st.sampled_from([None, None, 1, 2]),
        l2=st.booleans(),
    )
    def draw(asked: Asked, cells: int, generous: int, rows: int | None, groups: int | None, l2: bool) -> None:
        for leaf in plan_of(asked.sql, asked.mode, rows=rows, groups=groups).leaves:
            statements.extend((asked.mode, tree) for tree in statements_of(leaf, cells, generous, l2))

    draw()
    return tuple(dict.fromkeys(statements))


@functools.cache
def tables_of(engine: str, mode: str) -> dict[str, exp.Query]:
    """The queries that read the houses' tables on an engine."""
    catalog = catalog_of(mode)
    queries: dict[str, exp.Query] = {}
    for place, name in enumerate(catalog.tables):
        if engine == "postgres":
            origin = exp.Table(
                this=exp.to_identifier(name, quoted=True), db=exp.to_identifier("public", quoted=True)
            )
            types = POSTGRES_TYPES[name]
            read = reader({column: Column(kind) for column, kind in types.items()})
            queries[name] = projection(catalog, name, origin, types, read, postgres_sql.DIALECT)
        else:
            origin = exp.Table(this=exp.to_identifier(f"incrowd_{place}", quoted=True))
            made = projection(catalog, name, origin, SPARK_TYPES[name], spark_columns.read, spark_sql.DIALECT)
            queries[name] = made.select(exp.column(spark_sql.PLACE, quoted=True))
    return queries


@functools.cache
def prover_of(engine: str) -> Prover:
    """The prover of an engine over the houses' tables."""
    if engine == "postgres":
        return Prover(engine, {f"public.{name}": types for name, types in POSTGRES_TYPES.items()})
    if engine == "spark":
        stored = {
            f"incrowd_{place}": {column: stored_as(kind) for column, kind in types.items()}
            for place, types in enumerate(SPARK_TYPES.values())
        }
        return Prover(engine, {name: {**types, spark_sql.PLACE: "struct"} for name, types in stored.items()})
    return engine_of("user")._prover


def final(engine: str, mode: str, statement: exp.Query) -> exp.Query:
    """A statement in the constructs of the engine."""
    if engine == "duckdb":
        return statement
    dialect = postgres_sql.DIALECT if engine == "postgres" else spark_sql.DIALECT
    return translate(statement, dialect, tables_of(engine, mode))
