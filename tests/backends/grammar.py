"""A grammar of questions: every aggregate and clause, over every shape of source, as hypothesis strategies.

Each question is written twice: as it is asked, and as plain SQL for DuckDB (without contribution bounds).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st


@dataclass(frozen=True)
class Source:
    """A FROM clause, with the columns that questions over it may use."""

    text: str
    numbers: tuple[str, ...]
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    unit: str = ""
    prelude: str = ""


@dataclass(frozen=True)
class Asked:
    """A question, the same as plain SQL, and what its columns are."""

    sql: str
    plain: str
    mode: str
    keys: int
    aggregates: tuple[str, ...]
    source: Source = field(repr=False)


def _rows(v: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Numbers, conditions and keys over the columns of visits under an alias."""
    numbers = (
        f"{v}.x",
        f"{v}.f",
        f"{v}.n",
        f"{v}.p",
        f"{v}.p * {v}.f",
        f"{v}.x + 1",
        f"{v}.x * {v}.f",
        f"-{v}.f",
        f"{v}.f / 2",
        f"ABS({v}.x)",
        f"ROUND({v}.f)",
        f"FLOOR({v}.f * 2)",
        f"{v}.x % 3",
        f"{v}.x // 2",
        f"COALESCE({v}.x, 0)",
        f"LEAST(GREATEST({v}.x, 0), 10)",
        f"CASE WHEN {v}.b THEN {v}.x ELSE 0 END",
        f"CASE {v}.cat WHEN 1 THEN 0.5 WHEN 2 THEN {v}.f END",
        f"LEAST(LENGTH({v}.t), 5)",
        f"MONTH({v}.d)",
        f"EXTRACT(YEAR FROM {v}.d)",
        f"SQRT(ABS({v}.f))",
        f"POWER({v}.x, 2)",
        f"CAST({v}.x AS DOUBLE)",
        f"NULLIF({v}.x, 3)",
        f"GREATEST(LEAST(DATE_DIFF('day', DATE '2020-01-01', {v}.d), 99), -99)",
    )
    conditions = (
        f"{v}.x > 3",
        f"{v}.f <= 1.25",
        f"{v}.b",
        f"NOT {v}.b",
        f"{v}.t LIKE 'a%'",
        f"{v}.cat IN (1, 2)",
        f"{v}.d >= '2020-02-01'",
        f"{v}.ts < TIMESTAMP '2020-02-01 00:00:00'",
        f"{v}.grp = 'a'",
        f"{v}.x BETWEEN 0 AND 7",
        f"({v}.x > 3 OR {v}.f IS NULL)",
        f"{v}.x IS NOT NULL",
        f"{v}.city IN (SELECT city FROM cities WHERE size > 1)",
        f"MONTH({v}.d) = 2",
        f"{v}.d IN ('2020-01-01', '2020-03-01 00:00:00')",
        f"STARTS_WITH({v}.t, 'a')",
        f"{v}.x IS DISTINCT FROM 3",
    )
    keys = (
        f"{v}.cat",
        f"{v}.grp",
        f"{v}.city",
        f"{v}.b",
        f"{v}.d",
        f"{v}.f",
        f"{v}.p",
        f"{v}.x % 3",
        f"CASE WHEN {v}.x > 3 THEN 'high' ELSE 'low' END",
        f"DATE_PART('month', {v}.d)",
        f"YEAR({v}.d)",
        f"DATE_TRUNC('month', {v}.ts)",
        f"UPPER({v}.grp)",
        f"SUBSTRING({v}.t, 1, 1)",
        f"LOWER({v}.t)",
        f"ROUND({v}.f, 1)",
        f"DATE_TRUNC('week', {v}.ts)",
        f"TRY_CAST({v}.t AS DATE)",
        f"{v}.cat * 10",
        f"{v}.user_id % 2",
        f"{v}.x > 3",
        f"CONCAT({v}.grp, '-')",
        f"FLOOR({v}.x / 5)",
    )
    return numbers, conditions, keys


