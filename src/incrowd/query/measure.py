"""One bounded sum per group: how much a unit may weigh in it, and on which grid it is computed.

How a measure is bounded (design decision 3). Let x_i be the measure's value on row i, clamped, as an
integer number of steps, and let unit u weigh t_u in all. With cap C,

    y_i = x_i                     where t_u <= C
          x_i * (C / t_u)         otherwise, rounded towards zero

- weighed by its own size (SUM, COUNT): t_u = sum |x_i| over the unit's rows, so sum |y_i| <= t_u * C / t_u
  = C.
- weighed by its rows (AVG, VAR, quantiles, so that sums and counts shrink alike): t_u = the number of rows
  and |x_i| <= L, so sum |y_i| <= t_u * L * C / t_u = C * L.
- weighed by its pairs (AVG of each unit's average in each group): the unit has a value v_g in t_u groups, its
  rows' average there, clamped and centred, so |v_g| <= L; y_g = v_g * (C / t_u), and sum |y_g| <= C * L. In
  L2 y_g = v_g * sqrt(C / t_u), and the root of sum y_g^2 is at most sqrt(C) * L. Its count of groups shrinks
  by the same factor, so the ratio stays an average.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from sqlglot import exp

from incrowd.query.graded_cells import ROWS_OF_ONE, Band
from incrowd.query.typed import Census, double

Level = Literal["row", "pair", "value"]
Weighing = Literal["own", "rows", "joint"]
Pooling = Literal["total", "present", "mean"]
STEPS = 30
"""A measure's sensitivity is about 2^30 steps: products of a value and a cap stay far inside int64."""
WIDEST = 2**32
"""The most steps a whole-number measure may span before its grid is coarsened."""
MOST_BOUND = 2.0**200
"""Bounds beyond this are refused: squares of spans, times any cap, must stay inside float64."""
MOST_GROUPS = 2048
"""A unit in more groups, and in more than twice the cap, counts in none where a count in L2 decides."""
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

    level: `row` sums over rows. `pair` sums over (unit, group) pairs: the value of a pair is `value` pooled
    over its rows and then clamped, or 1 where units are counted. `value` counts the different values of each
    group, a unit's being shared out where it has more than the cap (`backends.values`). present: which rows
    count; None for all.
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
    narrow: bool = False
    """In a count of values, whether a unit weighs 1 in all, beside another count with a cap of its own."""
    raw: bool = False
    """In a ball, whether the first of its factors counts as it is, and not as a deviation from its centre."""
    offset: float = 0.0
    """What is added to a ratio whose upper sum it is: the centre of what is weighed."""
    pooled: Pooling = "total"
    """How the value of a pair comes from its rows: their sum, which is 0 (`total`) or absent (`present`)
    where no row has a value, or their average, which is absent there.
    """
    census: Census | None = None
    """What the owner bought about its units, from which its cap is chosen; None if nothing was."""
    bands: tuple[Band, ...] = ()
    """For a histogram of what has no bounds, its cells, which are not equal."""
    wide: bool = False
    """True if no bounds are known of a value, and `low` and `high` are far beyond what is usual."""

    @property
    def ball(self) -> str:
        """The name of the ball that the measure is in; the empty text if it is in none.

        Theorem. The measures 1..k of a ball are over the same rows. Let z_jg be unit u's sum of measure j
        over its rows in group g, in steps of C scale_j / S with S = 2^30, clamped to 2^54 in size, and t_u
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
        if self.value is None or self.buckets or self.level == "value":
            return 1.0
        return max(abs(self.low - self.centre), abs(self.high - self.centre))

    @property
    def limit_of_row(self) -> float:
        """The most that is usual of one row."""
        return self.limit / ROWS_OF_ONE if self.wide else self.limit

    @property
    def by_pairs(self) -> bool:
        """Whether a unit's values are weighed by the number of its groups: a bounded average of each."""
        return self.level == "pair" and self.weighing == "rows" and self.value is not None

    @functools.cached_property
    def weigh_key(self) -> str:
        """Measures with the same key shrink a unit by the same factor and share one cap."""
        present = "" if self.present is None else self.present.sql("duckdb")
        if self.weighing == "joint":
            return f"joint {present}"
        if self.by_pairs:
            # The same as of a count of these pairs.
            counted = replace(self, weighing="own", value=None, low=0, high=1, centre=0.0, pooled="total")
            return counted.weigh_key
        if self.level == "value":
            return f"value {self.narrow} {self.value.sql('duckdb') if self.value else ''} {present}"
        if self.weighing == "rows" or (self.value is None and self.level == "row"):
            return f"{self.level} rows {present}"
        value = "" if self.value is None else self.value.sql("duckdb")
        if self.pooled != "total":
            value = f"{self.pooled} {value}"
        return f"{self.level} own {self.low} {self.high} {self.centre} {value} {present}"

    @property
    def sensitivity(self) -> float:
        """How far one unit moves the vector of all groups, in values, in the measure's norm."""
        assert self.cap is not None
        if self.ball:
            return self.cap * self.scale
        if self.norm == 2:
            return math.sqrt(self.cap) * self.limit
        return self.cap * self.limit if self.weighing == "rows" else self.cap

    @property
    def exponent(self) -> int:
        """The grid: a step is 2^exponent."""
        mantissa, power = math.frexp(max(self.sensitivity, _LEAST))
        fine = (power - 1 if mantissa == 0.5 else power) - STEPS
        if self.buckets or self.value is None or self.level == "value":
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
    def weight_step(self) -> float:
        """The value of a weight of 1: rows and groups weigh 1 each, values what they are in steps."""
        return self.step if self.weighs_values else 1.0

    @property
    def weighs_values(self) -> bool:
        """Whether a unit weighs what its values add up to, and not a number of rows, groups or values."""
        return self.weighing == "own" and self.value is not None and self.level != "value"

    @property
    def sensitivity_steps(self) -> int:
        """The sensitivity in whole steps: exactly what the statement enforces."""
        assert self.cap is not None
        if self.ball:
            return BALL + (self.norm == 2)
        if self.norm == 2:
            # m pairs of floor(S sqrt(C / m)) steps; one more step covers the engine's rounding of the root.
            return math.isqrt(self.rows_cap * self.limit_steps**2) + 1
        if not self.weighs_values:
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
        if self.weighs_values:
            low, high = (min(max(end, -cap), cap) for end in (self.low, self.high))
            return replace(self, cap=cap, low=low, high=high)
        return replace(self, cap=cap)

    def centred(self, values: Mapping[str, Value], centres: Mapping[str, Centre], rows: float) -> Measure:
        """A measure of a ball whose values' centres are known; so many rows at the centre weigh 1."""
        if not self.factors:
            return replace(self, scale=rows)
        parts = [(values[name], centres[name]) for name in self.factors]
        if self.raw:
            return self._weighed(parts, rows)
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

    def _weighed(self, parts: Sequence[tuple[Value, Centre]], rows: float) -> Measure:
        """A sum of weights, or of weights times deviations: a row of the usual weight counts like a row."""
        (weight, usual), *others = parts
        size = abs(usual.middle) + usual.spread / 2
        if not others:
            return replace(self, scale=rows * size)
        ((value, centre),) = others
        product = exp.Mul(this=weight.shifted(0.0), expression=value.shifted(centre.middle))
        most = weight.reach(0.0) * value.reach(centre.middle)
        scale = size * centre.spread
        return replace(self, value=product, low=-most, high=most, scale=scale, offset=centre.middle)
