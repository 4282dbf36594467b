"""Tables named under a schema, such as `main.visits` or `PUMS.PUMS`, become the tables of the catalog.

A catalog has one table of each name, so a schema says nothing more. Only schemas that no one can take for a
place with other rows are taken: the default ones of engines, the names of the owner's sources, and the names
of tables, which SmartNoise's examples put in front. Every other one is refused, since rows of another place
under the same name would be another question.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.declaration import nearest
from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.ownership import World

DEFAULT = frozenset({"dbo", "default", "main", "memory", "public"})


def drop_schemas(tree: exp.Query, world: World) -> exp.Query:
    """The tree with tables, and columns of them, named without their schema."""
    schemas = DEFAULT | {fold(name) for name in (*world.catalog.sources, *world.catalog.tables)}
    dropped = set()
    for table in tree.find_all(exp.Table):
        if not table.args.get("db"):
            continue
        known = world.catalog.find(table.name)
        if known is None:
            tables = world.catalog.tables
            raise QueryError(f"There is no table {table.name} in the catalog, {nearest(table.name, tables)}.")
        if not {fold(name) for name in (table.db, table.catalog) if name} <= schemas:
            place = ".".join(name for name in (table.catalog, table.db) if name)
            raise QueryError(
                f"There is no table {table.name} under {place} in the catalog; write {known} alone."
            )
        dropped.add((fold(table.db), fold(table.name)))
        table.set("db", None)
        table.set("catalog", None)
    for column in tree.find_all(exp.Column) if dropped else ():
        if (fold(column.db), fold(column.table)) in dropped:
            column.set("db", None)
            column.set("catalog", None)
    return tree
