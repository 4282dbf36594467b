"""SQL over released numbers that cannot raise: what cannot be computed becomes NULL.

`TRY(...)` of the engine does that for an expression without aggregates, windows and sub-queries. Around
these, arithmetic is done in float64, divisors of zero become NULL, and casts become TRY_CAST. A few functions
remain that can raise over aggregates (text functions, say): `postprocessing` has an answer for them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.curator.scratch import scratch

_ALONE = (exp.AggFunc, exp.Window, exp.Query, exp.Subquery, exp.Rand, exp.Uuid)
_AS_IS = (exp.Column, exp.Literal, exp.Star, exp.Null, exp.Boolean)
_STRUCTURE = (exp.Order, exp.Ordered, exp.Distinct, exp.If, exp.Tuple, exp.Filter, exp.Where, exp.WithinGroup)
_KEPT = (exp.DataType, exp.Identifier, exp.WindowSpec)
_MACROS = frozenset({"geomean", "geometric_mean", "wavg", "weighted_avg"})
_CLAUSES = ("where", "group", "having", "qualify", "order")


def total(query: exp.Query) -> exp.Query:
    """The same query with NULL in the place of errors. Where the query does not raise, it means the same."""
    return _total(query.copy())


def _total(query: exp.Query) -> exp.Query:
    for inner in list(query.find_all(exp.Query)):
        if inner is not query and inner.find_ancestor(exp.Query) is query:
            inner.replace(_total(inner))
    if not isinstance(query, exp.Select):
        return query
    group = query.args.get("group")
    groups = [] if group is None else [part for part in group.expressions if not isinstance(part, _AS_IS)]
    query.set("expressions", [_column(column, groups) for column in query.expressions])
    for clause in _CLAUSES:
        node = query.args.get(clause)
        if node is None:
            continue
        if isinstance(node, exp.Group):
            node.set("expressions", [_safe(part, groups) for part in node.expressions])
        elif isinstance(node, exp.Order):
            for ordered in node.expressions:
                ordered.set("this", _safe(ordered.this, groups))
        else:
            node.set("this", _safe(node.this, groups))
    return query


def _column(column: exp.Expr, groups: Sequence[exp.Expr]) -> exp.Expr:
    if isinstance(column, exp.Alias):
        return exp.alias_(_safe(column.this, groups), column.alias, quoted=True)
    name = column.alias_or_name
    safe = _safe(column, groups)
    return safe if safe is column or not name else exp.alias_(safe, name, quoted=True)


def _safe(node: exp.Expr, groups: Sequence[exp.Expr]) -> exp.Expr:
    """An expression that does not raise. `groups` are those of GROUP BY, which must stay recognisable."""
    if isinstance(node, _AS_IS):
        return node
    if any(node == group for group in groups):
        return _tried(node)
    if not isinstance(node, _STRUCTURE) and not _stands_alone(node):
        return _tried(_with_groups(node, groups))
    if isinstance(node, exp.Query | exp.Subquery):
        return node
    return _guarded(_descended(node, groups))


def _stands_alone(node: exp.Expr) -> bool:
    """Whether the engine refuses the node inside TRY: it holds an aggregate, a window or a sub-query."""
    return node.find(*_ALONE) is not None or any(
        fold(str(call.this)) in _aggregates() for call in node.find_all(exp.Anonymous)
    )


@cache
def _aggregates() -> frozenset[str]:
    """The engine's aggregates, with those of its macros that are one: the parser does not know them all."""
    listed = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
    with scratch() as local:
        return frozenset(fold(name) for (name,) in local.sql(listed).fetchall()) | _MACROS


def _descended(node: exp.Expr, groups: Sequence[exp.Expr]) -> exp.Expr:
    """The node over parts that do not raise."""
    copy = node.copy()
    for name, part in node.args.items():
        if isinstance(node, exp.Window) and name == "this":
            # The function of a window must stand there as it is.
            copy.set(name, _descended(part, groups))
        elif isinstance(part, list):
            copy.set(name, [_safe(item, groups) if isinstance(item, exp.Expr) else item for item in part])
        elif isinstance(part, exp.Expr) and not isinstance(part, _KEPT):
            copy.set(name, _safe(part, groups))
    return copy


def _with_groups(node: exp.Expr, groups: Sequence[exp.Expr]) -> exp.Expr:
    return node.transform(lambda part: _tried(part) if any(part == group for group in groups) else part)


def _tried(node: exp.Expr) -> exp.Expr:
    if isinstance(node, _AS_IS):
        return node
    return exp.Anonymous(this="TRY", expressions=[node.copy()])


def _guarded(node: exp.Expr) -> exp.Expr:
    """An operation over aggregates or windows whose parts are safe already."""
    if isinstance(node, exp.Cast):
        return exp.TryCast(this=node.this, to=node.to)
    if isinstance(node, exp.Neg):
        return exp.Neg(this=_real(node.this))
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return type(node)(this=_real(node.this), expression=_real(node.expression))
    if isinstance(node, exp.IntDiv | exp.Mod):
        zero = exp.Literal.number("0")
        divisor = exp.Nullif(this=node.expression, expression=zero)
        return type(node)(this=_real(node.this), expression=divisor)
    if isinstance(node, exp.Sum):
        return exp.Sum(this=_real(node.this)) if isinstance(node.this, exp.Expr) else node
    return node


def _real(node: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=node, to=exp.DataType.build("DOUBLE"))
