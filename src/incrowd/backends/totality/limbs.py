"""Rules for constructs that Spark's dialect builds from many parts: sums, and decimals as text.

Spark's plain SUM of 64-bit integers wraps around silently. The sum in the dialect is exact within 64 bits and
stops at their ends, for up to 2^41 rows (`spark_sql`).
"""

from __future__ import annotations

import functools

from sqlglot import exp

from incrowd.backends.totality.cast_rules import converted
from incrowd.backends.totality.intervals import summed
from incrowd.backends.totality.reading import as_read
from incrowd.backends.totality.templates import HOLE, filled
from incrowd.backends.totality.values import MOST_ROWS, Value, integer, text
from incrowd.backends.totality.walk import Environment, Walk


@functools.cache
def _sum() -> exp.Expr:
    from incrowd.backends import spark_sql

    return as_read(spark_sql.DIALECT.rewrites[exp.Sum](exp.Sum(this=exp.column(HOLE))), "spark").unnest()


@functools.cache
def _digits() -> exp.Expr:
    """A decimal as text. Its exponent is at most 38, so at most 38 zeros are repeated."""
    from incrowd.backends.spark_columns import plain_digits

    return as_read(plain_digits(exp.column(HOLE)), "spark").unnest()


def limb_sum(walk: Walk, node: exp.Expr, known: Environment) -> Value:
    """A CASE, which may be such a sum or such a text."""
    assert isinstance(node, exp.Case)
    decimal = filled(_digits(), node, walk.keys)
    if decimal is not None and walk.value(decimal, known).form == "decimal":
        return text(100)
    inner = filled(_sum(), node, walk.keys)
    if inner is None:
        return walk.case(node, known)
    # The template does not repeat a cast to 64 bits that the value already has.
    value = converted(walk, inner, walk.value(inner), integer(64))
    low, high = summed(value, MOST_ROWS)
    most = 2**63 - 1
    return integer(64, max(low, -most), min(high, most))
