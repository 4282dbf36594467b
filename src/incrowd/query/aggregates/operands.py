"""What an aggregate is asked about: its condition, its bounds, and the number that is aggregated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from incrowd.catalog.types import NUMERIC
from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.expressions import total
from incrowd.query.functions.times import since_1970
from incrowd.query.graded_cells import FINEST, ROWS_OF_ONE, Band, bands_of, count_of
from incrowd.query.measure import Measure, Value
from incrowd.query.ownership import Sources
from incrowd.query.per_unit import check_bounds, clamped
from incrowd.query.quantile_cells import BUCKETS, cells_of, seconds_or_days
from incrowd.query.sql import ContributionBounds
from incrowd.query.typed import Typed, double, said

AS_WRITTEN = "as_written"
"""Where a node's meta says what the user wrote in its place."""
_OF_PAIRS = ("CORR", "COVAR", "REGR_", "WEIGHTED_AVG")
"""How the names of functions begin that take two numbers, and so no bounds beside one."""
BESIDE = "beside"
"""Where a node's meta says what a reader of the answer must know about it."""


@dataclass(frozen=True)
class Asked:
    """One aggregate of a question: the function, the condition of its FILTER, and its written bounds."""

    node: exp.Expr
    label: str
    test: exp.Expr | None
    bounds: ContributionBounds | None

    @property
    def function(self) -> str:
        """The function's name, as the user wrote it."""
        return self.label.partition("(")[0]


@dataclass(frozen=True)
class Operand:
    """A number to be aggregated: what is known of it, the condition for it to count, and its bounds."""

    typed: Typed
    present: exp.Expr | None
    low: float
    high: float
    tested: bool = False
    checked: bool = False
    wide: bool = False
    """Whether the bounds are none that anyone declared, but the ends of what a person may add up to."""

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return self.typed.kind == "integer"

    @property
    def grain(self) -> float:
        """What is told apart near zero, where there are no bounds."""
        most = max(abs(self.low), abs(self.high), 1e-300)
        return 1.0 if self.whole else FINEST * 2.0 ** math.ceil(math.log2(most / ROWS_OF_ONE))

    @property
    def centre(self) -> float:
        """The middle of its bounds."""
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
        bands: tuple[Band, ...] = ()
        if self.wide:
            bands = bands_of(self.low, self.high, self.grain, most_cells)
            low, high, cells = bands[0].start, bands[-1].end, count_of(bands)
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
            bands=bands,
            tested=self.tested,
            absent_if_null=self.checked,
        )


def operand_of(
    node: exp.Expr, function: str, test: exp.Expr | None, bounds: ContributionBounds | None, below: Sources
) -> Operand:
    """The number that an aggregate is about, the condition for it to count, and its bounds."""
    if isinstance(node, exp.Distinct):
        values = ", ".join(said(value) for value in node.expressions)
        raise QueryError(
            f"{function}(DISTINCT {values}) cannot be released, as one person may decide whether a value is "
            f"there; write {function}({values}) without DISTINCT."
        )
    typed = as_float(total(node, below.lookup), function)
    low, high = (typed.low, typed.high) if bounds is None else (bounds.low, bounds.high)
    wide = (low is None or high is None) and typed.wide is not None
    if wide:
        low, high = typed.wide or (None, None)
    if low is None or high is None:
        raise _unbounded(node, typed, function, below)
    check_bounds(low, high, said(node), function)
    there: exp.Expr | None = None
    if typed.nullable or typed.kind == "float":
        # NaN is no number: it is left out, like NULL. Engines order it above infinity.
        there = exp.LTE(this=typed.sql.copy(), expression=double(float("inf")))
    present = both(test, there)
    return Operand(typed, present, float(low), float(high), test is not None, there is not None, wide)


def _from_zero(typed: Typed) -> bool:
    return typed.low is not None and typed.low >= 0


def _unbounded(node: exp.Expr, typed: Typed, function: str, below: Sources) -> QueryError:
    """Why a number has no bounds, and what to write: its column has none, or what is computed of it has."""
    columns = list(node.find_all(exp.Column))
    facts = [below.lookup(column) for column in columns]
    numeric = all(fact.kind in NUMERIC for fact in facts)
    bare = [fact for fact in facts if fact.kind in NUMERIC and fact.reach is None]
    asked = said(node)
    if columns and not bare:
        names = " and ".join(dict.fromkeys(column.name for column in columns))
        quotient = node.unnest()
        reason, other = (
            f"{names} {'have' if len(columns) > 1 else 'has'} bounds, but what is computed has none",
            "",
        )
        low = 0 if _from_zero(typed) or (numeric and all(map(_from_zero, facts))) else -1
        if not numeric:
            reason = f"{names} is no number with bounds"
        if isinstance(quotient, exp.Div) and numeric:
            below_it = said(quotient.expression.unnest())
            reason = f"{names} have bounds, but not their ratio, for {below_it} may be close to 0"
            if function == "AVG":
                other = f", or SUM({said(quotient.this)}) / SUM({below_it}) for the ratio of the totals"
        written = f"{function}({asked}, contribution_bounds_per_row => ({low}, 1))"
        if function.startswith(_OF_PAIRS):
            written = f"LEAST(GREATEST({asked}, {low}), 1) in its place"
        return QueryError(
            f"{function} needs bounds for {asked}: {reason}. Write {written}, with what you expect for "
            f"{low} and 1{other}."
        )
    column = next((column.name for column, fact in zip(columns, facts, strict=True) if fact in bare), asked)
    return QueryError(
        f"{function} needs bounds for {column}: ask the owner to declare them, or write "
        f"{function}({asked}, contribution_bounds_per_row => (low, high)), or LEAST and "
        "GREATEST around it."
    )


def moment_of(node: exp.Expr, function: str, test: exp.Expr | None, below: Sources) -> Operand:
    """A date or timestamp column as a number between its declared bounds."""
    limits = below.field(node).limits if isinstance(node, exp.Column) else None
    if limits is None:
        raise QueryError(
            f"{function} of a date needs a column with bounds, which {said(node)} is not: ask the owner "
            "to declare bounds for its column."
        )
    low, high = (seconds_or_days(limit) for limit in limits)
    typed = since_1970(total(node, below.lookup))
    there = exp.LTE(this=typed.sql.copy(), expression=double(float("inf")))
    return Operand(typed, both(test, there), low, high, test is not None, True)


def both(one: exp.Expr | None, two: exp.Expr | None) -> exp.Expr | None:
    """Both conditions; None if there is none."""
    if one is None or two is None or one == two:
        return one if two is None else two
    return exp.And(this=exp.paren(one.copy()), expression=exp.paren(two.copy()))
