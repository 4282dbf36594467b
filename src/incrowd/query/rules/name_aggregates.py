"""Aggregates that the parser takes for functions of its users are marked as aggregates; their text stays.

Whatever asks whether a SELECT aggregates then sees them, and they are answered, or refused for what they are.
Names that other tools give to aggregates are refused with the name that they have here.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.ownership import World
from incrowd.query.sql import bounds_of, with_bounds
from incrowd.query.suggestions import unknown_aggregate

NAMES = frozenset(
    {
        # answered by another spelling, or from other aggregates
        "APPROX_MEDIAN", "APPROX_PERCENTILE", "COUNT_DISTINCT", "FAVG", "FSUM", "GEOMEAN", "GEOMETRIC_MEAN",
        "KAHAN_SUM", "MEAN", "RESERVOIR_QUANTILE", "SEM", "STD", "SUMKAHAN", "SUM_NO_OVERFLOW", "VAR", "WAVG",
        "WEIGHTED_AVG",
        # answered from counts by value
        "APPROX_TOP_COUNT", "HISTOGRAM",
        # refused
        "ARBITRARY", "BITSTRING_AGG", "ENTROPY", "EVERY", "HISTOGRAM_EXACT", "JSON_AGG", "JSON_ARRAYAGG",
        "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT", "KURTOSIS_POP", "MAD", "MAP_AGG", "PRODUCT",
    }
)  # fmt: skip


def name_aggregates(tree: exp.Query, world: World) -> exp.Query:
    """The tree with every aggregate as such."""
    for top in list(tree.find_all(exp.ApproxTopK)):
        listed = [part for part in (top.this, top.expression, top.args.get("counters")) if part]
        top.replace(
            with_bounds(exp.AnonymousAggFunc(this="APPROX_TOP_K", expressions=listed), bounds_of(top))
        )
    for node in list(tree.find_all(exp.Anonymous)):
        name = str(node.this).upper()
        if unknown := unknown_aggregate(name):
            raise QueryError(unknown)
        if name in NAMES:
            made = exp.AnonymousAggFunc(this=name, expressions=node.expressions)
            node.replace(with_bounds(made, bounds_of(node)))
    return tree
