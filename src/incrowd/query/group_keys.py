"""Group keys: public ones with the query that lists them, private ones without.

A key is public if its values can be listed without looking at private rows: from the query's own text (CASE
with constants, truth values, parts of dates, WHERE x IN (...)), from the declared domain of its columns, by
counting through narrow bounds, or from the bins that bounds make (`bins`). The list is then every value of
the expression over the product of those domains. The query that lists them is built as a tree, never from
text: names in it are the analyst's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from incrowd.catalog.types import SQL_TYPES, TIMES
from incrowd.errors import QueryError
from incrowd.query.bins import MOST_BINS, bins_of
from incrowd.query.bounding import conjuncts, limits_in, narrower
from incrowd.query.casts import as_whole
from incrowd.query.combining import as_float, in_calendar
from incrowd.query.expressions import total
from incrowd.query.ownership import Relation, Sources
from incrowd.query.plan import Key
from incrowd.query.sql import DIALECT
from incrowd.query.typed import ENUMERABLE, Field, Typed, enumerated, literal, lookup_in, said

Columns = Mapping[tuple[str, str], Field]


def narrowed(below: Sources, where: exp.Expr | None) -> Sources:
    """The sources with what WHERE says about their columns.

    x IN (...) and x = ... list the values there are; x < ... and the like narrow declared bounds. Only what
    every row must satisfy counts: conditions joined by AND.
    """
    items: dict[str, Relation] = dict(below.items)
    for node in conjuncts(where):
        if isinstance(node, exp.In | exp.EQ) and isinstance(node.this, exp.Column):
            column = node.this
            listed = node.expressions if isinstance(node, exp.In) else [node.expression]
            field = items[column.table].fields[column.name]
            values = _constants(listed, field, below)
            if not values:
                continue
            kept = (
                values if field.values is None else tuple(value for value in values if value in field.values)
            )
            _note(items, column, replace(field, values=kept, nullable=False, domain=None))
        else:
            for column, low, high in limits_in(node):
                known = narrower(items[column.table].fields[column.name], low, high)
                _note(items, column, known)
    return replace(below, items=items)


def _note(items: dict[str, Relation], column: exp.Column, known: Field) -> None:
    """Replace what is known of a column."""
    relation = items[column.table]
    items[column.table] = replace(relation, fields={**relation.fields, column.name: known})


def _constants(nodes: Sequence[exp.Expr], field: Field, below: Sources) -> tuple[Any, ...]:
    """The values of constants of the field's kind; none if one of them is anything else."""
    wanted = {"integer": int, "text": str}.get(field.kind)
    if wanted is None:
        return ()
    values = []
    for node in nodes:
        if node.find(exp.Column, exp.Query):
            return ()
        typed = total(node, below.lookup)
        if typed.nullable or typed.values is None or len(typed.values) != 1:
            return ()
        value = typed.values[0]
        if type(value) is not wanted:
            return ()
        values.append(value)
    return tuple(dict.fromkeys(values))


def key_for(index: int, node: exp.Expr, below: Sources) -> Key:
    """The key of one GROUP BY expression."""
    typed = total(node, below.lookup)
    label = node.name if isinstance(node, exp.Column) else said(node)
    if isinstance(node, exp.Column) and below.field(node).unit == "column":
        raise QueryError(
            f"Grouping by {label} would single out each protected unit; group by something that many of "
            f"them share, or count them with COUNT(DISTINCT {label})."
        )
    if typed.kind == "null":
        raise QueryError("GROUP BY NULL makes no groups; leave it out.")
    columns = {(column.table, column.name): below.field(column) for column in _own_columns(node)}
    if isinstance(node, exp.Column) and typed.values is not None:
        listed = (*typed.values, None) if typed.nullable else tuple(typed.values)
        return Key(
            f"k{index}",
            as_key(typed),
            typed.kind,
            None,
            label,
            listed,
            below.field(node).unlisted,
            nullable=typed.nullable,
        )
    domain = _domain(node, typed, columns)
    note = " ".join(field.unlisted for field in columns.values() if field.unlisted)
    key = Key(f"k{index}", as_key(typed), typed.kind, domain, label, note=note, nullable=typed.nullable)
    return key if key.public else _binned(key, node, typed, below)


def _binned(key: Key, node: exp.Expr, typed: Typed, below: Sources) -> Key:
    """The key, public if bins take the place of all columns that cannot be listed."""
    bins: dict[str, tuple[exp.Column, Field]] = {}

    def placed(part: exp.Expr) -> exp.Expr:
        text = part.sql(DIALECT)
        if text not in bins:
            known = bins_of(part, below.lookup, below.field)
            if known is None:
                return part
            bins[text] = (exp.column(f"b{len(bins)}", table="bins", quoted=True), known)
        return bins[text][0].copy()

    replaced = _replaced(node.copy(), placed)
    if not bins:
        return key
    fields = {(column.table, column.name): field for column, field in bins.values()}
    if isinstance(replaced, exp.Column):
        (field,) = fields.values()
        assert field.values is not None
        return replace(key, values=(*field.values, None) if field.nullable else field.values, bins=True)
    columns: dict[tuple[str, str], Field] = {
        (column.table, column.name): fields.get((column.table, column.name)) or below.field(column)
        for column in _own_columns(replaced)
    }
    size = _size(columns)
    if size is None or size > ENUMERABLE:
        return key
    return replace(key, domain=_evaluated(replaced, typed, columns), bins=True)


