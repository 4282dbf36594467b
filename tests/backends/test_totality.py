"""Nothing that was planned ever raises in the engine, whatever a row holds: every function, on the worst of
values.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.backends import census_statement, release_statement
from tests.backends.houses import (
    DAYS,
    DECIMALS,
    INSTANTS,
    LARGE,
    REALS,
    TEXTS,
    WHOLES,
    capped,
    engine_of,
    furnish,
    plan_of,
    run,
    tables_from,
)
from tests.backends.scalar_functions import BITS, SEARCHES, TESTS
from tests.backends.scalar_functions import CONDITIONS as MORE_CONDITIONS
from tests.backends.scalar_functions import NUMBERS as MORE_NUMBERS

NUMBERS = [
    "{n} + {m}",
    "{n} - {m}",
    "{n} * {m}",
    "{n} * {n} * {n} * {n}",
    "{n} / {m}",
    "{n} % {m}",
    "-{n}",
    "ABS({n})",
    "FLOOR({n})",
    "CEIL({n})",
    "TRUNC({n})",
    "ROUND({n})",
    "ROUND({n}, 18)",
    "ROUND({n}, -18)",
    "SIGN({n})",
    "WIDTH_BUCKET({n}, -2, 5, 4)",
    "LN({n})",
    "LOG({n})",
    "LOG(2, {n})",
    "SQRT({n})",
    "EXP({n})",
    "POWER({n}, 4)",
    "LEAST({n}, {m}, 3)",
    "GREATEST({n}, {m}, 0.5)",
    "COALESCE({n}, {m}, 0.12345678901234567890123456789012345678)",
    "NULLIF({n}, {m})",
    "CASE WHEN {n} > {m} THEN {n} ELSE 0.5 END",
    "CASE {n} WHEN 3 THEN {m} WHEN 0.5 THEN 1 END",
    "CAST({n} AS BIGINT)",
    "CAST({n} AS INTEGER) + 1",
    "CAST(CAST(ROUND({n}) AS TEXT) AS DOUBLE)",
    "IF({n} = {m}, {n}, NULL)",
    "{n} + NULL",
    *MORE_NUMBERS,
]
TEXT = [
    "LENGTH({t})",
    "LENGTH(UPPER({t}) || LOWER({t}))",
    "LENGTH(TRIM({t}))",
    "LENGTH(SUBSTRING({t}, 1000000, 1000000))",
    "LENGTH(SUBSTRING({t}, 2))",
    "LENGTH(LEFT({t}, 0)) + LENGTH(RIGHT({t}, 1000000))",
    "LENGTH(REPLACE({t}, 'aa', ''))",
    "LENGTH(CONCAT({t}, 'x', {t}))",
    "LENGTH(SPLIT_PART({t}, 'a', 2)) + STRPOS({t}, 'a')",
    "LENGTH(LPAD({t}, 1000, 'x') || RPAD({t}, 1000, 'xy'))",
    "LENGTH(CONCAT_WS('--', {t}, {t}, NULL))",
    "CAST({t} AS DECIMAL(9, 2)) + CAST({t} AS DECIMAL(38, 0))",
    "CAST({t} AS DOUBLE)",
    "CAST({t} AS BIGINT)",
    "CAST(CAST({t} AS BOOLEAN) AS BIGINT)",
    "YEAR(CAST({t} AS DATE))",
    "HOUR(CAST({t} AS TIMESTAMP))",
]
TIMES = [
    *(
        f"{part}({{d}})"
        for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND")
    ),
    "EXTRACT(DOW FROM {d})",
    "DATE_PART('week', {d})",
    *(
        f"YEAR(DATE_TRUNC('{part}', {{d}}))"
        for part in ("year", "quarter", "month", "week", "day", "hour", "minute")
    ),
    "DATE_DIFF('day', {d}, DATE '2020-01-01')",
    "DATE_DIFF('day', {d}, {e})",
    "YEAR(CAST({d} AS DATE))",
    "YEAR(CAST({d} AS TIMESTAMP))",
    "LENGTH(CAST({d} AS TEXT))",
    "YEAR(LEAST({d}, {d}))",
    "YEAR(COALESCE({d}, {d}))",
]
CONDITIONS = [
    "v.d = v.ts",
    "v.d < '2020-01-01 10:00:00'",
    "v.ts >= '2020-01-01'",
    "v.d IN ('2020-01-01', '2020-01-01 10:00:00', NULL)",
    "v.d BETWEEN '2019-01-01' AND v.ts",
    "v.t LIKE '%a_' OR v.t ILIKE 'A%' OR CONTAINS(v.t, v.grp) OR STARTS_WITH(v.t, '')",
    "v.x IN (1, 2.5, 9223372036854775807)",
    "v.x = v.f OR v.n <= v.f",
    "v.x IS DISTINCT FROM v.f AND (v.b IS TRUE OR v.b IS NOT NULL)",
    "NOT (v.f > 1e308 AND v.x BETWEEN -9223372036854775807 AND 3)",
    "v.d = 'no date at all'",
    "v.city IN (SELECT city FROM cities WHERE region LIKE 'w%')",
    *MORE_CONDITIONS,
    *TESTS,
    *SEARCHES,
]


def extremes() -> dict[str, pa.Table]:
    """A row for each extreme value, all of them side by side and shifted against each other."""
    tables = tables_from(3, wild=True)
    lists = {
        name: [value for kept in ("wild", "tame") for value in values[kept]]
        for name, values in {
            "x": WHOLES,
            "f": REALS,
            "n": LARGE,
            "grp": TEXTS,
            "t": TEXTS,
            "d": DAYS,
            "ts": INSTANTS,
            "p": DECIMALS,
        }.items()
    }
    rows = 120
    columns = {}
    for shift, name in enumerate(tables["visits"].column_names):
        kind = tables["visits"].schema.field(name).type
        values = lists.get(name) or tables["visits"].column(name).to_pylist()
        values = [1, 2, 3, None] if name in ("user_id", "day") else values
        picked = [values[(row + shift * (row // 7)) % len(values)] for row in range(rows)]
        plain = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(kind, kind)
        columns[name] = pa.array(picked, plain).cast(kind)
    return {**tables, "visits": pa.table(columns)}


OPERANDS = (("v.x", "v.f"), ("v.f", "v.p"), ("v.n", "v.n"))
MOMENTS = (("v.d", "v.ts"), ("v.ts", "v.d"))
EXPRESSIONS = [
    *(template.format(n=OPERANDS[i % 3][0], m=OPERANDS[i % 3][1]) for i, template in enumerate(NUMBERS)),
    *(
        template.format(n=OPERANDS[(i + 1) % 3][0], m=OPERANDS[(i + 1) % 3][1])
        for i, template in enumerate(NUMBERS)
    ),
    *BITS,
    *(template.format(t="v.t") for template in TEXT),
    *(template.format(d=one, e=two) for template in TIMES for one, two in MOMENTS),
    *(f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in CONDITIONS),
]


@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), 12))
def test_no_expression_raises_on_any_value(start: int) -> None:
    engine = engine_of("user")
    furnish(engine, extremes())
    chunk = EXPRESSIONS[start : start + 12]
    bounds = "contribution_bounds_per_row => (-1e9, 1e9)"
    per_group = bounds.replace("row", "group")
    for template in (f"SUM({{}}, {bounds})", f"SUM({{}}, {per_group})"):
        asked = ", ".join(
            f"{template.format(expression)} AS a{place}" for place, expression in enumerate(chunk)
        )
        (leaf,) = plan_of(f"SELECT {asked} FROM visits AS v", "user").leaves
        bounded, large = capped(leaf, 45, 5)
        run(engine, release_statement(bounded, large))
        if leaf.uncapped:
            run(engine, census_statement(leaf))
    for first in range(0, len(chunk), 4):
        keys = ", ".join(
            f"{expression} AS k{place}" for place, expression in enumerate(chunk[first : first + 4])
        )
        (leaf,) = plan_of(f"SELECT {keys}, COUNT(*) FROM visits AS v GROUP BY ALL", "user", rows=1).leaves
        run(engine, release_statement(leaf))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_condition_raises_on_any_value(condition: str) -> None:
    engine = engine_of("user")
    furnish(engine, extremes())
    inner = (
        "SELECT user_id, MIN(v.f) AS f, SUM(v.x) AS s, AVG(v.f) AS a, MAX(v.d) AS d "
        f"FROM visits AS v WHERE {condition} GROUP BY user_id"
    )
    for sql in (
        f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM visits AS v WHERE {condition}",
        f"SELECT YEAR(p.d), COUNT(*), AVG(LEAST(GREATEST(p.s, -9), 9)) FROM ({inner}) AS p GROUP BY 1",
    ):
        (leaf,) = plan_of(sql, "user", rows=2, groups=2).leaves
        run(engine, release_statement(leaf))


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 0),
        (5, 5),
        (-1e60, 1e60),
        (0, 1e-58),
        (-1e-59, 1e-60),
        (1e17, 1e17 + 16),
        (-1, 2**62),
        (-0.3, 0.7),
    ],
)
@pytest.mark.parametrize("cells", [0, 45])
def test_any_bounds_and_caps_keep_to_int64(bounds: tuple[float, float], cells: int) -> None:
    engine = engine_of("user")
    furnish(engine, extremes())
    text = f"contribution_bounds_per_row => ({bounds[0]!r}, {bounds[1]!r})"
    for column in ("v.x", "v.f", "v.n"):
        names = ("SUM", "AVG", "VAR_POP", "MEDIAN", "MAX")
        asked = ", ".join(f"{name}({column}, {text})" for name in names)
        per_group = f"SUM({column}, {text.replace('per_row', 'per_group')})"
        (leaf,) = plan_of(
            f"SELECT v.cat, {asked}, {per_group} AS g FROM visits AS v GROUP BY v.cat", "user"
        ).leaves
        bounded, large = capped(leaf, cells, 5)
        for measure in bounded.measures.values():
            assert measure.sensitivity_steps < 2**62
        run(engine, release_statement(bounded, large))
        run(engine, census_statement(leaf))
