"""Tables and views of DuckDB databases that are attached read-only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import duckdb

from incrowd.backends.duckdb_pieces import Piece, described
from incrowd.backends.sources import source_column
from incrowd.backends.trees import quoted
from incrowd.errors import CatalogError
from incrowd.query.typed import fold

_UNIT_LOCAL = frozenset(
    {
        *("PROJECTION", "FILTER", "SEQ_SCAN", "DUMMY_SCAN", "EXPRESSION_GET", "CHUNK_GET", "EMPTY_RESULT"),
        *("COMPARISON_JOIN", "ANY_JOIN", "CROSS_PRODUCT", "DELIM_JOIN", "DELIM_GET", "DEPENDENT_JOIN"),
        *("AGGREGATE", "DISTINCT", "WINDOW", "ORDER_BY", "UNION", "EXCEPT", "INTERSECT", "UNNEST"),
        *("MATERIALIZED_CTE", "CTE", "CTE_SCAN", "CTE_REF", "POSITIONAL_JOIN"),
    }
)
"""The operators that a view may use. Samples and limits are missing, since one person's rows would push out
other people's; so are files, whose types DuckDB's own readers would guess.
"""


def table_piece(
    connection: duckdb.DuckDBPyConnection, database: str, name: str, place: str, units: Sequence[str]
) -> tuple[Piece, bool]:
    """A table or view of an attached database, and whether any of its columns is computed when it is read."""
    parts = place.split(".")
    origin = ".".join([database, *(quoted(part) for part in parts)])
    types = _described(connection, database, origin, name, place)
    _refuse_collated_units(connection, origin, name, types, units)
    schema, relation = (parts[-2] if len(parts) > 1 else "main"), parts[-1]
    view = _is_view(connection, database, schema, relation)
    if view:
        _refuse_view(connection, origin, name)
    generated = connection.execute(
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_catalog = ? AND is_generated = 'ALWAYS' "
        "AND lower(table_schema) = lower(?) AND lower(table_name) = lower(?)",
        [database, schema, relation],
    ).fetchall()[0][0]
    return Piece(origin, types, collated=True), bool(view or generated)


def _described(
    connection: duckdb.DuckDBPyConnection, database: str, origin: str, name: str, place: str
) -> dict[str, str]:
    try:
        return described(connection, origin)
    except duckdb.CatalogException:
        pass
    listed = connection.execute(
        "SELECT CASE table_schema WHEN 'main' THEN '' ELSE table_schema || '.' END || table_name "
        "FROM information_schema.tables WHERE table_catalog = ? ORDER BY 1",
        [database],
    ).fetchall()
    there = ", ".join(table for (table,) in listed) or "no table at all"
    raise CatalogError(f"tables.{name}: the database has no table {place} that can be read; it has {there}.")


def _is_view(connection: duckdb.DuckDBPyConnection, database: str, schema: str, view: str) -> bool:
    listed = connection.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = ?", [database]
    ).fetchall()
    return (fold(schema), fold(view)) in {(fold(one), fold(two)) for one, two in listed}


def _refuse_view(connection: duckdb.DuckDBPyConnection, origin: str, name: str) -> None:
    connection.execute("SET explain_output = 'all'")
    plans = connection.execute(f"EXPLAIN (FORMAT json) SELECT * FROM {origin}").fetchall()
    (plan,) = (json.loads(content) for kind, content in plans if kind == "logical_plan")
    strange = sorted(set(_operators(plan)) - _UNIT_LOCAL)
    if strange:
        raise CatalogError(
            f"tables.{name}: the view uses {', '.join(strange)}; a view may select, join and aggregate "
            "tables of its database, but not sample, limit or read files: store its rows as a table."
        )


def _operators(plan: Sequence[Mapping[str, object]]) -> Iterator[str]:
    for node in plan:
        yield str(node["name"]).strip()
        yield from _operators(node["children"])  # type: ignore[arg-type]


def _refuse_collated_units(
    connection: duckdb.DuckDBPyConnection,
    origin: str,
    name: str,
    types: Mapping[str, str],
    units: Sequence[str],
) -> None:
    """Refuse units with a collation: if `ann` and `ANN` are equal, one person has two ids."""
    for unit in units:
        column = source_column(unit, types, f"tables.{name}.columns.{unit}")
        # The definition of an empty copy shows the column's collation.
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE __probe AS SELECT {quoted(column)} AS u FROM {origin} LIMIT 0"
        )
        ((definition,),) = connection.execute(
            "SELECT sql FROM duckdb_tables() WHERE table_name = '__probe'"
        ).fetchall()
        connection.execute("DROP TABLE __probe")
        if re.search(r"\bCOLLATE\b", definition):
            raise CatalogError(
                f"tables.{name}.columns.{unit}: it identifies units but has a collation, under which "
                'different texts are equal; store it without one (COLLATE "binary").'
            )
