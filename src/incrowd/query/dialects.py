"""Questions in other dialects of SQL: put into DuckDB's words where these mean the same, else refused.

The parser reads each dialect and writes DuckDB's, which settles names, NULLs in ORDER BY and most functions.
What it passes on although the meaning differs is mended or refused here, on the tree as it was read:

| what | means | here |
|---|---|---|
| / of whole numbers | PostgreSQL leaves the rest out | refused, unless one side is plainly no whole number |
| CAST(x AS INT) | Spark cuts digits off | refused |
| DAYOFWEEK | BigQuery and Spark count from 1, for Sunday | one more than DuckDB's |
| weeks in EXTRACT | BigQuery's begin on Sunday, and are no ISO weeks | refused; ISOWEEK is read |
| DATEDIFF and TIMESTAMPDIFF | Spark, and BigQuery's TIMESTAMP_DIFF, count whole units | TIMESTAMPDIFF |
| DATEDIFF in weeks | Snowflake counts the Mondays between | refused |
| regular expressions | Snowflake's match whole texts, PostgreSQL's and Spark's are other classes | refused |
| a backslash in LIKE | an escape, but not in DuckDB and Snowflake | refused |
| a function that the parser does not know | may have another meaning | refused |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from incrowd.catalog.names import fold
from incrowd.errors import QueryError
from incrowd.query.unit_words import whole_units_call

_OWN = "duckdb"
DIALECTS: Mapping[str, str] = {
    "duckdb": "DuckDB",
    "postgres": "PostgreSQL",
    "bigquery": "BigQuery",
    "snowflake": "Snowflake",
    "spark": "Spark",
}
"""The dialects that a question may be written in, with their names."""
KNOWN = ("mean", "std", "var", "sem")
"""Functions of no standard that mean the same wherever they are."""
_FLOATING = (
    exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop,
    exp.CovarSamp, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow,
)  # fmt: skip
_KEPT = (
    exp.Paren,
    exp.Neg,
    exp.Abs,
    exp.Round,
    exp.Coalesce,
    exp.Nullif,
    exp.Filter,
    exp.Sum,
    exp.Min,
    exp.Max,
)
"""What is no whole number if its first operand is none."""
_REAL_TYPES = {"DOUBLE", "FLOAT", "DECIMAL", "BIGDECIMAL", "REAL"}
_WHOLE_TYPES = {"INT", "BIGINT", "SMALLINT", "TINYINT", "INT128"}
_FROM_ONE = ("bigquery", "spark")
"""Dialects whose days of the week begin with 1, for Sunday."""
_DECIMALS = {"postgres": "DOUBLE", "bigquery": "DECIMAL(38, 9)", "snowflake": "DECIMAL(38, 0)"}
_DECIMALS |= {"spark": "DECIMAL(10, 0)"}
"""What DECIMAL means where its digits are not said; PostgreSQL's has as many as it takes."""
_ESCAPING = ("postgres", "bigquery", "spark")


def in_duckdb(tree: exp.Expr, dialect: str, marks: tuple[str, ...]) -> str:
    """A statement of another dialect in DuckDB's words; QueryError where they would mean something else.

    marks: how names begin that the reader of SQL has put in.
    """
    whole = tree.copy()
    for node in list(whole.walk()):
        _refuse(node, dialect, marks)
    mended = whole.transform(lambda node: _mended(node, dialect), copy=False)
    try:
        return mended.sql(_OWN, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, ValueError):
        raise QueryError(
            f"Something in this {DIALECTS[dialect]} SQL has no counterpart here; write it in DuckDB's words."
        ) from None


def _refuse(node: exp.Expr, dialect: str, marks: tuple[str, ...]) -> None:
    """Refuse a node whose meaning would change, with what to write instead."""
    name = DIALECTS[dialect]
    called = fold(str(node.this)) if isinstance(node, exp.Anonymous) else ""
    known = called.startswith((*marks, *KNOWN)) or (called, dialect) == ("age", "postgres")
    if called and not known:
        raise QueryError(
            f"{str(node.this).upper()} of {name} is not known here; write the question in DuckDB's words, "
            "without dialect."
        )
    refused = _REFUSED.get((dialect, type(node)))
    words = refused(node) if refused is not None else ""
    if isinstance(node, exp.RegexpLike | exp.RegexpILike) and dialect != "bigquery":
        words = f"Regular expressions of {name} differ from those here; write LIKE instead."
    pattern = node.args.get("expression") if isinstance(node, exp.Like | exp.ILike) else None
    if isinstance(pattern, exp.Literal) and "\\" in pattern.name and dialect in _ESCAPING:
        words = "A backslash in LIKE escapes the next letter there; write the pattern without it."
    if isinstance(node, exp.Substring):
        start = node.args.get("start")
        if isinstance(start, exp.Neg) or (isinstance(start, exp.Literal) and start.name == "0"):
            words = f"{node.sql(dialect)} begins outside of the text; count its letters from 1."
    if words:
        raise QueryError(words)


