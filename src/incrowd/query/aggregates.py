"""Aggregates of the released SELECT as bounded measures.

| asked | measures | estimate (free) |
|---|---|---|
| COUNT(*), COUNT(x) | n: rows that count | n |
| COUNT(DISTINCT unit) | n: (unit, group) pairs | n |
| SUM(x) | s: clamped values | s |
| AVG(x) | s: x - centre, n | centre + s / n |
| VAR, STDDEV | s, q: (x - centre)^2 - half its span, n | q / n - (s / n)^2 |
| COVAR, CORR | sums of the products, likewise | |
| MEDIAN, quantiles, MIN, MAX | a histogram of x | by the exponential mechanism |

Centring halves what one row can add, and with it the noise. Sums that are divided by counts are weighed by rows,
so that a heavy unit's sum and count shrink alike and the ratio stays an average.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.expressions import as_float, condition, total
from incrowd.query.per_unit import clamped
from incrowd.query.plan import Aggregate, Level, Measure, Weighing
from incrowd.query.relations import Sources
from incrowd.query.sql import DIALECT, NAMED, number
from incrowd.query.typed import Typed, real

BUCKETS = 4096
EXTREME = 0.01
"""MIN and MAX are answered as this quantile and its mirror image."""
_SPREAD = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
_ORDER = (exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile, exp.Min, exp.Max)


@dataclass
class Aggregates:
    """Collects the measures and columns of one leaf; the same measure is asked for once."""

    below: Sources
    keys: tuple[exp.Expression, ...]
    rows_cap: float | None
    max_groups: float | None
    measures: dict[str, Measure] = field(default_factory=dict)
    columns: dict[str, Aggregate] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def column(self, node: exp.Expression) -> str:
        """The released column for an aggregate node."""
        named = (node.this if isinstance(node, exp.Filter) else node).meta.get(NAMED)
        text = f"{node.sql(DIALECT)} {named or ''}"
        if text not in self.columns:
            made = self._make(node)
            self.columns[text] = Aggregate(f"a{len(self.columns)}", **made)
        return self.columns[text].name

    def _make(self, node: exp.Expression) -> dict[str, Any]:
        test: Typed | None = None
        label = _label(node)
        if isinstance(node, exp.Filter):
            test = condition(node.expression.this, self.below.lookup, "FILTER")
            node = node.this
        if isinstance(node, exp.WithinGroup):
            ordered = node.expression.expressions
            if len(ordered) != 1 or ordered[0].args.get("desc"):
                raise QueryError(f"{label} needs WITHIN GROUP (ORDER BY one column).")
            node = type(node.this)(this=ordered[0].this, expression=node.this.this)
        named: dict[str, tuple[float, float]] = node.meta.get(NAMED, {})
        if isinstance(node, exp.CountIf):
            both = condition(node.this, self.below.lookup, "COUNT_IF")
            return self._count(label, self._both(test, both.sql))
        if isinstance(node, exp.Count):
            return self._counted(node, label, test)
        if isinstance(node, exp.Sum):
            return self._sum(node, label, test, named)
        if isinstance(node, exp.Avg):
            value, present, low, high = self._value(node.this, "AVG", test, named)
            centre = (low + high) / 2
            s = self._add("row", "rows", present, value.sql, low, high, centre, value.kind == "integer", f"the centred sum of {label}")
            return {"kind": "avg", "label": label, "measures": (s, self._number(present, label))}
        if type(node) in _SPREAD:
            return self._spread(node, label, test, named)
        if isinstance(node, exp.CovarPop | exp.CovarSamp | exp.Corr):
            return self._together(node, label, test, named)
        if isinstance(node, _ORDER):
            return self._quantile(node, label, test, named)
        raise QueryError(f"{label} is not an aggregate that can be released; use COUNT, SUM, AVG, VAR, STDDEV, MEDIAN, quantiles, MIN, MAX, COVAR or CORR.")

    def _counted(self, node: exp.Expression, label: str, test: Typed | None) -> dict[str, Any]:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            wanted = {each.sql(DIALECT) for each in inner.expressions}
            units = [each.sql(DIALECT) for each in self.below.units or ()]
            if not units or wanted != set(units):
                raise QueryError(
                    f"{label} can only count the protected unit; to count other values, group by them "
                    "and count the groups of the result."
                )
            n = self._add("pair", "own", None if test is None else test.sql, None, 0, 1, 0, True, label, self._groups_cap())
            return {"kind": "count", "label": label, "measures": (n,), "whole": True}
        if inner is None or isinstance(inner, exp.Star | exp.Literal):
            return self._count(label, None if test is None else test.sql)
        counted = total(inner, self.below.lookup)
        present = exp.Not(this=exp.Is(this=exp.paren(counted.sql), expression=exp.null())) if counted.nullable else None
        return self._count(label, self._both(test, present))

    def _both(self, test: Typed | None, other: exp.Expression | None) -> exp.Expression | None:
        if test is None or other is None:
            return other if test is None else test.sql
        return exp.And(this=exp.paren(test.sql), expression=exp.paren(other))

    def _count(self, label: str, present: exp.Expression | None) -> dict[str, Any]:
        return {"kind": "count", "label": label, "measures": (self._number(present, label),), "whole": True}

    def _number(self, present: exp.Expression | None, label: str) -> str:
        return self._add("row", "rows", present, None, 0, 1, 0, True, f"the number of rows of {label}")

    def _groups_cap(self) -> float | None:
        return 1.0 if not self.keys else self.max_groups

    def _sum(self, node: exp.Expression, label: str, test: Typed | None, named: dict[str, tuple[float, float]]) -> dict[str, Any]:
        pair = named.get("contribution_bounds_per_group")
        if pair is not None and self.below.units:
            value = as_float(total(node.this, self.below.lookup), "SUM")
            present = None if test is None else test.sql
            groups = self._groups_cap()
            cap = None if groups is None else groups * max(abs(pair[0]), abs(pair[1]), 1e-300)
            name = self._add("pair", "own", present, value.sql, pair[0], pair[1], 0, value.kind == "integer", label, cap)
            return {"kind": "sum", "label": label, "measures": (name,), "whole": value.kind == "integer"}
        value, present, low, high = self._value(node.this, "SUM", test, named)
        cap = None
        limit = max(abs(low), abs(high))
        if self.below.units == ():
            cap = limit
        elif isinstance(node.this, exp.Column):
            cap = self.below.items[node.this.table].fields[node.this.name].contribution
        if cap is None and self.rows_cap is not None:
            cap = self.rows_cap * limit
        name = self._add("row", "own", present, value.sql, low, high, 0, value.kind == "integer", label, cap)
        return {"kind": "sum", "label": label, "measures": (name,), "whole": value.kind == "integer"}

    def _spread(self, node: exp.Expression, label: str, test: Typed | None, named: dict[str, tuple[float, float]]) -> dict[str, Any]:
        value, present, low, high = self._value(node.this, type(node).__name__.upper(), test, named)
        s, q = self._moments(value, present, low, high, label)
        sample, root = _SPREAD[type(node)]
        return {"kind": "var", "label": label, "measures": (s, q, self._number(present, label)), "sample": sample, "root": root}

    def _moments(self, value: Typed, present: exp.Expression | None, low: float, high: float, label: str) -> tuple[str, str]:
        centre, half = (low + high) / 2, (high - low) / 2
        s = self._add("row", "rows", present, value.sql, low, high, centre, value.kind == "integer", f"the centred sum of {label}")
        shifted = exp.Sub(this=exp.paren(clamped(value.but(low=low, high=high))), expression=real(centre))
        square = exp.Mul(this=exp.paren(shifted), expression=exp.paren(shifted.copy()))
        q = self._add("row", "rows", present, square, 0, half**2, half**2 / 2, False, f"the sum of squares of {label}")
        return s, q

    def _together(self, node: exp.Expression, label: str, test: Typed | None, named: dict[str, tuple[float, float]]) -> dict[str, Any]:
        if named:
            raise QueryError(f"{label} takes no contribution bounds; declare bounds for both columns or use LEAST and GREATEST.")
        parts = [self._value(each, "COVAR", None, {}) for each in (node.this, node.expression)]
        conditions = [each for _, each, _, _ in parts if each is not None] + ([test.sql] if test else [])
        present = exp.and_(*conditions) if conditions else None
        shifted = [
            exp.paren(exp.Sub(this=exp.paren(clamped(v.but(low=lo, high=hi))), expression=real((lo + hi) / 2))) for v, _, lo, hi in parts
        ]
        bound = (parts[0][3] - parts[0][2]) * (parts[1][3] - parts[1][2]) / 4
        product = exp.Mul(this=shifted[0], expression=shifted[1])
        sums = [
            self._add("row", "rows", present, v.sql, lo, hi, (lo + hi) / 2, v.kind == "integer", f"a centred sum of {label}")
            for v, _, lo, hi in parts
        ]
        cross = self._add("row", "rows", present, product, -bound, bound, 0, False, f"the sum of products of {label}")
        n = self._number(present, label)
        if isinstance(node, exp.Corr):
            squares = []
            for (value, _, low, high) in parts:
                squares.append(self._moments(value, present, low, high, label)[1])
            return {"kind": "corr", "label": label, "measures": (*sums, *squares, cross, n)}
        return {"kind": "covar", "label": label, "measures": (*sums, cross, n), "sample": isinstance(node, exp.CovarSamp)}

    def _quantile(self, node: exp.Expression, label: str, test: Typed | None, named: dict[str, tuple[float, float]]) -> dict[str, Any]:
        value, present, low, high = self._value(node.this, label.split("(")[0], test, named)
        note = ""
        if isinstance(node, exp.Median):
            ranks = [0.5]
        elif isinstance(node, exp.Min | exp.Max):
            if node.expressions:
                raise QueryError(f"{label} of several columns is LEAST or GREATEST here.")
            ranks = [EXTREME if isinstance(node, exp.Min) else 1 - EXTREME]
            share = f"{EXTREME:.0%}"
            note = f"{label} is answered as the value that {share} of the rows lie {'below' if isinstance(node, exp.Min) else 'above'}: one person alone decides the true one."
        else:
            given = node.args.get("quantile") or node.expression
            listed = given.expressions if isinstance(given, exp.Array | exp.Tuple) else [given]
            ranks = [rank for rank in (number(each) for each in listed) if rank is not None and 0 <= rank <= 1]
            if not ranks or len(ranks) != len(listed):
                raise QueryError(f"{label} needs constant ranks between 0 and 1.")
        if isinstance(node.args.get("quantile") or node.args.get("expression"), exp.Array):
            raise QueryError(f"Write one {label.split('(')[0]} for each rank, such as QUANTILE(x, 0.25), QUANTILE(x, 0.75): together they cost as one.")
        whole = value.kind == "integer"
        if high <= low:
            high = low + 1 if whole else low + max(abs(low), 1.0) * 1e-9
        cells = int(high - low) + 1 if whole and high - low < BUCKETS else BUCKETS
        top = high + 1 if whole and cells == int(high - low) + 1 else high
        name = self._add("row", "rows", present, value.sql, low, top, 0, whole, f"the histogram of {label}", buckets=cells)
        return {"kind": "quantile", "label": label, "measures": (name,), "quantiles": tuple(ranks), "whole": whole, "note": note}

    def _value(self, node: exp.Expression, function: str, test: Typed | None, named: dict[str, tuple[float, float]]) -> tuple[Typed, exp.Expression | None, float, float]:
        """A number, the condition under which it is there, and its bounds."""
        if isinstance(node, exp.Distinct):
            raise QueryError(f"{function}(DISTINCT ...) is not possible: one person may decide whether a value is there.")
        typed = as_float(total(node, self.below.lookup), function)
        bounds = next(iter(named.values()), None)
        low, high = bounds if bounds is not None else (typed.low, typed.high)
        if low is None or high is None:
            named_column = node.find(exp.Column)
            column = named_column.name if named_column is not None else node.sql(DIALECT)
            raise QueryError(
                f"{function} needs bounds for {column}: ask the owner to declare them, or write "
                f"{function}({node.name or column}, contribution_bounds_per_row => (low, high)), or LEAST and GREATEST around it."
            )
        there: exp.Expression | None = None
        if typed.nullable or typed.kind == "float":
            # NaN is no number: it is left out, like NULL. Engines order it above infinity.
            there = exp.LTE(this=exp.paren(typed.sql.copy()), expression=exp.cast(exp.Literal.string("Infinity"), "DOUBLE"))
        return typed, self._both(test, there), float(low), float(high)

    def _add(
        self, level: Level, weighing: Weighing, present: exp.Expression | None, value: exp.Expression | None, low: float, high: float,
        centre: float, whole: bool, label: str, cap: float | None = None, buckets: int = 0,
    ) -> str:
        if cap is None and level == "row" and weighing == "rows":
            cap = 1.0 if self.below.units == () else self.rows_cap
        made = Measure("", level, weighing, present, value, low, high, centre, whole, None, label, buckets)
        made = made if cap is None else made.capped(cap)
        for name, each in self.measures.items():
            if (each.weigh_key, each.value, each.low, each.high, each.centre, each.buckets, each.cap, each.present) == (
                made.weigh_key, made.value, made.low, made.high, made.centre, made.buckets, made.cap, made.present,
            ):
                return name
        name = f"m{len(self.measures)}"
        self.measures[name] = Measure(name, level, weighing, present, value, made.low, made.high, centre, whole, made.cap, label, buckets)
        return name


def _label(node: exp.Expression) -> str:
    """The aggregate as the user would write it."""
    shown = node.copy()
    for column in shown.find_all(exp.Column):
        column.set("table", None)
        column.this.set("quoted", False)
    return shown.sql(DIALECT)
