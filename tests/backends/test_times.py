"""What is computed from dates and timestamps is the same to the bit on every engine, whatever the rows
hold."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa
import pytest

from incrowd.backends import release_statement
from tests.backends.engines import ENGINES, house
from tests.backends.houses import DAYS, INSTANTS, plan_of, run, tables_from
from tests.query.times_asked import DIFFERENCES, FORMATS, PARTS, SHIFTS

EPOCH = dt.datetime(1970, 1, 1)
TAME = [
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999),
    dt.datetime(2023, 1, 31, 0, 0, 0, 1),
    dt.datetime(2021, 1, 1),
    dt.datetime(2020, 12, 31, 12, 30, 15, 500_000),
    dt.datetime(1969, 12, 31, 23, 59, 59, 250_000),
    dt.datetime(1900, 2, 28, 1, 2, 3),
    dt.datetime(1582, 10, 10, 10),
    dt.datetime(1000, 3, 1, 5, 5, 5, 5),
]
EDGES = [
    *(dt.datetime(1, 1, day, 1) for day in (1, 2, 7, 8, 9)),
    dt.datetime(1, 3, 1),
    dt.datetime(100, 12, 31, 23),
    *(dt.datetime(9999, 12, day, 22, 59, 59, 999_999) for day in (23, 24, 25, 31)),
    dt.datetime(9998, 11, 30),
]
FAR_DAYS: list[Any] = [*DAYS["wild"], 10**6, -(10**6)]  # type: ignore[misc]
FAR: list[Any] = [10**15, -(10**17), 250_000_000_000_000_000, *INSTANTS["wild"]]  # type: ignore[misc]


def rows_of(moments: list[dt.datetime]) -> dict[str, pa.Table]:
    """Visits with these moments, each beside others; and with what no calendar holds."""
    instants = [*((moment - EPOCH) // dt.timedelta(microseconds=1) for moment in moments), *FAR]
    days = [(moment.date() - EPOCH.date()).days for moment in moments]
    days += FAR_DAYS
    many = max(len(instants), len(days))
    tables = tables_from(3, wild=False)
    visits = tables["visits"]
    columns: dict[str, Any] = {}
    for name in visits.column_names:
        kept = visits.column(name).to_pylist()
        columns[name] = pa.array(
            [kept[row % len(kept)] for row in range(3 * many)], visits.schema.field(name).type
        )
    columns["x"] = pa.array([[-5, 0, 3, 20, 1, 400, -40][row % 7] for row in range(3 * many)], pa.int64())
    columns["ts"] = pa.array([instants[row % len(instants)] for row in range(3 * many)], pa.int64())
    columns["ts"] = columns["ts"].cast(pa.timestamp("us"))
    shifted = [days[(row + row // many * 5) % len(days)] for row in range(3 * many)]
    columns["d"] = pa.array(shifted, pa.int32()).cast(pa.date32())
    return {**tables, "visits": pa.table(columns)}


def asked(expressions: list[str]) -> Any:
    keys = ", ".join(f"{expression} AS k{place}" for place, expression in enumerate(expressions))
    (leaf,) = plan_of(f"SELECT {keys}, COUNT(*) FROM visits AS v GROUP BY ALL", "row").leaves
    return release_statement(leaf)


GROUPS = {"shifts": SHIFTS, "differences": DIFFERENCES, "parts": PARTS, "formats": FORMATS}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_computes_the_same_times(engine: str, group: str) -> None:
    names = [
        re.sub(r"(?<![%-])\bm\b", "v.ts", re.sub(r"(?<![%-])\b([dxy])\b", r"v.\1", sql))
        for sql in GROUPS[group]
    ]
    names = [name.replace("v.y", "v.cat") for name in names]
    tables = rows_of([*TAME, *EDGES])
    for house_name in ("duckdb", engine):
        house(house_name, "row").furnish(tables)
    for first in range(0, len(names), 10):
        statement = asked(names[first : first + 10])
        expected = run(house("duckdb", "row").backend, statement).values
        assert run(house(engine, "row").backend, statement).values == expected, names[first : first + 10]
