"""A leaf as SQL over integers: the statement that every engine runs.

Deterministic and portable: no random function, no window over people, no temporary table, nothing that can raise. The shape,
for a unit column u and keys k (design decision 3):

    rows    one line per row: u, k, and each measure's value v as an integer number of steps
    totals  GROUP BY u: what the unit weighs, t                      (row measures)
    pairs   GROUP BY u, k: one line per unit and group               (COUNT(DISTINCT unit), bounds per group, private keys)
    shares  GROUP BY u: what the unit's pairs weigh
    result  join, shrink where t > C, GROUP BY k

Parts with different grouping (sums, pairs, histograms, grand totals) are stacked with UNION ALL into one statement, so that
all of them see one snapshot of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from incrowd.query import Leaf, Measure
from incrowd.query.sql import DIALECT

KEY_MASS = 1024
"""A unit gives its groups this much key weight in all, in whole numbers: one with more groups gives none."""
MOST = 2**62
CENSUS_BITS = 20
"""In a census, the largest value of one row is 2^20 steps."""
CENSUS_CELLS = 46


@dataclass(frozen=True)
class Part:
    """One stacked part of a statement: what its number columns mean."""

    kind: str
    """`sums`, `pairs`, `histogram` or `totals`."""
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Stacked:
    part: Part
    numbers: tuple[str, ...]
    source: str
    by_keys: bool
    cell: str | None = None


@dataclass(frozen=True)
class Statement:
    """SQL text with the meaning of its parts. Columns: part, the keys, cell, n0, n1, ..."""

    sql: str
    parts: tuple[Part, ...]
    keys: int


def _integer(value: int) -> str:
    return f"CAST({value} AS BIGINT)"


def _present(measure: Measure) -> str | None:
    return None if measure.present is None else measure.present.sql(DIALECT)


def _steps(measure: Measure, exponent: int) -> str:
    """The measure's value on one row, in steps of 2^exponent; 0 where it is not there."""
    present = _present(measure)
    if measure.value is None or measure.buckets:
        one = _integer(1 << max(0, -exponent))
        return one if present is None else f"CASE WHEN {present} THEN {one} ELSE 0 END"
    value = measure.value.sql(DIALECT)
    scale = repr(math.ldexp(1.0, -exponent))
    centre = "" if measure.centre == 0 else f" - CAST('{measure.centre!r}' AS DOUBLE)"

    def grid(text: str) -> str:
        return f"CAST(FLOOR((({text}){centre}) * CAST('{scale}' AS DOUBLE) + CAST('0.5' AS DOUBLE)) AS BIGINT)"

    low, high = measure.low, measure.high
    if measure.level == "pair":
        # The pair's sum is what is bounded; a row only has to fit into the integer.
        widest = math.ldexp(1.0, 50 + exponent)
        low, high = -widest, widest
    low_text, high_text = (f"CAST('{end!r}' AS DOUBLE)" for end in (low, high))
    low_steps, high_steps = (_integer(_grid(end - measure.centre, exponent)) for end in (low, high))
    # NULL and NaN pass none of the tests (engines order NaN above infinity) and fall through to 0.
    clamped = (
        f"CASE WHEN {value} < {low_text} THEN {low_steps} WHEN {value} <= {high_text} THEN {grid(value)} "
        f"WHEN {value} <= CAST('Infinity' AS DOUBLE) THEN {high_steps} ELSE 0 END"
    )
    return clamped if present is None else f"CASE WHEN {present} THEN {clamped} ELSE 0 END"


def _grid(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent) + 0.5)


def _cell(measure: Measure) -> str:
    """The cell of a quantile's histogram that a row falls into."""
    assert measure.value is not None
    value = f"({measure.value.sql(DIALECT)})"
    width = (measure.high - measure.low) / measure.buckets
    low, high = (f"CAST('{end!r}' AS DOUBLE)" for end in (measure.low, measure.high))
    last = _integer(measure.buckets - 1)
    inside = f"CAST(FLOOR(({value} - {low}) / CAST('{width!r}' AS DOUBLE)) AS BIGINT)"
    return (
        f"CASE WHEN {value} < {low} THEN {_integer(0)} WHEN {value} < {high} THEN "
        f"CASE WHEN {inside} > {last} THEN {last} ELSE {inside} END ELSE {last} END"
    )


def _clip(text: str, limit: int = MOST) -> str:
    """A sum as BIGINT: clamping is a contraction, so no sensitivity grows."""
    bound = f"CAST({limit} AS HUGEINT)"
    return f"CAST(CASE WHEN {text} > {bound} THEN {bound} WHEN {text} < -{bound} THEN -{bound} ELSE COALESCE({text}, 0) END AS BIGINT)"


def _shrunk(value: str, weight: str, cap: int) -> str:
    c = _integer(cap)
    return f"CASE WHEN {weight} <= {c} THEN {value} ELSE {value} * {c} // {weight} END"