def _division(node: exp.Expr) -> str:
    """PostgreSQL divides whole numbers without a rest."""
    if _floating(node):
        return ""
    return (
        f"In PostgreSQL {node.sql('postgres')} leaves out the rest if both sides are whole numbers; write "
        f"CAST({node.this.sql('postgres')} AS DOUBLE PRECISION) / {node.expression.sql('postgres')}."
    )


def _floating(node: exp.Expr) -> bool:
    """True if an expression is plainly no whole number, whatever its columns are."""
    if isinstance(node, exp.Literal):
        return not node.is_string and not node.name.isdigit()
    if isinstance(node, exp.Cast):
        return node.to.this.name in _REAL_TYPES
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _floating(node.this) or _floating(node.expression)
    return isinstance(node, _FLOATING) or (isinstance(node, _KEPT) and _floating(node.this))


def _whole_cast(node: exp.Expr) -> str:
    """Spark cuts off what follows the decimal point."""
    if not isinstance(node, exp.Cast) or node.to.this.name not in _WHOLE_TYPES:
        return ""
    inner = node.this.sql("spark")
    return f"In Spark, a cast to a whole number cuts digits off; write FLOOR({inner}) or ROUND({inner})."


def _week(node: exp.Expr) -> str:
    part = fold(str(node.this.name)) if isinstance(node.this, exp.Var) else type(node.this).__name__.lower()
    if not part.startswith("week"):
        return ""
    return "BigQuery's WEEK begins on Sunday, and weeks here on Monday; write ISOWEEK."


def _week_begun(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    if unit is None or not fold(unit.name).startswith("w"):
        return ""
    return "DATE_DIFF counts weeks of seven days here, and not the Mondays between; count days instead."


def _format(node: exp.Expr) -> str:
    """Formats of these dialects are read where they are digits alone, and signs between them.

    The parser marks months of two digits as strict in some dialects.
    """
    form = node.args.get("format")
    text = re.sub("%-?[YymdHMSj](strict)?", "", form.name) if isinstance(form, exp.Literal) else "x"
    if "%" not in text and not any(letter.isalpha() for letter in text):
        return ""
    return (
        "Of formats of dates, only years, months, days and times in digits are read; write the question in "
        "DuckDB's words, with STRFTIME(d, '%B')."
    )


_REFUSED: Mapping[tuple[str, type[exp.Expr]], Callable[[exp.Expr], str]] = {
    ("postgres", exp.Div): _division,
    ("spark", exp.Cast): _whole_cast,
    ("spark", exp.TryCast): _whole_cast,
    ("bigquery", exp.Extract): _week,
    ("snowflake", exp.DateDiff): _week_begun,
    **{(dialect, exp.TimeToStr): _format for dialect in ("postgres", "spark", "snowflake")},
    ("bigquery", exp.DatetimeDiff): _week_begun,
}


def _mended(node: exp.Expr, dialect: str) -> exp.Expr:
    """A node that means in DuckDB what it meant in the dialect."""
    if isinstance(node, exp.Length):
        # Texts are measured here; DuckDB's form for any type would ask for the type of each value.
        return exp.Anonymous(this="LENGTH", expressions=[node.this])
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _ranked(node)
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.DECIMAL and not node.expressions:
        return exp.DataType.build(_DECIMALS.get(dialect, "DECIMAL(18, 3)"), dialect=_OWN)
    if isinstance(node, exp.ApproxQuantiles):
        return exp.Anonymous(this="APPROX_QUANTILES", expressions=[node.this, node.expression])
    if isinstance(node, exp.ApproxTopK) and dialect == "bigquery":
        return exp.Anonymous(this="APPROX_TOP_COUNT", expressions=[node.this, node.expression])
    if isinstance(node, exp.Extract) and isinstance(node.this, exp.Var):
        part = fold(node.this.name)
        if part == "isoweek":
            node.set("this", exp.var("WEEK"))
        if part in ("dayofweek", "dow") and dialect in _FROM_ONE:
            return _from_one(node)
    unit = node.args.get("unit")
    if unit is not None and (
        isinstance(node, exp.TimestampDiff) or (dialect == "spark" and isinstance(node, exp.DateDiff))
    ):
        end, start = (
            side.this if isinstance(side, exp.TsOrDsToDate) else side for side in (node.this, node.expression)
        )
        return whole_units_call(unit.name, start, end)
    if isinstance(node, exp.DayOfWeek) and dialect in _FROM_ONE:
        return _from_one(node)
    return node


def _from_one(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))


def _ranked(node: exp.WithinGroup) -> exp.Expr:
    """PERCENTILE_CONT(rank) WITHIN GROUP (ORDER BY x), as DuckDB's reader of SQL reads it."""
    name = "PERCENTILE_CONT" if isinstance(node.this, exp.PercentileCont) else "PERCENTILE_DISC"
    ordered = node.expression.expressions
    if len(ordered) != 1 or ordered[0].args.get("desc"):
        return node
    return exp.Anonymous(this=name, expressions=[ordered[0].this, node.this.this])
