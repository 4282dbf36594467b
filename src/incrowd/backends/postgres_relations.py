"""Checks which relations of a PostgreSQL database may be read, and later that they have not changed.

A relation may be read if no row of it can make a read fail. Tables, partitions and materialized views are
safe. Views, row-level security and virtual generated columns are computed while rows are read, so their
definitions must be total (`postgres_trees`). Foreign tables are refused: their rows come from unknown
programs.

Everything that was checked is kept as a hash for each relation, a mark. Every transaction locks the relations
and then compares the marks: from then on nobody can change a definition before the transaction ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql as composed

from incrowd.backends.postgres_trees import Functions, fault, parse, relations
from incrowd.errors import CatalogError

_COLUMNS = """
WITH RECURSIVE typed AS (
  SELECT a.attnum, a.attname, a.attcollation, a.atttypmod AS typmod, a.atttypid AS oid
  FROM pg_attribute AS a WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT y.attnum, y.attname, y.attcollation,
    CASE WHEN y.typmod < 0 THEN t.typtypmod ELSE y.typmod END, t.typbasetype
  FROM typed AS y JOIN pg_type AS t ON t.oid = y.oid WHERE t.typtype = 'd')
SELECT y.attname,
  CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN t.typname = 'bpchar' AND y.typmod < 0 THEN 'bpchar'
    WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN format_type(t.oid, NULL)
    ELSE concat(n.nspname, '.', t.typname) END,
  CASE WHEN t.typname IN ('varchar', 'bpchar') AND y.typmod > 4 THEN y.typmod - 4 END,
  COALESCE(c.collisdeterministic, true)
FROM typed AS y JOIN pg_type AS t ON t.oid = y.oid JOIN pg_namespace AS n ON n.oid = t.typnamespace
  LEFT JOIN pg_collation AS c ON c.oid = y.attcollation
WHERE t.typtype <> 'd' ORDER BY y.attnum
"""
_FACTS = """
WITH RECURSIVE below AS (
  SELECT oid AS root, oid FROM unnest(%(oids)s::oid[]) AS oid
  UNION SELECT b.root, i.inhrelid FROM pg_inherits AS i JOIN below AS b ON i.inhparent = b.oid)
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relrowsecurity, row_security_active(c.oid),
  ARRAY(SELECT DISTINCT p.relkind::text FROM below JOIN pg_class AS p ON p.oid = below.oid
    WHERE below.root = c.oid ORDER BY 1),
  (SELECT string_agg(r.ev_action::text, '') FROM pg_rewrite AS r
    WHERE r.ev_class = c.oid AND r.ev_type = '1'),
  ARRAY(SELECT p.polqual::text FROM pg_policy AS p
    WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*') ORDER BY p.oid),
  ARRAY(SELECT d.adbin::text FROM pg_attribute AS a
    JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attgenerated::text = 'v' ORDER BY a.attnum),
  (SELECT string_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation,
      a.attgenerated, a.attisdropped), ',' ORDER BY a.attnum)
    FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
  concat_ws(' ', c.relforcerowsecurity, CASE WHEN c.relkind = 'v' THEN c.reloptions::text END)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%(oids)s::oid[])
"""
_COMPARISONS = """
SELECT o.oprcode::oid::text FROM pg_operator AS o
WHERE o.oprnamespace = 'pg_catalog'::regnamespace
  AND o.oprleft = ANY(%(types)s::regtype[]) AND o.oprright = ANY(%(types)s::regtype[])
  AND EXISTS (SELECT FROM pg_amop AS a JOIN pg_am AS m ON m.oid = a.amopmethod AND m.amname = 'btree'
    WHERE a.amopopr IN (o.oid, o.oprnegate) AND a.amoppurpose = 's')
"""
_TYPES = [
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar",
    "bpchar",
    "bool",
    "date",
    "timestamp",
    "timestamptz",
    "uuid",
    "name",
    "anyenum",
]
_WIDENING = [
    "int8(smallint)", "int8(integer)", "int4(smallint)", "float8(smallint)", "float8(integer)",
    "float8(bigint)", "float8(real)", "numeric(smallint)", "numeric(integer)", "numeric(bigint)",
    "text(character)", "text(name)", "random()",
]  # fmt: skip
"""Functions that raise on no value. random() changes with each read, so such relations are read once."""
_SHORT = """
WITH RECURSIVE short AS (
  SELECT oid, typlen > 0 AS fixed FROM pg_type
  WHERE typtype = 'e' OR (typnamespace = 'pg_catalog'::regnamespace AND typname = ANY(%(types)s))
  UNION ALL SELECT t.oid, s.fixed FROM pg_type AS t JOIN short AS s ON t.typbasetype = s.oid)
