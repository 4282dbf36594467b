"""Finds the innermost aggregations over private rows and cuts them out of the question.

What lies above a released aggregation is post-processing (it sees released numbers only) and stays SQL;
what lies below must keep ownership (`ownership`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.above import above
from incrowd.query.aggregates import Aggregates, Expanding, counts_and_lists, over
from incrowd.query.clause import clause_of
from incrowd.query.confining import upper_ends
from incrowd.query.group_keys import key_for, narrowed, without_bins
from incrowd.query.grouping_sets import groupings
from incrowd.query.levels import above_stack, leaves_of, stacked, with_keys
from incrowd.query.obeying import held_to
from incrowd.query.ownership import Sources, World, refuse_clauses, sources
from incrowd.query.per_unit import all_keys, groups_by_unit, is_aggregating
from incrowd.query.plan import Leaf, deciding, released_name
from incrowd.query.sql import DIALECT, from_items
from incrowd.query.suggestions import AGGREGATES, meant
from incrowd.query.typed import Census, census_of, said


@dataclass
class Cutter:
    """Walks the tree from the outside in and cuts the leaves out."""

    world: World
    rows: float | None
    groups: float | None
    leaves: list[Leaf] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    def cut(self, node: exp.Query) -> exp.Query:
        """The query with each leaf replaced by its released table."""
        if not self.world.private(node):
            if node.find(exp.Table) is None:
                names = ", ".join(self.world.catalog.tables)
                raise QueryError(f"The question reads no table; name one after FROM: {names}.")
            raise QueryError(
                "The question reads public tables only; ask the database itself, it costs nothing."
            )
        if isinstance(node, exp.SetOperation):
            for side in ("this", "expression"):
                part = node.args[side]
                if not self.world.private(part):
                    raise QueryError(
                        "Every part of a UNION must be about private tables; leave the others out."
                    )
                inner = part.unnest() if isinstance(part, exp.Subquery) else part
                assert isinstance(inner, exp.Query)
                node.set(side, self.cut(inner))
            return node
        if not isinstance(node, exp.Select):
            raise QueryError(f"{type(node).__name__.upper()} is not possible here; write a SELECT.")
        below = from_items(node)
        released = [item for item in below if self._released(item)]
        if not below:
            return self._with_inner(node)
        if not released:
            if not is_aggregating(node) and not node.args.get("distinct"):
                _refuse_unknown(node)
                raise QueryError(
                    "This would show the rows of people; ask for an aggregate instead, such as SELECT "
                    "COUNT(*) or AVG(...) with GROUP BY."
                )
            return self._cut_leaf(node)
        for item in below:
            if item in released:
                item.set("this", self.cut(item.this))
            elif self.world.private(item):
                raise QueryError(
                    f"{item.alias_or_name} holds private rows and cannot be joined to released numbers; "
                    "use it inside the SELECT that aggregates."
                )
        return self._with_inner(node)

    def _with_inner(self, select: exp.Select) -> exp.Select:
        """A select over released numbers, or nothing, with the sub-queries of its expressions cut too."""
        for query in _inside(select):
            if self.world.private(query):
                query.replace(self._inner(query))
        return select

    def _inner(self, query: exp.Query) -> exp.Expr:
        """A sub-query in an expression above a leaf, over released numbers; a public one as it is.

        It is a question of its own: its aggregates are released once, whatever rows the select around it has.
        """
        alone = query.unnest() if isinstance(query, exp.Subquery) else query
        assert isinstance(alone, exp.Query)
        strange = _strange_columns(alone)
        seen = f"{strange[0].table}.{strange[0].name}" if strange else ""
        if not self.world.private(alone):
            if strange:
                raise QueryError(
                    f"The sub-query cannot look at {seen} of the SELECT around it; join its table in FROM."
                )
            return query.copy()
        if strange and any(not self._released(item) for item in _sources_of(alone)):
            raise QueryError(
                f"The sub-query cannot look at {seen} of the SELECT around it; GROUP BY in both, each in a "
                "sub-query of FROM, and JOIN the results."
            )
        return exp.Subquery(this=self.cut(alone.copy()))

    def _released(self, node: exp.Expr) -> bool:
        """True if a FROM item aggregates over people, rather than within each person."""
        if not isinstance(node, exp.Subquery) or not self.world.private(node):
            return False
        return self._aggregates(node.this)

    def _aggregates(self, inner: exp.Expr) -> bool:
        """The same of a sub-query: of a set operation, if any of its parts does."""
        if isinstance(inner, exp.SetOperation):
            return any(self._aggregates(side.unnest()) for side in (inner.this, inner.expression))
        if not isinstance(inner, exp.Select):
            return False
        below = from_items(inner)
        if not below or any(self._released(item) for item in below):
            return True
        if not is_aggregating(inner) and not inner.args.get("distinct"):
            return False
        return not groups_by_unit(inner, sources(inner, self.world))

    def _cut_leaf(self, select: exp.Select) -> exp.Select:
        by_value = counts_and_lists(select)
        if by_value is not None:
            counting, listing = by_value
            return over(listing, self._cut_leaf(counting))
        leaf, rows, outer = self._leaf(select)
        levels = groupings(select)
        text = repr(
            (leaf.rows.sql(DIALECT), leaf.keys, tuple(leaf.measures.values()), leaf.aggregates, levels)
        )
        first = self.seen.setdefault(text, len(self.leaves))
        made = [deciding(leaf)] if levels is None else leaves_of(leaf, rows, levels, first)
        if first == len(self.leaves):
            self.leaves += made
        if levels is None:
            return outer.from_(exp.to_table(released_name(first)))
        outer = above_stack(outer, bool(select.args.get("order")), len(leaf.keys))
        return outer.from_(stacked(made, levels, leaf.keys, first))

    def _leaf(self, select: exp.Select) -> tuple[Leaf, exp.Select, exp.Select]:
        """The leaf, what it reads without its keys, and the SELECT above it."""
        refuse_clauses(select, "limit", "offset", "qualify", "windows")
        _refuse_adaptive(select, self.world)
        where = select.args.get("where")
        below = narrowed(sources(select, self.world), None if where is None else where.this)
        levels, nodes = groupings(select), all_keys(select)
        keys = without_bins(tuple(key_for(index, node, below) for index, node in enumerate(nodes)))
        clause = clause_of(select)
        aggregates = Aggregates(below, tuple(nodes), self._rows(below), self.groups, clause=clause)
        expanding = Expanding(select, below.lookup)

        def other(part: exp.Expr) -> exp.Expr | None:
            grouping = None if levels is None else levels.grouping(part)
            return expanding(part) if grouping is None else grouping

        outer = above(select, nodes, keys, aggregates.column, self._inner, other)
        if clause is not None:
            outer = held_to(clause, outer, keys, aggregates)
        rows = below.select(where)
        units = tuple(f"u{index}" for index in range(len(below.units or ())))
        for name, column in zip(units, below.units or (), strict=True):
            # Rows without a unit belong to nobody.
            rows = rows.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
            rows = rows.select(exp.alias_(column.copy(), name))
        relations = {self.world.catalog.tables[name].relation for name in below.tables}
        leaf = Leaf(
            with_keys(rows, keys),
            () if below.single and not aggregates.open else units,
            below.materialize,
            keys,
            aggregates.measures,
            tuple(aggregates.columns.values()),
            2 if "replace" in relations else 1,
            below.tables,
            values=aggregates.values,
            until=upper_ends(select, self.world),
        )
        return leaf, rows, outer

    def _rows(self, below: Sources) -> float | Census | None:
        """How many rows one unit counts for: as the analyst says, or the owner of a table that stands alone.

        A declared number bounds a table's own rows, which a join may multiply and a sub-query may change.
        Where the owner bought it, the census is about those rows only.
        """
        if self.rows is not None or not below.unmultiplied:
            return self.rows
        relation = next(iter(below.items.values()))
        if len(relation.tables) != 1:
            return None
        (name,) = relation.tables
        declared = self.world.catalog.tables[name].contribution
        bought = self.world.catalog.bought_of(name).contribution
        if declared is None or bought is None:
            return None if declared is None else float(declared)
        return census_of(declared, bought) if below.plain else None


def _refuse_unknown(select: exp.Select) -> None:
    """Refuse a SELECT whose aggregate is misspelt for that, and not because it has none."""
    for call in (call for column in select.expressions for call in column.find_all(exp.Anonymous)):
        other = meant(call.name, AGGREGATES)
        if other in AGGREGATES:
            raise QueryError(f"There is no function {call.name.upper()} here; did you mean {other}?")


def _inside(select: exp.Select) -> list[exp.Query]:
    """The sub-queries in the expressions of a select, not those in its FROM."""
    sources = {id(item) for item in from_items(select)}
    found: list[exp.Query] = []
    waiting = list(select.iter_expressions())
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
            if id(node) not in sources:
                found.append(node)
        else:
            waiting.extend(node.iter_expressions())
    return found


def _refuse_adaptive(select: exp.Select, world: World) -> None:
    """Refuse a number over people inside a condition on rows: it must be released before the rows are asked.

    Tests such as IN and EXISTS are about rows, and are judged where the condition is read.
    """
    for query in select.find_all(exp.Subquery):
        inner = query.this
        tested = isinstance(query.parent, exp.In | exp.Exists | exp.From | exp.Join)
        if tested or not isinstance(inner, exp.Select) or inner.args.get("group"):
            continue
        within = query.find_ancestor(exp.Where, exp.AggFunc, exp.Filter, exp.Select)
        number = is_aggregating(inner) and world.private(inner) and not _strange_columns(inner)
        if number and not isinstance(within, exp.Select):
            raise QueryError(
                f"{said(query)} would be a second question inside the first; ask for its number first, and "
                "write that in its place."
            )


def _sources_of(query: exp.Query) -> list[exp.Expr]:
    """What the selects of a query read."""
    if isinstance(query, exp.SetOperation):
        return [item for side in (query.this, query.expression) for item in _sources_of(side.unnest())]
    return from_items(query) if isinstance(query, exp.Select) else []


def _strange_columns(query: exp.Query) -> list[exp.Column]:
    """The columns of a sub-query that belong to the select around it."""
    own = {item.alias_or_name for select in query.find_all(exp.Select) for item in from_items(select)}
    return [column for column in query.find_all(exp.Column) if column.table and column.table not in own]
