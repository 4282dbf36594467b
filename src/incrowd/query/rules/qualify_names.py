"""Resolves names: every column gets its table, stars are expanded, names folded, unknown names refused."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from incrowd.catalog.declaration import nearest
from incrowd.catalog.names import fold
from incrowd.catalog.types import SQL_TYPES
from incrowd.errors import QueryError
from incrowd.query.ownership import RESERVED, World
from incrowd.query.sql import DIALECT, count_bounds


def qualify_names(tree: exp.Query, world: World) -> exp.Query:
    """The tree with every name resolved."""
    for table in tree.find_all(exp.Table):
        _refuse_strangers(table, world)
    for name in tree.find_all(exp.Identifier):
        _refuse_reserved(name)
    schema: dict[str, object] = {
        fold(name): {column: SQL_TYPES[field.kind] for column, field in world.fields(name).items()}
        for name in world.catalog.tables
    }
    bounds = count_bounds(tree)
    try:
        result = qualify(tree.copy(), schema=schema, dialect=DIALECT, quote_identifiers=True, identify=True)
    except OptimizeError as error:
        raise QueryError(_name_fault(str(error), tree, world)) from None
    except SqlglotError as error:
        raise QueryError(f"The SQL cannot be understood: {str(error).splitlines()[0]}") from None
    if count_bounds(result) < bounds:
        raise QueryError("Contribution bounds must stand in the SELECT that aggregates.")
    for name in result.find_all(exp.Identifier):
        _refuse_reserved(name)
    assert isinstance(result, exp.Query)
    return result


def _refuse_strangers(table: exp.Table, world: World) -> None:
    """Refuse what is no table of the catalog."""
    tables = world.catalog.tables
    if not isinstance(table.this, exp.Identifier):
        function = table.this.sql(DIALECT).partition("(")[0]
        raise QueryError(
            f"{function} makes rows of its own and cannot stand in FROM; name a table of the "
            f"catalog ({', '.join(tables)}), or, beside released numbers, write UNNEST([1, 2, 3])."
        )
    if not table.name:
        raise QueryError(f"A table in FROM has an empty name; choose from {', '.join(tables)}.")
    known = world.catalog.find(table.name)
    if known is None:
        raise QueryError(f"There is no table {table.name} in the catalog, {nearest(table.name, tables)}.")
    if table.args.get("db"):
        raise QueryError(
            f"There is no table {table.name} in the catalog under a schema; write {known} alone."
        )


def _refuse_reserved(name: exp.Identifier) -> None:
    """Refuse names with the planner's own prefix: a user's column could pass for the protected unit."""
    if name.name.startswith(RESERVED):
        raise QueryError(f"Names that start with {RESERVED}, such as {name.name}, are reserved; use another.")


def _name_fault(text: str, tree: exp.Query, world: World) -> str:
    """The parser's message about a name, in the user's words."""
    quoted = re.search(r"""['"]+([^'"]+)['"]+(?:\.['"]+([^'"]+)['"]+)?|: (\S+?)\.?(?:\s|$)""", text)
    name = "" if quoted is None else quoted.group(2) or quoted.group(1) or quoted.group(3)
    name = name.rpartition(".")[2]
    if "mbiguous" in text:
        return f"The column {name} is in several tables; write the table's name before it."
    if "lias already used" in text or "Duplicate" in text:
        return f"Two tables of one FROM are called {name}; give each a name of its own, with AS."
    tables = [world.catalog.find(table.name) or "" for table in tree.find_all(exp.Table)]
    if sum(fold(name) in world.fields(table) for table in tables) > 1:
        return f"The column {name} is in several tables; write the table's name before it."
    known = sorted({column for table in tables for column in world.fields(table)})
    where = ", ".join(dict.fromkeys(tables))
    return f"There is no column {name or '?'} in {where}, {nearest(name, known)}."
