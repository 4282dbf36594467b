"""Collects the aggregates of one leaf and hands each to its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.averages import SPREADS, average, spread
from incrowd.query.aggregates.counting import count, count_if
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import AS_WRITTEN, BESIDE, Asked
from incrowd.query.aggregates.ordering import ORDERS, quantile, within_group
from incrowd.query.aggregates.pairs import LINES, regression, together
from incrowd.query.aggregates.ratios import RATIO, WEIGHTED, ratio, weighted
from incrowd.query.aggregates.refusing import refusal_of
from incrowd.query.aggregates.summing import sum_of
from incrowd.query.expressions import condition
from incrowd.query.plan import Aggregate
from incrowd.query.sql import DIALECT, ContributionBounds, bounds_of
from incrowd.query.typed import said

Family = Callable[[Asked, Measuring], Aggregate]
_FAMILIES: Mapping[type[exp.Expr] | str, Family] = {
    exp.Count: count,
    exp.CountIf: count_if,
    exp.Sum: sum_of,
    exp.Avg: average,
    **dict.fromkeys(SPREADS, spread),
    **dict.fromkeys((exp.CovarPop, exp.CovarSamp, exp.Corr), together),
    **dict.fromkeys(LINES, regression),
    **dict.fromkeys(ORDERS, quantile),
    **dict.fromkeys(WEIGHTED, weighted),
    RATIO: ratio,
}
_READ = {"this", "expression", "quantile", "big_int", "expressions"}


@dataclass
class Aggregates(Measuring):
    """Collects the measures and columns of one leaf; the same measure is asked for once."""

    columns: dict[tuple[str, ContributionBounds | None], Aggregate] = field(default_factory=dict)

    def column(self, node: exp.Expr) -> str:
        """The released column for an aggregate node."""
        bounds = next((written for part in node.walk() if (written := bounds_of(part)) is not None), None)
        asked = (node.sql(DIALECT), bounds)
        if asked not in self.columns:
            made = self._make(node)
            note = " ".join([made.note, node.meta.get(BESIDE, ""), *self._bought(node, made)]).strip()
            self.columns[asked] = replace(made, name=f"a{len(self.columns)}", note=note)
        return self.columns[asked].name

    def units(self, note: str) -> str:
        """The released column with the number of units in each group."""
        label = "the number of units"
        if label not in (aggregate.label for aggregate in self.columns.values()):
            name = self.number(None, label) if self.below.single else self.number_of_units(None, label)
            made = Aggregate(f"a{len(self.columns)}", "count", label, (name,), whole=True, note=note)
            self.columns[label, None] = made
        return self.columns[label, None].name

    def _bought(self, node: exp.Expr, made: Aggregate) -> list[str]:
        """What to say about the bounds of the columns whose values are aggregated."""
        if made.kind == "count":
            return []
        home = node.find_ancestor(exp.Select)
        own = [column for column in node.find_all(exp.Column) if column.find_ancestor(exp.Select) is home]
        said = [words for column in own for words in self.below.field(column).bought]
        return [f"{made.label}: {words}." for words in dict.fromkeys(said)]

    def _make(self, node: exp.Expr) -> Aggregate:
        test: exp.Expr | None = None
        label = node.meta.get(AS_WRITTEN) or said(node)
        if isinstance(node, exp.Filter):
            test = condition(node.expression.this, self.below.lookup, "FILTER").sql
            node = node.this
        if type(node.this) not in ORDERS and isinstance(node, exp.WithinGroup):
            raise refusal_of(node, label)
        if isinstance(node, exp.WithinGroup):
            node = within_group(node, label)
        known = isinstance(node, exp.AnonymousAggFunc)
        family = _FAMILIES.get(node.name if known else type(node))
        if family is None or node.args.get("count"):
            raise refusal_of(node, label)
        if known:
            return family(Asked(node, label, test, bounds_of(node)), self)
        if any(value for key, value in node.args.items() if key not in _READ):
            raise QueryError(f"{label} has an option that is not understood; leave it out.")
        if node.expressions:
            raise QueryError(f"{label} takes one column here; LEAST and GREATEST compare several.")
        return family(Asked(node, label, test, bounds_of(node)), self)