def tested_sources(mode: str, rows: tuple[tuple[str, ...], ...], unit: str) -> list[Source]:
    """Sources whose rows are kept by sub-queries over public tables, and over rows of the same unit."""
    numbers, conditions, keys = rows
    tests = [
        "EXISTS (SELECT 1 FROM cities AS c WHERE c.city = v.city AND c.size > 1)",
        "v.x > (SELECT MIN(size) FROM cities)",
    ]
    values = ["(SELECT MAX(size) FROM cities AS c WHERE c.city = v.city) AS y"]
    if mode != "row":
        own = "s.user_id = v.user_id" + ("" if mode == "user" else " AND s.day = v.day")
        units, named = ("v.user_id", "user_id") if mode == "user" else ("(v.user_id, v.day)", "user_id, day")
        tests = [
            *tests,
            f"{units} IN (SELECT {named} FROM steps WHERE m > 3)",
            f"{units} NOT IN (SELECT {named} FROM steps WHERE m > 3)",
            f"NOT EXISTS (SELECT 1 FROM steps AS s WHERE {own} AND s.m > v.x)",
            f"v.x IN (SELECT s.m FROM steps AS s WHERE {own})",
            f"NOT v.x IN (SELECT s.m FROM steps AS s WHERE {own})",
            f"{units} IN (SELECT {named} FROM visits GROUP BY {named} HAVING COUNT(*) > 2)",
            f"EXISTS (SELECT 1 FROM visits AS s WHERE {own} AND s.f < v.f)",
            "EXISTS (SELECT 1 FROM cities AS c WHERE c.city = v.city AND c.size > v.x)",
        ]
        values = [
            *values,
            f"(SELECT COUNT(*) FROM steps AS s WHERE {own}) AS y",
            f"(SELECT MAX(s.x) - MIN(s.x) FROM visits AS s WHERE {own} AND s.f <= v.f) AS y",
        ]
    found = [
        Source(f"(SELECT * FROM visits AS v WHERE {test}) AS v", numbers, conditions, keys, unit)
        for test in tests
    ]
    capped = "LEAST(GREATEST(v.y, -9), 9)"
    return found + [
        Source(
            f"(SELECT *, {value} FROM visits AS v) AS v",
            (*numbers, capped),
            (*conditions, "v.y > 1", "v.y IS NULL"),
            (*keys, capped),
            unit,
        )
        for value in values
    ]