class _Builder:
    """Collects the common table expressions and stacked parts of one leaf's statement."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.keys = tuple(key.name for key in leaf.keys)
        self.row_columns: dict[str, str] = {}
        self.total_columns: dict[str, str] = {}
        self.pair_columns: dict[str, str] = {}
        self.share_columns: dict[str, str] = {}
        self.stacked: list[_Stacked] = []

    @staticmethod
    def _column(columns: dict[str, str], sql: str, prefix: str) -> str:
        """The name of a column, made once for each expression."""
        for name, text in columns.items():
            if text == sql:
                return name
        name = f"{prefix}{len(columns)}"
        columns[name] = sql
        return name

    def row(self, sql: str) -> str:
        """A column of `rows`."""
        return self._column(self.row_columns, sql, "v")

    def flag(self, measure: Measure) -> str | None:
        """The column of `rows` that is 1 where the measure is there; None where it always is."""
        present = _present(measure)
        return None if present is None else self.row(f"CASE WHEN {present} THEN 1 ELSE 0 END")

    def weight(self, measure: Measure, exponent: int) -> str:
        """The column of `totals` that says how much a unit weighs for a row measure."""
        if measure.weighing == "own" and measure.value is not None:
            summed = f"SUM(ABS({self.row(_steps(measure, exponent))}))"
        else:
            flag = self.flag(measure)
            if flag is None:
                return self._column(self.total_columns, "COUNT(*)", "t")
            summed = f"SUM({flag})"
        # Beyond 2^62 the weight is NULL, and the unit counts for nothing.
        return self._column(self.total_columns, f"CASE WHEN {summed} <= CAST({MOST} AS HUGEINT) THEN CAST({summed} AS BIGINT) END", "t")

    def pair(self, measure: Measure, exponent: int) -> str:
        """The column of `pairs` with the measure's value on one unit and group, in steps (1 where units are counted)."""
        if measure.value is None:
            flag = self.flag(measure)
            return self._column(self.pair_columns, "1" if flag is None else f"MAX({flag})", "q")
        low, high = (_grid(end, exponent) for end in (measure.low, measure.high))
        summed = f"SUM({self.row(_steps(measure, exponent))})"
        inside = f"CASE WHEN {summed} < {low} THEN {low} WHEN {summed} > {high} THEN {high} ELSE {summed} END"
        return self._column(self.pair_columns, f"CAST({inside} AS BIGINT)", "q")

    def share(self, sql: str) -> str:
        """A column of `shares`."""
        return self._column(self.share_columns, sql, "s")

    def joined(self, left: str, right: str) -> str:
        """Two common table expressions joined on the unit."""
        on = " AND ".join(f"{left}.{unit} = {right}.{unit}" for unit in self.leaf.units)
        return f"{left} JOIN {right} ON {on}"

    def ctes(self) -> list[str]:
        """The common table expressions, in order."""
        rows = self.leaf.rows
        picked = [each.sql(DIALECT) for each in rows.expressions] + [f"{sql} AS {name}" for name, sql in self.row_columns.items()]
        clauses = [rows.args["from_"], *rows.args.get("joins", []), rows.args.get("where")]
        tail = " ".join(each.sql(DIALECT).strip() for each in clauses if each is not None)
        kept = " MATERIALIZED" if self.leaf.materialize else ""
        made = [f"rows AS{kept} (SELECT {', '.join(picked) or '1 AS one'} {tail})"]
        if self.total_columns:
            made.append(f"totals AS ({_grouped(self.total_columns, 'rows', self.leaf.units)})")
        if self.pair_columns or self.share_columns:
            made.append(f"pairs AS ({_grouped(self.pair_columns, 'rows', [*self.leaf.units, *self.keys])})")
        if self.share_columns:
            made.append(f"shares AS ({_grouped(self.share_columns, 'pairs', self.leaf.units)})")
        return made

    def build(self) -> Statement:
        """The whole statement."""
        width = max(len(each.numbers) for each in self.stacked)
        texts = []
        for index, each in enumerate(self.stacked):
            keys = self.keys if each.by_keys else [f"CAST(NULL AS {_SQL_TYPES[key.kind]}) AS {key.name}" for key in self.leaf.keys]
            padded = [*each.numbers, *["CAST(NULL AS BIGINT)"] * (width - len(each.numbers))]
            picked = [
                f"{index} AS part",
                *keys,
                f"{each.cell or 'CAST(NULL AS BIGINT)'} AS cell",
                *(f"{number} AS n{place}" for place, number in enumerate(padded)),
            ]
            by = [*(self.keys if each.by_keys else ()), *((each.cell,) if each.cell else ())]
            group = f" GROUP BY {', '.join(by)}" if by else ""
            where = f" WHERE {each.cell} IS NOT NULL" if each.cell else ""
            texts.append(f"SELECT {', '.join(picked)} FROM {each.source}{where}{group}")
        sql = f"WITH {', '.join(self.ctes())} {' UNION ALL '.join(texts)}"
        return Statement(sql, tuple(each.part for each in self.stacked), len(self.keys))


_SQL_TYPES = {"integer": "BIGINT", "float": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}


