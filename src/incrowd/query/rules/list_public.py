"""x IN (SELECT y FROM a public table): the sub-query is checked and kept beside the test.

What a public table holds is known to everybody, so the test is a function of one row. A sub-query that
reads private tables, or looks at the row around it, is left for `join_sub_queries`.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.expressions import PUBLIC_LIST, PublicList
from incrowd.query.ownership import World, select_rows
from incrowd.query.sub_queries import outer_columns


def list_public(tree: exp.Query, world: World) -> exp.Query:
    """The tree with each public list marked, the innermost first: a list may be chosen by another list."""
    for node in reversed(list(tree.find_all(exp.In))):
        query = node.args.get("query")
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        if not isinstance(inner, exp.Select) or world.private(inner) or outer_columns(inner, inner):
            continue
        if len(inner.expressions) != 1:
            raise QueryError("The sub-query of IN must give one column.")
        rows = select_rows(inner, world)
        ((name, facts),) = rows.fields.items()
        alias = exp.TableAlias(this=exp.to_identifier("rows", quoted=True))
        listed = exp.select(exp.alias_(exp.column(name, table="rows", quoted=True), "v")).from_(
            exp.Subquery(this=rows.sql, alias=alias)
        )
        node.set(PUBLIC_LIST, PublicList(listed, facts))
    return tree
