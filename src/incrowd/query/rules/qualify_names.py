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
        known = isinstance(table.this, exp.Identifier) and world.catalog.find(table.name) is not None
        if not known or table.args.get("db"):
            hint = nearest(table.name, world.catalog.tables)
            raise QueryError(f"There is no table {table.name} in the catalog, {hint}.")
    for name in tree.find_all(exp.Identifier):
        _refuse_reserved(name)
    schema: dict[str, object] = {
        fold(name): {column: SQL_TYPES[each.kind] for column, each in world.fields(name).items()}
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
