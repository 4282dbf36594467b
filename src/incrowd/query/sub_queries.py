"""What a sub-query in an expression says about the row around it.

A column of a sub-query that none of its own tables has belongs to the row around it. Conditions of WHERE that
name such columns are taken apart: `inner = outer` is a key, by which the sub-query can be grouped and joined;
everything else has to be computed for each row that may stand around it. Knows trees and nothing of people.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.bounding import conjuncts
from incrowd.query.ownership import RESERVED
from incrowd.query.per_unit import group_keys, is_aggregating, own_aggregates
from incrowd.query.sql import from_items
from incrowd.query.typed import said

INNER = f"{RESERVED}r"
"""The name under which the result of a grouping is read."""


@dataclass(frozen=True)
class Pair:
    """An expression of the sub-query that must equal one of the row around it; safe: NULL equals NULL."""

    inner: exp.Expr
    outer: exp.Expr
    safe: bool = False


@dataclass(frozen=True)
class Pulled:
    """A select without what its WHERE says about the row around it, and that."""

    select: exp.Select
    pairs: tuple[Pair, ...]
    others: tuple[exp.Expr, ...]


def outer_columns(node: exp.Expr, home: exp.Select) -> list[exp.Column]:
    """The columns in a part of a sub-query, or of all of it, that belong to the row around it."""
    return [column for column in node.find_all(exp.Column) if not _is_own(column, home)]


def _is_own(column: exp.Column, home: exp.Select) -> bool:
    """True if a select from where the column stands up to `home` reads its table."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        if any(item.alias_or_name == column.table for item in from_items(select)):
            return True
        if select is home:
            return False
        select = select.find_ancestor(exp.Select)
    return False


def pulled(select: exp.Select) -> Pulled:
    """The select with the conditions about the row around it taken out of its WHERE."""
    where = select.args.get("where")
    kept: list[exp.Expr] = []
    pairs: list[Pair] = []
    others: list[exp.Expr] = []
    for node in reversed(list(conjuncts(None if where is None else where.this))):
        if not outer_columns(node, select):
            kept.append(node.copy())
            continue
        pair = _pair(node, select)
        if pair is None:
            others.append(node.copy())
        else:
            pairs.append(pair)
    bare = select.copy()
    bare.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
    for column in outer_columns(bare, bare):
        raise QueryError(
            f"{column.name} belongs to another SELECT; a sub-query may look at the row around it only in its "
            "WHERE."
        )
    return Pulled(bare, tuple(pairs), tuple(others))


def _pair(node: exp.Expr, select: exp.Select) -> Pair | None:
    """The two sides of inner = outer; None for any other condition."""
    if not isinstance(node, exp.EQ) or node.find(exp.Query):
        return None
    sides = (node.this, node.expression)
    for inner, outer in (sides, sides[::-1]):
        own = list(inner.find_all(exp.Column))
        around = outer_columns(outer, select)
        if own and not outer_columns(inner, select) and len(around) == len(list(outer.find_all(exp.Column))):
            return Pair(inner.copy(), outer.copy())
    return None


def ungrouped(select: exp.Select) -> exp.Select:
    """The same rows by a select that neither groups nor removes duplicates.

    Keys are pulled out of a grouping together with the groups that they choose: a group of the sub-query for
    one outer row is a group by its own keys and by the pulled ones, for the value of that row.
    """
    if not is_aggregating(select):
        return _without(select, "distinct", "order")
    if select.args.get("group") is None:
        raise QueryError("A sub-query of aggregates has one row always; compare with its value instead.")
    part = pulled(_without(select, "order"))
    if part.others:
        raise QueryError(
            f"{said(part.others[0])} looks at the row around a sub-query that groups; put it outside of it, "
            "or write the sub-query without GROUP BY."
        )
    keys = group_keys(part.select)
    grouped = part.select
    for place, pair in enumerate(part.pairs):
        grouped = grouped.select(exp.alias_(pair.inner.copy(), f"{RESERVED}g{place}", quoted=True))
    grouped.set("group", exp.Group(expressions=[*keys, *(pair.inner.copy() for pair in part.pairs)]))
    tests = [
        exp.EQ(this=column_of(INNER, f"{RESERVED}g{place}"), expression=pair.outer.copy())
        for place, pair in enumerate(part.pairs)
    ]
    names = [column.alias_or_name for column in select.expressions]
    outside = exp.select(*[exp.alias_(column_of(INNER, name), name, quoted=True) for name in names])
    outside = outside.from_(exp.Subquery(this=grouped, alias=alias_of(INNER)))
    return outside.where(*tests) if tests else outside


def _without(select: exp.Select, *clauses: str) -> exp.Select:
    """A copy of a select without some clauses."""
    copy = select.copy()
    for clause in clauses:
        copy.set(clause, None)
    return copy


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression, each with its FILTER."""
    found = own_aggregates(node)
    return [part.parent if isinstance(part.parent, exp.Filter) else part for part in found]


def column_of(table: str, name: str) -> exp.Column:
    """A column by table and name."""
    return exp.column(name, table=table, quoted=True)


def alias_of(name: str) -> exp.TableAlias:
    """A quoted alias."""
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