SELECT oid::text, fixed FROM short
"""
_BESIDE = ["oid", "time", "timetz", "interval", "json"]
"""Types that are not compared, but whose text is about as long as their stored form."""
_AT_REST = ("r", "p", "m")


@dataclass(frozen=True)
class Column:
    """A column as the server stores it, with domains resolved to their base types."""

    type: str
    length: int | None = None
    """The largest number of characters, if the type limits it."""
    deterministic: bool = True
    """True if texts that compare equal are the same text."""


@dataclass(frozen=True)
class Relation:
    """A relation from which a table of the catalog is read."""

    oid: int
    schema: str
    name: str
    columns: Mapping[str, Column]
    once: bool
    """True if two reads in one statement may differ, so that it must be read once."""
    marks: Mapping[int, str]
    """The marks of this relation and of all relations that it reads."""


def oid_of(connection: psycopg.Connection[Any], table: str, place: tuple[str, ...]) -> int:
    """The number of a table by its name, with a schema or on the role's search path.

    CatalogError if there is none, or if the role may not read it.
    """
    text = composed.Identifier(*place).as_string(connection)
    row = connection.execute("SELECT pg_catalog.to_regclass(%s)::oid", (text,)).fetchone()
    if row is None or row[0] is None:
        raise CatalogError(
            f"tables.{table}: the database has no table {'.'.join(place)}, or its role may "
            "not see it; name it with its schema, as in table: public.people."
        )
    may = connection.execute(
        "SELECT pg_catalog.has_any_column_privilege(%s::oid, 'SELECT')", (row[0],)
    ).fetchone()
    if not (may and may[0]):
        raise CatalogError(f"tables.{table}: the role of the URL may not read it; GRANT SELECT to it.")
    return int(row[0])


def columns(connection: psycopg.Connection[Any], oid: int) -> dict[str, Column]:
    """The columns of a relation."""
    rows = connection.execute(_COLUMNS, (oid,)).fetchall()
    return {name: Column(kind, length, same) for name, kind, length, same in rows}


def checked(connection: psycopg.Connection[Any], table: str, oid: int) -> Relation:
    """A relation of which no row can make a read fail. CatalogError, with the reason, if one can."""
    functions: Functions | None = None
    facts: dict[int, tuple[Any, ...]] = {}
    todo, once = {oid}, False
    while todo:
        rows = _facts(connection, todo)
        facts |= {row[0]: row for row in rows}
        todo = set()
        for number, _, name, kind, policed, active, kinds, rule, policies, generated, *_ in rows:
            if not set(kinds) <= {*_AT_REST, "v"}:
                raise CatalogError(
                    f"tables.{table}: {name} is, or has, a foreign table, whose rows come from elsewhere and "
                    "may fail to; copy them into a table or a materialized view."
                )
            trees = {
                f"the view {name}": [rule] if kind == "v" else [],
                # Tables below a view are read with its owner's rights, so assume that their policies apply.
                f"row-level security of {name}": policies if policed and (active or number != oid) else [],
                f"a generated column of {name}": generated,
            }
            for what, texts in trees.items():
                for text in texts:
                    once = True
                    functions = functions or _functions(connection)
                    todo |= _accepted(table, what, text, functions)
        todo -= facts.keys()
    _, schema, name, *_ = facts[oid]
    return Relation(oid, schema, name, columns(connection, oid), once, _marks(facts.values()))


def _accepted(table: str, what: str, text: str | None, functions: Functions) -> set[int]:
    """The relations that a tree reads. CatalogError unless the tree is total."""
    tops = parse(text or "")
    wrong = fault(tops, functions)
    if wrong is not None:
        raise CatalogError(
            f"tables.{table}: {what} {wrong}, which may fail on some row or read other rows each time; "
            "use a table or a materialized view instead."
        )
    return relations(tops)


def unchanged(connection: psycopg.Connection[Any], opened: Iterable[Relation]) -> bool:
    """True if relations, and all relations that they read, have not changed since they were checked."""
    marks = {oid: mark for relation in opened for oid, mark in relation.marks.items()}
    return _marks(_facts(connection, marks)) == marks


def _facts(connection: psycopg.Connection[Any], oids: Iterable[int]) -> list[tuple[Any, ...]]:
    return connection.execute(_FACTS, {"oids": list(oids)}).fetchall()


def _marks(rows: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    return {row[0]: hashlib.sha256(repr(row).encode()).hexdigest() for row in rows}


def _functions(connection: psycopg.Connection[Any]) -> Functions:
    comparing = {row[0] for row in connection.execute(_COMPARISONS, {"types": _TYPES})}
    # The search path is only pg_catalog, so the names of other functions include a schema.
    rows = connection.execute(
        "SELECT oid::text, oid::regprocedure::text, provolatile = 'i' AND oid < 10000 FROM pg_proc"
    ).fetchall()
    names = {number: name for number, name, _ in rows}
    widening = {number for number, name in names.items() if name in _WIDENING}
    short = connection.execute(_SHORT, {"types": [*_TYPES, *_BESIDE]}).fetchall()
    return Functions(
        total=comparing | widening,
        immutable={number for number, _, same in rows if same},
        names=names,
        short={number for number, _ in short},
        fixed={number for number, same in short if same},
    )
