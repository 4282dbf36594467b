"""Hostile questions: the grammar of `tests/backends/grammar.py`, with what engines choke on.

Every clause that may hold an expression gets one that could raise, if it raised: in plain places and in
sub-queries per unit, with conditions that only the hostile neighbour's rows pass.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.backends.grammar import sources_for
from tests.backends.test_totality import CONDITIONS, NUMBERS, TEXT, TIMES
from tests.hostile.cases import Case

# fmt: off
CONSTANTS = (
    *("ROUND(1e300)", "CEIL(1e19)", "FLOOR(-1e300)", "TRUNC(1e300)", "ABS(9223372036854775807)",
      "SIGN(-1e300)"),
    *("ABS(-9223372036854775807 - 1)", "CAST('x' AS INTEGER)", "CAST('1e+5' AS BIGINT)", "1 / 0",
      "1 % 0", "1 // 0"),
    *("LN(0)", "LOG(-1)", "SQRT(-1)", "EXP(1000)", "POWER(1e200, 4)", "CAST(1e300 AS BIGINT)",
      "ROUND(1.5, 18)"),
    *("9223372036854775807 + 1", "-(-9223372036854775807 - 1)", "1e308 * 10",
      "9223372036854775807 * 3", "0.1 + 0.2"),
    *("CAST('9999-99-99' AS DATE)", "CAST('0000-01-01' AS DATE)", "CAST('294247-01-10' AS TIMESTAMP)",
      "NULL"),
    *("DATE '9999-12-31'", "TIMESTAMP '0001-01-01 00:00:00'", "DATE_TRUNC('year', DATE '0001-01-01')",
      "TRUE"),
    *("DATE_DIFF('day', DATE '0001-01-01', DATE '9999-12-31')", "YEAR(DATE '0001-01-01')",
      "LENGTH(NULL)", "''"),
    *("UPPER('ß')", "LOWER('İ')", "CAST(NULL AS INTEGER)", "COALESCE(NULL, NULL)", "NULLIF(1, 1)",
      "LEAST(NULL, 1)"),
    *("CASE WHEN NULL THEN 1 END", "CASE WHEN 1 = 1 THEN 'a' END", "SUBSTRING('abc', 1, 1000000)",
      "IF(NULL, 1, 2)"),
    *("CAST(TRUE AS INTEGER)", "CAST('yes' AS BOOLEAN)", "REPLACE('aa', 'a', '')",
      "GREATEST(1e300, -1e300)", "-0.0"),
    *("CAST(9223372036854775807 AS DOUBLE)", "CAST(1.5 AS INTEGER)", "1e-320", "CEIL(-0.5)",
      "'a' || NULL", "'\U0010ffff'"),
)
NUMBERS_OF_ROWS = ("x", "f", "n", "p", "cat", "day", "user_id")
TEXTS_OF_ROWS = ("t", "grp", "city", "user_id")
MOMENTS_OF_ROWS = ("d", "ts", "user_id")
TYPES = ("INTEGER", "BIGINT", "DOUBLE", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP")
MORE_NUMBERS = (
    *("{n} // {m}", "TRUNC({n} / {m})", "POWER({n}, 3)", "{n} = {m}",
      "{n} BETWEEN {m} AND 9223372036854775807"),
    *("ROUND({n}, 2)", "{n} * 1e300 * 1e300", "CASE WHEN {n} IS NULL THEN {m} END",
      "{n} IN (0, 1, 1e19, NULL)"),
    *("{n} ** 2.5", "POWER({n}, -3)", "POWER(2, {n})", "CBRT({n})", "TRUNC({n}, 3)", "EXPM1({n})",
      "DEGREES({n})", "LOG1P({n})", "SAFE_DIVIDE({n}, {m})"),
    *("ROUND({n}) & 255", "ROUND({n}) << 40", "ROUND({n}) >> 3", "~ROUND({n})", "BIT_COUNT(ROUND({n}))",
      "XOR(ROUND({n}), ROUND({m}))", "{n} BETWEEN SYMMETRIC {m} AND 3", "{n} = ANY([1, 2, NULL])"),
    *("CAST(CAST({n} AS BOOLEAN) AS INTEGER)", "LOG({m})", "EXP({n} / 100)", "COALESCE({n}, 1 / 0)"),
)
MORE_TEXT = (
    *("UPPER({t})", "LOWER({t})", "TRIM({t})", "SUBSTRING({t}, 2, 3)", "LEFT({t}, 1)", "RIGHT({t}, 2)"),
    *("CONCAT({t}, '-', {t})", "{t} || {t}", "REPLACE({t}, 'a', 'b')", "STARTS_WITH({t}, 'f')",
      "CONTAINS({t}, 'l')"),
    *("SPLIT_PART({t}, 'l', 2)", "STRPOS({t}, 'u')", "LPAD({t}, 9, '0')", "RPAD({t}, 9, 'ab')",
      "CONCAT_WS('-', {t}, {t})", "ENDS_WITH({t}, 'u')",
      "REGEXP_MATCHES({t}, '^f.*u$')", "{t} ~ '[^a-z]+$'", "CAST({t} AS DECIMAL(5, 2))"),
    *("{t} LIKE '%!_!%' ESCAPE '!'", "{t} LIKE '\\\\%' ESCAPE '\\'", "{t} LIKE ANY ('f%', '%u')",
      "({t}, {t}) IN (('flu', 'flu'), ('FLU', NULL))"),
    *("{t} LIKE '%\\_'", "{t} ILIKE 'FLU%'", "{t} LIKE '_%_'", "{t} = 'flu'", "{t} < 'flu'",
      "{t} IN ('flu', 'FLU')"),
    *("CAST({t} AS DATE)", "CAST({t} AS TIMESTAMP)", "CAST({t} AS BOOLEAN)",
      "TRY_CAST({t} AS INTEGER)", "{t}"),
    *("COALESCE({t}, '')", "NULLIF({t}, 'flu')", "LEAST({t}, 'm')", "GREATEST({t}, 'm')",
      "{t} IS NOT NULL"),
    "CASE {t} WHEN 'flu' THEN 1 WHEN 'FLU' THEN 2 END",
)
MORE_TIMES = (
    *("{d}", "{d} > DATE '2020-01-15'", "CAST({d} AS DATE)", "CAST({d} AS TIMESTAMP)", "CAST({d} AS TEXT)"),
    *("DATE_DIFF('month', {d}, {e})", "DATE_DIFF('microsecond', {e}, {d})", "EXTRACT(ISOYEAR FROM {d})",
      "EXTRACT(YEAR FROM AGE({d}, {e}))", "EPOCH({d})", "EXTRACT(HOUR FROM {e} - {d})"),
    *("DAYNAME({d})", "STRFTIME({d}, '%G-W%V %B')", "LAST_DAY({d})"),
    *("DATE_TRUNC('month', {d})", "DATE_TRUNC('week', {d})", "DATE_TRUNC('hour', {d})",
      "COALESCE({d}, {e})"),
    *("{d} BETWEEN '0001-01-01' AND '9999-12-31'", "{d} = {e}", "LEAST({d}, DATE '2020-02-01')",
      "DAYOFWEEK({d})"),
    *("EXTRACT(YEAR FROM {d})", "DATE_PART('quarter', {d})", "CASE WHEN {d} < {e} THEN MONTH({d}) END"),
)
AGGREGATES = (
    *("COUNT(*)", "COUNT({a})", "COUNT_IF({a} IS NULL)", "COUNT(*) FILTER (WHERE {c})", "COUNT_IF({c})"),
    *("SUM({a}, contribution_bounds_per_row => (-9, 9))",
      "SUM({a}, contribution_bounds_per_group => (-9, 9))"),
    *("SUM({a}, contribution_bounds_per_group => (2, 9))",
      "AVG({a}, contribution_bounds_per_group => (-9, 9))"),
    *("AVG({a}, contribution_bounds_per_row => (-1e9, 1e9))", "VAR_POP(LEAST(GREATEST({a}, -9), 9))"),
    *("MEDIAN({a}, contribution_bounds_per_row => (0, 8))", "MAX({n})", "MIN({n})", "SUM({n})", "AVG({n})"),
    *("WEIGHTED_AVG({n}, ABS({m}))", "SUM({n}) / COUNT(*)", "SUM({n} + 1) / SUM(ABS({m}))",
      "GEOMEAN(ABS({n}) + 1)",      "REGR_SLOPE({n}, {m})", "REGR_SXY({n}, {m})"),
    *("STDDEV({n})", "QUANTILE_CONT({n}, 0.75)", "CORR({n}, {m})", "COVAR_SAMP({n}, {m})",
      "SUM({n}) FILTER (WHERE {c})"),
    *("COUNT(DISTINCT {u})", "COUNT(DISTINCT {a})", "COUNT(DISTINCT ({n}, {a}))"),
)
# fmt: on
AROUND = (
    "{q}",
    "{q} ORDER BY 1 LIMIT 3",
    "SELECT COUNT(*) AS many FROM ({q}) AS inside",
    "SELECT *, 1 / 0 AS nothing FROM ({q}) AS inside",
)


def expression(rng: random.Random, alias: str = "v.") -> str:
    """Something computed from a row."""
    number, other = (alias + rng.choice(NUMBERS_OF_ROWS) for _ in range(2))
    text, moment = alias + rng.choice(TEXTS_OF_ROWS), alias + rng.choice(MOMENTS_OF_ROWS)
    families: list[Sequence[str]] = [NUMBERS, MORE_NUMBERS, TEXT, MORE_TEXT, TIMES, MORE_TIMES]
    if rng.random() < 0.1:
        column = rng.choice([*NUMBERS_OF_ROWS, *TEXTS_OF_ROWS, "d", "ts", "b"])
        return f"CAST({alias}{column} AS {rng.choice(TYPES)})"
    made = rng.choice(rng.choice(families)).format(n=number, m=other, t=text, d=moment, e=f"{alias}ts")
    if rng.random() < 0.12:
        made = f"COALESCE({made}, {rng.choice(CONSTANTS)})"
    return made


def literal(value: Any, declared: str) -> str | None:
    """A value as SQL has it, where it can be written."""
    if value is None or isinstance(value, bytes):
        return None
    if declared == "text" and isinstance(value, str):
        return "'" + value.replace("'", "''") + "'" if len(value) < 1000 and "\x00" not in value else None
    if (
        declared in ("integer", "float", "decimal")
        and isinstance(value, int | Decimal)
        and not isinstance(value, bool)
    ):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    return None


def condition(rng: random.Random, case: Case, given: Sequence[str], alias: str = "v.") -> str:
    """A test of a row; now and then one that only the hostile neighbour's rows pass."""
    roll = rng.random()
    if roll < 0.3:
        name = rng.choice(["user_id", "t", "grp", "x", "n"])
        written = literal(rng.choice(case.mine[name]), case.declared[name])
        if written is not None:
            return f"{alias}{name} = {written}"
    if roll < 0.45:
        return f"({rng.choice(CONSTANTS)}) IS NOT NULL"
    if roll < 0.6 and alias == "v.":
        return rng.choice(CONDITIONS)
    if roll < 0.75 and given:
        return rng.choice(given)
    return f"({expression(rng, alias)}) IS NOT NULL"


