"""Which rows of a table a question can read at all: those whose dates lie below constants in its conditions.

Theorem. Let a leaf read a table T under the aliases a, b, ... anywhere in its FROM clause, and let each of
them have an end e such that one of these conditions, joined to others by AND alone, says x < e or x <= e for
T's column x: WHERE of the select that reads T; ON of the JOIN or LEFT JOIN that brings it in; WHERE further
out, about a column that projections without grouping or windows carry out unchanged. Then the leaf's rows are
the same for any two states of T that agree on all rows whose x lies below the largest of these ends.

Proof. A row of T whose x does not satisfy the condition, or is NULL, stands in no row of its select: an inner
join drops what it is joined to. In a LEFT JOIN with T on the right, the condition in ON keeps it from
matching. If the condition is in WHERE, the row on the other side survives neither joined to it nor alone, for
then x is NULL. A condition on a projected column may be moved below the projection.

Anything else (OR, NOT, a function of x, a constant with a time zone, FILTER, HAVING) confines nothing here,
and the question is about the whole table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.query.bounding import End, conjuncts, constant_in, limits_in
from incrowd.query.ownership import World
from incrowd.query.per_unit import is_aggregating
from incrowd.query.windows import has_windows

Ends = Mapping[str, End]
"""Upper ends by column."""


def upper_ends(select: exp.Select, world: World) -> dict[str, End]:
    """The end below which the question reads a table's periods, by table; none for tables it reads whole."""
    ends: dict[str, End] = {}
    whole: set[str] = set()
    scans = 0
    for table, known in _scans(select, {}):
        name = world.catalog.find(table)
        if name is None or not world.catalog.tables[name].private:
            continue
        scans += 1
        period = world.catalog.tables[name].period
        end = None if period is None else known.get(fold(period.column))
        if end is None:
            whole.add(name)
        else:
            ends[name] = max(ends.get(name, end), end, key=_order)
    tables = [world.catalog.find(table.name) for table in select.find_all(exp.Table)]
    if scans != sum(1 for name in tables if name is not None and world.catalog.tables[name].private):
        return {}
    return {name: end for name, end in ends.items() if name not in whole}


def is_below(end: End, moment: dt.datetime) -> bool:
    """Whether everything up to an end lies before a moment.

    >>> new_year = dt.datetime(2026, 1, 1)
    >>> is_below((new_year, True), new_year), is_below((new_year, False), new_year)
    (True, False)
    """
    constant, outside = end
    if not isinstance(constant, dt.datetime):
        return False
    return constant <= moment if outside else constant < moment


def _scans(select: exp.Select, outside: Ends) -> Iterator[tuple[str, Ends]]:
    """Every table that a select reads in FROM, with the ends of its columns.

    `outside` are the ends that conditions further out put on the select's own columns.
    """
    known: dict[tuple[str, str], End] = {}
    if not is_aggregating(select) and not select.args.get("distinct") and not has_windows(select):
        for projected in select.expressions:
            column = projected.unalias()
            if projected.alias_or_name in outside and isinstance(column, exp.Column):
                _note(known, column, outside[projected.alias_or_name])
    where, start = select.args.get("where"), select.args.get("from_")
    for column, end in _ends_in(None if where is None else where.this):
        _note(known, column, end)
    items = [] if start is None else [start.this]
    for join in select.args.get("joins") or ():
        items.append(join.this)
        if join.side in ("RIGHT", "FULL"):
            continue  # It keeps the rows on its right that match nothing.
        for column, end in _ends_in(join.args.get("on")):
            if column.table == join.this.alias_or_name:
                _note(known, column, end)
    for item in items:
        alias = item.alias_or_name
        ends = {name: end for (table, name), end in known.items() if table == alias}
        if isinstance(item, exp.Table):
            yield item.name, ends
        elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
            yield from _scans(item.this, ends)


def _note(known: dict[tuple[str, str], End], column: exp.Column, end: End) -> None:
    place = (column.table, column.name)
    known[place] = min(known.get(place, end), end, key=_order)


def _order(end: End) -> tuple[dt.datetime, bool]:
    """Ends in order: up to a moment without it comes before up to that moment."""
    assert isinstance(end[0], dt.datetime)
    return end[0], not end[1]


def _ends_in(condition: exp.Expr | None) -> Iterator[tuple[exp.Column, End]]:
    """The columns that a condition confines to moments up to a constant, with that."""
    for node in conjuncts(condition):
        if isinstance(node, exp.EQ | exp.In):
            listed = node.expressions if isinstance(node, exp.In) else [node.expression]
            moments = [constant_in(constant) for constant in listed]
            known = [moment for moment in moments if isinstance(moment, dt.datetime)]
            if isinstance(node.this, exp.Column) and known and len(known) == len(moments):
                yield node.this, (max(known), False)
        else:
            for column, _, high in limits_in(node):
                if high is not None and isinstance(high[0], dt.datetime):
                    yield column, high
