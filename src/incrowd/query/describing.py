"""Statements that ask what there is: DESCRIBE, SHOW TABLES, SUMMARIZE, and SELECT with LIMIT 0.

They are answered from the owner's declarations alone, which every refusal and note quotes as well: no row is
read, so they cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from incrowd.catalog.declaration import nearest
from incrowd.catalog.names import fold
from incrowd.catalog.types import SQL_TYPES
from incrowd.errors import QueryError
from incrowd.query.ownership import World
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Field

_SUMMARY = (
    "These are the bounds and domains that the owner declares; no row was read. Ask MIN, MAX, AVG, COUNT(*) "
    "and the like for what the rows hold."
)
_COLUMNS = "This is what the owner declares; no row was read."
_OPENINGS: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("describe", "table"), False),
    (("describe",), False),
    (("desc", "table"), False),
    (("desc",), False),
    (("show", "columns", "from"), False),
    (("show", "columns", "in"), False),
    (("summarize",), True),
)
"""How statements about one table begin, longer ones first, and whether they summarize."""
_LISTINGS = (("show", "tables"), ("show", "all", "tables"))


@dataclass(frozen=True)
class Description:
    """What is answered without a row: typed columns, their values, and a note."""

    columns: dict[str, str]
    """By name, the type in SQL."""
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    @property
    def query(self) -> exp.Query:
        """SQL that gives these rows, and reads nothing."""
        rows = self.rows or ((None,) * len(self.columns),)
        selects = [
            exp.select(
                *(
                    exp.alias_(exp.cast(exp.convert(value), kind), name, quoted=True)
                    for value, (name, kind) in zip(row, self.columns.items(), strict=True)
                )
            )
            for row in rows
        ]
        if not self.rows:
            selects[0] = selects[0].where(exp.false())
        return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)


def description(sql: object, world: World) -> Description | None:
    """What a statement is answered with if it asks what there is; None for every other one."""
    words = _words(sql)
    folded = tuple(fold(word) for word in words)
    if folded in _LISTINGS:
        return _tables(world)
    for begin, summarizes in _OPENINGS:
        rest = words[len(begin) :]
        if folded[: len(begin)] == begin and len(rest) % 2 and set(rest[1::2]) <= {"."}:
            table = _table(rest[-1], world)
            return _summary(table, world) if summarizes else _described(table, world)
    if folded[:1] == ("select",) and folded[-2:] == ("limit", "0"):
        return _nothing(str(sql), world)
    return None


def _words(sql: object) -> list[str]:
    """The tokens of a statement without its semicolon; none if it cannot be read."""
    if not isinstance(sql, str) or len(sql) > 10_000:
        return []
    try:
        words = [token.text for token in sqlglot.tokenize(sql, read=DIALECT)]
    except SqlglotError:
        return []
    while words and words[-1] == ";":
        words.pop()
    return words


def _table(name: str, world: World) -> str:
    known = world.catalog.find(name)
    if known is None:
        raise QueryError(f"There is no table {name} in the catalog, {nearest(name, world.catalog.tables)}.")
    return known


def _fields(table: str, world: World) -> dict[str, Field]:
    """The columns of a table, as they are spelled."""
    declared = world.catalog.tables[table]
    spelled = {fold(name): name for name in (*world.public_columns.get(table, {}), *declared.columns)}
    return {spelled.get(name, name): field for name, field in world.fields(table).items()}


def _tables(world: World) -> Description:
    rows = tuple(
        (name, "private" if table.private else "public", str(table.unit) if table.unit else None)
        for name, table in world.catalog.tables.items()
    )
    return Description({"name": "TEXT", "kind": "TEXT", "protects": "TEXT"}, rows, _COLUMNS)


def _described(table: str, world: World) -> Description:
    rows = tuple(
        (
            name,
            SQL_TYPES[field.kind],
            "YES" if field.nullable else "NO",
            "unit" if field.unit else None,
            *_ends(field),
            _values(field) if world.catalog.tables[table].private else None,
        )
        for name, field in _fields(table, world).items()
    )
    names = ("column_name", "column_type", "null", "key", "min", "max", "values")
    return Description(dict.fromkeys(names, "TEXT"), rows, _COLUMNS)


def _summary(table: str, world: World) -> Description:
    rows = tuple(
        (
            name,
            SQL_TYPES[field.kind],
            *_ends(field),
            None if field.values is None else len(field.values),
            None if field.nullable else 0.0,
        )
        for name, field in _fields(table, world).items()
    )
    texts = dict.fromkeys(("column_name", "column_type", "min", "max"), "TEXT")
    return Description({**texts, "approx_unique": "BIGINT", "null_percentage": "DOUBLE"}, rows, _SUMMARY)


def _ends(field: Field) -> tuple[str | None, str | None]:
    """The declared bounds, as text."""
    if field.limits is not None:
        return str(field.limits[0]), str(field.limits[1])
    low, high = (None if end is None else f"{end:g}" for end in (field.low, field.high))
    return low, high


def _values(field: Field) -> str | None:
    """The declared domain, as text."""
    if field.values is None:
        return field.domain
    shown = ", ".join(str(value) for value in field.values[:20])
    return shown + (f", ... ({len(field.values):,} in all)" if len(field.values) > 20 else "")


def _nothing(sql: str, world: World) -> Description | None:
    """SELECT * (or columns) FROM t LIMIT 0: the columns and their types, without rows."""
    try:
        tree = sqlglot.parse_one(sql, read=DIALECT)
    except (SqlglotError, ValueError, RecursionError):
        return None
    plain = {"kind", "expressions", "limit", "from_"}
    if not isinstance(tree, exp.Select) or {key for key, value in tree.args.items() if value} - plain:
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    fields = _fields(_table(source.name, world), world)
    columns: dict[str, str] = {}
    for node in tree.expressions:
        if isinstance(node, exp.Star) and not any(node.args.values()):
            columns |= {name: SQL_TYPES[field.kind] for name, field in fields.items()}
        elif isinstance(node, exp.Column):
            known = {fold(name): name for name in fields}
            if fold(node.name) not in known:
                raise QueryError(f"There is no column {node.name}, {nearest(node.name, list(fields))}.")
            columns[node.name] = SQL_TYPES[fields[known[fold(node.name)]].kind]
        else:
            return None
    return Description(columns, (), _COLUMNS)