def _per_unit(rng: random.Random, case: Case) -> str:
    """A question about a sub-query per unit whose other keys are constants or extremes."""
    unit = "user_id" if case.mode == "user" else "user_id, day"
    keys = [
        rng.choice(CONSTANTS) if rng.random() < 0.7 else expression(rng, "")
        for _ in range(rng.choice([1, 1, 2]))
    ]
    named = ", ".join(f"{key} AS c{place}" for place, key in enumerate(keys))
    where = f" WHERE {condition(rng, case, (), '')}" if rng.random() < 0.6 else ""
    if rng.random() < 0.4:
        inner = f"SELECT DISTINCT {unit}, {named} FROM visits{where}"
        made = "COUNT(*) AS n"
    else:
        value = expression(rng, "")
        asked = rng.choice(
            ["COUNT(*)", f"COUNT({value})", f"MAX({value})", f"SUM({value})", f"AVG({value})", "SUM(f)"]
        )
        tests = ["COUNT(*) > 0", "MAX(x) IS NOT NULL", f"{rng.choice(CONSTANTS)} IS NULL"]
        having = f" HAVING {rng.choice(tests)}"
        by = ", ".join(keys) if rng.random() < 0.7 else ", ".join(f"c{place}" for place in range(len(keys)))
        inner = f"SELECT {unit}, {named}, {asked} AS n FROM visits{where} GROUP BY {unit}, {by}"
        inner += having if rng.random() < 0.3 else ""
        made = rng.choice(["COUNT(*) AS many", "SUM(LEAST(GREATEST(n, -3), 3)) AS s", "COUNT(n) AS some"])
    if rng.random() < 0.5:
        return f"SELECT c0, {made} FROM ({inner}) AS p GROUP BY c0"
    return f"SELECT {made} FROM ({inner}) AS p"


