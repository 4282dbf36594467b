"""Builds one statement: common table expressions that compute each column once, and stacked parts over them.

Names that are introduced here start with two underscores; no name in a bounded plan does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from incrowd.backends.trees import column, joined, missing, named, number, present
from incrowd.backends.values import Values, value_columns
from incrowd.catalog.types import SQL_TYPES
from incrowd.query import Leaf, Measure

ROWS, TOTALS, PAIRS, SHARES = "__rows", "__totals", "__pairs", "__shares"
_WEIGHTS = "__weights"
"""The names of a statement's common table expressions, from which parts select."""


@dataclass(frozen=True)
class Part:
    """The meaning of the number columns in one stacked part of a statement."""

    kind: str
    """`sums`, `pairs`, `values`, `histogram`, `totals` or `census`."""
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A tree with the meaning of its parts. Columns: part, the keys, cell, n0, n1, ..."""

    tree: exp.Query
    parts: tuple[Part, ...]
    keys: int


@dataclass(frozen=True)
class Stacked:
    """A part with its numbers, aggregated over relations that are joined on the unit.

    They are grouped by the keys (`by_keys`) and by a cell (`cell`), or not at all.
    """

    part: Part
    numbers: tuple[exp.Expr, ...]
    relations: tuple[str, ...]
    by_keys: bool
    cell: str | None = None


class Columns:
    """The columns that a relation computes. Each expression is computed once, under its own name."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[exp.Expr, str] = {}
        self._nodes: dict[str, exp.Expr] = {}

    def name(self, node: exp.Expr) -> str:
        """The name of an expression, which becomes a column if it is new."""
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

    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._nodes)

    def picked(self) -> list[exp.Expr]:
        """The columns as SELECT lists them."""
        return [named(node, name) for name, node in self._nodes.items()]


class Builder:
    """Collects the common table expressions and stacked parts of one leaf's statement."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.keys = tuple(key.name for key in leaf.keys)
        self.rows, self.totals = Columns("v"), Columns("t")
        self.pairs, self.shares = Columns("q"), Columns("s")
        self.factors = Columns("f")
        """What is computed from columns of `shares`, which it may name more than once."""
        self.values: list[Values] = []
        """The sets of values that are counted."""
        self.stacked: list[Stacked] = []

    def stack(self, part: Stacked) -> None:
        """Add a part."""
        self.stacked.append(part)

    def _relations(self) -> list[exp.CTE]:
        units = self.leaf.units
        relations = [_relation(ROWS, self._read_rows(), self._kept())]
        if self.totals:
            relations.append(_relation(TOTALS, _grouped(self.totals, ROWS, units)))
        if self.pairs or self.shares:
            relations.append(_relation(PAIRS, _grouped(self.pairs, ROWS, [*units, *self.keys]), True))
        if self.shares:
            weights = _WEIGHTS if self.factors else SHARES
            relations.append(_relation(weights, _grouped(self.shares, PAIRS, units)))
        if self.factors:
            relations.append(_relation(SHARES, self._with_factors()))
        for values in self.values:
            found = values.relations(ROWS, units, self.keys)
            relations += [_relation(name, query, name == values.lines or None) for name, query in found]
        return relations

    def values_of(self, measure: Measure) -> Values:
        """The set of values that a measure counts."""
        columns = [self.rows.name(part.copy()) for part in value_columns(measure)]
        flag = None if measure.present is None else self.rows.name(measure.present.copy())
        for known in self.values:
            if (known.columns, known.flag) == (tuple(columns), flag):
                return known
        self.values.append(Values(len(self.values), columns, flag))
        return self.values[-1]

    def _with_factors(self) -> exp.Select:
        kept = [column(name) for name in (*self.leaf.units, *self.shares.names())]
        weights = exp.From(this=_named_table(_WEIGHTS))
        return exp.Select(expressions=[*kept, *self.factors.picked()], from_=weights)

    def _read_rows(self) -> exp.Select:
        rows = self.leaf.rows
        picked = [*(expression.copy() for expression in rows.expressions), *self.rows.picked()]
        select = exp.Select(expressions=picked or [named(number(1), "one")], from_=rows.args["from_"].copy())
        if rows.args.get("joins"):
            select.set("joins", [join.copy() for join in rows.args["joins"]])
        if rows.args.get("where"):
            select.set("where", rows.args["where"].copy())
        return select

    def _kept(self) -> bool | None:
        """True (MATERIALIZED) if rows carry ROW_NUMBER, which must not change between reads.

        False (NOT MATERIALIZED) for a plain scan, which is cheaper to read twice than to keep. None leaves
        the choice to the engine.
        """
        if self.leaf.materialize:
            return True
        rows = self.leaf.rows
        plain = isinstance(rows.args["from_"].this, exp.Table) and not rows.args.get("joins")
        return False if plain else None

    def build(self) -> Statement:
        """The whole statement."""
        width = max(len(stacked.numbers) for stacked in self.stacked)
        first, *others = (self._part(place, stacked, width) for place, stacked in enumerate(self.stacked))
        tree: exp.Query = first
        for part in others:
            tree = exp.Union(this=tree, expression=part, distinct=False)
        tree.set("with_", exp.With(expressions=self._relations()))
        return Statement(tree, tuple(stacked.part for stacked in self.stacked), len(self.keys))

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
            *(named(value, f"n{index}") for index, value in enumerate(numbers)),
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
    cte = exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))
    if materialized is not None:
        cte.set("materialized", materialized)
    return cte


def _grouped(columns: Columns, source: str, by: Iterable[str]) -> exp.Select:
    keys = list(by)
    return exp.Select(
        expressions=[*map(column, keys), *columns.picked()],
        from_=exp.From(this=_named_table(source)),
        group=exp.Group(expressions=[column(key) for key in keys]),
    )
