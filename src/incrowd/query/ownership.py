"""FROM clauses, sub-queries and joins as relations whose every row belongs to one unit.

The invariant (call it *ownership*): each row of a private relation is a function of the rows of exactly one
unit, and the relation carries that unit's columns. Adding or removing a unit then adds or removes its own
rows and changes no other. What keeps ownership:

- a private table has it by declaration (rows without a unit, NULL, belong to nobody and are left out);
- filters, projections and expressions work on one row;
- a join with a public table works on one private row (it may multiply it: weights bound that);
- a join of private tables on all of the unit's columns combines rows of one unit;
  (a field marked as the unit's is never anything else in a private row: a join takes the mark off a side that
  may be missing, see `joining`)
- an aggregation or DISTINCT whose keys contain the unit's columns combines rows of one unit;
- UNION ALL keeps rows, and set operations that show the unit compare rows of one unit (`stacking`).

Everything else over private rows is refused, and so is every modifier that is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.catalog import Catalog
from incrowd.catalog.names import fold
from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.expressions import condition, total
from incrowd.query.growth import weight_of
from incrowd.query.typed import Field, Lookup, Typed, field_of, lookup_in, said

RESERVED = "__"
"""The prefix of the planner's own names in SQL; the user's names may not start with it."""
UNIT = f"{RESERVED}u"
ROW = f"{RESERVED}row"


@dataclass(frozen=True)
class World:
    """What the planner knows: the catalog, and the columns of public tables that it does not declare."""

    catalog: Catalog
    public_columns: Mapping[str, Mapping[str, Field]]

    def fields(self, table: str) -> dict[str, Field]:
        """The columns of a declared table, by folded name."""
        declared = self.catalog.tables[table]
        fields: dict[str, Field] = {}
        if not declared.private:
            fields = {fold(name): field for name, field in self.public_columns.get(table, {}).items()}
        for name, column in declared.columns.items():
            fields[fold(name)] = field_of(
                table, name, column, self.catalog.bought_of(table).columns.get(name)
            )
        if declared.unit is not None:
            for name, part in zip(declared.unit.columns, ("column", "partition"), strict=False):
                fields[fold(name)] = replace(fields[fold(name)], unit=part)  # type: ignore[arg-type]
        if declared.private:
            return fields
        # The values in a public table are public, so each column is its own domain.
        return {
            name: field if field.values is not None or field.domain else replace(field, domain=field.name)
            for name, field in fields.items()
        }

    def private(self, node: exp.Expr) -> bool:
        """Whether a tree reads a private table anywhere."""
        names = [self.catalog.find(table.name) for table in node.find_all(exp.Table)]
        return any(name is not None and self.catalog.tables[name].private for name in names)


@dataclass(frozen=True)
class Relation:
    """A FROM item: SQL that selects it, its columns, and the unit's columns among them.

    units is None for public relations; () where each row is a unit of its own and nothing can multiply it.
    """

    sql: exp.Expr
    fields: Mapping[str, Field]
    units: tuple[str, ...] | None
    tables: tuple[str, ...] = ()
    materialize: bool = False
    single: bool = False
    """Whether no unit has more than one row."""
    plain: bool = False
    """Whether each row is another row of one private table, so that a unit has no more rows than there."""
    unique: frozenset[str] | None = None
    """Columns by whose values there is at most one row; None where none are known."""

    @property
    def private(self) -> bool:
        """Whether it holds rows about people."""
        return self.units is not None


@dataclass(frozen=True)
class Sources:
    """A select's FROM and JOINs together."""

    items: Mapping[str, Relation]
    from_: exp.From
    joins: tuple[exp.Join, ...]
    units: tuple[exp.Expr, ...] | None
    """What holds the unit: columns, or COALESCE of the two sides of a FULL JOIN."""
    single: bool = False
    unmultiplied: bool = True
    """Whether each row is another row of the first relation."""

    @property
    def lookup(self) -> Lookup:
        """Resolves the columns of the select."""
        return lookup_in({alias: relation.fields for alias, relation in self.items.items()})

    @property
    def tables(self) -> tuple[str, ...]:
        """The private tables below."""
        return tuple(dict.fromkeys(name for relation in self.items.values() for name in relation.tables))

    @property
    def plain(self) -> bool:
        """Whether each row is another row of one private table."""
        return self.unmultiplied and next(iter(self.items.values())).plain

    @property
    def materialize(self) -> bool:
        """True if rows must be computed once, because they are numbered while they are read."""
        return any(relation.materialize for relation in self.items.values())

    @property
    def parts(self) -> tuple[str, ...]:
        """What the unit consists of: a column, or a column and a partition."""
        return unit_parts(None if self.units is None else [column.name for column in self.units])

    def field(self, column: exp.Column) -> Field:
        """The facts of a column."""
        self.lookup(column)
        return self.items[column.table].fields[column.name]

    def select(self, where: exp.Where | None) -> exp.Select:
        """A select over these sources, without columns yet."""
        rows = exp.Select(from_=self.from_.copy(), joins=[join.copy() for join in self.joins])
        return rows if where is None else rows.where(condition(where.this, self.lookup, "WHERE").sql)


