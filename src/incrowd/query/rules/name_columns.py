"""Unnamed aggregates in SELECT lists get names a person would choose: COUNT(*) is count, SUM(x) is sum_x."""

from __future__ import annotations

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.query.ownership import World


def name_columns(tree: exp.Query, world: World) -> exp.Query:
    """The tree with a name for each aggregate that has none."""
    for select in tree.find_all(exp.Select):
        taken = {fold(projection.alias_or_name) for projection in select.expressions}
        for projection in list(select.expressions):
            inner = projection.find(exp.AggFunc)
            if (
                isinstance(projection, exp.Alias | exp.Column | exp.Star)
                or projection.is_star
                or inner is None
            ):
                continue
            column = inner.find(exp.Column)
            known = not isinstance(inner, exp.AnonymousAggFunc)
            name = (inner.sql_name() if known else inner.name).lower()
            if column is not None:
                name = f"{name}_{column.name}"
            while fold(name) in taken:
                name += "_"
            taken.add(fold(name))
            projection.replace(exp.alias_(projection.copy(), name, quoted=True))
    return tree
