"""What WHERE says about the bounds of a column: comparisons with constants, read from the text alone.

Bounds of whole numbers, dates and timestamps only: between these, values can be listed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from incrowd.query.typed import Field

_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_TIME_TYPES = tuple(exp.DataType.Type[name] for name in ("DATE", "TIMESTAMP", "TIMESTAMPNTZ"))
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_SMALLEST: dict[str, Any] = {
    "integer": 1,
    "date": dt.timedelta(days=1),
    "timestamp": dt.timedelta(microseconds=1),
}
End = tuple[int | dt.datetime, bool]
"""A constant, and whether it is outside."""


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that a row must all satisfy: what AND alone joins, without brackets around it.

    >>> from sqlglot import condition
    >>> [node.sql() for node in conjuncts(condition("a AND (b AND (c OR d))"))]
    ['c OR d', 'b', 'a']
    """
    todo = [] if condition is None else [condition]
    while todo:
        node = todo.pop()
        if isinstance(node, exp.And):
            todo += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            todo.append(node.this)
        else:
            yield node


def limits_in(node: exp.Expr) -> Iterator[tuple[exp.Column, End | None, End | None]]:
    """The columns that a comparison bounds, with the constants below and above."""
    if isinstance(node, exp.Between):
        if isinstance(node.this, exp.Column):
            low, high = (constant_in(node.args[end]) for end in ("low", "high"))
            yield node.this, None if low is None else (low, False), None if high is None else (high, False)
        return
    if type(node) not in _FLIPPED:
        return
    column, other, kind = node.this, node.expression, type(node)
    if not isinstance(column, exp.Column):
        column, other, kind = other, column, _FLIPPED[kind]
    constant = constant_in(other)
    if not isinstance(column, exp.Column) or constant is None:
        return
    end = (constant, kind in (exp.LT, exp.GT))
    yield (column, None, end) if kind in (exp.LT, exp.LTE) else (column, end, None)


def constant_in(node: exp.Expr) -> int | dt.datetime | None:
    """A whole number or a moment that is written out; None for anything else."""
    if isinstance(node, exp.Neg):
        inner = constant_in(node.this)
        return -inner if isinstance(inner, int) else None
    if isinstance(node, exp.Cast) and node.to.this in _TIME_TYPES:
        day = node.to.this == exp.DataType.Type.DATE
        inner = constant_in(node.this) if isinstance(node.this, exp.Literal) else None
        moment = inner if isinstance(inner, dt.datetime) else None
        return None if moment is None or (day and moment != _midnight(moment)) else moment
    if not isinstance(node, exp.Literal):
        return None
    if not node.is_string:
        return int(node.name) if node.name.isascii() and node.name.isdigit() and len(node.name) < 19 else None
    try:
        return dt.datetime.fromisoformat(node.name) if _TIME.fullmatch(node.name) else None
    except ValueError:
        return None


def _midnight(moment: dt.datetime) -> dt.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def narrower(field: Field, low: End | None, high: End | None) -> Field:
    """What is known of a column whose rows all lie between two ends. NULL lies nowhere."""
    if field.limits is None or field.values is not None or field.domain is not None:
        return field
    if field.kind not in _SMALLEST or (low is None and high is None):
        return field
    least, most = field.limits
    step = _SMALLEST[field.kind]
    for end, below in ((low, True), (high, False)):
        if end is None:
            continue
        constant = _fitted(end[0], field)
        if constant is None:
            return field
        if below:
            least = max(least, constant + step if end[1] else constant)
        else:
            most = min(most, constant - step if end[1] else constant)
    return replace(field, limits=(least, most), nullable=False) if least <= most else field


def _fitted(constant: int | dt.datetime, field: Field) -> Any:
    """The constant as a value of the column; None if it is none."""
    if field.kind == "integer":
        return constant if isinstance(constant, int) else None
    if not isinstance(constant, dt.datetime) or not 1 < constant.year < 9999:
        return None
    if field.kind == "timestamp":
        return constant
    return constant.date() if constant == _midnight(constant) else None
