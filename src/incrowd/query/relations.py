"""FROM clauses, sub-queries and joins as relations whose every row belongs to one unit.

The invariant (call it *ownership*): each row of a private relation is a function of the rows of exactly one
unit, and the relation carries that unit's columns. Adding or removing a unit then adds or removes its own rows
and changes no other. What keeps ownership:

- a private table has it by declaration (rows without a unit, NULL, belong to nobody and are left out);
- filters, projections and expressions work on one row;
- a join with a public table works on one private row (it may multiply it: weights bound that);
- a join of private tables on all of the unit's columns combines rows of one unit;
- an aggregation or DISTINCT whose keys contain the unit's columns combines rows of one unit.

Everything else over private rows is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from incrowd.catalog import Catalog
from incrowd.errors import QueryError
from incrowd.query.expressions import condition, total
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Field, Typed, enumerated, field_of, lookup_in

if TYPE_CHECKING:
    from incrowd.query.typed import Lookup

UNIT = "__u"
ROW = "__row"


@dataclass(frozen=True)
class World:
    """What the planner may know: the owner's catalog, and the columns of public tables that it leaves open."""

    catalog: Catalog
    public_columns: Mapping[str, Mapping[str, Field]]

    def fields(self, table: str) -> dict[str, Field]:
        """The columns of a declared table, by folded name."""
        declared = self.catalog.tables[table]
        found = {} if declared.private else {name.casefold(): each for name, each in self.public_columns.get(table, {}).items()}
        unit = declared.unit.columns if declared.unit else ()
        for name, column in declared.columns.items():
            found[name.casefold()] = replace(field_of(table, name, column), per_unit=name in unit)
        if not declared.private:
            # What a public table holds is public: its columns are their own domains.
            return {
                name: each if each.values is not None or each.domain is not None else replace(each, domain=each.name)
                for name, each in found.items()
            }
        return found


@dataclass(frozen=True)
class Relation:
    """A FROM item: SQL that selects it, its columns, and the unit's columns among them.

    units is None for public relations; () where each row is a unit of its own and nothing has multiplied rows.
    """

    sql: exp.Expression
    fields: Mapping[str, Field]
    units: tuple[str, ...] | None
    tables: tuple[str, ...] = ()
    materialize: bool = False

    @property
    def private(self) -> bool:
        """Whether it holds rows about people."""
        return self.units is not None


@dataclass(frozen=True)
class Sources:
    """A select's FROM and JOINs together."""

    items: Mapping[str, Relation]
    from_: exp.From
    joins: list[exp.Join]
    units: tuple[exp.Column, ...] | None

    @property
    def lookup(self) -> Lookup:
        """How the select's columns resolve."""
        return lookup_in({alias: each.fields for alias, each in self.items.items()})

    @property
    def tables(self) -> tuple[str, ...]:
        """The private tables below."""
        return tuple(dict.fromkeys(name for each in self.items.values() for name in each.tables))

    @property
    def materialize(self) -> bool:
        """Whether rows must be computed once (their unit is a number given on the way)."""
        return any(each.materialize for each in self.items.values())


