"""Which aggregate a column of the answer is: followed through the SQL above the leaves, which is not run."""

from __future__ import annotations

from sqlglot import exp

from incrowd.query import Aggregate, Plan
from incrowd.query.plan import released_index

Origin = tuple[int, Aggregate]


def origins(plan: Plan) -> dict[str, Origin | None]:
    """For each column of the answer that is no group key: its leaf and aggregate; None if it is computed."""
    if not isinstance(plan.outer, exp.Select):
        return dict.fromkeys(plan.columns)
    found: dict[str, Origin | None] = {}
    for name in plan.columns:
        column = _traced(plan.outer, name)
        if column is None:
            found[name] = None
        elif isinstance(column, tuple):
            leaf, released = column
            aggregate = next((each for each in plan.leaves[leaf].aggregates if each.name == released), None)
            if aggregate is not None:
                found[name] = (leaf, aggregate)
    return found


def _traced(select: exp.Select, name: str) -> tuple[int, str] | str | None:
    """The leaf and released column behind a column; its text if it reads a public table; None if computed."""
    picked = next((each for each in select.expressions if each.alias_or_name == name), None)
    column = None if picked is None else picked.unalias()
    if not isinstance(column, exp.Column):
        return None
    start = select.args.get("from_")
    joins = select.args.get("joins") or []
    for source in ([start.this] if start is not None else []) + [join.this for join in joins]:
        if column.table and source.alias_or_name != column.table:
            continue
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            return _traced(source.this, column.name)
        leaf = released_index(source.name)
        return source.name if leaf is None else (leaf, column.name)
    return None
