"""Which aggregate each column of the answer shows: traced through the SQL above the leaves, not run."""

from __future__ import annotations

from sqlglot import exp

from incrowd.query import Aggregate, Plan
from incrowd.query.plan import released_index
from incrowd.query.sql import from_items

Origin = tuple[int, Aggregate]


def origins(plan: Plan) -> dict[str, Origin | None]:
    """By column of the answer, its leaf and aggregate; None if it is computed. Group keys are left out."""
    if not isinstance(plan.outer, exp.Select):
        return dict.fromkeys(plan.columns)
    origin: dict[str, Origin | None] = {}
    for name in plan.columns:
        column = _traced(plan.outer, name)
        if column is None:
            origin[name] = None
        elif isinstance(column, tuple):
            leaf, released = column
            aggregate = plan.leaves[leaf].columns.get(released)
            if isinstance(aggregate, Aggregate):
                origin[name] = (leaf, aggregate)
    return origin


def _traced(select: exp.Select, name: str) -> tuple[int, str] | str | None:
    """The leaf and released column behind a column; its text if it reads a public table; None if computed."""
    picked = next((item for item in select.expressions if item.alias_or_name == name), None)
    column = None if picked is None else picked.unalias()
    if not isinstance(column, exp.Column):
        return None
    for source in from_items(select):
        if column.table and source.alias_or_name != column.table:
            continue
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            return _traced(source.this, column.name)
        leaf = released_index(source.name)
        return source.name if leaf is None else (leaf, column.name)
    return None
