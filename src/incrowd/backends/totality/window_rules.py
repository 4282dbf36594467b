"""Rules for windows: which functions, orders and frames raise for no row.

Places, offsets and the ends of frames are constants that every engine can hold. What an aggregate may be is
what it may be without a window, over no rows too.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.backends.totality.values import MOST_ROWS, Kind, Value, integer
from incrowd.backends.totality.walk import Environment, NotTotalError, Walk, parts_of

_MOST = 2**31 - 1
_ENDS = ("UNBOUNDED", "CURRENT ROW")
_PLACES = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NEIGHBOURS = (exp.Lag, exp.Lead)
_OF_FRAMES = (exp.FirstValue, exp.LastValue, exp.NthValue)


def windowed(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """The values of a window."""
    parts_of(node, "this", "over", "partition_by", "order", "spec")
    if node.args.get("over") not in (None, "OVER"):
        raise NotTotalError(node)
    for part in node.args.get("partition_by") or []:
        _orderable(walk, part, known)
    order = node.args.get("order")
    if order is not None:
        parts_of(order, "expressions")
        for key in order.expressions:
            if not isinstance(key, exp.Ordered):
                raise NotTotalError(key)
            parts_of(key, "this", "desc", "nulls_first")
            _orderable(walk, key.this, known)
    _framed(node)
    return _function(walk, node.this, known)


def _orderable(walk: Walk, node: exp.Expr, known: Environment) -> None:
    if walk.value(node, known).kind is Kind.OTHER:
        raise NotTotalError(node, "its type has no order that all engines know")


def _framed(node: exp.Expr) -> None:
    spec = node.args.get("spec")
    if spec is None:
        return
    parts_of(spec, "kind", "start", "start_side", "end", "end_side")
    if spec.args.get("kind") not in ("ROWS", "RANGE"):
        raise NotTotalError(node)
    for end in (spec.args.get("start"), spec.args.get("end")):
        if end in _ENDS or (spec.args["kind"] == "ROWS" and _is_place(end)):
            continue
        raise NotTotalError(node, "the ends of its frame are not known")


def _is_place(node: object, least: int = 0) -> bool:
    """True for a whole number that every engine takes as a number of rows."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdecimal():
        return False
    return least <= int(node.name) <= _MOST


def _function(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    if isinstance(node, _PLACES):
        parts_of(node)
        return integer(64, 1, MOST_ROWS, null=False)
    if isinstance(node, exp.Ntile) and _is_place(node.this, 1):
        parts_of(node, "this")
        return integer(64, 1, int(node.this.name), null=False)
    if isinstance(node, (*_NEIGHBOURS, *_OF_FRAMES)):
        parts_of(node, "this", "offset")
        offset = node.args.get("offset")
        if offset is not None and not _is_place(offset, 1 if isinstance(node, exp.NthValue) else 0):
            raise NotTotalError(node)
        return walk.value(node.this, known).but(null=True)
    if isinstance(node, exp.Count | exp.Min | exp.Max):
        value = walk.value(node, known)
        return value.but(low=min(value.low, 0)) if isinstance(node, exp.Count) else value.but(null=True)
    raise NotTotalError(node)