def sources_for(mode: str) -> list[Source]:
    """Every shape of FROM that keeps ownership in a house of this kind."""
    v = _rows("v")
    unit = "" if mode == "row" else ("v.user_id" if mode == "user" else "(v.user_id, v.day)")
    sources = [
        Source("visits AS v", *v, unit),
        Source(
            "visits AS v JOIN cities AS c ON v.city = c.city",
            (*v[0], "LEAST(GREATEST(c.size, 0), 5)"),
            (*v[1], "c.size > 1", "c.region IS NULL"),
            (*v[2], "c.region", "c.size"),
            unit,
        ),
        Source(
            "visits AS v LEFT JOIN cities AS c ON v.city = c.city AND c.size > v.x",
            v[0],
            (*v[1], "c.city IS NULL"),
            (*v[2], "c.region", "COALESCE(c.region, '?')"),
            unit,
        ),
        Source("cities AS c CROSS JOIN visits AS v", v[0], v[1], (*v[2], "c.region"), unit),
        Source("(SELECT * FROM visits WHERE x > 0) AS v", *v, unit),
        Source("w AS v", *v, unit, "WITH w AS (SELECT *, x + 1 AS y FROM visits WHERE b OR x < 5) "),
        Source(
            "(SELECT x * 2 AS y, cat, UPPER(grp) AS g, city FROM visits) AS v JOIN cities AS c ON c.city "
            "= v.city",
            ("v.y", "v.y - 1"),
            ("v.y > 0", "v.g = 'A'"),
            ("v.cat", "v.g", "v.city", "c.region"),
        ),
    ]
    sources += tested_sources(mode, v, unit)
    if mode == "row":
        return sources
    units = "user_id" if mode == "user" else "user_id, day"
    on = "v.user_id = s.user_id" + ("" if mode == "user" else " AND v.day = s.day")
    per = (
        f"SELECT {units}, COUNT(*) AS many, COUNT(DISTINCT cat) AS cats, AVG(f) AS mean, SUM(x) AS total, "
        "MIN(d) AS first, MAX(f) FILTER (WHERE b) AS top, MIN(x) AS least, SUM(f) AS fs "
        f"FROM visits GROUP BY {units}"
    )
    sums = "LEAST(GREATEST(p.total, -50), 50)"
    per_numbers = (
        "LEAST(p.many, 20)",
        "p.mean",
        sums,
        "p.least",
        "p.top",
        "LEAST(GREATEST(p.fs, -50), 50)",
        "LEAST(p.cats, 4)",
        # What a person adds up to has no bounds: these are taken without any.
        "p.many",
        "p.total",
        "p.fs / 2 + p.many",
    )
    per_conditions = ("p.many > 1", "p.mean > 0.5", "p.total >= 0", "p.first > '2020-01-15'")
    per_keys = ("p.many", "p.cats", "p.many > 2", "YEAR(p.first)", "p.least % 2", "LEAST(p.many, 3)", "p.fs")
    split = (
        f"SELECT {units}, cat, SUM(x) AS total, COUNT(*) AS many, AVG(f) AS mean, MAX(x) AS least, "
        "MIN(f) AS top, SUM(f) AS fs, COUNT(DISTINCT grp) AS cats, MIN(d) AS first "
        f"FROM visits WHERE x IS NOT NULL GROUP BY {units}, cat HAVING COUNT(*) < 9"
    )
    both = (*v[0], "s.m", "s.w", "s.m + v.x")
    p_unit = unit.replace("v.", "p.")
    return [
        *sources,
        Source(f"visits AS v JOIN steps AS s ON {on}", both, (*v[1], "s.m > 3"), (*v[2], "s.m"), unit),
        Source(f"visits AS v LEFT JOIN steps AS s ON {on} AND s.m > 0", both, v[1], (*v[2], "s.m"), unit),
        Source(f"visits AS v FULL JOIN steps AS s ON {on} AND s.m > 0", both, v[1], (*v[2], "s.m")),
        Source(f"visits AS v RIGHT JOIN steps AS s ON {on} AND s.m > v.x", both, v[1], (*v[2], "s.m")),
        Source(
            "steps AS s",
            ("s.m", "s.w"),
            ("s.m > 3", "s.w < 0.5"),
            ("s.m", "s.m > 3"),
            unit.replace("v.", "s."),
        ),
        Source(f"({per}) AS p", per_numbers, per_conditions, per_keys, p_unit),
        Source(f"({split}) AS p", per_numbers, per_conditions, (*per_keys, "p.cat"), p_unit),
        Source("p", per_numbers, per_conditions, per_keys, p_unit, f"WITH p AS ({per}) "),
        Source(
            f"(SELECT DISTINCT {units}, cat FROM visits) AS v",
            ("v.cat", "v.cat + 1"),
            ("v.cat > 1",),
            ("v.cat", "v.cat > 2"),
            unit,
        ),
        Source(
            f"({per}) AS p JOIN steps AS s ON " + on.replace("v.", "p."),
            ("p.mean", "s.m"),
            ("p.many > 1",),
            ("s.m", "p.many"),
            p_unit,
        ),
    ]


_ONE = (
    "AVG({})",
    "VAR_POP({})",
    "VAR_SAMP({})",
    "STDDEV_POP({})",
    "STDDEV({})",
    "MEDIAN({})",
    "MIN({})",
    "MAX({})",
)
_MORE = ("QUANTILE_CONT({}, 0.9)", "QUANTILE_DISC({}, 0.25)")
_TWO = ("COVAR_POP({}, {})", "COVAR_SAMP({}, {})", "CORR({}, {})")
_LINES = ("REGR_SLOPE", "REGR_INTERCEPT", "REGR_SXX", "REGR_SYY", "REGR_SXY", "REGR_AVGX", "REGR_AVGY")


