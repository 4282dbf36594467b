"""From a parsed question to a bounded plan: find the innermost aggregations over private rows, bound each.

What lies above a released aggregation is post-processing (it sees released numbers only) and stays SQL; what lies
below must keep ownership (`relations`). Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from incrowd.catalog import Catalog
from incrowd.catalog.declaration import nearest
from incrowd.errors import QueryError
from incrowd.query.aggregates import Aggregates
from incrowd.query.expressions import condition
from incrowd.query.keys import key_for, narrowed
from incrowd.query.per_unit import group_keys, is_aggregating, own_aggregates
from incrowd.query.plan import Leaf, Plan
from incrowd.query.relations import World, refuse_clauses, sources
from incrowd.query.sql import DIALECT, NAMED, Question
from incrowd.query.typed import Field

_TYPES = {"integer": "BIGINT", "float": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP", "null": "TEXT"}
MOST_NODES = 20_000


@dataclass(frozen=True)
class Contribution:
    """What the analyst says about how much one unit may contribute; None leaves it to the owner or the data."""

    rows: float | None = None
    groups: float | None = None


def bound(
    question: Question,
    catalog: Catalog,
    public_columns: Mapping[str, Mapping[str, Field]] | None = None,
    contribution: Contribution | None = None,
) -> Plan:
    """The bounded plan of a question."""
    world = World(catalog, public_columns or {})
    given = contribution or Contribution()
    rows = given.rows or question.options.get("max_rows_contributed")
    groups = given.groups or question.options.get("max_groups_contributed")
    for value, name in ((rows, "rows"), (groups, "groups")):
        if value is not None and not (1 <= value < 2**30 and float(value).is_integer()):
            raise QueryError(f"The number of {name} that one unit contributes must be a whole number from 1 on.")
    tree = _qualified(_inlined(_named(question.tree.copy())), world)
    finder = _Finder(world, rows, groups)
    outer = finder.rewrite(tree)
    if not finder.leaves:
        raise QueryError("The question reads public tables only; ask the database itself, it costs nothing.")
    columns = tuple(each.alias_or_name for each in outer.selects)
    doubled = next((name for name in columns if columns.count(name) > 1), None)
    if doubled is not None:
        raise QueryError(f"Two columns of the answer are called {doubled}; give one of them another name with AS.")
    return Plan(tuple(finder.leaves), outer, question.options, columns)


def _named(tree: exp.Query) -> exp.Query:
    """Unnamed aggregates in SELECT lists get names that people would choose."""
    for select in tree.find_all(exp.Select):
        taken = {each.alias_or_name for each in select.expressions}
        for each in list(select.expressions):
            if isinstance(each, exp.Alias | exp.Column | exp.Star) or each.is_star:
                continue
            inner = each.find(exp.AggFunc)
            if inner is None:
                continue
            column = inner.find(exp.Column)
            function = inner.sql_name().lower() if isinstance(inner, exp.Func) else "value"
            name = function if column is None else f"{function}_{column.name}"
            while name in taken:
                name += "_"
            taken.add(name)
            each.replace(exp.alias_(each.copy(), name))
    return tree


def _inlined(tree: exp.Query) -> exp.Query:
    """CTEs put where they are used, so that one walk sees everything."""
    while True:
        with_ = next((each for each in tree.find_all(exp.With)), None)
        if with_ is None:
            return tree
        if with_.recursive:
            raise QueryError("WITH RECURSIVE is not possible; write the steps out as sub-queries.")
        owner = with_.parent
        assert owner is not None
        known: dict[str, exp.Expression] = {}
        for cte in with_.expressions:
            if cte.args.get("alias") and cte.args["alias"].columns:
                raise QueryError(f"Name the columns of {cte.alias} inside its SELECT, with AS.")
            body = _use(cte.this, known)
            known[cte.alias.casefold()] = body
        owner.set("with_", None)
        if owner is tree:
            tree = _use(tree, known)
        else:
            owner.replace(_use(owner.copy(), known))
        if sum(1 for _ in tree.walk()) > MOST_NODES:
            raise QueryError("The question is too large; ask it in smaller parts.")


def _use(node: exp.Expression, known: Mapping[str, exp.Expression]) -> exp.Query:
    def swap(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Table) and not part.args.get("db") and part.name.casefold() in known:
            alias = exp.TableAlias(this=exp.to_identifier(part.alias_or_name))
            return exp.Subquery(this=known[part.name.casefold()].copy(), alias=alias)
        return part

    result = node.transform(swap)
    assert isinstance(result, exp.Query)
    return result


def _qualified(tree: exp.Query, world: World) -> exp.Query:
    """Every column with its table, stars expanded, or a sentence saying which name is wrong."""
    for table in tree.find_all(exp.Table):
        if world.catalog.find(table.name) is None or table.args.get("db"):
            raise QueryError(f"There is no table {table.name} in the catalog, {nearest(table.name, world.catalog.tables)}.")
    schema = {
        name.casefold(): {column: _TYPES[each.kind] for column, each in world.fields(name).items()} for name in world.catalog.tables
    }
    marked = sum(1 for node in tree.walk() if NAMED in node.meta)
    try:
        result = qualify(tree, schema=schema, dialect=DIALECT, quote_identifiers=True, identify=True)
    except OptimizeError as error:
        raise QueryError(_name_fault(str(error), tree, world)) from None
    except SqlglotError as error:
        raise QueryError(f"The SQL cannot be understood: {str(error).splitlines()[0]}") from None
    if sum(1 for node in result.walk() if NAMED in node.meta) < marked:
        raise QueryError("Contribution bounds must stand in the SELECT that aggregates.")
    assert isinstance(result, exp.Query)
    return result


def _name_fault(said: str, tree: exp.Query, world: World) -> str:
    parts = said.split("'")
    name = parts[1] if len(parts) > 1 else ""
    tables = [world.catalog.find(table.name) or "" for table in tree.find_all(exp.Table)]
    if "mbiguous" in said:
        return f"The column {name} is in several tables; write the table's name before it."
    known = sorted({column for table in tables for column in world.fields(table)})
    return f"There is no column {name.split('.')[-1] or '?'} in {', '.join(dict.fromkeys(tables))}, {nearest(name.split('.')[-1], known)}."


@dataclass
class _Finder:
    """Walks the tree from the outside in and cuts the leaves out."""

    world: World
    rows: float | None
    groups: float | None
    leaves: list[Leaf] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    def rewrite(self, node: exp.Query) -> exp.Query:
        """The query with each leaf replaced by its released table."""
        if not self._private(node):
            raise QueryError("The question reads public tables only; ask the database itself, it costs nothing.")
        if isinstance(node, exp.SetOperation):
            for side in ("this", "expression"):
                part = node.args[side]
                if self._private(part):
                    node.set(side, self.rewrite(part.unnest() if isinstance(part, exp.Subquery) else part))
            return node
        if not isinstance(node, exp.Select):
            raise QueryError(f"{type(node).__name__.upper()} is not possible here; write a SELECT.")
        below = self._sources(node)
        if any(self._released(each) for each in below):
            for each in below:
                if self._released(each):
                    each.set("this", self.rewrite(each.this))
                elif self._private(each):
                    raise QueryError(f"{each.alias_or_name} holds private rows and cannot be joined to released numbers; aggregate it first.")
            if self._private_elsewhere(node):
                raise QueryError("A sub-query over private rows may stand in FROM only; join its result instead.")
            return node
        if not is_aggregating(node) and not node.args.get("distinct"):
            raise QueryError(
                "This would show the rows of people; ask for an aggregate instead, such as SELECT COUNT(*) or AVG(...) with GROUP BY."
            )
        return self._cut(node)

    def _sources(self, select: exp.Select) -> list[exp.Expression]:
        start = select.args.get("from_")
        joins = select.args.get("joins") or []
        return ([start.this] if start is not None else []) + [join.this for join in joins]

    def _private(self, node: exp.Expression) -> bool:
        for table in node.find_all(exp.Table):
            name = self.world.catalog.find(table.name)
            if name is not None and self.world.catalog.tables[name].private:
                return True
        return False

    def _private_elsewhere(self, select: exp.Select) -> bool:
        """Whether an expression of a post-processing select still reads private tables."""
        rest = select.copy()
        rest.set("from_", None)
        rest.set("joins", None)
        return self._private(rest)

    def _released(self, node: exp.Expression) -> bool:
        """Whether a FROM item is an aggregation over people (not one per person)."""
        if not isinstance(node, exp.Subquery) or not self._private(node):
            return False
        inner = node.this
        if isinstance(inner, exp.SetOperation):
            return True
        if not isinstance(inner, exp.Select):
            return False
        if any(self._released(each) for each in self._sources(inner)):
            return True
        if not is_aggregating(inner) and not inner.args.get("distinct"):
            return False
        units = sources(inner, self.world).units or ()
        keys = {key.sql() for key in group_keys(inner)}
        return not units or not all(each.sql() in keys for each in units)

    def _cut(self, select: exp.Select) -> exp.Select:
        leaf, outer = self._leaf(select)
        text = repr((leaf.rows.sql(DIALECT), leaf.keys, tuple(leaf.measures.values()), leaf.aggregates))
        if text not in self.seen:
            self.seen[text] = len(self.leaves)
            self.leaves.append(leaf)
        return outer.from_(exp.to_table(f"released_{self.seen[text]}"))

    def _leaf(self, select: exp.Select) -> tuple[Leaf, exp.Select]:
        plain = select.copy()
        for clause in ("limit", "offset", "order", "qualify"):
            plain.set(clause, None)
        refuse_clauses(plain)
        below = sources(select, self.world)
        where = select.args.get("where")
        below = narrowed(below, None if where is None else where.this)
        nodes = group_keys(select)
        keys = tuple(key_for(index, node, below, self.world.catalog) for index, node in enumerate(nodes))
        declared = [self.world.catalog.tables[name] for name in below.tables]
        known_rows = [each.contribution for each in declared if each.contribution]
        # A declared number of rows bounds a table's own rows, which a join may multiply.
        rows = self.rows or (float(known_rows[0]) if len(declared) == 1 and known_rows and len(below.items) == 1 else None)
        found = Aggregates(below, tuple(nodes), rows, self.groups)
        outer = _outer(select, nodes, keys, found)
        private = exp.Select(from_=below.from_, joins=below.joins)
        if where is not None:
            private = private.where(condition(where.this, below.lookup, "WHERE").sql)
        units = tuple(f"u{index}" for index in range(len(below.units or ())))
        for name, column in zip(units, below.units or (), strict=True):
            private = private.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
            private = private.select(exp.alias_(column.copy(), name))
        for key in keys:
            private = private.select(exp.alias_(key.sql.copy(), key.name))
        distance = 2 if any(each.relation == "replace" for each in declared) else 1
        leaf = Leaf(
            private,
            units,
            below.materialize,
            keys,
            found.measures,
            tuple(found.columns.values()),
            distance,
            below.tables,
            None if self.groups is None else int(self.groups),
            tuple(found.warnings),
        )
        return leaf, outer


def _outer(select: exp.Select, nodes: list[exp.Expression], keys: tuple, found: Aggregates) -> exp.Select:  # type: ignore[type-arg]
    """The select over its released table: keys and aggregates become columns."""
    names = {node.sql(DIALECT): key.name for node, key in zip(nodes, keys, strict=True)}

    def swap(part: exp.Expression) -> exp.Expression:
        if part.sql(DIALECT) in names:
            return exp.column(names[part.sql(DIALECT)])
        if isinstance(part, exp.Window):
            raise QueryError("A window over the result belongs into an outer SELECT: SELECT ..., SUM(n) OVER () FROM (this query).")
        if isinstance(part, exp.Subquery | exp.Exists):
            raise QueryError("A sub-query inside the SELECT that aggregates private rows is not possible; join its result outside.")
        if isinstance(part, exp.Filter | exp.WithinGroup | exp.AggFunc):
            if isinstance(part, exp.IgnoreNulls | exp.RespectNulls) or part.find(exp.Window):
                raise QueryError(f"{part.sql(DIALECT)} is not an aggregate that can be released.")
            return exp.column(found.column(part))
        if isinstance(part, exp.Column) and part.table:
            raise QueryError(f"{part.name} must be in GROUP BY or inside an aggregate.")
        return part

    def moved(node: exp.Expression) -> exp.Expression:
        return node.copy().transform(swap)

    outer = exp.Select(expressions=[exp.alias_(moved(each.unalias()), each.alias_or_name, quoted=True) for each in select.expressions])
    having = select.args.get("having")
    if having is not None:
        outer = outer.where(moved(having.this))
    for clause in ("order", "limit", "offset"):
        given = select.args.get(clause)
        if given is not None:
            outer.set(clause, moved(given))
    if select.args.get("order") is None and keys:
        outer = outer.order_by(*[exp.column(key.name) for key in keys])
    return outer


__all__ = ["Contribution", "bound", "own_aggregates"]
