"""Joins in other words become those that are planned: comma joins, RIGHT JOIN, parentheses, USING.

- `FROM a, b WHERE a.x = b.x` and CROSS JOIN: equations of WHERE between b and what stands before it become
  the join's ON. Inner joins keep what meets ON and WHERE together, wherever a condition stands; where another
  join of the select is RIGHT or FULL, nothing is moved.
- `FROM (a JOIN b ON ...) JOIN c`: joins are read from left to right in any case. `a JOIN (b JOIN c ON p) ON
  q`, of inner joins alone, is `a, b, c WHERE p AND q`.
- `FROM a RIGHT JOIN b ON ...` is `FROM b LEFT JOIN a ON ...`, where it is the first join.
- Of `LEFT JOIN b USING (x)` the parser makes COALESCE(a.x, b.x). Wherever b.x is not NULL, ON says that a.x
  is equal to it, so a.x is meant; in an inner join too. A FULL JOIN keeps its COALESCE.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.bounding import conjuncts
from incrowd.query.ownership import World
from incrowd.query.sql import from_items


def turn_joins(tree: exp.Query, world: World) -> exp.Query:
    """The tree with its joins turned, the innermost select first."""
    for select in reversed(list(tree.find_all(exp.Select))):
        _unwrap(select)
        joins: list[exp.Join] = select.args.get("joins") or []
        if joins and joins[0].side == "RIGHT" and not joins[0].args.get("method"):
            _turn(select.args["from_"], joins[0])
        if not any(join.side in ("RIGHT", "FULL") for join in joins):
            _tie(select, joins)
        for place, join in enumerate(joins):
            if join.side in ("", "LEFT") and all(later.side in ("", "LEFT") for later in joins[place:]):
                _forget_using(select, join)
    return tree


def _unwrap(select: exp.Select) -> None:
    """Take the parentheses off the joins with which FROM begins."""
    start = select.args.get("from_")
    while start is not None and _is_wrapped(start.this):
        inner = start.this.this
        joins = _freed(inner)
        start.set("this", inner)
        select.set("joins", [*joins, *(select.args.get("joins") or [])])
    joins = select.args.get("joins") or []
    while any(_is_wrapped(join.this) for join in joins):
        (place, join) = next((place, join) for place, join in enumerate(joins) if _is_wrapped(join.this))
        inner = join.this.this
        within = _freed(inner)
        on = [one.args["on"] for one in (join, *within) if one.args.get("on")]
        if not all(map(_is_inner, (*joins, *within))):
            raise QueryError(
                "Joins in parentheses are possible where all are inner ones, or where FROM begins with them; "
                "write the others as a sub-query: JOIN (SELECT ... FROM a JOIN b ON ...) AS c ON ..."
            )
        bare = [exp.Join(this=item) for item in (inner, *(one.this for one in within))]
        joins = [*joins[:place], *bare, *joins[place + 1 :]]
        select.set("joins", joins)
        select.where(*on, copy=False)


def _is_inner(join: exp.Join) -> bool:
    return not join.side and not join.args.get("method") and join.kind in ("", "INNER", "CROSS")


def _is_wrapped(item: exp.Expr) -> bool:
    """True for a table or sub-query in parentheses without a name, with the joins that stand there."""
    others = any(value for key, value in item.args.items() if key != "this")
    return isinstance(item, exp.Subquery) and not others and isinstance(item.this, exp.Table | exp.Subquery)


def _freed(item: exp.Expr) -> list[exp.Join]:
    """The joins that hang on a table or sub-query, taken off."""
    joins: list[exp.Join] = item.args.get("joins") or []
    item.set("joins", None)
    return joins


def _turn(start: exp.From, join: exp.Join) -> None:
    left, right = start.this, join.this
    start.set("this", right.copy())
    join.set("this", left.copy())
    join.set("side", "LEFT")


def _tie(select: exp.Select, joins: list[exp.Join]) -> None:
    """Move the equations of WHERE to the joins without a condition that they are about."""
    before = {item.alias_or_name for item in from_items(select)[:1]}
    for join in joins:
        alias = join.this.alias_or_name
        on = join.args.get("on")
        bare = on is None or (isinstance(on, exp.Boolean) and on.this)
        if bare and not join.side and join.kind in ("", "CROSS") and not join.args.get("method"):
            _take(select, join, alias, before)
        before.add(alias)


def _take(select: exp.Select, join: exp.Join, alias: str, before: set[str]) -> None:
    where = select.args.get("where")
    taken: list[exp.Expr] = []
    kept: list[exp.Expr] = []
    for node in reversed(list(conjuncts(None if where is None else where.this))):
        sides = {side.table for side in (node.this, node.expression)} if _equates_columns(node) else set()
        tied = alias in sides and len(sides) == 2 and sides <= before | {alias}
        (taken if tied else kept).append(node)
    if taken:
        join.set("kind", None)
        join.set("on", exp.and_(*taken))
        select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)


def _equates_columns(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and all(
        isinstance(side, exp.Column) for side in (node.this, node.expression)
    )


def _forget_using(select: exp.Select, join: exp.Join) -> None:
    """Put a.x for COALESCE(a.x, b.x), where ON of the JOIN or LEFT JOIN that brings b in says a.x = b.x."""
    alias = join.this.alias_or_name
    meant: dict[frozenset[tuple[str, str]], exp.Column] = {}
    for node in conjuncts(join.args.get("on")):
        if _equates_columns(node) and alias in (node.this.table, node.expression.table):
            kept = node.this if node.expression.table == alias else node.expression
            if kept.table != alias:
                meant[frozenset(map(_place, (node.this, node.expression)))] = kept
    for node in list(select.find_all(exp.Coalesce)) if meant else ():
        columns = [node.this, *node.expressions]
        if len(columns) == 2 and all(isinstance(column, exp.Column) for column in columns):
            kept = meant.get(frozenset(map(_place, columns)))
            if kept is not None and node.find_ancestor(exp.Select) is select:
                node.replace(kept.copy())


def _place(column: exp.Column) -> tuple[str, str]:
    return column.table, column.name
