"""A leaf as SQL over integers: the statement that every engine runs.

Deterministic and portable: no random function, no window over people, no temporary table, nothing that can
raise. The shape, for a unit column u and keys k (design decision 3):

    rows    one line per row: u, k, and each measure's value v as an integer number of steps, NULL if absent
    totals  GROUP BY u: what the unit weighs, t                 (row measures)
    pairs   GROUP BY u, k: one line per unit and group          (COUNT(DISTINCT unit), bounds per group, keys)
    shares  GROUP BY u: what the unit's pairs weigh
    result  join, shrink where t > C, GROUP BY k                (without keys: shrink units' sums, no join)

Parts with different grouping (sums, pairs, histograms, grand totals) are stacked with UNION ALL into one
statement, so that all of them see one snapshot of the data. What counts ones needs no division per row: a
unit's ones all shrink to the same number, which `totals` and `shares` carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from incrowd.backends.builder import Builder, Part, Stacked, Statement
from incrowd.backends.measures import (
    CENSUS_CELLS,
    KEY_MASS,
    capped_sum,
    cell_of,
    census_exponent,
    counted,
    integer,
    pair_value,
    present_in,
    steps_of,
    unit_sum,
    weight_cap,
    weight_of,
)
from incrowd.query import Leaf, Measure

__all__ = [
    "KEY_MASS",
    "Part",
    "Statement",
    "census_exponent",
    "census_statement",
    "release_statement",
    "weight_cap",
]


@dataclass(frozen=True)
class _Column:
    """A measure inside a statement: what is summed over a source, and the unit's weight."""

    summed: str
    source: str
    weight: str


def release_statement(leaf: Leaf, generous: Mapping[str, float] | None = None) -> Statement:
    """The statement for a leaf whose caps are all known.

    `generous` names measures whose grand total is wanted twice, under the measure's own cap and under a
    larger one: from their ratio the shrinkage of heavy units is undone.
    """
    builder = Builder(leaf)
    direct = not leaf.units
    numbers: dict[str, dict[str, str]] = {"sums": {}, "pairs": {}}
    for name, each in leaf.measures.items():
        paired = each.level == "pair" and not direct
        if direct:
            column = _row_unit(builder, each)
        else:
            column = _of_pairs(builder, each) if paired else _of_rows(builder, each)
        if each.buckets:
            cell = builder.row(cell_of(each))
            builder.stack(Stacked(Part("histogram", (name,)), (column.summed,), column.source, True, cell))
        else:
            numbers["pairs" if paired else "sums"][name] = column.summed
        if generous and name in generous and not direct:
            caps = (weight_cap(each), weight_cap(each, generous[name]))
            texts = tuple(capped_sum(column.weight, cap) for cap in caps)
            builder.stack(Stacked(Part("totals", (name,)), texts, column.weight.partition(".")[0], False))
    if not leaf.public:
        mass = f"COUNT(*) * {integer(KEY_MASS)}"
        if not direct:
            mass = f"SUM(__shares.{builder.share(_key_share(leaf.norm))})"
        numbers["sums" if direct else "pairs"]["keys"] = counted(mass)
    if not any(numbers.values()) and not builder.stacked:
        numbers["sums"] = {"nothing": integer(0)}
    by_row = builder.joined("__rows", "__totals") if leaf.keys else "__totals"
    sources = {
        "sums": by_row if builder.totals else "__rows",
        "pairs": builder.joined("__pairs", "__shares"),
    }
    for kind, found in numbers.items():
        if found:
            builder.stack(Stacked(Part(kind, tuple(found)), tuple(found.values()), sources[kind], True))
    return builder.build()


def _row_unit(builder: Builder, measure: Measure) -> _Column:
    """Where each row is a unit of its own, its clamped value is all that the unit adds."""
    if measure.value is not None and not measure.buckets:
        return _Column(counted(f"SUM({builder.row(steps_of(measure, measure.exponent))})"), "__rows", "")
    one = integer(1 << -measure.exponent)
    flag = _flag(builder, measure)
    return _Column(
        counted(f"SUM({one if flag is None else f'CASE WHEN {flag} THEN {one} END'})"), "__rows", ""
    )


