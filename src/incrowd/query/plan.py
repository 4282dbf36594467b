"""The bounded plan: what is asked of the engine, and how much one unit can move each number of it.

A question has one or more leaves. A leaf is the innermost aggregation over private rows: per group, it asks
for measures, each an integer sum whose change under adding or removing one unit is bounded in L1 over all
groups together. Everything above the leaves is SQL over released tables (`outer`) and costs nothing.

How a measure is bounded (design decision 3). Let x_i be the measure's value on row i, clamped, as an
integer number of steps, and let unit u weigh t_u in all. With cap C,

    y_i = x_i                     where t_u <= C
          x_i * (C / t_u)         otherwise, rounded towards zero

- weighed by its own size (SUM, COUNT): t_u = sum |x_i| over the unit's rows, so sum |y_i| <= t_u * C / t_u
  = C.
- weighed by its rows (AVG, VAR, quantiles, so that sums and counts shrink alike): t_u = the number of rows
  and |x_i| <= L, so sum |y_i| <= t_u * L * C / t_u = C * L.
- weighed jointly (AVG, VAR, CORR, ... whose rows per unit nobody declared): see `Measure.ball`.

Nothing overflows int64. With a step of 2^exponent, exponent = ceil(log2(sensitivity)) - 30, an own-weighed
value and its cap are at most 2^30 steps each (a value is clamped to the cap), and a value times a cap of
rows is the sensitivity, at most 2^30 + cap. Whole numbers keep a step of 1 while sensitivity <= 2^32 and
sensitivity * limit < 2^61. Sums over rows are of 128 bits and clamped to 2^61. The factor C / t_u is a
float64: a sum exceeds its bound by less than a part in 2^51, which is less than one step, so a sum of
whole steps does not exceed it at all.

A unit's rows depend on no other unit's, so adding or removing it moves the vector of all groups by at most
that in L1 (and therefore in L2). Counts of units over their groups may be bounded in L2 itself, for Gaussian
noise (`Leaf.in_l2`). Replacing a unit is removing one and adding another: twice that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.query.typed import double
from incrowd.query.weights import Census

Level = Literal["row", "pair"]
Weighing = Literal["own", "rows", "joint"]
STEPS = 30
"""A measure's sensitivity is about 2^30 steps: products of a value and a cap stay far inside int64."""
WIDEST = 2**32
"""The most steps a whole-number measure may span before its grid is coarsened."""
RELEASED = "released_"
"""What the tables of released numbers are called in the SQL above the leaves, with the leaf's number."""
MOST_BOUND = 2.0**200
"""Bounds beyond this are refused: squares of spans, times any cap, must stay inside float64."""
MOST_GROUPS = 2048
"""A unit in more groups, and in more than twice the cap, counts in none where a count in L2 decides."""
FEW_SHOWN = 5
"""Where a count decides which groups are shown, units in up to so many groups are bounded in L1."""
BALL: int = 2**STEPS
"""The radius of a ball in steps: what one unit adds to all measures of the ball together."""
ROWS_PER_NORM = 2.0
"""How many rows at the centre weigh 1 in a ball."""
_SECOND = 2.0
"""A product of two deviations weighs 1 where it is this many times the product of their spreads."""
_LEAST = 2.0**-900


class Centre(NamedTuple):
    """Where the values of a column lie: bought before they are summed."""

    middle: float
    spread: float


@dataclass(frozen=True)
class Value:
    """A column of a ball: its clamped values between bounds, and the histogram that centres it.

    In the histogram each unit weighs 1, however many rows it has.
    """

    clamped: exp.Expr
    low: float
    high: float
    histogram: Measure

    def shifted(self, centre: float) -> exp.Expr:
        """The clamped value minus a centre; 0 where its square would underflow.

        Adding and subtracting 2^-60 of the span leaves multiples of 2^-112 of it, and moves what is larger
        by a rounding at most: squares and products then stay inside float64, as some engines demand.
        """
        inside = exp.paren(self.clamped.copy())
        less = exp.paren(exp.Sub(this=inside, expression=double(centre)))
        if self.low == self.high:
            return less
        grain = math.ldexp(1.0, math.frexp(self.high - self.low)[1] - 60)
        more = exp.paren(exp.Add(this=less, expression=double(grain)))
        return exp.paren(exp.Sub(this=more, expression=double(grain)))

    def reach(self, centre: float) -> float:
        """How far a value may lie from a centre."""
        return max(abs(self.low - centre), abs(self.high - centre))


