"""The bounded plan: what is asked of the engine, and how much one unit can move each number of it.

A question has one or more leaves. A leaf is the innermost aggregation over private rows: per group, it asks
for measures, each an integer sum whose change under adding or removing one unit is bounded in L1 over all
groups together. Everything above the leaves is SQL over released tables (`outer`) and costs nothing. How a
measure is bounded: see `measure`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from sqlglot import exp

from incrowd.catalog.types import Kind
from incrowd.query.bounding import End
from incrowd.query.doubts import Doubt
from incrowd.query.measure import ROWS_PER_NORM, Centre, Measure, Value
from incrowd.query.spelling import names_of, renamed, spelled

RELEASED = "released_"
"""What the tables of released numbers are called in the SQL above the leaves, with the leaf's number."""
TREE_CELLS = 4_096
"""The most leaves of a tree of quantiles: more levels would widen all intervals."""
MOST_KEPT = 2**17
"""The most leaves that the trees of all groups have together where they are kept."""
FEW_SHOWN = 5
"""Where a count decides which groups are shown, units in up to so many groups are bounded in L1."""


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
    nullable: bool = True
    """Whether NULL is a group, by what the owner declares."""

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


AggregateKind = Literal[
    "count",
    "sum",
    "avg",
    "var",
    "covar",
    "corr",
    "slope",
    "intercept",
    "r2",
    "sxx",
    "sxy",
    "ratio",
    "distinct",
    "quantile",
]


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
    between: tuple[float, float] = (-math.inf, math.inf)
    """The values that a ratio or a count of values may have."""
    moment: Literal["", "date", "timestamp"] = ""
    """A quantile of days or seconds since 1970 that comes back as a date or a timestamp."""


@dataclass(frozen=True)
class Totals:
    """The place of a leaf among those whose numbers add up (`levels`)."""

    finest: int
    """The leaf by all keys, whose groups are added up."""
    kept: tuple[int, ...]
    """The places of the leaf's keys among those of the finest."""
    asked: bool = True
    """False for a finest leaf that is read by no SELECT: only its totals are released."""


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
    until: Mapping[str, End] = field(default_factory=dict)
    """The end of what is read of a table with periods, by table; none for tables that are read whole."""
    totals: Totals | None = None
    """Where the leaf is a level of several whose numbers add up."""

    def adds_up(self, index: int) -> bool:
        """Whether the leaf with this number adds up the groups of another, instead of reading rows."""
        return self.totals is not None and self.totals.finest != index

    @property
    def read(self) -> bool:
        """Whether a SELECT reads what it released, and not only its totals."""
        return self.totals is None or self.totals.asked

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
        """True for a count of units by group, and for what is weighed by that count."""
        counted = measure.value is None or measure.by_pairs
        return measure.level == "pair" and counted and bool(self.keys)

    def _shown_by_few(self, measure: Measure) -> bool:
        """True for the count that decides which groups are shown, if its cap is known to be small."""
        return measure.name == self.shown_by and measure.cap is not None and measure.rows_cap <= FEW_SHOWN

    def ranks(self, measure: str) -> tuple[float, ...]:
        """The ranks that are asked of one histogram."""
        users = (aggregate for aggregate in self.aggregates if aggregate.measures == (measure,))
        return tuple(rank for aggregate in users for rank in aggregate.quantiles)

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
    def keeps_trees(self) -> bool:
        """Whether quantiles come with whole trees, which answer other ranks later.

        With groups, if nothing else is asked, and if the trees of all groups are small enough to be kept.
        """
        if not self.keys:
            return True
        leaves = sum(min(measure.buckets, TREE_CELLS) for measure in self.measures.values())
        return self.lone_histogram and self.listed_groups * leaves <= MOST_KEPT

    @property
    def lone_histogram(self) -> bool:
        """True if nothing is asked but ranks of one histogram."""
        asked = {(aggregate.kind, aggregate.measures) for aggregate in self.aggregates}
        return len(asked) == 1 and next(iter(asked))[0] == "quantile"

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
    notes: tuple[str, ...] = ()
    """What a reader must know about how the question was understood."""
    doubts: tuple[Doubt, ...] = ()
    """Conditions that no row can meet, by what is declared."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before paying; doubts whose domain is not looked up yet are left out."""
        return tuple(doubt.sentence for doubt in self.doubts if doubt.domain is None)

    @property
    def released(self) -> Mapping[str, Leaf]:
        """The released tables that `outer` may read, by name."""
        return {released_name(index): leaf for index, leaf in enumerate(self.leaves)}

    @property
    def any_rank(self) -> bool:
        """True if nothing is asked but ranks of one histogram whose trees are kept, and answer all others."""
        return len(self.leaves) == 1 and self.leaves[0].keeps_trees and self.leaves[0].lone_histogram

    @cached_property
    def fingerprint(self) -> str:
        """Identifies in the ledger what is released; two spellings of one question have the same.

        What is computed from released numbers (names of columns, HAVING, ORDER BY, LIMIT, arithmetic) is
        post-processing of them and no part of it. So are the ranks that are asked of one histogram whose
        trees are kept, for one release answers them all.
        """
        parts = ["any rank" if self.any_rank else "released"]
        for index, leaf in enumerate(self.leaves):
            parts.append(spelled(leaf.rows, names_of(leaf.rows)))
            if leaf.distance != 1:
                parts.append(f"distance {leaf.distance}")
            if leaf.totals is not None:
                parts.append(f"totals {leaf.totals}")
            parts.extend(
                f"{aggregate.name} {aggregate.kind} {aggregate.measures} {aggregate.quantiles} "
                f"{aggregate.sample} {aggregate.root}"
                for aggregate in (() if self.any_rank else leaf.aggregates)
            )
            for key in leaf.keys:
                domain = None if key.domain is None else key.domain.sql("duckdb")
                parts.append(f"{key.name} {domain} {key.values}")
            parts.extend(
                self.respelled(
                    index,
                    f"{measure.name} {measure.level} {measure.norm} {measure.weigh_key} {measure.value} "
                    f"{measure.low} {measure.high} {measure.centre} {measure.cap} {measure.buckets} "
                    f"{measure.factors}"
                    + "".join(f" {more}" for more in (measure.census, measure.bands, measure.wide) if more)
                    + ("" if measure.pooled == "total" else f" {measure.pooled}"),
                )
                for measure in leaf.measures.values()
            )
        return "\n".join(parts)

    def respelled(self, leaf: int, text: str) -> str:
        """A text about a leaf's rows, whatever the names of tables in the question."""
        return renamed(text, names_of(self.leaves[leaf].rows))
