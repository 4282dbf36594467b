"""A leaf as SQL over integers: the statement that every engine runs.

The statement is deterministic and portable: it has no random function, no window over people, no temporary
table and nothing that can raise. Its shape, for a unit column u and keys k (design decision 3):

    rows    one line per row: u, k, and each measure's value v as an integer number of steps, NULL if absent
    totals  GROUP BY u: what the unit weighs, t                 (row measures)
    pairs   GROUP BY u, k: one line per unit and group          (COUNT(DISTINCT unit), bounds per group, keys)
    shares  GROUP BY u: what the unit's pairs weigh
    result  join, shrink where t > C, GROUP BY k                (without keys: shrink units' sums, no join)

Parts with different grouping (sums, pairs, histograms, grand totals) are stacked with UNION ALL into one
statement, so that all of them see one snapshot of the data. Counts need no division per row: a unit's ones
all shrink to the same number, which `totals` and `shares` hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.backends.balls import BALL_CELLS, ball_sums, ball_weight
from incrowd.backends.builder import PAIRS, ROWS, SHARES, TOTALS, Builder, Part, Stacked, Statement
from incrowd.backends.measures import (
    CENSUS_CELLS,
    KEY_MASS,
    capped_sum,
    cell_of,
    census_exponent,
    counted,
    pair_value,
    share_of,
    steps_of,
    unit_sum,
    weight_cap,
    weight_of,
)
from incrowd.backends.recent import recent
from incrowd.backends.trees import cast, chosen, column, count, integer, joined, number, own, quotient
from incrowd.backends.values import HOLDS
from incrowd.query import Leaf, Measure
from incrowd.query.measure import MOST_GROUPS

__all__ = [
    "KEY_MASS",
    "MOST_GROUPS",
    "Part",
    "Statement",
    "census_exponent",
    "census_statement",
    "range_statement",
    "release_statement",
    "weight_cap",
]


@dataclass(frozen=True)
class _Column:
    """A measure inside a statement: the sum, the relations it is summed over, and the unit's weight."""

    summed: exp.Expr
    relations: tuple[str, ...]
    weight: exp.Column | None = None
    """None if each row is a unit of its own."""


def release_statement(leaf: Leaf, generous: Mapping[str, float] | None = None) -> Statement:
    """The statement for a leaf whose caps are all known.

    `generous` names measures whose grand total is wanted twice, under the measure's own cap and under a
    larger one. The ratio of the two totals serves to undo the shrinkage of heavy units.
    """
    return _release_statement(leaf, tuple((generous or {}).items()))


@recent
def _release_statement(leaf: Leaf, wanted_twice: tuple[tuple[str, float], ...]) -> Statement:
    builder = Builder(leaf)
    generous = dict(wanted_twice)
    direct = not leaf.units
    numbers: dict[str, dict[str, exp.Expr]] = {"sums": {}, "pairs": {}}
    for members in _balls(leaf).values():
        numbers["pairs"] |= {name: _sum(part) for name, part in ball_sums(builder, members).items()}
    for name, measure in leaf.measures.items():
        if measure.ball:
            continue
        if measure.level == "value":
            _stack_values(builder, measure)
            continue
        paired = measure.level == "pair" and not direct
        if direct:
            summand = _row_unit(builder, measure)
        else:
            summand = _of_pairs(builder, measure) if paired else _of_rows(builder, measure)
        if measure.buckets:
            cell = builder.rows.name(cell_of(measure))
            part = Part("histogram", (name,))
            builder.stack(Stacked(part, (summand.summed,), summand.relations, True, cell))
        else:
            numbers["pairs" if paired else "sums"][name] = summand.summed
        if name in generous and summand.weight is not None:
            caps = (weight_cap(measure), weight_cap(measure, generous[name]))
            totals = tuple(capped_sum(summand.weight, cap) for cap in caps)
            builder.stack(Stacked(Part("totals", (name,)), totals, (summand.weight.table,), False))
    if not leaf.public and leaf.shown_by is None:
        numbers["sums" if direct else "pairs"]["keys"] = counted(_key_mass(builder))
    if not any(numbers.values()) and not builder.stacked:
        numbers["sums"] = {"nothing": integer(0)}
    by_row = (ROWS, TOTALS) if leaf.keys else (TOTALS,)
    relations = {"sums": by_row if builder.totals else (ROWS,), "pairs": (PAIRS, SHARES)}
    for kind, sums in numbers.items():
        if sums:
            builder.stack(Stacked(Part(kind, tuple(sums)), tuple(sums.values()), relations[kind], True))
    return builder.build()


def range_statement(leaf: Leaf) -> Statement:
    """The histograms of the values whose centres and spreads are bought, over all groups together."""
    histograms = {name: replace(value.histogram, name=name) for name, value in leaf.values.items()}
    return release_statement(replace(leaf, keys=(), measures=histograms, aggregates=()))


def _balls(leaf: Leaf) -> dict[str, list[Measure]]:
    balls: dict[str, list[Measure]] = {}
    for measure in leaf.measures.values():
        if measure.ball:
            balls.setdefault(measure.ball, []).append(measure)
    return balls