@dataclass(frozen=True)
class Measure:
    """One bounded sum per group.

    level: `row` sums over rows. `pair` sums over (unit, group) pairs: the value of a pair is `value` summed
    over its rows and then clamped, or 1 where units are counted. present: which rows count; None for all.
    value: what is summed; None for 1. low, high: the value is clamped between them. centre: subtracted after
    clamping. cap: the most that one unit may weigh, in values (`own`) or in rows (`rows`); None if it is
    still to be chosen privately.
    """

    name: str
    level: Level
    weighing: Weighing
    present: exp.Expr | None
    value: exp.Expr | None
    low: float
    high: float
    centre: float = 0.0
    whole: bool = True
    cap: float | None = None
    label: str = ""
    buckets: int = 0
    """For a quantile's histogram: the number of equal cells between low and high; 0 for a sum."""
    tested: bool = False
    """True if `present` tests more than whether the value is a number."""
    absent_if_null: bool = False
    """True if `present` implies that the value is neither NULL nor NaN, so no second test is needed."""
    norm: Literal[1, 2] = 1
    """How a count of units bounds the groups of one unit: 1 their number, 2 the root of their number.

    For a ball: the norm that bounds all of a unit's sums together.
    """
    factors: tuple[str, ...] = ()
    """In a ball, the leaf's values whose deviations from their centres are multiplied; none for a count."""
    scale: float = 1.0
    """In a ball, how much of the measure weighs 1."""
    census: Census | None = None
    """What the owner bought about its units, from which its cap is chosen; None if nothing was."""

    @property
    def ball(self) -> str:
        """The name of the ball that the measure is in; the empty text if it is in none.

        Theorem. The measures 1..k of a ball are over the same rows. Let z_jg be unit u's sum of measure j
        over its rows in group g, in steps of C scale_j / S with S = 2^30, clamped to 4 S in size, and t_u
        the norm of all its z_jg (L1, or L2). With

            y_jg = z_jg                  where t_u <= S
                   z_jg * (S / t_u)      otherwise, rounded towards zero

        the norm of u's y is at most S, for all measures and groups together. So noise of scale S / epsilon on
        every number (L1, Laplace) is epsilon-DP for the whole ball, and of scale S / mu (L2, Gaussian)
        mu-GDP: a ball is released for one price, and a unit's sums and counts shrink alike, so that ratios
        stay averages. Float64 makes an L1 norm exceed S by less than one step, which whole numbers cannot; an
        L2 norm is stated one step larger.
        """
        return self.weigh_key if self.weighing == "joint" else ""

    @property
    def line(self) -> str:
        """What the price calls its release: its own name, or its ball's."""
        return self.ball or self.name

    @property
    def limit(self) -> float:
        """The most that one row (or pair) adds, in absolute value."""
        if self.value is None or self.buckets:
            return 1.0
        return max(abs(self.low - self.centre), abs(self.high - self.centre))

    @functools.cached_property
    def weigh_key(self) -> str:
        """Measures with the same key shrink a unit by the same factor and share one cap."""
        present = "" if self.present is None else self.present.sql("duckdb")
        if self.weighing == "joint":
            return f"joint {present}"
        if self.weighing == "rows" or (self.value is None and self.level == "row"):
            return f"{self.level} rows {present}"
        value = "" if self.value is None else self.value.sql("duckdb")
        return f"{self.level} own {self.low} {self.high} {self.centre} {value} {present}"

    @property
    def sensitivity(self) -> float:
        """How far one unit moves the vector of all groups, in values, in the measure's norm."""
        assert self.cap is not None
        if self.ball:
            return self.cap * self.scale
        if self.norm == 2:
            return math.sqrt(self.cap)
        return self.cap * self.limit if self.weighing == "rows" else self.cap

    @property
    def exponent(self) -> int:
        """The grid: a step is 2^exponent."""
        mantissa, power = math.frexp(max(self.sensitivity, _LEAST))
        fine = (power - 1 if mantissa == 0.5 else power) - STEPS
        if self.buckets or self.value is None:
            return max(min(fine, 0), -STEPS)
        whole = self.whole and float(self.centre).is_integer()
        if fine > 0 and whole and self.sensitivity <= WIDEST and self.sensitivity * self.limit < 2**61:
            return 0
        return fine

    @property
    def step(self) -> float:
        """The value of one step: a power of two, so exact, except in a ball."""
        if self.ball:
            return self.sensitivity / BALL
        return math.ldexp(1.0, self.exponent)

    @property
    def sensitivity_steps(self) -> int:
        """The sensitivity in whole steps: exactly what the statement enforces."""
        assert self.cap is not None
        if self.ball:
            return BALL + (self.norm == 2)
        if self.norm == 2:
            # m pairs of floor(S sqrt(C / m)) steps; one more step covers the engine's rounding of the root.
            return math.isqrt(self.rows_cap * self.limit_steps**2) + 1
        if self.weighing == "rows" or self.value is None:
            return self.rows_cap * self.limit_steps
        return self.cap_steps

    @property
    def limit_steps(self) -> int:
        """The most steps that one row adds: rounding to the nearest step exceeds no rounding up."""
        return max(1, math.ceil(math.ldexp(self.limit, -self.exponent)))

    @property
    def rows_cap(self) -> int:
        """The cap in rows, for measures that are weighed by rows."""
        assert self.cap is not None
        return max(1, math.floor(self.cap))

    @property
    def cap_steps(self) -> int:
        """The cap in steps, for measures weighed by their own size; rounded up, as a single value may be."""
        assert self.cap is not None
        return max(1, math.ceil(math.ldexp(self.cap, -self.exponent)))

    @property
    def most_groups(self) -> int:
        """In how many groups a unit may be to count at all, where the measure decides what is shown in L2."""
        return max(MOST_GROUPS, 2 * self.rows_cap)

    def capped(self, cap: float) -> Measure:
        """The measure with this cap. No value needs to exceed it, so the bounds shrink too."""
        if self.weighing == "own" and self.value is not None:
            low, high = (min(max(end, -cap), cap) for end in (self.low, self.high))
            return replace(self, cap=cap, low=low, high=high)
        return replace(self, cap=cap)

    def centred(self, values: Mapping[str, Value], centres: Mapping[str, Centre], rows: float) -> Measure:
        """A measure of a ball whose values' centres are known; so many rows at the centre weigh 1."""
        if not self.factors:
            return replace(self, scale=rows)
        parts = [(values[name], centres[name]) for name in self.factors]
        if len(parts) == 1:
            ((_, centre),) = parts
            return replace(self, centre=centre.middle, scale=centre.spread)
        (one, here), (two, there) = parts
        product = exp.Mul(this=one.shifted(here.middle), expression=two.shifted(there.middle))
        most = one.reach(here.middle) * two.reach(there.middle)
        square = self.factors[0] == self.factors[1]
        return replace(
            self,
            value=product,
            low=0.0 if square else -most,
            high=most,
            centre=here.spread**2 if square else 0.0,
            scale=_SECOND * here.spread * there.spread,
        )