def sources(select: exp.Select, world: World) -> Sources:
    """The relations that a select reads, joined so that ownership holds."""
    start = select.args.get("from_")
    if start is None:
        raise QueryError("The question names no table; add FROM and a table of the catalog.")
    joins: list[exp.Join] = select.args.get("joins") or []
    multiplies = bool(joins)
    first = _relation(start.this, world, multiplies)
    items = {start.this.alias_or_name: first}
    units = _unit_columns(start.this.alias_or_name, first)
    done: list[exp.Join] = []
    for join in joins:
        alias = join.this.alias_or_name
        right = _relation(join.this, world, multiplies)
        before = units
        items[alias] = right
        lookup = lookup_in({name: each.fields for name, each in items.items()})
        on = join.args.get("on")
        test = None if on is None else condition(on, lookup, "JOIN ... ON")
        side, kind = join.side.upper(), join.kind.upper()
        if join.args.get("method") or kind not in ("", "INNER", "CROSS", "OUTER") or join.args.get("using"):
            raise QueryError(f"{join.sql(DIALECT)} is not possible here; use JOIN ... ON or LEFT JOIN ... ON.")
        if side == "RIGHT" and before is None and right.private:
            _swap_hint(alias)
        if side in ("RIGHT", "FULL"):
            raise QueryError(f"A {side} JOIN is not possible here; use JOIN, or LEFT JOIN with the private table on the left.")
        if right.private and before is not None:
            if not _joins_on_unit(test, before, _unit_columns(alias, right) or ()):
                raise QueryError(
                    f"Joining {alias} would mix rows of different people; join private tables on the protected unit "
                    f"({_said(items)}), with AND for more conditions."
                )
        elif right.private:
            if side == "LEFT":
                _swap_hint(alias)
            units = _unit_columns(alias, right)
        done.append(
            exp.Join(this=right.sql, on=None if test is None else test.sql, side=join.side or None, kind=join.kind or None)
        )
        if side == "LEFT":
            items[alias] = replace(right, fields={name: replace(each, nullable=True) for name, each in right.fields.items()})
    return Sources(items, exp.From(this=first.sql), done, units)


def _swap_hint(alias: str) -> None:
    raise QueryError(f"Put the private table {alias} first: FROM {alias} LEFT JOIN the public table.")


def _said(items: Mapping[str, Relation]) -> str:
    names = [f"{alias}.{field.name.partition('.')[2] or name}" for alias, each in items.items() for name, field in each.fields.items() if field.per_unit]
    return " = ".join(names) or "each row is a unit of its own here, so it cannot be joined to other private rows"


def _unit_columns(alias: str, relation: Relation) -> tuple[exp.Column, ...] | None:
    if relation.units is None:
        return None
    return tuple(exp.column(name, table=alias, quoted=True) for name in relation.units)


def _joins_on_unit(test: Typed | None, left: tuple[exp.Column, ...], right: tuple[exp.Column, ...]) -> bool:
    """Whether the condition contains left = right for every column of the unit."""
    if test is None or not left or len(left) != len(right):
        return False
    pairs = set()
    todo = [test.sql]
    while todo:
        node = todo.pop()
        if isinstance(node, exp.And):
            todo += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            todo.append(node.this)
        elif isinstance(node, exp.EQ):
            pairs.add(frozenset((node.this.sql(DIALECT), node.expression.sql(DIALECT))))
    return all(frozenset((a.sql(DIALECT), b.sql(DIALECT))) in pairs for a, b in zip(left, right, strict=True))


def _relation(node: exp.Expression, world: World, multiplies: bool) -> Relation:
    if isinstance(node, exp.Table):
        return _table(node, world, multiplies)
    if isinstance(node, exp.Subquery):
        inner = node.this
        if not isinstance(inner, exp.Select):
            raise QueryError("UNION and the like over private rows are not possible; ask each part by itself.")
        rows = select_rows(inner, world, multiplies)
        return replace(rows, sql=exp.Subquery(this=rows.sql, alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))))
    raise QueryError(f"{node.sql(DIALECT)} cannot stand in FROM here; name a table of the catalog or a sub-query.")


