"""Aggregates of the released SELECT as bounded measures.

| asked | measures | estimate (free) |
|---|---|---|
| COUNT(*), COUNT(x) | n: rows that count | n |
| COUNT(DISTINCT unit) | n: (unit, group) pairs | n |
| SUM(x) | s: clamped values | s |
| AVG(x) | s: x - centre, n | centre + s / n |
| VAR, STDDEV | s, q: (x - centre)^2 - half its span, n | q / n - (s / n)^2 |
| COVAR, CORR | sums of the products, likewise | |
| MEDIAN, quantiles, MIN, MAX | a histogram of x, or of days or seconds | by rank |

Centring halves what one row can add, and with it the noise. Sums that are divided by counts are weighed by
rows, so that a heavy unit's sum and count shrink alike and the ratio stays an average. Where nobody
declared how many rows a unit has, they are weighed jointly (`Measure.ball`), around centres that are bought:
then wide bounds cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.expressions import condition, total
from incrowd.query.functions.times import since_1970
from incrowd.query.measure import Level, Measure, Value
from incrowd.query.ownership import Sources
from incrowd.query.per_unit import check_bounds, clamped
from incrowd.query.plan import Aggregate
from incrowd.query.quantile_cells import BUCKETS, GROUPED, cells_of, note_of, ranks_of, seconds_or_days
from incrowd.query.sql import DIALECT, ContributionBounds, bounds_of, with_bounds
from incrowd.query.typed import Census, Typed, double, said

Made = dict[str, Any]
_SPREAD: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
_ORDER = (
    exp.Median,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.Quantile,
    exp.ApproxQuantile,
    exp.Min,
    exp.Max,
)
_READ = {"this", "expression", "quantile", "big_int", "expressions"}


@dataclass(frozen=True)
class _Value:
    """A number to be aggregated: what is known of it, the condition for it to count, and its bounds."""

    typed: Typed
    present: exp.Expr | None
    low: float
    high: float
    tested: bool = False
    checked: bool = False

    @property
    def whole(self) -> bool:
        return self.typed.kind == "integer"

    @property
    def centre(self) -> float:
        return (self.low + self.high) / 2

    @property
    def column(self) -> Value:
        """The value with the histogram that centres it, in which each unit weighs 1."""
        inside = clamped(self.typed.but(low=self.low, high=self.high))
        return Value(inside, self.low, self.high, self.histogram(BUCKETS, "where values lie").capped(1.0))

    @property
    def shifted(self) -> exp.Expr:
        """The clamped value minus the centre of its bounds."""
        return self.column.shifted(self.centre)

    def histogram(self, most_cells: int, label: str) -> Measure:
        """The histogram of the value, weighed by rows."""
        low, high, cells = cells_of(self.low, self.high, self.whole, most_cells)
        return Measure(
            "",
            "row",
            "rows",
            self.present,
            self.typed.sql,
            low,
            high,
            whole=self.whole,
            label=label,
            buckets=cells,
            tested=self.tested,
            absent_if_null=self.checked,
        )


@dataclass
class Aggregates:
    """Collects the measures and columns of one leaf; the same measure is asked for once."""

    below: Sources
    keys: tuple[exp.Expr, ...]
    rows_cap: float | Census | None
    max_groups: float | None
    measures: dict[str, Measure] = field(default_factory=dict)
    columns: dict[tuple[str, ContributionBounds | None], Aggregate] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def column(self, node: exp.Expr) -> str:
        """The released column for an aggregate node."""
        bounds = next((written for part in node.walk() if (written := bounds_of(part)) is not None), None)
        asked = (node.sql(DIALECT), bounds)
        if asked not in self.columns:
            made = self._make(node)
            made["note"] = " ".join([made.get("note", ""), *self._bought(node, made)]).strip()
            self.columns[asked] = Aggregate(f"a{len(self.columns)}", **made)
        return self.columns[asked].name

    def _bought(self, node: exp.Expr, made: Made) -> list[str]:
        """What to say about the bounds of the columns whose values are aggregated."""
        if made["kind"] == "count":
            return []
        home = node.find_ancestor(exp.Select)
        own = [column for column in node.find_all(exp.Column) if column.find_ancestor(exp.Select) is home]
        said = [words for column in own for words in self.below.field(column).bought]
        return [f"{made['label']}: {words}." for words in dict.fromkeys(said)]

    def _make(self, node: exp.Expr) -> Made:
        test: exp.Expr | None = None
        label = said(node)
        if isinstance(node, exp.Filter):
            test = condition(node.expression.this, self.below.lookup, "FILTER").sql
            node = node.this
        if isinstance(node, exp.WithinGroup):
            node = _ranked(node, label)
        bounds = bounds_of(node)
        if any(value for key, value in node.args.items() if key not in _READ):
            raise QueryError(f"{label} has an option that is not understood; leave it out.")
        if node.expressions:
            raise QueryError(f"{label} takes one column here; LEAST and GREATEST compare several.")
        if isinstance(node, exp.CountIf) and bounds is None:
            counted = condition(node.this, self.below.lookup, "COUNT_IF").sql
            return self._count(label, _both(test, counted))
        if isinstance(node, exp.Count):
            return self._counted(node, label, test, bounds)
        if isinstance(node, exp.Sum):
            return self._sum(node, label, test, bounds)
        if isinstance(node, exp.Avg):
            value = self._value(node.this, "AVG", test, bounds)
            measures = (self._centred(value, label), self._rows_of(value, label))
            return {"kind": "avg", "label": label, "measures": measures}
        if type(node) in _SPREAD:
            return self._spread(node, label, test, bounds)
        if isinstance(node, exp.CovarPop | exp.CovarSamp | exp.Corr):
            return self._together(node, label, test, bounds)
        if isinstance(node, _ORDER):
            return self._quantile(node, label, test, bounds)
        raise QueryError(
            f"{label} is not an aggregate that can be released; use COUNT, SUM, AVG, VAR, STDDEV, MEDIAN, "
            "quantiles, MIN, MAX, COVAR or CORR."
        )

    def _counted(
        self, node: exp.Expr, label: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> Made:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            if bounds is not None:
                raise QueryError(f"{label} counts each unit once and takes no bounds; leave them out.")
            return self._units(inner, label, test)
        present = test
        if inner is not None and not isinstance(inner, exp.Star):
            counted = total(inner, self.below.lookup)
            if counted.nullable:
                there = exp.Not(this=exp.Is(this=exp.paren(counted.sql), expression=exp.null()))
                present = _both(test, there)
        if bounds is not None:
            return self._counted_per_group(label, present, bounds)
        return self._count(label, present)

    def _units(self, inner: exp.Distinct, label: str, test: exp.Expr | None) -> Made:
        """COUNT(DISTINCT unit). Of the unit's columns, those that are group keys need not be listed."""
        asked = inner.expressions
        if len(asked) == 1 and isinstance(asked[0], exp.Tuple):
            asked = asked[0].expressions
        columns = [column for column in asked if isinstance(column, exp.Column)]
        parts = {self.below.field(column).unit for column in columns}
        keys = {self.below.field(column).unit for column in self.keys if isinstance(column, exp.Column)}
        wanted = set(self.below.parts)
        if len(columns) != len(asked) or "" in parts or "column" not in parts or not wanted <= parts | keys:
            raise QueryError(
                f"{label} can only count the protected unit; to count other values, group by them and "
                "count the groups of the result."
            )
        measure = Measure("", "pair", "own", test, None, 0, 1, label=label)
        return {
            "kind": "count",
            "label": label,
            "measures": (self._add(measure, self._groups),),
            "whole": True,
        }

    def _count(self, label: str, present: exp.Expr | None) -> Made:
        measures = (self._number(present, label),)
        return {"kind": "count", "label": label, "measures": measures, "whole": True}

    def _counted_per_group(self, label: str, present: exp.Expr | None, bounds: ContributionBounds) -> Made:
        """COUNT with bounds per group: a sum of ones whose total per unit and group is clamped."""
        if bounds.per != "group":
            raise QueryError(f"{label} counts each row once; bound it with contribution_bounds_per_group.")
        one = Typed(double(1.0), "integer", 1, 1, False)
        name = self._bounded_sum(_Value(one, present, bounds.low, bounds.high), label)
        return {"kind": "sum", "label": label, "measures": (name,), "whole": True}

    def _number(self, present: exp.Expr | None, label: str) -> str:
        measure = Measure("", "row", "rows", present, None, 0, 1, label=f"the number of rows of {label}")
        return self._add(measure, self._rows)

    @property
    def _groups(self) -> float | None:
        """The most groups that one unit counts in; None if it is still to be chosen."""
        return 1.0 if not self.keys or self.below.single else self.max_groups

    @property
    def _rows(self) -> float | Census | None:
        """The most rows that one unit counts for; None, or a census, if it is still to be chosen."""
        return 1.0 if self.below.single else self.rows_cap

    @property
    def _rows_of_ratio(self) -> float | None:
        """The most rows that one unit counts for in an average or a spread; None if they are in a ball.

        A census of rows that was bought beforehand does not say what units weigh in a ball.
        """
        return self._rows if isinstance(self._rows, int | float) else None

    def _sum(
        self, node: exp.Expr, label: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> Made:
        per_group = bounds is not None and bounds.per == "group"
        value = self._value(node.this, "SUM", test, bounds)
        # NULL adds nothing to a sum, so only the question's own FILTER is needed.
        value = replace(value, present=test)
        if per_group:
            name = self._bounded_sum(value, label)
            return {"kind": "sum", "label": label, "measures": (name,), "whole": value.whole}
        cap: float | Census | None = None
        limit = max(abs(value.low), abs(value.high))
        if isinstance(node.this, exp.Column) and not self.below.single:
            field = self.below.field(node.this)
            cap = field.contribution if field.census is None else field.census if self.below.plain else None
        if cap is None and isinstance(self._rows, int | float):
            cap = self._rows * limit
        measure = Measure("", "row", "own", test, value.typed.sql, value.low, value.high, label=label)
        name = self._add(replace(measure, whole=value.whole), cap)
        return {"kind": "sum", "label": label, "measures": (name,), "whole": value.whole}

    def _bounded_sum(self, value: _Value, label: str) -> str:
        """A sum whose total per unit and group is clamped into the bounds."""
        level: Level = "row" if self.below.single else "pair"
        limit = max(abs(value.low), abs(value.high))
        cap = None if self._groups is None else self._groups * limit
        measure = Measure(
            "",
            level,
            "own",
            value.present,
            value.typed.sql,
            value.low,
            value.high,
            whole=value.whole,
            label=label,
        )
        return self._add(measure, cap)

    def _rows_of(self, value: _Value, label: str) -> str:
        """The number of rows that an average is over."""
        if self._rows_of_ratio is not None:
            return self._number(value.present, label)
        words = f"the number of rows of {label}"
        one = double(1.0)
        return self._add(self._in_ball(Measure("", "pair", "joint", value.present, one, 0, 1, label=words)))

    def _in_ball(self, measure: Measure, *factors: _Value) -> Measure:
        """The measure, bounded together with all others over the same rows, if rows per unit are open."""
        if self._rows_of_ratio is not None:
            return measure
        names = tuple(self._named(value.column) for value in factors)
        return replace(measure, level="pair", weighing="joint", factors=names)

    def _named(self, value: Value) -> str:
        """The name of a value, which is added if it is new."""
        for name, known in self.values.items():
            if known == value:
                return name
        name = f"x{len(self.values)}"
        self.values[name] = value
        return name

    def _centred(self, value: _Value, label: str) -> str:
        measure = Measure(
            "",
            "row",
            "rows",
            value.present,
            value.typed.sql,
            value.low,
            value.high,
            value.centre,
            value.whole,
            label=f"the centred sum of {label}",
            tested=value.tested,
            absent_if_null=value.checked,
        )
        return self._add(self._in_ball(measure, value), self._rows_of_ratio)

    def _squares(self, value: _Value, label: str) -> str:
        most = ((value.high - value.low) / 2) ** 2
        square = exp.Mul(this=value.shifted, expression=value.shifted)
        words = f"the sum of squares of {label}"
        measure = Measure("", "row", "rows", value.present, square, 0, most, most / 2, False, label=words)
        measure = replace(measure, tested=value.tested, absent_if_null=value.checked)
        return self._add(self._in_ball(measure, value, value), self._rows_of_ratio)

    def _spread(
        self, node: exp.Expr, label: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> Made:
        value = self._value(node.this, label.partition("(")[0], test, bounds)
        sample, root = _SPREAD[type(node)]
        parts = (
            self._centred(value, label),
            self._squares(value, label),
            self._rows_of(value, label),
        )
        return {"kind": "var", "label": label, "measures": parts, "sample": sample, "root": root}

    def _together(
        self, node: exp.Expr, label: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> Made:
        if bounds is not None:
            raise QueryError(
                f"{label} takes no contribution bounds; declare bounds for both columns or use LEAST and "
                "GREATEST."
            )
        parts = [
            self._value(value, label.partition("(")[0], None, None) for value in (node.this, node.expression)
        ]
        # A row counts if both values are present.
        present = _both(_both(parts[0].present, parts[1].present), test)
        one, two = (replace(value, present=present, tested=True) for value in parts)
        most = (one.high - one.low) * (two.high - two.low) / 4
        product = exp.Mul(this=one.shifted, expression=two.shifted)
        sums = tuple(self._centred(value, label) for value in (one, two))
        words = f"the sum of products of {label}"
        measure = Measure("", "row", "rows", present, product, -most, most, 0, False, label=words)
        cross = self._add(self._in_ball(measure, one, two), self._rows_of_ratio)
        n = self._rows_of(one, label)
        if isinstance(node, exp.Corr):
            squares = tuple(self._squares(value, label) for value in (one, two))
            return {"kind": "corr", "label": label, "measures": (*sums, *squares, cross, n)}
        sample = isinstance(node, exp.CovarSamp)
        return {"kind": "covar", "label": label, "measures": (*sums, cross, n), "sample": sample}

    def _quantile(
        self, node: exp.Expr, label: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> Made:
        ranks = ranks_of(node, label)
        moment = total(node.this, self.below.lookup).kind
        if moment in TIMES and bounds is None:
            value = self._moment(node.this, label.partition("(")[0], test)
        else:
            value = self._value(node.this, label.partition("(")[0], test, bounds)
        measure = value.histogram(GROUPED if self.keys else BUCKETS, f"the histogram of {label}")
        return {
            "kind": "quantile",
            "label": label,
            "measures": (self._add(measure, self._rows),),
            "quantiles": ranks,
            "whole": value.whole,
            "note": note_of(node, label),
            "moment": moment if moment in TIMES else "",
        }

    def _moment(self, node: exp.Expr, function: str, test: exp.Expr | None) -> _Value:
        """A date or timestamp column as a number between its declared bounds."""
        limits = self.below.field(node).limits if isinstance(node, exp.Column) else None
        if limits is None:
            raise QueryError(
                f"{function} of a date needs a column with bounds, which {said(node)} is not: ask the owner "
                "to declare bounds for its column."
            )
        low, high = (seconds_or_days(limit) for limit in limits)
        typed = since_1970(total(node, self.below.lookup))
        there = exp.LTE(this=typed.sql.copy(), expression=double(float("inf")))
        return _Value(typed, _both(test, there), low, high, test is not None, True)

    def _value(
        self, node: exp.Expr, function: str, test: exp.Expr | None, bounds: ContributionBounds | None
    ) -> _Value:
        """The number that an aggregate is about, the condition for it to count, and its bounds."""
        if isinstance(node, exp.Distinct):
            raise QueryError(
                f"{function}(DISTINCT ...) is not possible: one person may decide whether a value is there."
            )
        typed = as_float(total(node, self.below.lookup), function)
        low, high = (typed.low, typed.high) if bounds is None else (bounds.low, bounds.high)
        if low is None or high is None:
            named_column = node.find(exp.Column)
            column = named_column.name if named_column is not None else said(node)
            raise QueryError(
                f"{function} needs bounds for {column}: ask the owner to declare them, or write "
                f"{function}({said(node)}, contribution_bounds_per_row => (low, high)), or LEAST and "
                "GREATEST around it."
            )
        check_bounds(low, high, said(node), function)
        there: exp.Expr | None = None
        if typed.nullable or typed.kind == "float":
            # NaN is no number: it is left out, like NULL. Engines order it above infinity.
            there = exp.LTE(this=typed.sql.copy(), expression=double(float("inf")))
        present = _both(test, there)
        return _Value(typed, present, float(low), float(high), test is not None, there is not None)

    def _add(self, measure: Measure, cap: float | Census | None = None) -> str:
        """Adds a measure, unless there is an equal one already; returns its name."""
        if isinstance(cap, Census):
            capped = replace(measure, census=cap)
        else:
            capped = measure if cap is None else measure.capped(cap)
        for name, known in self.measures.items():
            if replace(known, name="", label="") == replace(capped, label=""):
                return name
        name = f"m{len(self.measures)}"
        self.measures[name] = replace(capped, name=name)
        return name


def _both(one: exp.Expr | None, two: exp.Expr | None) -> exp.Expr | None:
    if one is None or two is None or one == two:
        return one if two is None else two
    return exp.And(this=exp.paren(one.copy()), expression=exp.paren(two.copy()))


def _ranked(node: exp.WithinGroup, label: str) -> exp.Expr:
    """PERCENTILE_CONT(rank) WITHIN GROUP (ORDER BY x) as a function of x and the rank."""
    ordered = node.expression.expressions
    if len(ordered) != 1 or ordered[0].args.get("desc") or not isinstance(node.this, _ORDER):
        raise QueryError(f"{label} needs a rank, and WITHIN GROUP (ORDER BY one column).")
    ranked = type(node.this)(this=ordered[0].this, expression=node.this.this)
    return with_bounds(ranked, bounds_of(node.this))
