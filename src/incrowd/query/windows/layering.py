"""A SELECT with windows as three SELECTs, one inside the other: rows, windows, and what is made of both.

    rows      what the FROM clause, WHERE and GROUP BY yield: the columns that are read, and the unit's
    windows   the same rows, with each window as one more column
    select    the SELECT list over these columns; QUALIFY is its WHERE

So every window reads plain columns, and none stands inside an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.catalog.types import NUMERIC
from incrowd.errors import QueryError
from incrowd.query.above import specified
from incrowd.query.combining import as_float
from incrowd.query.ownership import RESERVED, Relation, Sources, carry_units, sources_of
from incrowd.query.per_unit import aggregate_per_unit, group_keys, is_aggregating, of_window
from incrowd.query.sub_queries import alias_of, column_of
from incrowd.query.typed import Typed, double, said
from incrowd.query.windows.window_functions import window_column

_Thing = TypeVar("_Thing")
OWN = f"{RESERVED}own"
"""The name under which the rows of a layer are read by the next."""


def has_windows(select: exp.Select) -> bool:
    """Whether a select computes or tests windows at its own level."""
    return any(part.find(exp.Window) is not None for part in _parts(select))


def in_layers(select: exp.Select, below: Sources) -> tuple[exp.Select, Sources]:
    """The select without windows, and the sources that have their values as columns."""
    select = _written_out(select)
    if is_aggregating(select):
        select, below = _grouped(select, below)
    parts = _parts(select)
    columns = {(column.table, column.name): column for part in parts for column in part.find_all(exp.Column)}
    for place in [(alias, name) for alias, held in below.items.items() for name in held.fields]:
        if below.items[place[0]].private and below.items[place[0]].fields[place[1]].unit:
            columns.setdefault(place, column_of(*place))
    names = _named({place: column.name for place, column in columns.items()}, set())

    def moved(node: exp.Expr) -> exp.Expr:
        return node.copy().transform(
            lambda part: (
                column_of(OWN, names[part.table, part.name]) if isinstance(part, exp.Column) else part
            )
        )

    rows = _alone(_read(select, below, {names[place]: column for place, column in columns.items()}))
    windows = _named(_windows(select, parts), set(names.values()))
    computed = _alone(_with_windows(rows, {name: moved(window) for window, name in windows.items()}))

    def final(node: exp.Expr) -> exp.Expr:
        return moved(
            node.copy().transform(
                lambda part: column_of(OWN, windows[part]) if isinstance(part, exp.Window) else part
            )
        )

    names |= {(OWN, name): name for name in windows.values()}
    outer = exp.Select(distinct=select.args.get("distinct"))
    for column in select.expressions:
        alias = exp.alias_(final(column.unalias()), column.alias_or_name, quoted=True)
        outer = outer.select(alias, copy=False)
    qualify = select.args.get("qualify")
    return (outer if qualify is None else outer.where(final(qualify.this))), computed


def _windows(select: exp.Select, parts: list[exp.Expr]) -> dict[exp.Expr, str]:
    """Each window of a select, with what it is called there."""
    windows = {column.unalias(): column.alias_or_name for column in select.expressions}
    windows = {node: name for node, name in windows.items() if isinstance(node, exp.Window)}
    for part in parts:
        for window in part.find_all(exp.Window):
            if window.find_ancestor(exp.Window) is not None:
                raise QueryError(f"{said(window)} stands in another window; compute it in a sub-query first.")
            windows.setdefault(window, said(window))
    return {window.copy(): name for window, name in windows.items()}


def _named(things: Mapping[_Thing, str], taken: set[str]) -> dict[_Thing, str]:
    """A name for each thing: its own, for messages, unless another has it."""
    names: dict[_Thing, str] = {}
    used = {fold(name) for name in taken}
    for thing, own in things.items():
        free = bool(own) and fold(own) not in used and not own.startswith(RESERVED)
        names[thing] = own if free else f"{RESERVED}c{len(used)}"
        used.add(fold(names[thing]))
    return names


def _parts(select: exp.Select) -> list[exp.Expr]:
    """What a select computes from its rows."""
    qualify = select.args.get("qualify")
    return [column.unalias() for column in select.expressions] + ([] if qualify is None else [qualify.this])


def _written_out(select: exp.Select) -> exp.Select:
    """The select with the windows that WINDOW names written where they are used."""
    named = {fold(window.name): window for window in select.args.get("windows") or []}
    written = select.copy()
    written.set("windows", None)
    for window in [window for part in _parts(written) for window in part.find_all(exp.Window)]:
        window.replace(specified(window, named))
    return written


def _grouped(select: exp.Select, below: Sources) -> tuple[exp.Select, Sources]:
    """A select that groups, and whose windows run over its groups: the windows' part, over the groups."""
    keys = group_keys(select)
    names = _named({key.copy(): key.alias_or_name for key in keys}, set())

    def swap(part: exp.Expr) -> exp.Expr:
        function = part.this if isinstance(part, exp.Filter) else part
        aggregate = isinstance(function, exp.AggFunc) and not of_window(function)
        if part not in names and not aggregate:
            if isinstance(part, exp.Column):
                raise QueryError(f"{part.name} must be in GROUP BY or inside an aggregate.")
            return part
        return column_of(OWN, names.setdefault(part.copy(), f"{RESERVED}a{len(names)}"))

    outer = exp.Select(distinct=select.args.get("distinct"))
    for column in select.expressions:
        moved = column.unalias().copy().transform(swap)
        outer = outer.select(exp.alias_(moved, column.alias_or_name, quoted=True), copy=False)
    qualify = select.args.get("qualify")
    if qualify is not None:
        outer.set("qualify", exp.Qualify(this=qualify.this.copy().transform(swap)))
    inner = select.copy()
    for clause in ("qualify", "distinct", "order"):
        inner.set(clause, None)
    inner.set("expressions", [exp.alias_(node.copy(), name, quoted=True) for node, name in names.items()])
    inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return outer, _alone(aggregate_per_unit(inner, below))


