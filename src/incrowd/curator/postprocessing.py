"""Post-processing: the SQL above the leaves, over released tables, in a DuckDB of its own that holds
nothing private.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from incrowd.curator.ends import with_ends
from incrowd.curator.estimates import Span
from incrowd.curator.released import Released
from incrowd.curator.scratch import scratch
from incrowd.errors import QueryError
from incrowd.query import Leaf, Plan
from incrowd.query.leaves import RELEASED
from incrowd.query.sql import DIALECT

ARROW_TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def post_process(
    plan: Plan, released: Sequence[Released], public: Mapping[str, pa.Table], confidence: float | None
) -> pa.Table:
    """The answer's table, with the ends of intervals beside the numbers where a confidence is given."""
    tables = [_columns(leaf, each, confidence) for leaf, each in zip(plan.leaves, released, strict=True)]
    query = plan.outer if confidence is None else with_ends(plan.outer)
    try:
        return _run(query, tables, public)
    except duckdb.Error as error:
        raise QueryError(f"The SQL over the released numbers failed: {str(error).splitlines()[0]}") from None


def public_tables(plan: Plan) -> tuple[str, ...]:
    """The public tables that the SQL above the leaves reads."""
    names = {table.name for table in plan.outer.find_all(exp.Table)}
    return tuple(sorted(name for name in names if not re.fullmatch(rf"{RELEASED}\d+", name)))


def check(plan: Plan, public: Mapping[str, pa.Table]) -> None:
    """Refuse SQL over the released tables that cannot run, before anything is spent."""
    empty = [_empty(leaf) for leaf in plan.leaves]
    try:
        _run(plan.outer, empty, public)
        _run(with_ends(plan.outer), empty, public)
    except duckdb.Error as error:
        raise QueryError(
            f"The SQL over the released numbers cannot run: {str(error).splitlines()[0]}"
        ) from None


def _run(query: exp.Query, tables: Sequence[pa.Table], public: Mapping[str, pa.Table]) -> pa.Table:
    with scratch() as local:
        for index, table in enumerate(tables):
            local.register(f"{RELEASED}{index}", table)
        for name, table in public.items():
            local.register(name, table)
        return local.sql(query.sql(DIALECT)).to_arrow_table()


def _columns(leaf: Leaf, released: Released, confidence: float | None) -> pa.Table:
    columns = {key.name: released.table.column(key.name) for key in leaf.keys}
    spans = released.columns(leaf, confidence or 0.95)
    for aggregate in leaf.aggregates:
        span: Span = spans[aggregate.name]
        for suffix, values in (("", span.value), ("_low", span.low), ("_high", span.high)):
            if suffix and confidence is None:
                continue
            if aggregate.whole:
                # A count that noise carried out of the integers stays at their end.
                values = np.clip(np.nan_to_num(values), -(2.0**62), 2.0**62).astype(np.int64)
            columns[aggregate.name + suffix] = pa.array(values)
    if not columns:
        columns["nothing"] = pa.array([0] * released.table.num_rows)
    return pa.table(columns)


def _empty(leaf: Leaf) -> pa.Table:
    columns = {key.name: pa.array([], ARROW_TYPES[key.kind]) for key in leaf.keys}
    for aggregate in leaf.aggregates:
        for suffix in ("", "_low", "_high"):
            columns[aggregate.name + suffix] = pa.array([], pa.int64() if aggregate.whole else pa.float64())
    return pa.table(columns or {"nothing": pa.array([], pa.int64())})