def _of_rows(builder: Builder, measure: Measure) -> _Column:
    """A measure that is summed over rows, each shrunk by its unit's weight."""
    if not builder.keys and not measure.buckets:
        return _of_units(builder, measure)
    source = builder.joined("__rows", "__totals")
    cap = weight_cap(measure)
    if measure.weighing == "own" and measure.value is not None:
        value = builder.row(steps_of(measure, measure.exponent))
        weight = builder.total(weight_of(value, measure.low < 0))
    else:
        flag = _flag(builder, measure)
        weight = builder.total(_count(flag))
        if measure.value is None or measure.buckets:
            share = builder.total(_shrunk(integer(1 << -measure.exponent), builder.totals[weight], cap))
            one = share if flag is None else f"CASE WHEN {flag} THEN {share} END"
            return _Column(counted(f"SUM({one})"), source, f"__totals.{weight}")
        value = builder.row(steps_of(measure, measure.exponent))
    share = builder.total(_share(builder.totals[weight], cap))
    summed = counted(f"SUM({_shared(value, f'__totals.{share}', measure.low - measure.centre < 0)})")
    return _Column(summed, source, f"__totals.{weight}")


def _of_units(builder: Builder, measure: Measure) -> _Column:
    """A measure without groups: what all of a unit's rows add is shrunk at once, and no row is joined again.

    A unit's rows sum to at most t (or t rows of at most L each) in absolute value, so its sum times C / t is
    at most C (or C L), by the same argument as for single rows. A sum beyond 2^62 steps counts for nothing.
    """
    cap = weight_cap(measure)
    if measure.value is None:
        weight = builder.total(_count(_flag(builder, measure)))
        part = _shrunk(integer(1 << -measure.exponent), weight, cap)
        return _Column(counted(f"SUM({weight} * ({part}))"), "__totals", f"__totals.{weight}")
    value = builder.row(steps_of(measure, measure.exponent))
    if measure.weighing == "own":
        weight = builder.total(weight_of(value, measure.low < 0))
    else:
        weight = builder.total(_count(_flag(builder, measure)))
    total = builder.total(unit_sum(value))
    share = f"{total} * ({_share(weight, cap)})"
    part = f"CASE WHEN {weight} <= {integer(cap)} THEN {total} ELSE CAST(TRUNC({share}) AS BIGINT) END"
    return _Column(counted(f"SUM({part})"), "__totals", f"__totals.{weight}")


def _of_pairs(builder: Builder, measure: Measure) -> _Column:
    """A measure that is summed over (unit, group) pairs."""
    source = builder.joined("__pairs", "__shares")
    cap = weight_cap(measure)
    column, weight = _paired(builder, measure, measure.exponent)
    if measure.value is not None:
        summed = counted(f"SUM({_shrunk(f'__pairs.{column}', f'__shares.{weight}', cap)})")
    else:
        shrink = _shrunk if measure.norm == 1 else _shrunk_l2
        share = builder.share(shrink(integer(1 << -measure.exponent), builder.shares[weight], cap))
        one = f"__shares.{share}"
        summed = counted(f"SUM({one if column is None else f'CASE WHEN __pairs.{column} THEN {one} END'})")
    return _Column(summed, source, f"__shares.{weight}")


def _paired(builder: Builder, measure: Measure, exponent: int) -> tuple[str | None, str]:
    """The columns of a measure's value on a pair (None where every pair counts as one) and of its unit's
    weight.
    """
    if measure.value is not None:
        column = builder.pair(pair_value(measure, builder.row(steps_of(measure, exponent)), exponent))
        return column, builder.share(weight_of(column, measure.low < 0))
    flag = _flag(builder, measure)
    if flag is None:
        return None, builder.share("COUNT(*)")
    column = builder.pair(f"COUNT(CASE WHEN {flag} THEN 1 END) > 0")
    return column, builder.share(f"COUNT(CASE WHEN {column} THEN 1 END)")


