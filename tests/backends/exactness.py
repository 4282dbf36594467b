"""What the exact integers of a leaf say, put beside the answer of plain SQL.

The formulas are written out again here: they are the table at the head of `query/aggregates/`, not its
code.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from incrowd.backends import release_statement
from incrowd.query import Aggregate, Leaf, Measure
from tests.backends.grammar import Asked
from tests.backends.houses import Numbers, engine_of, furnish, run
from tests.backends.parsing import tree

TOLERANCE = 1e-5


def check_exactness(asked: Asked, leaf: Leaf, tables: dict[str, pa.Table]) -> None:
    """Where no unit exceeds its cap, integers times their step are what plain SQL says."""
    engine = engine_of(asked.mode)
    furnish(engine, tables)
    numbers = run(engine, release_statement(leaf))
    plain = engine._run(tree(asked.plain))
    keys = [_comparable(plain.column(f"key{index}")) for index in range(asked.keys)]
    # An aggregate that is asked for twice is one column.
    order = list(dict.fromkeys(asked.aggregates))
    seen = set()
    for row in range(plain.num_rows):
        key = tuple(column[row] for column in keys)
        seen.add(key)
        for place, text in enumerate(asked.aggregates):
            aggregate = leaf.aggregates[order.index(text)]
            _check(leaf, aggregate, numbers, key, plain.column(f"value{place}")[row].as_py())
    if asked.keys:
        groups = {key[:-1] for totals in numbers.values.values() for key, value in totals.items() if value}
        assert groups <= seen


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    return list(column.to_pylist())


def _steps(leaf: Leaf, numbers: Numbers, name: str, key: tuple[Any, ...]) -> int:
    for index, part in enumerate(numbers.statement.parts):
        if part.kind in ("sums", "pairs", "values") and name in part.columns:
            return numbers.values.get((index, part.columns.index(name)), {}).get((*key, None), 0)
    raise AssertionError(name)


def _check(leaf: Leaf, aggregate: Aggregate, numbers: Numbers, key: tuple[Any, ...], plain: Any) -> None:
    facts = [leaf.measures[name] for name in aggregate.measures]
    if aggregate.kind == "quantile":
        _check_quantile(leaf, aggregate, numbers, key, plain)
        return
    sums = [_steps(leaf, numbers, measure.name, key) * measure.step for measure in facts]
    rows = 100  # the most that a group has: 14 visits, each joined to at most 6 others
    if aggregate.kind == "distinct":
        assert sums[0] == plain and sums[1] <= plain
        return
    if aggregate.kind in ("count", "sum"):
        exact = facts[0].whole and facts[0].exponent <= 0
        slack = 0.0 if exact else rows * facts[0].step / 2
        assert abs(sums[0] - float(plain or 0)) <= slack + 1e-9 * abs(sums[0]) * (not exact)
        return
    count = sums[-1]
    if plain is None or math.isnan(plain):
        assert count <= 1 or aggregate.kind in ("corr", "slope", "intercept", "ratio")
        return
    if aggregate.kind == "avg":
        assert math.isclose(
            facts[0].centre + sums[0] / count, plain, abs_tol=TOLERANCE * (1 + facts[0].limit)
        )
        return
    if aggregate.kind == "ratio":
        tolerance = TOLERANCE * (1 + facts[0].limit) * (1 + facts[1].limit)
        assert math.isclose(facts[0].offset + sums[0] / count, plain, rel_tol=1e-6, abs_tol=tolerance)
        return
    if aggregate.kind == "sxx":
        squares = _variance(sums[0], sums[1], count, facts[1].centre) * count
        assert math.isclose(squares, plain, rel_tol=1e-6, abs_tol=TOLERANCE * rows * (1 + facts[1].high))
        return
    if aggregate.kind in ("slope", "intercept"):
        squares = _variance(sums[0], sums[2], count, facts[2].centre)
        if squares > 1e-3 * (1 + facts[2].high):
            slope = (sums[3] / count - sums[0] * sums[1] / count**2) / squares
            y, x = facts[1].centre + sums[1] / count, facts[0].centre + sums[0] / count
            line = slope if aggregate.kind == "slope" else y - slope * x
            tolerance = 1e3 * TOLERANCE * (1 + facts[1].limit / facts[0].limit) * (1 + abs(x))
            assert math.isclose(line, plain, rel_tol=1e-4, abs_tol=tolerance)
        return
    more = count / (count - 1) if aggregate.sample else 1.0
    if aggregate.kind == "var":
        variance = _variance(sums[0], sums[1], count, facts[1].centre) * more
        plain = plain**2 if aggregate.root else plain
        assert math.isclose(variance, plain, rel_tol=1e-6, abs_tol=TOLERANCE * (1 + facts[1].high))
        return
    cross = sums[-2] / count - sums[0] * sums[1] / count**2
    scale = 1 + facts[-2].high
    if aggregate.kind == "sxy":
        assert math.isclose(cross * count, plain, rel_tol=1e-6, abs_tol=TOLERANCE * rows * scale)
        return
    if aggregate.kind == "covar":
        assert math.isclose(cross * more, plain, rel_tol=1e-6, abs_tol=TOLERANCE * scale)
        return
    spread = _variance(sums[0], sums[2], count, facts[2].centre) * _variance(
        sums[1], sums[3], count, facts[3].centre
    )
    assert abs(cross - plain * math.sqrt(max(spread, 0.0))) <= 10 * TOLERANCE * scale


def _variance(total: float, squares: float, count: float, centre: float) -> float:
    return squares / count + centre - (total / count) ** 2


def _cell(measure: Measure, cell: int) -> tuple[float, float]:
    """The ends of a cell."""
    for band in measure.bands:
        if cell < band.cells:
            return band.start + band.width * cell, band.start + band.width * (cell + 1)
        cell -= band.cells
    width = (measure.high - measure.low) / measure.buckets
    return measure.low + width * cell, measure.low + width * (cell + 1)


def _check_quantile(
    leaf: Leaf, aggregate: Aggregate, numbers: Numbers, key: tuple[Any, ...], plain: Any
) -> None:
    """The plain quantile lies between the cells of its neighbouring ranks."""
    measure = leaf.measures[aggregate.measures[0]]
    (index,) = [
        i
        for i, part in enumerate(numbers.statement.parts)
        if part.kind == "histogram" and measure.name in part.columns
    ]
    cells = {
        group[-1]: weight for group, weight in numbers.values.get((index, 0), {}).items() if group[:-1] == key
    }
    one = 1 << -measure.exponent
    assert all(weight % one == 0 for weight in cells.values())
    ordered = [cell for cell, weight in sorted(cells.items()) for _ in range(weight // one)]
    if plain is None:
        assert not ordered
        return
    rank = aggregate.quantiles[0]
    if aggregate.label.startswith(("MIN", "MAX")):
        rank = 0.0 if aggregate.label.startswith("MIN") else 1.0
    place = rank * (len(ordered) - 1)
    low, _ = _cell(measure, ordered[max(0, math.floor(place) - 1)])
    _, high = _cell(measure, ordered[min(len(ordered) - 1, math.ceil(place) + 1)])
    assert low - 1e-9 <= plain <= high + 1e-9
