"""SQL for counts of values: how many different values the rows of each group hold.

    values   one line per unit, group and value that the unit has there
    holders  d: how many such lines a unit has, over all groups
    held     one line per group and value: w, the sum of its units' shares, in steps of S to one value
    result   per group, the sum of min(S, w)

A unit with d lines gives each the share S where d <= C, else S C / d, rounded down.

Theorem. Adding or removing a unit moves the vector of all groups' results by at most S C in L1, and that of
replacing one by twice that. A unit's lines and shares depend on its own rows alone. Its shares add up to at
most S C: d S <= S C where d <= C, and d (S C / d) = S C elsewhere. Adding it raises each w by its share of
that value, and min(S, w) rises by no more than w does. No group's result falls, so the L1 norm of the change
is the sum of all rises, at most S C.

The result never exceeds the number of values: no term is above S, and only values that are there have one. It
is that number, exactly, where no unit has more than C values; and also where each value has units enough,
such as C = 1 and values of which each has as many units as these have values. Nothing is sampled and nothing
is ordered, so all engines agree to the bit. What has no unit counts nowhere; without unit columns, each row
is a unit with one value.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from incrowd.backends.measures import counted
from incrowd.backends.trees import chosen, column, count, integer, joined, named
from incrowd.query import Measure

SHARE, HOLDS = "w", "d"
"""What a value's units give it, before its number; and how many values a unit has."""


class Values:
    """One set of values and the relations over it: for a COUNT(DISTINCT ...) under one or more caps."""

    def __init__(self, place: int, columns: Sequence[str], flag: str | None) -> None:
        self.lines, self.holders, self.held = (f"__{word}{place}" for word in ("values", "holders", "held"))
        self.columns, self.flag = tuple(columns), flag
        self.shares: list[exp.Expr] = []

    def summed(self, share: exp.Expr, most: int) -> exp.Expr:
        """What the lines of `held` add up to under a share, none counting for more than `most`."""
        if share not in self.shares:
            self.shares.append(share)
        name = column(f"{SHARE}{self.shares.index(share)}")
        whole = integer(most)
        return exp.Sum(this=chosen((joined(exp.LTE, name, whole), name), default=whole))

    def relations(self, rows: str, units: Sequence[str], keys: Sequence[str]) -> list[tuple[str, exp.Select]]:
        """The relations by name, in order."""
        where = None if self.flag is None else exp.Where(this=column(self.flag))
        lines = _grouped(rows, [*units, *keys, *self.columns], [], where)
        shares = [named(counted_share(share), f"{SHARE}{place}") for place, share in enumerate(self.shares)]
        if not units:
            return [(self.lines, lines), (self.held, _grouped(self.lines, [*keys, *self.columns], shares))]
        holders = _grouped(self.lines, units, [named(count(), HOLDS)])
        held = _grouped(self.lines, [*keys, *self.columns], shares)
        on = [joined(exp.EQ, column(unit, self.lines), column(unit, self.holders)) for unit in units]
        held.append("joins", exp.Join(this=_table(self.holders), on=exp.and_(*on, copy=False)))
        return [(self.lines, lines), (self.holders, holders), (self.held, held)]


def counted_share(share: exp.Expr) -> exp.Expr:
    """The sum of the shares of a value's units; one that is beyond 2^61 is as good as 2^61."""
    return counted(exp.Sum(this=share.copy()))


def value_columns(measure: Measure) -> list[exp.Expr]:
    """The columns that make one value."""
    assert measure.value is not None
    return list(measure.value.expressions) if isinstance(measure.value, exp.Tuple) else [measure.value]


def _grouped(
    source: str, by: Sequence[str], more: Sequence[exp.Expr], where: exp.Where | None = None
) -> exp.Select:
    """Lines of a relation by columns; one line where there are none."""
    keys = [column(name) for name in by]
    select = exp.Select(expressions=[*keys, *more], from_=exp.From(this=_table(source)))
    if where is not None:
        select.set("where", where)
    if keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return select


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name))
