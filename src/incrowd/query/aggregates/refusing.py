"""Aggregates that are not released: why not, and what to write instead.

Each shows the value of one row, or is decided by one. The sentence ends in what can be asked in its place,
written with the columns of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.typed import said

Remedy = Callable[[str, str], str]
"""What to write instead, from the first and the second argument as they were written."""

_ONE_ROW = "it would show the value of a row"
_DECIDES = "one person alone may decide it"


def _counted(x: str, y: str) -> str:
    return f"count the values instead, with COUNT(*) and GROUP BY {x}"


def _most_common(x: str, y: str) -> str:
    return f"write MODE({x}), or COUNT(*) with GROUP BY {x}"


def _share(x: str, y: str) -> str:
    return f"ask for the share instead: AVG(CASE WHEN {x} THEN 1 ELSE 0 END)"


def _bits(x: str, y: str) -> str:
    return f"count the rows with one bit instead: COUNT_IF({x} // 4 % 2 = 1) is about the third"


def _product(x: str, y: str) -> str:
    return f"write SUM(LN(GREATEST({x}, 1))), or GEOMEAN(GREATEST({x}, 1))"


def _quartiles(x: str, y: str) -> str:
    return f"write (QUANTILE_CONT({x}, 0.75) - QUANTILE_CONT({x}, 0.25)) / 2"


def _where_large(x: str, y: str) -> str:
    return f"ask about the rows where {y} is large or small: MODE({x}) with WHERE {y} > 1, say"


def _quantile(x: str, y: str) -> str:
    return f"write QUANTILE_CONT({x}, 0.99) or QUANTILE_CONT({x}, 0.01)"


def _buckets(x: str, y: str) -> str:
    return f"write COUNT(*) and GROUP BY FLOOR({x} / 10), with a width of yours for 10"


def _below(x: str, y: str) -> str:
    return f"count the rows below a value: COUNT_IF({x} < 1) / COUNT(*), say"


_REFUSED: Mapping[type[exp.Expr] | str, tuple[str, Remedy]] = {
    **dict.fromkeys((exp.LogicalAnd, "EVERY", exp.LogicalOr), (_DECIDES, _share)),
    **dict.fromkeys((exp.AnyValue, exp.First, exp.Last, "ARBITRARY"), (_ONE_ROW, _most_common)),
    **dict.fromkeys((exp.FirstValue, exp.LastValue, exp.NthValue), (_ONE_ROW, _most_common)),
    **dict.fromkeys(
        (
            exp.GroupConcat, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ArrayConcatAgg, exp.JSONArrayAgg,
            exp.JSONObjectAgg, exp.JSONBObjectAgg, "JSON_AGG", "JSON_ARRAYAGG", "JSON_GROUP_ARRAY",
            "JSON_GROUP_OBJECT", "MAP_AGG",
        ),
        ("it would publish values of rows", _counted),
    ),
    **dict.fromkeys(
        (exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg, "BITSTRING_AGG"), (_DECIDES, _bits)
    ),
    "PRODUCT": (_DECIDES, _product),
    "MAD": ("no noisy sums give it", _quartiles),
    "ENTROPY": (
        "it follows from counts",
        lambda x, y: f"take {x}, COUNT(*) AS n with GROUP BY {x}, and compute it from n in an outer SELECT",
    ),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), (_DECIDES, _where_large)),
    **dict.fromkeys((exp.Max, exp.Min), ("it would show the values of several rows", _quantile)),
    "HISTOGRAM_EXACT": ("its bins are no ranges", _counted),
    **dict.fromkeys((exp.CumeDist, exp.PercentRank, exp.Rank, exp.DenseRank), (_DECIDES, _below)),
}  # fmt: skip


def refusal_of(node: exp.Expr, label: str = "") -> QueryError:
    """Why an aggregate is not released."""
    within = node.expression if isinstance(node, exp.WithinGroup) else None
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    known = isinstance(node, exp.AnonymousAggFunc)
    reason, remedy = _REFUSED.get(node.name if known else type(node), ("", _counted))
    written = (node.this, node.expression, node.args.get("count"), *node.expressions)
    arguments: list[object] = [part for part in written if part]
    if isinstance(within, exp.Order):
        arguments = [part.this for part in within.expressions]
    plain = [said(_bare(part)) for part in arguments if isinstance(part, exp.Expr)]
    function = (node.name if known else node.sql_name()) if isinstance(node, exp.Func) else label
    if not reason or not plain:
        return QueryError(
            f"{label or function} is not an aggregate that can be released; use COUNT, SUM, AVG, VAR, "
            "STDDEV, MEDIAN, quantiles, MIN, MAX, MODE, HISTOGRAM, COVAR or CORR."
        )
    called = f"{_CALLED.get(function, function)}({', '.join(plain)})"
    return QueryError(f"{called} cannot be released, as {reason}; {remedy(plain[0], plain[-1])}.")


_CALLED = {
    "LOGICAL_AND": "BOOL_AND",
    "LOGICAL_OR": "BOOL_OR",
    "GROUP_CONCAT": "STRING_AGG",
    "BITWISE_AND_AGG": "BIT_AND",
    "BITWISE_OR_AGG": "BIT_OR",
    "BITWISE_XOR_AGG": "BIT_XOR",
}
"""What DuckDB calls some functions of the parser."""


def _bare(node: exp.Expr) -> exp.Expr:
    """An argument without DISTINCT, ORDER BY and LIMIT."""
    while isinstance(node, exp.Order | exp.Limit | exp.Distinct):
        node = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
    return node