@dataclass(frozen=True)
class Key:
    """One GROUP BY expression, public if its values are listed.

    They are listed as they are (`values`), or by a query over public things (`domain`).
    """

    name: str
    sql: exp.Expr
    kind: Kind
    domain: exp.Query | None = None
    label: str = ""
    values: tuple[Any, ...] | None = None
    note: str = ""
    """What a reader must know about a domain that was bought."""
    bins: bool = False
    """Whether the values come from bins that bounds make."""

    @property
    def public(self) -> bool:
        """Whether its values can be listed without looking at private rows."""
        return self.domain is not None or self.values is not None


def released_name(leaf: int) -> str:
    """The table that holds the released numbers of a leaf."""
    return f"{RELEASED}{leaf}"


def released_index(table: str) -> int | None:
    """Which leaf a released table belongs to; None for any other table.

    >>> released_index("released_2"), released_index("released_x"), released_index("visits")
    (2, None, None)
    """
    number = table.removeprefix(RELEASED)
    known = table.startswith(RELEASED) and number.isascii() and number.isdigit()
    return int(number) if known else None


AggregateKind = Literal["count", "sum", "avg", "var", "covar", "corr", "quantile"]


@dataclass(frozen=True)
class Aggregate:
    """One released column: an estimate computed from measures, free of further cost."""

    name: str
    kind: AggregateKind
    label: str
    measures: tuple[str, ...]
    quantiles: tuple[float, ...] = ()
    sample: bool = False
    """Divide by n - 1 (VAR_SAMP and its family)."""
    root: bool = False
    """STDDEV: the square root."""
    whole: bool = False
    """Comes back as an integer."""
    note: str = ""