def _grouped(columns: Mapping[str, str], source: str, by: Iterable[str]) -> str:
    keys = list(by)
    picked = ", ".join([*keys, *(f"{text} AS {name}" for name, text in columns.items())])
    return f"SELECT {picked} FROM {source}" + (f" GROUP BY {', '.join(keys)}" if keys else "")


def weight_cap(measure: Measure, cap: float | None = None) -> int:
    """A cap in the units that weights are counted in: steps, rows, or groups."""
    capped = measure if cap is None else replace(measure, cap=cap)
    if measure.weighing == "own" and measure.value is not None:
        return max(1, math.floor(math.ldexp(capped.cap or 0.0, -measure.exponent)))
    return capped.rows_cap


def release_statement(leaf: Leaf, generous: Mapping[str, float] | None = None) -> Statement:
    """The statement for a leaf whose caps are all known.

    `generous` names measures whose grand total is wanted twice, under the measure's own cap and under a larger one: from
    their ratio the shrinkage of heavy units is undone.
    """
    builder = _Builder(leaf)
    direct = not leaf.units
    numbers: dict[str, dict[str, str]] = {"sums": {}, "pairs": {}}
    for name, each in leaf.measures.items():
        paired = each.level == "pair" and not direct
        value, weight = _value_and_weight(builder, each, paired)
        if not direct:
            value = _shrunk(value, weight, weight_cap(each))
            if paired and each.value is None:
                value = f"({value})"
        summed = _clip(f"SUM({value})")
        if each.buckets:
            source = "rows" if direct else builder.joined("rows", "totals")
            cell = builder.row(_cell(each))
            builder.stacked.append(_Stacked(Part("histogram", (name,)), (summed,), source, True, cell))
        else:
            numbers["pairs" if paired else "sums"][name] = summed
        if generous and name in generous and not direct:
            both = (weight_cap(each), weight_cap(each, generous[name]))
            texts = tuple(_clip(f"SUM(CASE WHEN {weight} <= {_integer(cap)} THEN {weight} ELSE {_integer(cap)} END)") for cap in both)
            builder.stacked.append(_Stacked(Part("totals", (name,)), texts, weight.partition(".")[0], False))
    if not leaf.public:
        mass = f"COUNT(*) * {_integer(KEY_MASS)}"
        if not direct:
            mass = f"SUM({_integer(KEY_MASS)} // shares.{builder.share('COUNT(*)')})"
        numbers["sums" if direct else "pairs"]["keys"] = _clip(mass)
    if not numbers["sums"] and not numbers["pairs"] and not builder.stacked:
        numbers["sums"] = {"nothing": _integer(0)}
    sources = {
        "sums": "rows" if direct or not builder.total_columns else builder.joined("rows", "totals"),
        "pairs": builder.joined("pairs", "shares"),
    }
    for kind, found in numbers.items():
        if found:
            builder.stacked.append(_Stacked(Part(kind, tuple(found)), tuple(found.values()), sources[kind], True))
    return builder.build()


def _value_and_weight(builder: _Builder, measure: Measure, paired: bool) -> tuple[str, str]:
    """A measure's value on a row or pair, in steps, and its unit's weight (empty where each row is a unit)."""
    if not paired:
        value = builder.row(_steps(measure, measure.exponent))
        return value, f"totals.{builder.weight(measure, measure.exponent)}" if builder.leaf.units else ""
    column = builder.pair(measure, measure.exponent)
    weight = f"shares.{builder.share(f'CAST(SUM(ABS({column})) AS BIGINT)')}"
    value = f"pairs.{column}"
    return (f"{value} * {_integer(1 << -measure.exponent)}" if measure.value is None else value), weight


def census_statement(leaf: Leaf) -> Statement:
    """How many units weigh more than 2^j, for each weigh key without a cap: one row, the basis of a private choice.

    Each unit falls into one cell of the histogram that the differences make, so adding or removing a unit moves it by 1 in L1.
    """
    builder = _Builder(leaf)
    for key, each in leaf.uncapped.items():
        exponent = census_exponent(each)
        if each.level == "pair":
            column = builder.pair(each, exponent)
            weight = builder.share(f"SUM(ABS({column}))")
            source = "shares"
        else:
            weight = builder.weight(each, exponent)
            source = "totals"
        # NULL is a weight beyond 2^62: above every threshold.
        counts = [f"CAST(SUM(CASE WHEN {weight} > 0 OR {weight} IS NULL THEN 1 ELSE 0 END) AS BIGINT)"]
        counts += [
            f"CAST(SUM(CASE WHEN {weight} <= {_integer(1 << cell)} THEN 0 ELSE 1 END) AS BIGINT)" for cell in range(CENSUS_CELLS)
        ]
        builder.stacked.append(_Stacked(Part("census", (key,)), tuple(counts), source, False))
    return builder.build()


def census_exponent(measure: Measure) -> int:
    """The grid of a census: the largest value of one row is 2^20 steps; rows and groups are counted as they are."""
    if measure.value is None or measure.weighing == "rows":
        return 0
    return math.ceil(math.log2(max(measure.limit, 2.0**-900))) - CENSUS_BITS
