"""The SELECT above a leaf: the select that aggregated private rows, over its released table.

Keys and aggregates become columns of the released table, HAVING becomes WHERE, and windows stay windows: in
SQL they run after GROUP BY and HAVING, so they see one row per released group. What stands here reads
released numbers only, which makes it post-processing: free, whatever it computes. An aggregate that stands
in the SELECT list and inside a window is the same column, and is released once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.per_unit import is_aggregating
from incrowd.query.plan import Key
from incrowd.query.sql import DIALECT

_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
"""What may stand between a window and its function."""
_SPECIFIED = ("partition_by", "order", "spec", "exclude")


def above(
    select: exp.Select,
    nodes: Sequence[exp.Expr],
    keys: Sequence[Key],
    column: Callable[[exp.Expr], str],
    inner: Callable[[exp.Query], exp.Expr],
    other: Callable[[exp.Expr], exp.Expr | None] = lambda part: None,
) -> exp.Select:
    """The select over its released table, which is still to be named.

    `column` collects an aggregate, `inner` gives a sub-query over released numbers. other: what stands for an
    aggregate that is an expression over others; None where it stands for itself.
    """
    names = {node.sql(DIALECT): key.name for node, key in zip(nodes, keys, strict=True)}
    if not is_aggregating(select) and select.find(exp.Window) is not None:
        raise QueryError(
            "A window beside SELECT DISTINCT runs over the rows of people; write SELECT ..., COUNT(*) with "
            "GROUP BY, and windows over its aggregates."
        )
    windows = {fold(window.name): window for window in select.args.get("windows") or []}

    def swap(part: exp.Expr) -> exp.Expr:
        if part.sql(DIALECT) in names:
            return exp.column(names[part.sql(DIALECT)])
        if isinstance(part, exp.Window):
            return _window(specified(part, windows), moved)
        if isinstance(part, exp.Query):
            return inner(part)
        meant = other(part)
        if meant is not None:
            return moved(meant)
        if isinstance(part, exp.Filter | exp.WithinGroup | exp.AggFunc):
            return exp.column(column(part))
        if isinstance(part, exp.Column) and part.table:
            hint = ", and in a window too: SUM(SUM(x)) OVER ()" if select.find(exp.Window) else ""
            raise QueryError(f"{part.name} must be in GROUP BY or inside an aggregate{hint}.")
        return part

    def moved(node: exp.Expr) -> exp.Expr:
        return node.copy().transform(swap)

    outer = exp.Select()
    for projection in select.expressions:
        outer = outer.select(exp.alias_(moved(projection.unalias()), projection.alias_or_name, quoted=True))
    having = select.args.get("having")
    if having is not None:
        outer = outer.where(moved(having.this))
    for clause in ("qualify", "order", "limit", "offset"):
        written = select.args.get(clause)
        if written is not None:
            outer.set(clause, moved(written))
    if select.args.get("distinct") and is_aggregating(select):
        outer = outer.distinct()
    elif select.args.get("order") is None and keys and not isinstance(select.parent, exp.SetOperation):
        outer = outer.order_by(*[exp.column(key.name) for key in keys])
    return outer


def specified(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """The window with what the WINDOW clause says about its name written out."""
    if not window.alias:
        return window
    known = named.get(fold(window.alias))
    if known is None:
        raise QueryError(f"There is no window {window.alias}; name it with WINDOW {window.alias} AS (...).")
    known = specified(known, {name: other for name, other in named.items() if name != fold(known.name)})
    written = window.copy()
    written.set("alias", None)
    for part in _SPECIFIED:
        said_before = known.args.get(part)
        if said_before and not written.args.get(part):
            copies = isinstance(said_before, list)
            written.set(part, [one.copy() for one in said_before] if copies else said_before.copy())
    return written


def _window(window: exp.Window, moved: Callable[[exp.Expr], exp.Expr]) -> exp.Window:
    """A window whose function stays, over moved arguments."""
    written = window.copy()
    function = written.this
    while isinstance(function, _AROUND):
        if isinstance(function, exp.Filter):
            function.set("expression", moved(function.expression))
        function = function.this
    _move_parts(function, moved)
    _move_parts(written, moved, "partition_by", "order")
    return written


def _move_parts(node: exp.Expr, moved: Callable[[exp.Expr], exp.Expr], *only: str) -> None:
    for name, part in list(node.args.items()):
        if only and name not in only:
            continue
        if isinstance(part, list):
            node.set(name, [moved(item) if isinstance(item, exp.Expr) else item for item in part])
        elif isinstance(part, exp.Expr):
            node.set(name, moved(part))