@dataclass(frozen=True)
class Leaf:
    """The innermost aggregation over private rows: rows, keys, measures, and the columns they become."""

    rows: exp.Select
    """Yields the unit's columns u0.., the keys' k0.., and every column that measures speak of."""
    units: tuple[str, ...]
    """The names of the unit's columns in `rows`; empty where no unit has more than one row."""
    materialize: bool
    keys: tuple[Key, ...]
    measures: Mapping[str, Measure]
    aggregates: tuple[Aggregate, ...]
    distance: int
    """1 for add-remove, 2 where a unit may be replaced."""
    tables: tuple[str, ...]
    norm: Literal[1, 2] = 1
    """The norm that bounds a unit's weights over private keys."""
    shown_by: str | None = None
    """Where keys are private, the count of units that decides which groups are shown (`deciding`).

    None if keys are public, or if no such count is asked and the weights of keys decide.
    """
    values: Mapping[str, Value] = field(default_factory=dict)
    """The columns of balls, by name: their centres and spreads are bought before they are summed."""

    def in_l2(self) -> Leaf:
        """The leaf with the groups of a unit bounded in L2, for Gaussian noise.

        A unit in m groups then weighs sqrt(m), not m: with cap C it adds sqrt(C) in L2, and if m > C, each
        of its groups gets sqrt(C / m). Where a unit is in many groups this needs far less noise.
        """
        measures = {
            name: replace(measure, norm=2)
            if measure.ball or (self._counts_groups(measure) and not self._shown_by_few(measure))
            else measure
            for name, measure in self.measures.items()
        }
        return replace(self, measures=measures, norm=2)

    def _counts_groups(self, measure: Measure) -> bool:
        """True for a count of units by group."""
        return measure.level == "pair" and measure.value is None and bool(self.keys)

    def _shown_by_few(self, measure: Measure) -> bool:
        """True for the count that decides which groups are shown, if its cap is known to be small."""
        return measure.name == self.shown_by and measure.cap is not None and measure.rows_cap <= FEW_SHOWN

    @property
    def public(self) -> bool:
        """Whether every key is public."""
        return all(key.public for key in self.keys)

    @property
    def listed_groups(self) -> float:
        """How many groups public keys have, as far as the plan itself lists them; infinity otherwise."""
        listed = [math.inf if key.values is None else len(key.values) for key in self.keys]
        return math.prod(listed)

    @property
    def columns(self) -> Mapping[str, Key | Aggregate]:
        """The columns of the leaf's released table, by name: keys k0, k1, ..., then aggregates a0, a1, ..."""
        columns: tuple[Key | Aggregate, ...] = (*self.keys, *self.aggregates)
        return {column.name: column for column in columns}

    def with_centres(self, centres: Mapping[str, Centre], rows: Mapping[str, float] | None = None) -> Leaf:
        """The leaf with a centre and a spread for each of its values; rows: what weighs 1, by ball."""
        if not self.values:
            return self
        weights = rows or {}
        measures = {
            name: measure.centred(self.values, centres, weights.get(measure.ball, ROWS_PER_NORM))
            if measure.ball
            else measure
            for name, measure in self.measures.items()
        }
        return replace(self, measures=measures)

    def released_by(self, line: str) -> Measure:
        """A measure that the line of a price releases."""
        return next(measure for measure in self.measures.values() if measure.line == line)

    def with_caps(self, caps: Mapping[str, float]) -> Leaf:
        """The leaf with a cap for each measure that has none; `caps` is by weigh key.

        The count that decides which groups are shown goes back to L1 if its cap turns out to be small.
        """
        measures = {
            name: measure if measure.cap is not None else measure.capped(caps[measure.weigh_key])
            for name, measure in self.measures.items()
        }
        if self.shown_by is not None and self.measures[self.shown_by].cap is None:
            count = measures[self.shown_by]
            measures[self.shown_by] = replace(count, norm=1 if count.rows_cap <= FEW_SHOWN else count.norm)
        return replace(self, measures=measures)

    @property
    def uncapped(self) -> dict[str, Measure]:
        """One measure for each weigh key about which a census must be bought to choose its cap."""
        return {key: measure for key, measure in self.open_caps.items() if measure.census is None}

    @property
    def open_caps(self) -> dict[str, Measure]:
        """One measure for each weigh key whose cap is still to be chosen, from any census."""
        open_caps: dict[str, Measure] = {}
        for measure in self.measures.values():
            if measure.cap is None:
                open_caps.setdefault(measure.weigh_key, measure)
        return open_caps

    def with_bought_caps(self) -> Leaf:
        """The leaf in which each cap that the owner bought is as it is written in her file."""
        caps = {
            name: measure
            if measure.cap is not None or measure.census is None
            else measure.capped(measure.census.cap)
            for name, measure in self.measures.items()
        }
        return replace(self, measures=caps)