@st.composite
def aggregates(draw: st.DrawFn, source: Source) -> tuple[str, str]:
    """An aggregate as it is asked and as plain SQL."""
    value, other = (draw(st.sampled_from(source.numbers)) for _ in range(2))
    shape = draw(
        st.sampled_from(
            [
                "count",
                "count value",
                "units",
                "sum",
                "sum",
                "per group",
                "count per group",
                "one",
                "one",
                "more",
                "two",
                "line",
                "ratio",
                "weighted",
                "values",
                "values",
            ]
        )
    )
    if shape == "count":
        asked = plain = "COUNT(*)"
    elif shape == "count value":
        asked = plain = f"COUNT({value})"
    elif shape == "units" and source.unit:
        asked = plain = f"COUNT(DISTINCT {source.unit})"
    elif shape == "per group":
        # Wide enough for every tame sum, narrow enough for a grid on which an error shows.
        most = "1e14" if ".n" in value else "50000"
        asked = f"SUM({value}, contribution_bounds_per_group => (-50000, {most}))"
        plain = f"SUM({value})"
    elif shape == "count per group":
        asked, plain = "COUNT(*, contribution_bounds_per_group => (0, 1000))", "COUNT(*)"
    elif shape == "one":
        asked = plain = draw(st.sampled_from(_ONE)).format(value)
    elif shape == "more":
        asked = plain = draw(st.sampled_from(_MORE)).format(value)
    elif shape == "two":
        asked = plain = draw(st.sampled_from(_TWO)).format(value, other)
    elif shape == "line":
        asked = plain = f"{draw(st.sampled_from(_LINES))}({value}, {other})"
    elif shape == "ratio":
        # Sums that nothing else asks for, so that their quotient is one number.
        asked = plain = f"SUM({value} + 0.5) / SUM(ABS({other}) + 0.25)"
    elif shape == "values":
        # Sums of floats are rounded to fixed-point numbers, and may be other values then.
        columns = [key for key in source.keys if key != "p.fs"]
        listed = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
        asked = plain = (
            f"COUNT(DISTINCT {'(' * (len(listed) > 1)}{', '.join(listed)}{')' * (len(listed) > 1)})"
        )
    elif shape == "weighted":
        asked = plain = f"SUM((ABS({other}) + 0.25) * {value}) / SUM(ABS({other}) + 0.25)"
    else:
        asked = plain = f"SUM({value})"
    if shape not in ("ratio", "weighted") and draw(st.integers(0, 3)) == 0:
        test = draw(st.sampled_from(source.conditions))
        asked, plain = f"{asked} FILTER (WHERE {test})", f"{plain} FILTER (WHERE {test})"
    return asked, plain


@st.composite
def questions(draw: st.DrawFn, modes: tuple[str, ...] = ("row", "user", "per")) -> Asked:
    """A question."""
    mode = draw(st.sampled_from(modes))
    source = draw(st.sampled_from(sources_for(mode)))
    keys = draw(st.lists(st.sampled_from(source.keys), max_size=3, unique=True))
    picked = draw(st.lists(aggregates(source), min_size=1, max_size=3))
    where = draw(st.lists(st.sampled_from(source.conditions), max_size=2))
    tail = f" FROM {source.text}"
    if where:
        tail += " WHERE " + draw(st.sampled_from([" AND ", " OR "])).join(where)
    if keys:
        tail += " GROUP BY " + ", ".join(keys)
    heads = [f"{key} AS key{index}" for index, key in enumerate(keys)]

    def written(column: int) -> str:
        texts = [f"{pair[column]} AS value{index}" for index, pair in enumerate(picked)]
        return source.prelude + "SELECT " + ", ".join([*heads, *texts]) + tail

    return Asked(written(0), written(1), mode, len(keys), tuple(aggregate for aggregate, _ in picked), source)