def _replaced(node: exp.Expr, placed: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression with its outermost bins replaced."""
    if isinstance(node, exp.Query | exp.Column | exp.Literal):
        return node
    other = placed(node)
    if other is not node:
        return other
    for name, argument in list(node.args.items()):
        if isinstance(argument, exp.Expr):
            node.set(name, _replaced(argument, placed))
        elif isinstance(argument, list):
            node.set(
                name, [_replaced(part, placed) if isinstance(part, exp.Expr) else part for part in argument]
            )
    return node


def without_bins(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """The keys, those by bins private if together there are too many combinations to show the empty ones."""
    size = math.prod(len(key.values) for key in keys if key.values is not None)
    if size <= MOST_BINS:
        return keys
    return tuple(replace(key, values=None, domain=None, bins=False) if key.bins else key for key in keys)


def _own_columns(node: exp.Expr) -> list[exp.Column]:
    """The columns of an expression, not those of public sub-queries inside it."""
    others = {id(column) for query in node.find_all(exp.Select) for column in query.find_all(exp.Column)}
    return [column for column in node.find_all(exp.Column) if id(column) not in others]


def as_key(typed: Typed) -> exp.Expr:
    """A key in its kind's own type: whole numbers as such (they are computed in float64), one zero of two."""
    if typed.kind == "integer":
        return as_whole(typed)
    if typed.kind == "float":
        return exp.Add(this=as_float(typed, "GROUP BY").sql, expression=literal(0.0))
    if typed.kind in TIMES:
        return in_calendar(typed).sql
    return typed.sql


def _domain(node: exp.Expr, typed: Typed, columns: Columns) -> exp.Query | None:
    size = _size(columns)
    many = size is None or size > ENUMERABLE
    if not isinstance(node, exp.Column) and typed.values is not None and (not columns or many):
        return _values(typed.values, typed.nullable, typed.kind)
    return None if many else _evaluated(node, typed, columns)


def _evaluated(node: exp.Expr, typed: Typed, columns: Columns) -> exp.Query:
    """The values of an expression over all combinations of the values of its columns."""
    scope: dict[str, dict[str, Field]] = {}
    listed = exp.Select()
    for place, field in enumerate(columns.values()):
        domain = exp.Subquery(this=column_values(field), alias=_alias(f"d{place}"))
        listed = listed.from_(domain) if place == 0 else listed.join(domain, join_type="cross")
        scope.setdefault(f"d{place}", {})["v"] = field
    places = {key: exp.column("v", table=f"d{place}", quoted=True) for place, key in enumerate(columns)}

    def placed(part: exp.Expr) -> exp.Expr:
        return places.get((part.table, part.name), part) if isinstance(part, exp.Column) else part

    again = as_key(total(node.copy().transform(placed), lookup_in(scope)))
    cast = exp.cast(again, SQL_TYPES[typed.kind])
    return listed.select(exp.alias_(cast, "v")).distinct()


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _size(columns: Columns) -> int | None:
    """How many combinations of values the columns have; None where one of them cannot be listed."""
    size = 1
    for field in columns.values():
        values = enumerated(field)
        if values is None and field.domain is None:
            return None
        size *= len(values or ()) + 1
    return size


def column_values(field: Field) -> exp.Query:
    """The public values of a column, under the name v."""
    if field.domain is None:
        return _values(enumerated(field) or (), field.nullable, field.kind)
    table, _, column = field.domain.partition(".")
    looked_up = exp.column(column, quoted=True)
    cast = exp.cast(looked_up, SQL_TYPES[field.kind])
    there = exp.Not(this=exp.Is(this=looked_up.copy(), expression=exp.null()))
    scan = exp.Table(this=exp.to_identifier(table, quoted=True))
    listed = exp.select(exp.alias_(cast, "v")).from_(scan).where(there).distinct()
    if not field.nullable:
        return listed
    return exp.union(listed, _values((None,), False, field.kind), distinct=False)


def _values(values: Sequence[Any], nullable: bool, kind: str) -> exp.Query:
    """A list of constants as a table of one column, v."""
    listed: list[Any] = [*values, *([None] if nullable else [])]
    rows = [exp.Tuple(expressions=[exp.cast(literal(value), SQL_TYPES[kind])]) for value in listed]
    if not rows:
        nothing = exp.alias_(exp.cast(exp.null(), SQL_TYPES[kind]), "v")
        return exp.select(nothing).where(exp.false())
    alias = exp.TableAlias(this=exp.to_identifier("listed"), columns=[exp.to_identifier("v")])
    return exp.select("v").from_(exp.Values(expressions=rows, alias=alias))