def deciding(leaf: Leaf) -> Leaf:
    """The leaf with the count of units that decides which groups are shown, where keys are private.

    It is the first that is asked: COUNT(DISTINCT unit), or COUNT(*) where no unit has more than one row or
    each is bounded to one. A group in which nobody is has the count 0 and no other has. Where an average
    divides by the same count, it gets one of its own: numbers that are shown because they are large have
    intervals of their own, and averages must not be about them.
    """
    if leaf.public:
        return leaf
    for aggregate in leaf.aggregates:
        measure = leaf.measures[aggregate.measures[0]]
        plain = measure.value is None and measure.present is None and not measure.buckets
        counts = not leaf.units or measure.level == "pair" or measure.cap == 1
        if aggregate.kind == "count" and plain and counts:
            return _with_own(leaf, measure)
    return leaf


def _with_own(leaf: Leaf, measure: Measure) -> Leaf:
    """The leaf shown by a measure, or by a copy of it if it stands in anything but counts."""
    users = [aggregate for aggregate in leaf.aggregates if measure.name in aggregate.measures]
    if all(aggregate.kind == "count" for aggregate in users):
        return replace(leaf, shown_by=measure.name)
    name = f"m{len(leaf.measures)}"
    aggregates = tuple(
        replace(aggregate, measures=(name,))
        if aggregate.kind == "count" and aggregate.measures == (measure.name,)
        else aggregate
        for aggregate in leaf.aggregates
    )
    measures = {**leaf.measures, name: replace(measure, name=name)}
    return replace(leaf, measures=measures, aggregates=aggregates, shown_by=name)


@dataclass(frozen=True)
class Plan:
    """A question, bounded: its leaves, and the SQL over them (tables released_0, released_1, ...)."""

    leaves: tuple[Leaf, ...]
    outer: exp.Query
    options: Mapping[str, float] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def released(self) -> Mapping[str, Leaf]:
        """The released tables that `outer` may read, by name."""
        return {released_name(index): leaf for index, leaf in enumerate(self.leaves)}

    @property
    def fingerprint(self) -> str:
        """Identifies the question in the ledger; two spellings of one question have the same."""
        parts = [self.outer.sql("duckdb")]
        for leaf in self.leaves:
            parts.append(leaf.rows.sql("duckdb"))
            parts.extend(
                f"{aggregate.name} {aggregate.kind} {aggregate.measures} {aggregate.quantiles} "
                f"{aggregate.sample} {aggregate.root}"
                for aggregate in leaf.aggregates
            )
            for key in leaf.keys:
                domain = None if key.domain is None else key.domain.sql("duckdb")
                parts.append(f"{key.name} {domain} {key.values}")
            parts.extend(
                f"{measure.name} {measure.level} {measure.norm} {measure.weigh_key} {measure.value} "
                f"{measure.low} {measure.high} {measure.centre} {measure.cap} {measure.buckets} "
                f"{measure.factors}" + ("" if measure.census is None else f" {measure.census}")
                for measure in leaf.measures.values()
            )
        return "\n".join(parts)
