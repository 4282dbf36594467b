"""Finds the innermost aggregations over private rows and cuts them out of the question.

What lies above a released aggregation is post-processing (it sees released numbers only) and stays SQL;
what lies below must keep ownership (`ownership`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.above import above
from incrowd.query.aggregates import Aggregates, Expanding
from incrowd.query.clause import clause_of
from incrowd.query.confining import upper_ends
from incrowd.query.group_keys import key_for, narrowed, without_bins
from incrowd.query.obeying import held_to
from incrowd.query.ownership import Sources, World, refuse_clauses, sources
from incrowd.query.per_unit import group_keys, groups_by_unit, is_aggregating
from incrowd.query.plan import Leaf, deciding, released_name
from incrowd.query.sql import DIALECT, from_items
from incrowd.query.typed import Census, census_of


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
        if not released:
            if not is_aggregating(node) and not node.args.get("distinct"):
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
        if self.world.private(node):
            raise QueryError("A sub-query over private rows may stand in FROM only; join its result instead.")
        return node

    def _released(self, node: exp.Expr) -> bool:
        """True if a FROM item aggregates over people, rather than within each person."""
        if not isinstance(node, exp.Subquery) or not self.world.private(node):
            return False
        inner = node.this
        if not isinstance(inner, exp.Select):
            return isinstance(inner, exp.SetOperation)
        if any(self._released(item) for item in from_items(inner)):
            return True
        if not is_aggregating(inner) and not inner.args.get("distinct"):
            return False
        return not groups_by_unit(inner, sources(inner, self.world))

    def _cut_leaf(self, select: exp.Select) -> exp.Select:
        leaf, outer = self._leaf(select)
        text = repr((leaf.rows.sql(DIALECT), leaf.keys, tuple(leaf.measures.values()), leaf.aggregates))
        if text not in self.seen:
            self.seen[text] = len(self.leaves)
            self.leaves.append(leaf)
        return outer.from_(exp.to_table(released_name(self.seen[text])))

    def _leaf(self, select: exp.Select) -> tuple[Leaf, exp.Select]:
        refuse_clauses(select, "limit", "offset", "qualify", "windows")
        where = select.args.get("where")
        below = narrowed(sources(select, self.world), None if where is None else where.this)
        nodes = group_keys(select)
        keys = without_bins(tuple(key_for(index, node, below) for index, node in enumerate(nodes)))
        clause = clause_of(select)
        aggregates = Aggregates(below, tuple(nodes), self._rows(below), self.groups)
        outer = above(select, nodes, keys, aggregates.column, Expanding(select, below.lookup))
        if clause is not None:
            outer = held_to(clause, outer, keys, aggregates)
        rows = below.select(where)
        units = tuple(f"u{index}" for index in range(len(below.units or ())))
        for name, column in zip(units, below.units or (), strict=True):
            # Rows without a unit belong to nobody.
            rows = rows.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
            rows = rows.select(exp.alias_(column.copy(), name))
        for key in keys:
            rows = rows.select(exp.alias_(key.sql.copy(), key.name))
        relations = {self.world.catalog.tables[name].relation for name in below.tables}
        leaf = Leaf(
            rows,
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
        return deciding(leaf), outer

    def _rows(self, below: Sources) -> float | Census | None:
        """How many rows one unit counts for: as the analyst says, or the owner of a table that stands alone.

        A declared number bounds a table's own rows, which a join may multiply and a sub-query may change.
        Where the owner bought it, the census is about those rows only.
        """
        if self.rows is not None or len(below.items) != 1:
            return self.rows
        (relation,) = below.items.values()
        if len(relation.tables) != 1:
            return None
        (name,) = relation.tables
        declared = self.world.catalog.tables[name].contribution
        bought = self.world.catalog.bought_of(name).contribution
        if declared is None or bought is None:
            return None if declared is None else float(declared)
        return census_of(declared, bought) if below.plain else None