def _read(select: exp.Select, below: Sources, columns: dict[str, exp.Column]) -> Relation:
    """The rows of a select with the columns that it reads, whose zeros have no sign."""
    rows = below.select(select.args.get("where"))
    fields = {}
    for name, column in columns.items():
        typed = below.lookup(column)
        rows = rows.select(exp.alias_(_unsigned(typed), name, quoted=True), copy=False)
        fields[name] = below.field(column)
    units, rows = carry_units(rows, below)
    return Relation(rows, fields, units, below.tables, below.materialize, below.single, below.plain)


def _unsigned(typed: Typed) -> exp.Expr:
    """A value as it is read, with one zero in place of two."""
    if typed.kind not in NUMERIC or typed.integral:
        return typed.sql
    return exp.Add(this=as_float(typed, "").sql, expression=double(0.0))


def _with_windows(rows: Sources, windows: dict[str, exp.Expr]) -> Relation:
    """The rows of the layer below, with windows as further columns."""
    (relation,) = rows.items.values()
    picked = rows.select(None)
    fields = dict(relation.fields)
    for name in relation.fields:
        picked = picked.select(exp.alias_(column_of(OWN, name), name, quoted=True), copy=False)
    for name, window in windows.items():
        assert isinstance(window, exp.Window)
        sql, fields[name] = window_column(window, rows)
        picked = picked.select(exp.alias_(sql, name, quoted=True), copy=False)
    units, picked = carry_units(picked, rows)
    return replace(relation, sql=picked, fields=fields, units=units)


def _alone(relation: Relation) -> Sources:
    """A relation as all that a select reads."""
    return sources_of(OWN, replace(relation, sql=exp.Subquery(this=relation.sql, alias=alias_of(OWN))))