def sources(select: exp.Select, world: World, numbered: bool = False) -> Sources:
    """The relations that a select reads, joined so that ownership holds.

    numbered: True if rows that are units of their own need a number, because a join above may multiply them.
    """
    from incrowd.query.joining import joined

    start = select.args.get("from_")
    if start is None:
        raise QueryError("The question names no table; add FROM and a table of the catalog.")
    joins: list[exp.Join] = select.args.get("joins") or []
    numbered = numbered or bool(joins)
    alias = start.this.alias_or_name
    below = sources_of(alias, _relation(start.this, world, numbered))
    for join in joins:
        _only(join, "this", "on", "side", "kind")
        below = joined(below, join, _relation(join.this, world, numbered))
    return below


def sources_of(alias: str, first: Relation) -> Sources:
    """A relation as all that a select reads."""
    return Sources({alias: first}, exp.From(this=first.sql), (), unit_columns(alias, first), first.single)


def _only(node: exp.Expr, *allowed: str) -> None:
    """Fail closed on modifiers of a FROM item."""
    for key, value in node.args.items():
        if value and key not in allowed:
            word = {"method": str(value), "using": "USING"}.get(key, key.strip("_"))
            raise QueryError(
                f"{word.upper()} on {node.alias_or_name or 'a join'} is not possible over private rows; "
                "use plain tables, sub-queries, JOIN ... ON and LEFT JOIN ... ON."
            )
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        raise QueryError(f"Name the columns of {alias.name} inside its SELECT, with AS.")


def unit_columns(alias: str, relation: Relation) -> tuple[exp.Expr, ...] | None:
    """The unit's columns in a FROM item; None if it is public."""
    if relation.units is None:
        return None
    return tuple(exp.column(name, table=alias, quoted=True) for name in relation.units)


def unit_parts(units: Sequence[object] | None) -> tuple[str, ...]:
    """The values of `Field.unit` for the unit's columns; none if each row is a unit, which has no column."""
    if not units or list(units) == [ROW]:
        return ()
    return ("column", "partition")[: len(units)]


def _relation(node: exp.Expr, world: World, numbered: bool) -> Relation:
    if isinstance(node, exp.Table):
        return _table(node, world, numbered)
    if isinstance(node, exp.Subquery):
        _only(node, "this", "alias")
        if isinstance(node.this, exp.SetOperation):
            from incrowd.query.stacking import stacked

            rows = stacked(node.this, world)
            return replace(rows, sql=exp.Subquery(this=rows.sql, alias=_alias(node)))
        if not isinstance(node.this, exp.Select):
            raise QueryError(f"{said(node)} cannot stand in FROM here; write a SELECT in its brackets.")
        rows = select_rows(node.this, world, numbered)
        return replace(rows, sql=exp.Subquery(this=rows.sql, alias=_alias(node)))
    raise QueryError(f"{said(node)} cannot stand in FROM here; name a table of the catalog or a sub-query.")


def _alias(node: exp.Expr) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))


def _table(node: exp.Table, world: World, numbered: bool) -> Relation:
    _only(node, "this", "alias")
    name = world.catalog.find(node.name)
    if name is None or not isinstance(node.this, exp.Identifier):
        known = ", ".join(sorted(world.catalog.tables))
        raise QueryError(f"There is no table {node.name} in the catalog; it has {known}.")
    declared = world.catalog.tables[name]
    fields = world.fields(name)
    scan: exp.Expr = exp.Table(this=exp.to_identifier(name, quoted=True), alias=_alias(node))
    unit = declared.unit if declared.private else None
    if unit is not None and unit.is_row and numbered:
        # A join may multiply rows, so each row gets a number, once, to be known by afterwards.
        scan = _numbered(name, fields, _alias(node))
        return Relation(scan, fields, (ROW,), (name,), materialize=True, single=True)
    if unit is None:
        return Relation(scan, fields, None)
    units = tuple(fold(column) for column in unit.columns)
    return Relation(scan, fields, units, (name,), single=unit.is_row, plain=True)


