"""COUNT(DISTINCT x): how many different values there are.

One person may be the only one who has a value, and may have many: a unit counts for at most C of them, shared
out among all that it has (`backends.values`, with the theorem), which never counts a value that is not there.
Where values have several units each, as diagnoses or cities do, C = 1 loses nothing and needs least noise.
Where each has one, as orders do, C must be what a unit has. Nobody knows beforehand which it is, so that both
are released: under a cap that suits units, and under a cap of 1. The second cannot exceed the first by more
than noise, and stands for it where it is not less by more than noise (`curator.distinct`).

Of a tuple in brackets, every combination counts, NULL or not, as in SQL; of a list, those without NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates.measuring import Measuring
from incrowd.query.aggregates.operands import Asked, both
from incrowd.query.expressions import total
from incrowd.query.group_keys import as_key
from incrowd.query.measure import Measure
from incrowd.query.plan import Aggregate
from incrowd.query.typed import Census, Typed, double, enumerated, said

FEW = 16
"""Of so few values that there can be, a unit may have all: no cap has to be chosen."""


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
    value = keys[0] if len(keys) == 1 else exp.Tuple(expressions=keys)
    measure = Measure("", "value", "own", present, value, 0, 1, label=label)
    most = _most(parts, typed, leaf, together)
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
    if not typed.nullable and key == typed.sql:
        return None
    return exp.Not(this=exp.Is(this=exp.paren(key.copy()), expression=exp.null()))


def _most(parts: Sequence[exp.Expr], typed: Sequence[Typed], leaf: Measuring, nulls: bool) -> float:
    """The most values that there can be, as far as they are listed; infinity where they are not."""
    most = 1.0
    for part, facts in zip(parts, typed, strict=True):
        listed = facts.values
        if listed is None and isinstance(part, exp.Column):
            listed = enumerated(leaf.below.field(part))
        if listed is not None:
            many = float(len(listed))
        elif facts.kind == "integer" and facts.low is not None and facts.high is not None:
            many = math.floor(facts.high) - math.ceil(facts.low) + 1.0
        else:
            return math.inf
        most *= many + (nulls and facts.nullable)
    return most


def _cap(leaf: Measuring, most: float) -> float | None:
    """The most values that one unit counts for in all groups; None if that is still to be chosen."""
    if leaf.below.single:
        return 1.0
    rows = None if isinstance(leaf.rows, Census) else leaf.rows
    known = [most * leaf.groups] if leaf.groups is not None and most * leaf.groups <= FEW else []
    known += [] if rows is None else [rows]
    return max(1.0, min(known)) if known else None
