"""COUNT(DISTINCT x): how many different values there are.

One person may be the only one who has a value, and may have many: a unit counts for at most C of them, shared
out among all that it has (`backends.values`, with the theorem), which never counts a value that is not there.
Where values have several units each, as diagnoses or cities do, C = 1 loses nothing and needs least noise.
Where each has one, as orders do, C must be what a unit has. Nobody knows beforehand which it is, so that both
are released: under a cap that suits units, and under a cap of 1. The second cannot exceed the first by more
than noise, and stands for it where it is not less by more than noise (`curator.distinct`).

Of a tuple in brackets, every combination counts, NULL or not, as in SQL; of a list, those without NULL. What
the owner's declaration rules out does not count, as it makes no group: so there are no more values than she
lists, whatever rows hold, and a unit may have all of a few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, both
from incrowd.query.expressions import total
from incrowd.query.group_keys import as_key
from incrowd.query.measure import Measure
from incrowd.query.plan import Aggregate
from incrowd.query.typed import ENUMERABLE, Census, Typed, double, enumerated, literal, said

FEW = 16
"""Of so few values that there can be, a unit may have all: no cap has to be chosen."""
FAR = 2**53
"""Whole numbers beyond this are not told apart in float64, so bounds beyond it list nothing."""


@dataclass(frozen=True)
class Listed:
    """The values that a declaration allows: all between two ends, or those of a list."""

    many: int
    how: type[exp.Between | exp.In]
    values: tuple[Any, ...]

    def holds(self, key: exp.Expr, or_null: bool) -> exp.Expr:
        """The condition for a key to be one of them, or NULL where that counts too."""
        value, constants = exp.paren(key.copy()), [literal(value) for value in self.values]
        if self.how is exp.Between:
            inside: exp.Expr = exp.Between(this=value, low=constants[0], high=constants[1])
        else:
            inside = exp.In(this=value, expressions=constants)
        if not or_null:
            return inside
        absent = exp.Is(this=value.copy(), expression=exp.null())
        return exp.Or(this=exp.paren(inside), expression=absent)


def count_values(listed: Sequence[exp.Expr], asked: Asked, leaf: Measuring) -> Aggregate:
    """COUNT(DISTINCT x), COUNT(DISTINCT a, b) and COUNT(DISTINCT (a, b))."""
    label = asked.label if len(listed) == 1 else f"COUNT(DISTINCT {', '.join(map(said, listed))})"
    together = len(listed) == 1 and isinstance(listed[0], exp.Tuple)
    parts = listed[0].expressions if together else listed
    typed = [total(part, leaf.below.lookup) for part in parts]
    if not typed or any(part.kind == "null" for part in typed):
        raise QueryError(f"{label} counts nothing, as NULL is no value; name a column in it.")
    keys = [as_key(part) for part in typed]
    present = asked.test
    for part, key in zip(typed, keys, strict=True) if not together else ():
        present = both(present, _there(part, key))
    limited = [_listed(part, facts, leaf) for part, facts in zip(parts, typed, strict=True)]
    for facts, key, values in zip(typed, keys, limited, strict=True):
        present = both(present, None if values is None else values.holds(key, together and facts.nullable))
    value = keys[0] if len(keys) == 1 else exp.Tuple(expressions=keys)
    measure = Measure("", "value", "own", present, value, 0, 1, label=label)
    most = _most(limited, typed, together)
    cap = _cap(leaf, most)
    between = (0.0, most)
    if cap == 1:
        return Aggregate("", "count", label, (leaf.add(measure, cap),), whole=True, between=between)
    measures = leaf.add(measure, cap), leaf.add(replace(measure, narrow=True), 1.0)
    note = (
        f"{label} is the least that it can be: a unit with more values than it counts for is shared out "
        "among them, and values that nobody else has may be missing."
    )
    sure = cap is not None and cap >= most
    return Aggregate("", "distinct", label, measures, whole=True, between=between, note="" if sure else note)


def _there(typed: Typed, key: exp.Expr) -> exp.Expr | None:
    """The condition for a value to count: neither NULL nor NaN, which engines order above infinity."""
    if typed.kind == "float":
        return exp.LTE(this=key.copy(), expression=double(math.inf))
    if not typed.nullable and typed.sql.find(exp.Column) is None:
        return None
    return exp.Not(this=exp.Is(this=exp.paren(key.copy()), expression=exp.null()))


def _listed(part: exp.Expr, typed: Typed, leaf: Measuring) -> Listed | None:
    """The values that there can be, by what is declared; None where they are not listed."""
    low, high = typed.low, typed.high
    values = typed.values
    if isinstance(part, exp.Column):
        field = leaf.below.field(part)
        values, limits = field.values, field.limits
        if limits is not None and typed.kind == "date" and values is None:
            days = enumerated(field)
            return None if days is None else Listed(len(days), exp.Between, limits)
    if values is None and typed.kind == "integer" and low is not None and high is not None:
        first, last = math.ceil(low), math.floor(high)
        return Listed(last - first + 1, exp.Between, (first, last)) if -FAR < first <= last < FAR else None
    known = None if values is None else tuple(value for value in values if value is not None)
    if not known or len(known) > ENUMERABLE or any(value != value for value in known):
        return None
    return Listed(len(known), exp.In, known)


def _most(limited: Sequence[Listed | None], typed: Sequence[Typed], nulls: bool) -> float:
    """The most values that there can be, as far as they are listed; infinity where they are not."""
    most = 1.0
    for listed, facts in zip(limited, typed, strict=True):
        if listed is None:
            return math.inf
        most *= listed.many + (nulls and facts.nullable)
    return most


def _cap(leaf: Measuring, most: float) -> float | None:
    """The most values that one unit counts for in all groups; None if that is still to be chosen."""
    if leaf.below.single:
        return 1.0
    rows = None if isinstance(leaf.rows, Census) else leaf.rows
    known = [most * leaf.groups] if leaf.groups is not None and most * leaf.groups <= FEW else []
    known += [] if rows is None else [rows]
    return max(1.0, min(known)) if known else None
