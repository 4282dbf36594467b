"""Spark's sums, which are put together from parts that cannot wrap around, as one construct.

A plain SUM of 64-bit integers wraps around there without a word. The sum of its dialect is exact within 64
bits and stops at their ends, for up to 2^41 rows (`spark_sql`).
"""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

from incrowd.backends.totality.cast_rules import converted
from incrowd.backends.totality.intervals import summed
from incrowd.backends.totality.templates import HOLE, filled
from incrowd.backends.totality.values import MOST_ROWS, Value, integer
from incrowd.backends.totality.walk import Environment, Walk


@functools.cache
def _template() -> exp.Expr:
    from incrowd.backends import spark_sql

    whole = spark_sql.DIALECT.rewrites[exp.Sum](exp.Sum(this=exp.column(HOLE)))
    return sqlglot.parse_one(whole.sql("spark"), read="spark").unnest()


def limb_sum(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """A CASE, or such a sum."""
    assert isinstance(node, exp.Case)
    inner = filled(_template(), node, walk.keys)
    if inner is None:
        return walk.case(node, known)
    # A cast to 64 bits that the value has already is not written twice.
    value = converted(walk, inner, walk.value(inner), integer(64))
    low, high = summed(value, MOST_ROWS)
    most = 2**63 - 1
    return integer(64, max(low, -most), min(high, most))