def _row_unit(builder: Builder, measure: Measure) -> _Column:
    """A measure for which each row is a unit of its own: the unit adds only the row's clamped value."""
    if measure.value is not None and not measure.buckets:
        value = builder.rows.name(steps_of(measure, measure.exponent))
        return _Column(_sum(column(value)), (ROWS,))
    one = integer(1 << -measure.exponent)
    return _Column(_sum(_if(_flag(builder, measure), one)), (ROWS,))


def _of_rows(builder: Builder, measure: Measure) -> _Column:
    """A measure that is summed over rows, each shrunk by its unit's weight."""
    if not builder.keys and not measure.buckets:
        return _of_units(builder, measure)
    relations, cap = (ROWS, TOTALS), weight_cap(measure)
    if measure.weighing == "own" and measure.value is not None:
        value = builder.rows.name(steps_of(measure, measure.exponent))
        weight = builder.totals.name(weight_of(column(value), measure.low < 0))
    else:
        flag = _flag(builder, measure)
        weight = builder.totals.name(_count(flag))
        if measure.value is None or measure.buckets:
            one = integer(1 << -measure.exponent)
            share = builder.totals.name(_shrunk(one, builder.totals[weight], cap))
            return _Column(_sum(_if(flag, column(share))), relations, column(weight, TOTALS))
        value = builder.rows.name(steps_of(measure, measure.exponent))
    share = builder.totals.name(share_of(builder.totals[weight], cap))
    part = _shared(column(value), column(share, TOTALS), measure.low - measure.centre < 0)
    return _Column(_sum(part), relations, column(weight, TOTALS))


def _of_units(builder: Builder, measure: Measure) -> _Column:
    """A measure without groups: the sum of a unit's rows is shrunk at once, and no row is joined again.

    A unit's rows sum to at most t (or t rows of at most L each) in absolute value, so its sum times C / t is
    at most C (or C L), by the same argument as for single rows. A sum beyond 2^62 steps counts for nothing.
    """
    cap = weight_cap(measure)
    if measure.value is None:
        weight = builder.totals.name(_count(_flag(builder, measure)))
        one = _shrunk(integer(1 << -measure.exponent), column(weight), cap)
        return _Column(_sum(joined(exp.Mul, column(weight), one)), (TOTALS,), column(weight, TOTALS))
    value = builder.rows.name(steps_of(measure, measure.exponent))
    if measure.weighing == "own":
        weight = builder.totals.name(weight_of(column(value), measure.low < 0))
    else:
        weight = builder.totals.name(_count(_flag(builder, measure)))
    total = builder.totals.name(unit_sum(column(value)))
    shared = _shared(column(total), share_of(column(weight), cap), True)
    inside = joined(exp.LTE, column(weight), integer(cap))
    part = chosen((inside, column(total)), default=shared)
    return _Column(_sum(part), (TOTALS,), column(weight, TOTALS))


def _of_pairs(builder: Builder, measure: Measure) -> _Column:
    """A measure that is summed over (unit, group) pairs."""
    cap = weight_cap(measure)
    value, weight = _paired(builder, measure, measure.exponent)
    if measure.value is not None:
        assert value is not None
        part: exp.Expr = (
            _shrunk(column(value, PAIRS), column(weight, SHARES), cap)
            if measure.norm == 1
            else _shrunk_l2(column(value, PAIRS), column(weight, SHARES), cap, True)
        )
    else:
        shrink = _shrunk if measure.norm == 1 else _shrunk_l2
        one = integer(1 << -measure.exponent)
        shrunk = shrink(one, builder.shares[weight], cap)
        if measure.norm == 2 and builder.leaf.shown_by == measure.name:
            few = joined(exp.LTE, builder.shares[weight], integer(measure.most_groups))
            shrunk = chosen((few, shrunk), default=number(0))
        share = builder.shares.name(shrunk)
        part = _if(value, column(share, SHARES), PAIRS)
    return _Column(_sum(part), (PAIRS, SHARES), column(weight, SHARES))


def _paired(builder: Builder, measure: Measure, exponent: int) -> tuple[str | None, str]:
    """The columns of a measure's value on a pair and of its unit's weight.

    The first is None if every pair counts as one.
    """
    if measure.value is not None:
        row = builder.rows.name(steps_of(measure, exponent))
        value = builder.pairs.name(pair_value(measure, column(row), exponent))
        weight = count(column(value)) if measure.by_pairs else weight_of(column(value), measure.low < 0)
        return value, builder.shares.name(weight)
    flag = _flag(builder, measure)
    if flag is None:
        return None, builder.shares.name(count())
    some = builder.pairs.name(joined(exp.GT, _count(flag), number(0)))
    return some, builder.shares.name(_count(some))


def _flag(builder: Builder, measure: Measure) -> str | None:
    """The column of `rows` that says whether the measure counts there; None if it always does."""
    return None if measure.present is None else builder.rows.name(measure.present.copy())