def _numbered(table: str, fields: Mapping[str, Field], alias: exp.TableAlias) -> exp.Subquery:
    """A table whose rows are numbered, with the columns that a question may name."""
    picked: list[exp.Expr] = [
        exp.column(name, quoted=True) for name in fields if not name.startswith(RESERVED)
    ]
    picked.append(exp.alias_(exp.Window(this=exp.RowNumber()), ROW, quoted=True))
    scan = exp.Table(this=exp.to_identifier(table, quoted=True))
    return exp.Subquery(this=exp.select(*picked).from_(scan), alias=alias)


def select_rows(select: exp.Select, world: World, numbered: bool = False) -> Relation:
    """A sub-query as a relation: a projection, or an aggregation per unit."""
    from incrowd.query.per_unit import aggregate_per_unit, is_aggregating
    from incrowd.query.windows import has_windows, in_layers

    windows = has_windows(select)
    refuse_clauses(select, *(("qualify", "windows") if windows else ()))
    below = sources(select, world, numbered)
    names = [column.alias_or_name for column in select.expressions]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise QueryError(
            f"Two columns of a sub-query are called {doubled}; name one of them otherwise, with AS."
        )
    if windows and below.units is not None:
        select, below = in_layers(select, below)
    if is_aggregating(select) or select.args.get("distinct"):
        return aggregate_per_unit(select, below)
    fields: dict[str, Field] = {}
    rows = below.select(select.args.get("where"))
    for column in select.expressions:
        name = column.alias_or_name
        typed = total(column.unalias(), below.lookup)
        rows = rows.select(exp.alias_(typed.sql, name, quoted=True), copy=False)
        fields[name] = field_from(column.unalias(), typed, below, name)
    units, rows = carry_units(rows, below)
    return Relation(rows, fields, units, below.tables, below.materialize, below.single, below.plain)


def carry_units(rows: exp.Select, below: Sources) -> tuple[tuple[str, ...] | None, exp.Select]:
    """Adds the unit's columns to the select, under reserved names; returns the names and the select."""
    if below.units is None:
        return None, rows
    names = tuple(f"{UNIT}{index}" for index in range(len(below.units)))
    for name, column in zip(names, below.units, strict=True):
        rows = rows.select(exp.alias_(column.copy(), name, quoted=True), copy=False)
    return names, rows


def field_from(node: exp.Expr, typed: Typed, below: Sources, name: str) -> Field:
    """What is known of a column of a sub-query; a plain column keeps everything declared of it."""
    if isinstance(node, exp.Column):
        return below.field(node)
    limits = None
    if typed.kind == "integer" and typed.low is not None and typed.high is not None:
        # Beyond 2^53 computed numbers are rounded, and not every one between the ends can occur.
        exact = max(abs(typed.low), abs(typed.high)) <= 2**53
        limits = (int(typed.low), int(typed.high)) if exact else None
    if typed.kind in TIMES:
        limits = typed.limits
    facts = (typed.low, typed.high, typed.nullable, typed.values)
    field = Field(typed.kind, *facts, None, name, None, limits)
    floating = typed.kind == "integer" and not typed.integral
    return replace(field, floating=floating, size=typed.size, weight=weight_of(typed.sql), wide=typed.wide)


_REFUSED = {
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
    "kind": "SELECT AS",
}
_UNDERSTOOD = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order"}


def refuse_clauses(select: exp.Select, *elsewhere: str) -> None:
    """Refuse clauses that a select over private rows may not have, but for those in `elsewhere`."""
    for key, value in select.args.items():
        if not value or key in _UNDERSTOOD or key in elsewhere:
            continue
        word = _REFUSED.get(key, key.strip("_").upper())
        raise QueryError(
            f"{word} over private rows is not possible; use it on the released result, in an outer SELECT."
        )
    distinct = select.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        raise QueryError("DISTINCT ON is not possible over private rows; use GROUP BY.")