def _flag(builder: Builder, measure: Measure) -> str | None:
    """A test over columns of `rows`: whether the measure counts there. None where it always does."""
    present = present_in(measure)
    if present is None:
        return None
    return builder.row(present)


def _count(flag: str | None) -> str:
    """The number of rows for which a test holds."""
    if flag is None:
        return "COUNT(*)"
    column = flag.removesuffix(" IS NOT NULL")
    return (
        f"COUNT({column})"
        if column != flag and column.isidentifier()
        else f"COUNT(CASE WHEN {flag} THEN 1 END)"
    )


def _shrunk(value: str, weight: str, cap: int) -> str:
    """The value where the unit weighs at most the cap, else its share of the cap, towards zero; NULL where it
    weighs NULL.
    """
    c = integer(cap)
    return f"CASE WHEN {weight} <= {c} THEN {value} ELSE {value} * {c} // {weight} END"


def _share(weight: str, cap: int) -> str:
    """Which part of a unit counts: all of it up to the cap; NULL where it weighs NULL."""
    c = integer(cap)
    part = f"CAST({c} AS DOUBLE) / {weight}"
    return f"CASE WHEN {weight} <= {c} THEN CAST(1 AS DOUBLE) WHEN {weight} > {c} THEN {part} END"


def _shared(value: str, share: str, signed: bool) -> str:
    """A value's part of what counts, towards zero. One division per unit instead of one per row.

    Float64 makes sums exceed the cap C by less than a part in 2^51, which is less than one step as long as
    C < 2^51, and sums of whole numbers that exceed C by less than one do not exceed it.
    """
    product = f"{value} * {share}"
    return f"CAST({'TRUNC' if signed else 'FLOOR'}({product}) AS BIGINT)"


def _shrunk_l2(value: str, weight: str, cap: int) -> str:
    """As `_shrunk` for a unit whose `weight` pairs all have the same value: so that their length is that of
    `cap` pairs.

    Division and square root are correctly rounded on every engine, so the result is the same to the bit.
    """
    c = integer(cap)
    less = f"CAST(FLOOR({value} * SQRT(CAST({c} AS DOUBLE) / {weight})) AS BIGINT)"
    return f"CASE WHEN {weight} <= {c} THEN {value} WHEN {weight} > {c} THEN {less} END"


def _key_share(norm: int) -> str:
    """What a unit gives each of its groups towards being shown: of KEY_MASS in all, or in length."""
    if norm == 1:
        return f"{integer(KEY_MASS)} // COUNT(*)"
    # KEY_MASS / sqrt(m) is never so near a whole number that rounding could cross it: m k^2 is whole.
    each = f"CAST(FLOOR({KEY_MASS} / SQRT(CAST(COUNT(*) AS DOUBLE))) AS BIGINT)"
    return f"CASE WHEN COUNT(*) <= {KEY_MASS} THEN {each} ELSE 0 END"


def census_statement(leaf: Leaf) -> Statement:
    """How many units weigh more than 0, 1, 2, 4, ..., for each weigh key without a cap: one row, the basis of
    a private choice.

    Each unit falls into one cell of the histogram that the differences make, so adding or removing a unit
    moves it by 1 in L1. A weight of NULL is beyond int64, above every threshold.
    """
    builder = Builder(leaf)
    limits = [0, *(1 << cell for cell in range(CENSUS_CELLS))]
    for key, each in leaf.uncapped.items():
        if each.level == "pair":
            weight, source = _paired(builder, each, census_exponent(each))[1], "__shares"
        elif each.weighing == "own" and each.value is not None:
            value = builder.row(steps_of(each, census_exponent(each)))
            weight, source = builder.total(weight_of(value, each.low < 0)), "__totals"
        else:
            flag = _flag(builder, each)
            weight, source = builder.total(_count(flag)), "__totals"
        counts = tuple(f"COUNT(CASE WHEN {weight} <= {limit} THEN NULL ELSE 1 END)" for limit in limits)
        builder.stack(Stacked(Part("census", (key,)), counts, source, False))
    return builder.build()
