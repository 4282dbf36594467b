"""The questions of a tuning: ordinary SQL about units, written from what the owner's file declares.

How much units contribute is asked as a histogram of units by octaves, over one row per unit: `SELECT CASE
WHEN w > 2 ... END AS cell, COUNT(*) ... GROUP BY 1`. Each unit is in one cell, so all of it costs what one
count does. Nothing here reads a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from incrowd.catalog import NUMERIC, Catalog, Column, Table
from incrowd.curator.contribution import CENSUS_ROW
from incrowd.query.typed import ENUMERABLE

ProbeKind = Literal["rows", "totals", "above", "below", "quantiles", "keys"]
SHARES: dict[ProbeKind, float] = {
    "rows": 3.0,
    "totals": 3.0,
    "above": 2.0,
    "below": 2.0,
    "quantiles": 1.0,
    "keys": 2.0,
}
"""What each measurement gets of the price, relative to the others."""
RANKS = (0.05, 0.25, 0.5, 0.75, 0.95)
ROW_CELLS = 21
"""The cells of rows per unit: up to 2^20 rows. Empty cells make it less sure how few units exceed a cap."""
FINER, COARSER = int(math.log2(CENSUS_ROW)), 12
"""The cells of totals: 2^20 times less than the largest value of one row, up to 2^12 times more."""


@dataclass(frozen=True)
class Probe:
    """One measurement of a table or a column.

    up_to: the upper edge of the first cell of a census; each next one is twice as far from `anchor`.
    """

    kind: ProbeKind
    table: str
    column: str
    sql: str
    up_to: float = 1.0
    anchor: float = 0.0

    @property
    def place(self) -> str:
        """The table, or the table and the column."""
        return f"{self.table}.{self.column}" if self.column else self.table


def probes_of(catalog: Catalog, table: str, delta: float) -> Iterator[Probe]:
    """Everything that can be measured about a private table, what is declared already left out."""
    declared = catalog.tables[table]
    assert declared.unit is not None
    if not declared.unit.is_row and declared.contribution is None:
        yield _rows(table, declared)
    for name, column in declared.columns.items():
        if name in declared.unit.columns:
            continue
        if column.type in NUMERIC and column.bounds is not None:
            yield from _about_numbers(table, declared, name, column)
        elif column.type == "text" and column.domain is None and delta:
            yield _keys(table, declared, name)


def _about_numbers(table: str, declared: Table, name: str, column: Column) -> Iterator[Probe]:
    assert declared.unit is not None and column.bounds is not None
    low, high = (float(end) for end in column.bounds)
    if low == high or not math.isfinite(high - low):
        return
    if not declared.unit.is_row and column.contribution is None:
        yield _totals(table, declared, name, max(abs(low), abs(high)))
    listed = column.domain is not None or (column.type == "integer" and high - low < ENUMERABLE)
    if not listed:
        anchor = min(max(0.0, low), high)
        if high > anchor:
            yield _reach("above", table, declared, name, anchor, high - anchor)
        if low < anchor:
            yield _reach("below", table, declared, name, anchor, anchor - low)
    ranks = ", ".join(f"QUANTILE({_quoted(name)}, {rank}) AS q{place}" for place, rank in enumerate(RANKS))
    yield Probe("quantiles", table, name, f"SELECT {ranks} FROM {_quoted(table)}")


def _rows(table: str, declared: Table) -> Probe:
    return Probe("rows", table, "", _census(_per_unit(table, declared, "COUNT(*)"), _edges(1.0, ROW_CELLS)))


def _totals(table: str, declared: Table, name: str, limit: float) -> Probe:
    up_to = 2.0 ** (math.ceil(math.log2(limit)) - FINER)
    weights = _per_unit(table, declared, f"SUM(ABS({_quoted(name)}))")
    return Probe("totals", table, name, _census(weights, _edges(up_to, FINER + COARSER + 1)), up_to)


def _reach(
    kind: Literal["above", "below"], table: str, declared: Table, name: str, anchor: float, span: float
) -> Probe:
    """How far each unit's values reach from the anchor, in octaves of the declared span."""
    up_to = span * 2.0**-FINER
    column = _quoted(name)
    farthest = f"MAX({column})" if kind == "above" else f"MIN({column})"
    assert declared.unit is not None
    if declared.unit.is_row:
        values = f"(SELECT {column} AS v FROM {_quoted(table)})"
    else:
        values = _per_unit(table, declared, farthest, "v")
    gap = f"v - {_number(anchor)}" if kind == "above" else f"{_number(anchor)} - v"
    weights = f"(SELECT {gap} AS w FROM {values} AS x)"
    return Probe(kind, table, name, _census(weights, _edges(up_to, FINER), least=""), up_to, anchor)


def _keys(table: str, declared: Table, name: str) -> Probe:
    assert declared.unit is not None
    units = [_quoted(column) for column in declared.unit.columns]
    counted = (
        f"COUNT(DISTINCT ({', '.join(units)}))" if len(units) > 1 else f"COUNT(DISTINCT {''.join(units)})"
    )
    if declared.unit.is_row:
        counted = "COUNT(*)"
    return Probe(
        "keys", table, name, f"SELECT {_quoted(name)} AS v, {counted} AS n FROM {_quoted(table)} GROUP BY 1"
    )


def _per_unit(table: str, declared: Table, weight: str, name: str = "w") -> str:
    assert declared.unit is not None
    by = ", ".join(_quoted(column) for column in declared.unit.columns)
    return f"(SELECT {by}, {weight} AS {name} FROM {_quoted(table)} GROUP BY {by})"


def _edges(up_to: float, cells: int) -> list[float]:
    """The upper edges of all cells but the last, which has none."""
    return [up_to * 2.0**cell for cell in range(cells)]


def _census(weights: str, edges: list[float], least: str = "WHERE w > 0 ") -> str:
    """How many units weigh up to each edge, and beyond the last."""
    cases = [f"WHEN w > {_number(edge)} THEN {cell + 1}" for cell, edge in reversed(list(enumerate(edges)))]
    known = least or "WHERE w IS NOT NULL "
    return (
        f"SELECT CASE {' '.join(cases)} ELSE 0 END AS cell, COUNT(*) AS n FROM {weights} AS units "
        f"{known}GROUP BY 1 ORDER BY 1"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _number(value: float) -> str:
    return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
