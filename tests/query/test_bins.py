"""Bins of bounded columns: the values that are listed are those that can occur, on every engine."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from incrowd import Curator
from incrowd.catalog import Catalog
from incrowd.catalog.loading import check
from incrowd.query import Key, bound, parse
from incrowd.query.bins import MOST_BINS

COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "integer"},
    "x": {"type": "float", "bounds": [0, 95], "nullable": False},
    "y": {"type": "float", "bounds": [-7.5, 7.5]},
    "n": {"type": "integer", "bounds": [-25_000, 25_000], "nullable": False},
    "t": {"type": "timestamp", "bounds": ["2023-11-29 10:30:00", "2024-03-02 01:00:00"], "nullable": False},
    "d": {"type": "date", "bounds": ["1900-01-01", "2000-12-31"]},
    "u": {"type": "timestamp"},
    "s": {"type": "text"},
    "k": {"type": "integer", "bounds": [1, 3], "nullable": False},
}
LOW, HIGH = dt.datetime(2023, 11, 29, 10, 30), dt.datetime(2024, 3, 2, 1)


def catalog() -> Catalog:
    tables = {"t": {"source": "t", "unit": "id", "columns": COLUMNS}}
    return check({"sources": {"t": {"frame": "t"}}, "tables": tables, "budget": {"epsilon": 1.0}})


CATALOG = catalog()


def keys_of(*expressions: str) -> tuple[Key, ...]:
    listed = ", ".join(expressions)
    (leaf,) = bound(parse(f"SELECT {listed}, COUNT(*) AS n FROM t GROUP BY {listed}"), CATALOG).leaves
    return leaf.keys


def dense(steps: int) -> pa.Table:
    """Rows at even steps from bound to bound, both included, and halves and whole numbers between them."""
    whole = [float(number) for number in range(96)]
    x = whole + [95 * step / steps for step in range(steps + 1)]
    y = [-7.5 + 15 * place / (len(x) - 1) for place in range(len(x) - 1)] + [7.5]
    n = [round(-25_000 + 50_000 * place / (len(x) - 1)) for place in range(len(x))]
    t = [LOW + (HIGH - LOW) * place / (len(x) - 1) for place in range(len(x))]
    d = [dt.date(1900, 1, 1) + dt.timedelta(days=36_889 * place // (len(x) - 1)) for place in range(len(x))]
    k = [1 + place % 3 for place in range(len(x))]
    named = {"id": list(range(len(x))), "x": x, "y": y, "n": n, "t": t, "d": d, "k": k}
    return pa.table(named)


NUMBERS = [
    "FLOOR(x / 10)",
    "FLOOR(x / 10) * 10",
    "CEIL(x / 10)",
    "ROUND(x / 10)",
    "TRUNC(y)",
    "FLOOR(y)",
    "CEIL(y)",
    "ROUND(y)",
    "CAST(y AS INTEGER)",
    "n // 1000",
    "FLOOR(n / 5000.0)",
    "CAST(FLOOR(x / 10) AS INTEGER) * 10 + 5",
    "CAST(n // 10000 AS TEXT)",
    "FLOOR(x / 10) + k",
    "WIDTH_BUCKET(n, -20000, 20000, 8)",
]
TIMES = [
    "CAST(t AS DATE)",
    "DATE_TRUNC('day', t)",
    "DATE_TRUNC('hour', t)",
    "DATE_TRUNC('week', t)",
    "DATE_TRUNC('month', t)",
    "DATE_TRUNC('quarter', t)",
    "DATE_TRUNC('year', t)",
    "DATE_TRUNC('month', d)",
    "DATE_TRUNC('week', d)",
    "YEAR(d)",
    "EXTRACT(YEAR FROM d)",
    "CAST(DATE_TRUNC('month', t) AS TEXT)",
]


@pytest.fixture(scope="module")
def asked() -> Any:
    bounds = {name: column["bounds"] for name, column in COLUMNS.items() if "bounds" in column}
    bounds["t"], bounds["d"] = (LOW, HIGH), (dt.date(1900, 1, 1), dt.date(2000, 12, 31))
    with Curator.from_tables(
        t=dense(60_000),
        unit="id",
        bounds=bounds,
        not_null=["x", "n", "t", "k"],
        budget=(1e9, 0.5),
    ) as curator:
        yield curator


@pytest.mark.parametrize("expression", [*NUMBERS, *TIMES])
def test_bins_are_exactly_the_values_that_occur_between_the_bounds(asked: Curator, expression: str) -> None:
    """The counts of an answer with hardly any noise: no bin is empty, and all rows are in one."""
    sql = f"SELECT {expression} AS bin, COUNT(*) AS n FROM t GROUP BY 1"
    answer = asked.ask(sql, epsilon=1e6, delta=0.0, contribution=1)
    table = answer.to_pandas()
    known = table[table.bin.notna()]
    assert (known.n > 0).all() and known.n.sum() == 60_097
    assert not any("hidden" in note for note in answer.notes)
    nullable = re.search(r"\b[yd]\b", expression) is not None
    assert table.bin.isna().sum() == nullable


@pytest.mark.parametrize(
    "expression", ["u", "DATE_TRUNC('day', u)", "x", "x / 10", "s", "LENGTH(s)", "y * 2"]
)
def test_what_has_no_bounds_or_no_bins_stays_private(expression: str) -> None:
    (key,) = keys_of(expression)
    assert not key.public


def test_more_bins_than_are_shown_stay_private() -> None:
    assert not keys_of("DATE_TRUNC('minute', t)")[0].public
    assert keys_of("FLOOR(x * 1000)")[0].public and not keys_of("FLOOR(x * 2000)")[0].public
    days, hours = keys_of("CAST(t AS DATE)", "FLOOR(x)")
    assert days.public and hours.public and MOST_BINS > 95 * 96
    assert [key.public for key in keys_of("DATE_TRUNC('hour', t)", "FLOOR(x)")] == [False, False]
    assert [key.public for key in keys_of("DATE_TRUNC('hour', t)", "FLOOR(x)", "k")] == [False, False, True]


def test_rows_outside_the_bounds_are_in_no_bin() -> None:
    table = pa.table({"id": [1, 2, 3, 4], "x": [5.0, 15.0, 99.0, -3.0]})
    with Curator.from_tables(
        t=table, unit="id", bounds={"x": (0, 20)}, not_null=["x"], budget=(1e9, 0.5)
    ) as curator:
        answer = curator.ask(
            "SELECT FLOOR(x / 10) AS bin, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1e6, delta=0.0
        )
        assert answer.to_arrow().to_pydict() == {"bin": [0, 1, 2], "n": [1, 1, 0]}


@pytest.mark.parametrize(
    ("where", "days"),
    [
        ("t >= '2024-01-01'", 62),
        ("t < '2024-01-01'", 33),
        ("t <= '2024-01-01'", 34),
        ("t > '2024-01-01' AND t < '2024-01-11'", 10),
        ("'2024-01-01' <= t AND t < TIMESTAMP '2024-01-11 00:00:01'", 11),
        ("t BETWEEN '2024-01-01' AND '2024-01-05 12:00'", 5),
        ("t >= DATE '2024-01-01' AND k = 2", 62),
        ("t >= '2024-01-01' OR k = 2", 95),
        ("NOT t >= '2024-01-01'", 95),
        ("t >= 'soon'", 95),
        ("t >= '2024-02-31'", 95),
        ("t >= '2030-01-01'", 95),
    ],
)
def test_where_leaves_out_the_bins_that_no_row_can_be_in(asked: Curator, where: str, days: int) -> None:
    sql = f"SELECT CAST(t AS DATE) AS bin, COUNT(*) AS n FROM t WHERE {where} GROUP BY 1"
    answer = asked.ask(sql, epsilon=1e6, delta=0.0, contribution=1)
    assert len(answer) == days
    none = "soon" in where or "31" in where  # DuckDB raises on what is no date; here it is NULL
    with duckdb.connect(":memory:") as plain:
        plain.register("t", dense(60_000))
        counted = plain.execute(f"SELECT COUNT(*) FROM t WHERE {'FALSE' if none else where}").fetchone()
    assert counted is not None
    assert sum(answer.to_arrow().column("n").to_pylist()) == counted[0]


@pytest.mark.parametrize(
    ("where", "first", "last"),
    [
        ("k > 1", 2, 3),
        ("k >= 2 AND k < 3", 2, 2),
        ("1 < k", 2, 3),
        ("k > -5", 1, 3),
        ("k > 1.5", 1, 3),
        ("k > 7", 1, 3),
        ("k BETWEEN 2 AND 9", 2, 3),
    ],
)
def test_where_narrows_whole_numbers(where: str, first: int, last: int) -> None:
    (leaf,) = bound(parse(f"SELECT k, COUNT(*) AS n FROM t WHERE {where} GROUP BY k"), CATALOG).leaves
    assert leaf.keys[0].values == tuple(range(first, last + 1))


def test_buckets_of_equal_width_are_public() -> None:
    (key,) = keys_of("WIDTH_BUCKET(x, 0, 80, 4)")
    assert key.public
