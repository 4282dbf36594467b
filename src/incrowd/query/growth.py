"""How large an expression becomes in the engine, and the end to it.

A few lines of SQL can stand for billions of operations: total forms name their operands several times, and
engines put the columns of a sub-query in place wherever they are used, so that x + x in each of thirty nested
sub-queries has 2^30 operands. Planning that takes all memory of the curator or of the database. Knows
nothing of what expressions mean.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar

from sqlglot import exp

from incrowd.errors import QueryError

LARGEST_EXPRESSION = 30_000
LONGEST_PLANNING = 30.0
"""Seconds that planning a question may take."""
_DEADLINE: ContextVar[float] = ContextVar("planning must end", default=math.inf)
_WEIGHT = "incrowd_weight"
_COPIES: dict[type[exp.Expr], int] = {exp.Round: 9, exp.TryCast: 16, exp.Lower: 5, exp.Upper: 5}
"""How often engines' own forms of these name their operand, at most; three times for other functions."""


def marked(column: exp.Column, weight: int) -> exp.Column:
    """A column that stands for an expression of this weight."""
    column.meta[_WEIGHT] = weight
    return column


def weight_of(sql: exp.Expr) -> int:
    """How many parts an expression has once every engine has written it in its own way.

    >>> weight_of(exp.column("x")), weight_of(exp.Lower(this=exp.column("x")))
    (2, 11)
    """
    known = sql.meta.get(_WEIGHT)
    if known is not None:
        return int(known)
    if isinstance(sql, exp.DataType | exp.Query):
        return 1
    copies = _COPIES.get(type(sql), 3 if isinstance(sql, exp.Floor | exp.Ceil | exp.Trunc) else 1)
    return 1 + copies * sum(weight_of(part) for part in sql.iter_expressions())


@contextlib.contextmanager
def within_time() -> Iterator[None]:
    """Plan within `LONGEST_PLANNING`; QueryError from `refuse_growth` after that.

    Only what this thread computes is counted, so that a busy machine refuses nothing that a quiet one plans.
    """
    token = _DEADLINE.set(time.thread_time() + LONGEST_PLANNING)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def refuse_growth(sql: exp.Expr, said: str) -> None:
    """Refuse an expression that is too large, or one more after the time for planning is over.

    Its weight is noted, so that nobody counts it again.
    """
    if time.thread_time() > _DEADLINE.get():
        raise QueryError(
            f"The SQL was not planned after {LONGEST_PLANNING:g} seconds; ask for less at a time."
        )
    weight = refuse_copies(sql, 1, said)
    sql.meta[_WEIGHT] = weight


def refuse_copies(sql: exp.Expr, copies: int, said: str) -> int:
    """The weight of an expression, of which so many copies are refused if that is too much: before they are
    made, which takes far longer than to count them.
    """
    weight = weight_of(sql)
    if weight * copies > LARGEST_EXPRESSION:
        raise QueryError(
            f"{said or 'An expression'} is too long or nested too deeply to be computed; write it in fewer "
            "steps, and JOIN a public table instead of a long list."
        )
    return weight
