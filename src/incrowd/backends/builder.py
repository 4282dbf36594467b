"""Puts one statement together: common table expressions whose columns are made once, and stacked parts over
them.

Names of its own start with two underscores, which no name in a bounded plan does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from incrowd.backends.trees import column, joined, missing, named, number, present
from incrowd.query import Leaf
from incrowd.query.typed import SQL_TYPES

ROWS, TOTALS, PAIRS, SHARES = "__rows", "__totals", "__pairs", "__shares"
"""The common table expressions of a statement, each a relation that parts can be taken from."""


@dataclass(frozen=True)
class Part:
    """One stacked part of a statement: what its number columns mean."""

    kind: str
    """`sums`, `pairs`, `histogram`, `totals` or `census`."""
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A tree with the meaning of its parts. Columns: part, the keys, cell, n0, n1, ..."""

    tree: exp.Query
    parts: tuple[Part, ...]
    keys: int


@dataclass(frozen=True)
class Stacked:
    """A part with its numbers over relations that are joined on the unit, by the keys (and a cell) or all
    together.
    """

    part: Part
    numbers: tuple[exp.Expr, ...]
    relations: tuple[str, ...]
    by_keys: bool
    cell: str | None = None


class Columns:
    """The columns that a relation computes, each expression once and under a name of its own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[exp.Expr, str] = {}
        self._nodes: dict[str, exp.Expr] = {}

    def name(self, node: exp.Expr) -> str:
        """The name of an expression."""
        name = self._names.get(node)
        if name is None:
            name = f"{self._prefix}{len(self._names)}"
            self._names[node] = name
            self._nodes[name] = node
        return name

    def __getitem__(self, name: str) -> exp.Expr:
        return self._nodes[name]

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def picked(self) -> list[exp.Expr]:
        """What SELECT lists."""
        return [named(node, name) for name, node in self._nodes.items()]


class Builder:
    """Collects the common table expressions and stacked parts of one leaf's statement."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.keys = tuple(key.name for key in leaf.keys)
        self.rows, self.totals = Columns("v"), Columns("t")
        self.pairs, self.shares = Columns("q"), Columns("s")
        self.stacked: list[Stacked] = []

    def stack(self, part: Stacked) -> None:
        """One more part."""
        self.stacked.append(part)

    def _relations(self) -> list[exp.CTE]:
        units = self.leaf.units
        made = [_relation(ROWS, self._read_rows(), self._kept())]
        if self.totals:
            made.append(_relation(TOTALS, _grouped(self.totals, ROWS, units)))
        if self.pairs or self.shares:
            made.append(_relation(PAIRS, _grouped(self.pairs, ROWS, [*units, *self.keys]), True))
        if self.shares:
            made.append(_relation(SHARES, _grouped(self.shares, PAIRS, units)))
        return made

    def _read_rows(self) -> exp.Select:
        rows = self.leaf.rows
        picked = [*(each.copy() for each in rows.expressions), *self.rows.picked()]
        select = exp.Select(expressions=picked or [named(number(1), "one")], from_=rows.args["from_"].copy())
        if rows.args.get("joins"):
            select.set("joins", [each.copy() for each in rows.args["joins"]])
        if rows.args.get("where"):
            select.set("where", rows.args["where"].copy())
        return select

    def _kept(self) -> bool | None:
        """Whether rows are materialized. Those with ROW_NUMBER must be, or they may change between reads; a
        plain scan must not, as reading it twice is cheaper than keeping it; None leaves it to the engine.
        """
        if self.leaf.materialize:
            return True
        rows = self.leaf.rows
        plain = isinstance(rows.args["from_"].this, exp.Table) and not rows.args.get("joins")
        return False if plain else None

    def build(self) -> Statement:
        """The whole statement."""
        width = max(len(each.numbers) for each in self.stacked)
        first, *others = (self._part(place, each, width) for place, each in enumerate(self.stacked))
        tree: exp.Query = first
        for part in others:
            tree = exp.Union(this=tree, expression=part, distinct=False)
        tree.set("with_", exp.With(expressions=self._relations()))
        return Statement(tree, tuple(each.part for each in self.stacked), len(self.keys))

    def _part(self, place: int, stacked: Stacked, width: int) -> exp.Select:
        keys: list[exp.Expr] = [
            column(key.name) if stacked.by_keys else named(missing(exp.DType[SQL_TYPES[key.kind]]), key.name)
            for key in self.leaf.keys
        ]
        numbers = [*stacked.numbers, *(missing() for _ in range(width - len(stacked.numbers)))]
        cell = missing() if stacked.cell is None else column(stacked.cell)
        picked = [
            named(number(place), "part"),
            *keys,
            named(cell, "cell"),
            *(named(each, f"n{index}") for index, each in enumerate(numbers)),
        ]
        select = self._joined(stacked.relations, picked)
        by = [column(key) for key in self.keys] if stacked.by_keys else []
        if stacked.cell is not None:
            by.append(column(stacked.cell))
            select.set("where", exp.Where(this=present(column(stacked.cell))))
        if by:
            select.set("group", exp.Group(expressions=by))
        return select

    def _joined(self, relations: Sequence[str], picked: list[exp.Expr]) -> exp.Select:
        """A SELECT from relations that are joined on the unit."""
        first, *others = relations
        select = exp.Select(expressions=picked, from_=exp.From(this=_named_table(first)))
        for other in others:
            on = [joined(exp.EQ, column(unit, first), column(unit, other)) for unit in self.leaf.units]
            select.append("joins", exp.Join(this=_named_table(other), on=exp.and_(*on, copy=False)))
        return select


def _named_table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name))


def _relation(name: str, query: exp.Select, materialized: bool | None = None) -> exp.CTE:
    made = exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))
    if materialized is not None:
        made.set("materialized", materialized)
    return made


def _grouped(columns: Columns, source: str, by: Iterable[str]) -> exp.Select:
    keys = list(by)
    return exp.Select(
        expressions=[*map(column, keys), *columns.picked()],
        from_=exp.From(this=_named_table(source)),
        group=exp.Group(expressions=[column(key) for key in keys]),
    )