def question(rng: random.Random, case: Case) -> str:
    """A question about a case's tables."""
    if case.mode != "row" and rng.random() < 0.25:
        return rng.choice(AROUND[:2]).format(q=_per_unit(rng, case))
    source = rng.choice(sources_for(case.mode))
    rows = source.text.startswith(("visits", "cities", "(SELECT * ", "w "))
    unit = source.unit or "v.user_id"

    def computed() -> str:
        return expression(rng) if rows and rng.random() < 0.7 else rng.choice(source.numbers)

    def aggregate() -> str:
        return rng.choice(AGGREGATES).format(
            a=computed() if rng.random() < 0.85 else rng.choice(CONSTANTS),
            c=condition(rng, case, source.conditions) if rows else rng.choice(source.conditions),
            n=rng.choice(source.numbers),
            m=rng.choice(source.numbers),
            u=unit,
        )

    def key() -> str:
        if rng.random() < 0.12:
            return rng.choice(CONSTANTS)
        return expression(rng) if rows and rng.random() < 0.55 else rng.choice(source.keys)

    keys = [key() for _ in range(rng.choice([0, 1, 1, 2]))]
    heads = [f"{group_key} AS key{place}" for place, group_key in enumerate(keys)]
    heads += [f"{aggregate()} AS value{place}" for place in range(rng.choice([1, 1, 2, 3]))]
    made = f"{source.prelude}SELECT {', '.join(heads)} FROM {source.text}"
    if rng.random() < 0.5:
        made += " WHERE " + (
            condition(rng, case, source.conditions) if rows else rng.choice(source.conditions)
        )
    if keys:
        made += " GROUP BY " + ", ".join(
            f"key{place}" if rng.random() < 0.2 else group_key for place, group_key in enumerate(keys)
        )
        if rng.random() < 0.15:
            made += " HAVING COUNT(*) > 1"
    return made if source.prelude or rng.random() < 0.7 else rng.choice(AROUND).format(q=made)