def _stack_values(builder: Builder, measure: Measure) -> None:
    """A count of values: of the lines of its set, each as its units' shares of it say."""
    values, one = builder.values_of(measure), 1 << -measure.exponent
    share: exp.Expr = integer(one)
    if builder.leaf.units:
        share = _shrunk(integer(one), column(HOLDS), weight_cap(measure))
    summed = counted(values.summed(share, one))
    builder.stack(Stacked(Part("values", (measure.name,)), (summed,), (values.held,), True))


def _if(flag: str | None, node: exp.Expr, relation: str = "") -> exp.Expr:
    """The expression where the column `flag` is true, else NULL; without a flag, the expression itself."""
    return node if flag is None else chosen((column(flag, relation), node))


def _count(flag: str | None) -> exp.Expr:
    """The number of rows for which a column is true."""
    return count() if flag is None else count(_if(flag, number(1)))


def _sum(node: exp.Expr) -> exp.Expr:
    return counted(exp.Sum(this=own(node)))


def _shrunk(value: exp.Expr, weight: exp.Expr, cap: int) -> exp.Expr:
    """The value if the unit weighs at most the cap, else its share of the cap, rounded towards zero.

    NULL if the unit's weight is NULL.
    """
    most = integer(cap)
    less = joined(exp.IntDiv, joined(exp.Mul, value, most), weight)
    return chosen((joined(exp.LTE, weight, most), value), default=less)


def _shared(value: exp.Expr, share: exp.Expr, signed: bool) -> exp.Expr:
    """The value times its unit's share, rounded towards zero. One division per unit instead of one per row.

    Float64 makes sums exceed the cap C by less than a part in 2^51, which is less than one step as long as
    C < 2^51, and sums of whole numbers that exceed C by less than one do not exceed it.
    """
    cut = exp.Trunc if signed else exp.Floor
    return cast(cut(this=joined(exp.Mul, value, share)), exp.DType.BIGINT)


def _shrunk_l2(value: exp.Expr, weight: exp.Expr, cap: int, signed: bool = False) -> exp.Expr:
    """Like `_shrunk` for `weight` pairs of one value: shrinks their L2 norm to that of `cap` pairs.

    Division and square root are correctly rounded on every engine, so the result is the same to the bit.
    """
    most = integer(cap)
    root = exp.Sqrt(this=quotient(cast(most, exp.DType.DOUBLE), weight))
    less = _shared(value, root, signed)
    return chosen((joined(exp.LTE, weight, most), value), (joined(exp.GT, weight, most), less))


def _key_mass(builder: Builder) -> exp.Expr:
    """The weight of a group for being shown: the sum of its units' key shares."""
    if not builder.leaf.units:
        return joined(exp.Mul, count(), integer(KEY_MASS))
    return exp.Sum(this=column(builder.shares.name(_key_share(builder.leaf.norm)), SHARES))


def _key_share(norm: int) -> exp.Expr:
    """The key weight that a unit gives each of its groups: KEY_MASS in sum (L1) or in length (L2)."""
    if norm == 1:
        return joined(exp.IntDiv, integer(KEY_MASS), count())
    # KEY_MASS / sqrt(m) is never so near a whole number that rounding could cross it: m k^2 is whole.
    part = quotient(number(KEY_MASS), exp.Sqrt(this=cast(count(), exp.DType.DOUBLE)))
    few = joined(exp.LTE, count(), number(KEY_MASS))
    return chosen((few, cast(exp.Floor(this=part), exp.DType.BIGINT)), default=number(0))


@recent
def census_statement(leaf: Leaf) -> Statement:
    """The number of units that weigh more than 0, 1, 2, 4, ..., for each weigh key without a cap.

    It is one row, from which caps are chosen privately.

    Each unit falls into one cell of the histogram that the differences make, so adding or removing a unit
    moves it by 1 in L1. A weight of NULL is beyond int64, above every threshold.
    """
    builder = Builder(leaf)
    plain = [0, *(1 << cell for cell in range(CENSUS_CELLS))]
    for key, measure in leaf.uncapped.items():
        limits = plain
        if measure.ball:
            weight, relation = ball_weight(builder, _balls(leaf)[key]), SHARES
            if measure.norm == 2:
                # The weight is the square of a norm.
                limits = [0, *(1 << 2 * cell for cell in range(BALL_CELLS))]
        elif measure.level == "value":
            weight, relation = HOLDS, builder.values_of(measure).holders
        elif measure.level == "pair":
            weight, relation = _paired(builder, measure, census_exponent(measure))[1], SHARES
        elif measure.weighing == "own" and measure.value is not None:
            value = builder.rows.name(steps_of(measure, census_exponent(measure)))
            weight, relation = builder.totals.name(weight_of(column(value), measure.low < 0)), TOTALS
        else:
            weight, relation = builder.totals.name(_count(_flag(builder, measure))), TOTALS
        counts = tuple(_heavier(weight, limit) for limit in limits)
        builder.stack(Stacked(Part("census", (key,)), counts, (relation,), False))
    return builder.build()


def _heavier(weight: str, limit: int) -> exp.Expr:
    """The number of units that weigh more than a limit."""
    light = joined(exp.LTE, column(weight), number(limit))
    return count(chosen((light, exp.Null()), default=number(1)))