def _table(node: exp.Table, world: World, multiplies: bool) -> Relation:
    name = world.catalog.find(node.name)
    if name is None or node.args.get("db"):
        known = ", ".join(sorted(world.catalog.tables))
        raise QueryError(f"There is no table {node.sql(DIALECT)} in the catalog; it has {known}.".replace('"', ""))
    for modifier in ("sample", "pivots", "laterals", "when", "ordinality", "hints"):
        if node.args.get(modifier):
            raise QueryError(f"Table {name} is used with a modifier that is not possible here; sample or pivot after the release.")
    declared = world.catalog.tables[name]
    alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))
    fields = world.fields(name)
    scan = exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias)
    if not declared.private or declared.unit is None:
        return Relation(scan, fields, None)
    if not declared.unit.is_row:
        return Relation(scan, fields, tuple(each.casefold() for each in declared.unit.columns), (name,))
    if not multiplies:
        return Relation(scan, fields, (), (name,))
    # A join may multiply rows, so each row gets a number, once, to be known by afterwards.
    number = exp.alias_(exp.Window(this=exp.RowNumber()), ROW, quoted=True)
    numbered = exp.select(exp.Star(), number).from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
    return Relation(exp.Subquery(this=numbered, alias=alias), fields, (ROW,), (name,), materialize=True)


def select_rows(select: exp.Select, world: World, multiplies: bool) -> Relation:
    """A sub-query as a relation: a projection, or an aggregation per unit."""
    from incrowd.query.per_unit import aggregate_per_unit, is_aggregating

    refuse_clauses(select)
    below = sources(select, world)
    private = below.units is not None
    if is_aggregating(select) or select.args.get("distinct"):
        return aggregate_per_unit(select, below)
    if multiplies and below.units == ():
        raise QueryError("Each row is a unit of its own here; join the table itself, not a sub-query of it.")
    lookup = below.lookup
    fields: dict[str, Field] = {}
    projections: list[exp.Expression] = []
    for each in select.expressions:
        name = each.alias_or_name
        typed = total(each.unalias(), lookup)
        projections.append(exp.alias_(typed.sql, name, quoted=True))
        fields[name] = field_from(each.unalias(), typed, below, name)
    for index, column in enumerate(below.units or ()):
        projections.append(exp.alias_(column.copy(), f"{UNIT}{index}", quoted=True))
    rows = exp.Select(expressions=projections, from_=below.from_, joins=below.joins)
    where = select.args.get("where")
    if where is not None:
        rows = rows.where(condition(where.this, lookup, "WHERE").sql)
    units = tuple(f"{UNIT}{index}" for index in range(len(below.units or ()))) if private else None
    return Relation(rows, fields, units, below.tables, below.materialize)


def field_from(node: exp.Expression, typed: Typed, below: Sources, name: str) -> Field:
    """The facts of a projected column; a plain column keeps all that was declared of it."""
    if isinstance(node, exp.Column):
        source = below.items[node.table].fields[node.name]
        is_unit = below.units is not None and any(node.sql() == each.sql() for each in below.units)
        return replace(source, per_unit=source.per_unit or is_unit)
    values = typed.values
    limits = None
    if typed.kind == "integer" and typed.low is not None and typed.high is not None:
        limits = (int(typed.low), int(typed.high))
    return Field(typed.kind, typed.low, typed.high, typed.nullable, values, None, name, None, limits)


def refuse_clauses(select: exp.Select) -> None:
    """Clauses that no select over private rows may have."""
    reasons = {
        "limit": "LIMIT",
        "offset": "OFFSET",
        "qualify": "QUALIFY",
        "sample": "SAMPLE",
        "windows": "WINDOW",
        "laterals": "LATERAL",
        "pivots": "PIVOT",
        "connect": "CONNECT BY",
        "match": "MATCH_RECOGNIZE",
        "into": "INTO",
    }
    for key, said in reasons.items():
        if select.args.get(key):
            raise QueryError(f"{said} over private rows is not possible; use it on the released result, in the outermost SELECT.")
    known = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "kind", "hint", "operation_modifiers", "with_"}
    for key, value in select.args.items():
        if value and key not in known and key not in reasons:
            raise QueryError(f"The clause {key.strip('_').upper()} is not understood over private rows; leave it out.")


__all__ = ["ROW", "UNIT", "Relation", "Sources", "World", "enumerated", "field_from", "refuse_clauses", "select_rows", "sources"]
