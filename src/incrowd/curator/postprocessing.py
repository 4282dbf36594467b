"""Post-processing: the SQL above the leaves, over released tables. It sees nothing private and is free.

It is total: once an answer is paid for, this SQL gives a table with the columns that were promised, whatever
numbers were released. It is tried as it was written; if that raises, with NULL in the place of errors
(`total_sql`); if even that fails, as a text that takes all memory does, with NULL in the columns that more
than copy and compute; and if that fails too, the answer has no rows. It says so, and the released numbers can
always be read beside it (`released_numbers`). Nothing is NaN: what is not a number is NULL (`not_numbers`).

SQL that can only copy, compare and compute runs here; everything else runs in a child process with limits
(`sandbox`).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from incrowd.backends.trees import quoted
from incrowd.catalog.types import arrow_type
from incrowd.curator.ends import HALF, with_ends
from incrowd.curator.estimates import Span
from incrowd.curator.not_numbers import says_nan, without_nan
from incrowd.curator.released import Released
from incrowd.curator.sandbox import ExhaustedError, SandboxError, sandbox
from incrowd.curator.scratch import scratch
from incrowd.curator.total_sql import total
from incrowd.errors import QueryError
from incrowd.query import Aggregate, Leaf, Plan
from incrowd.query.plan import released_index, released_name
from incrowd.query.sql import DIALECT

TRIED = (0, 1, -1, 1_000, 1_000_000, -1_000_000)
"""Released numbers that the SQL above them is tried on before anything is spent."""
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAYS = [None, *(dt.date(year, 1, 1) for year in (1970, 2000, 2024, 1, 9999))]
_KEYS: Mapping[str, Sequence[Any]] = {
    "integer": [None, 0, 1, -1, 1_000, 1_000_000],
    "float": [None, 0.0, 1.0, -0.5, 1e3, 1e6],
    "text": [None, "", "a", "1", "a longer text", "2024-01-01"],
    "boolean": [None, False, True, None, False, True],
    "date": _DAYS,
    "timestamp": [day and dt.datetime.combine(day, dt.time()) for day in _DAYS],
}
"""Keys that it is tried on, by kind."""
_PLAIN: frozenset[type[exp.Expr]] = frozenset(
    {
        # clauses
        exp.Select, exp.From, exp.Subquery, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier,
        exp.Where, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Group, exp.Having,
        # constants
        exp.Literal, exp.Null, exp.Boolean, exp.Cast, exp.TryCast, exp.DataType,
        # truth
        exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In,
        exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Nullif,
        # numbers
        exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Sqrt, exp.Ln, exp.Exp, exp.Round,
        exp.Floor, exp.Ceil, exp.Least, exp.Greatest,
        # aggregates
        exp.Count, exp.Star, exp.Sum, exp.Avg, exp.Min, exp.Max,
    }
)  # fmt: skip
"""What needs no more time and memory than its rows: nothing here makes a row or a value larger."""


_SETTINGS = re.compile(
    r"current_(?!date$|time$|timestamp$|localtime).*|session_user|system_user|user|version|getvariable|getenv|"
    r"inet_.*|pg_.*|duckdb_.*|pragma_.*|has_.*_privilege|which_secret|txid_.*|in_search_path|query|query_table",
    re.IGNORECASE,
)
"""Functions whose value is a fact about the engine or its machine."""


@dataclass(frozen=True)
class Processed:
    """The answer's table; with the reason, in a sentence, if the SQL above the numbers failed on them."""

    table: pa.Table
    failure: str = ""


def post_process(
    plan: Plan, released: Sequence[Released], public: Mapping[str, pa.Table], confidence: float | None
) -> Processed:
    """The answer, with the ends of intervals beside the numbers where a confidence is given. Never raises."""
    tables = [
        released_table(leaf, release, confidence) for leaf, release in zip(plan.leaves, released, strict=True)
    ]
    query = plan.outer if confidence is None else with_ends(plan)
    texts = not says_nan(query, [*tables, *public.values()])
    try:
        return Processed(without_nan(_run(query, tables, public), texts))
    except SandboxError as error:
        failure, exhausted = str(error), isinstance(error, ExhaustedError)
    schema = _run(query, [_sample(leaf, ()) for leaf in plan.leaves], public).schema
    simple, emptied = _simplified(query)
    tries = [(simple, f"{', '.join(emptied)} could not be computed from the released numbers and is NULL")]
    if not exhausted:
        tries.insert(0, (query, ""))
    for tried, said in tries:
        with contextlib.suppress(SandboxError):
            table = _typed(_run(total(tried), tables, public), schema)
            return Processed(without_nan(table, texts), f"{said}: {failure}." if said else "")
    note = "The SQL over the released numbers failed, so it has no rows; answer.numbers() has the numbers"
    return Processed(schema.empty_table(), f"{note}: {failure}.")


def _simplified(query: exp.Query) -> tuple[exp.Query, list[str]]:
    """The query with NULL in the place of columns that more than copy and compute, and their names."""
    simple, emptied = query.copy(), []
    for select in simple.find_all(exp.Select):
        for column in select.expressions:
            if any(type(node) not in _PLAIN for node in column.walk()):
                emptied.append(column.alias_or_name)
                column.replace(exp.alias_(exp.null(), column.alias_or_name, quoted=True))
    return simple, list(dict.fromkeys(emptied))


def released_numbers(
    plan: Plan, released: Sequence[Released], confidence: float | None
) -> tuple[pa.Table, ...]:
    """What each leaf released, under the names that the question gives its keys and aggregates."""
    tables = []
    for leaf, release in zip(plan.leaves, released, strict=True):
        if not leaf.read:
            continue
        table = released_table(leaf, release, confidence)
        labels = {name: column.label or name for name, column in leaf.columns.items()}
        for name, label in list(labels.items()):
            labels |= {f"{name}{end}": f"{label}{end}" for end in ("_low", "_high")}
        table = table.select([name for name in table.column_names if not name.endswith(HALF)])
        tables.append(table.rename_columns([labels.get(name, name) for name in table.column_names]))
    return tuple(tables)


def public_tables(plan: Plan) -> tuple[str, ...]:
    """The public tables that the SQL above the leaves reads."""
    names = {table.name for table in plan.outer.find_all(exp.Table)}
    return tuple(sorted(names - set(plan.released)))


def check(plan: Plan, public: Mapping[str, pa.Table]) -> None:
    """Refuse SQL over the released tables that cannot run, before anything is spent.

    It is tried on empty tables, where only what the SQL itself says can fail, and, if it might take more
    than its rows, on small and large numbers, within the limits that hold for an answer.
    """
    _refuse_settings(plan.outer)
    queries = [plan.outer, with_ends(plan)]
    tables = [_sample(leaf, ()) for leaf in plan.leaves]
    try:
        for query in queries:
            _run(query, tables, public)
        if not _plain(plan.outer):
            for numbers in _tried(plan):
                _run(total(plan.outer), [_sample(leaf, numbers) for leaf in plan.leaves], public)
    except SandboxError as error:
        raise QueryError(f"The SQL over the released numbers cannot run: {error}") from None


def _tried(plan: Plan) -> list[Sequence[int]]:
    """The numbers of each trial: all at once, or one after the other.

    A sub-query that stands for a number may have one row, as one over all rows has in an answer.
    """
    scalar = any(
        not isinstance(query.parent, exp.From | exp.Join) for query in plan.outer.find_all(exp.Subquery)
    )
    alone = scalar and not all(leaf.keys for leaf in plan.leaves)
    return [(number,) for number in TRIED] if alone else [TRIED]


def _refuse_settings(query: exp.Query) -> None:
    """Refuse functions that tell about the engine: its settings, folders, users and version."""
    for function in query.find_all(exp.Func):
        names = (function.name,) if isinstance(function, exp.Anonymous) else type(function).sql_names()
        for name in names:
            if _SETTINGS.fullmatch(name):
                raise QueryError(
                    f"{name.upper()} tells about the curator's machine and not about the data; leave it out."
                )


def released_table(leaf: Leaf, released: Released, confidence: float | None) -> pa.Table:
    """What a leaf released, as the table that the SQL above reads."""
    if not leaf.read:
        return _sample(leaf, ())
    columns = {key.name: released.table.column(key.name) for key in leaf.keys}
    spans = released.columns(leaf, confidence or 0.95)
    halves = released.halves(leaf, confidence or 0.95)
    for aggregate in leaf.aggregates:
        span: Span = spans[aggregate.name]
        whole = aggregate.whole and _in_62_bits(span)
        for suffix, values in (("", span.value), ("_low", span.low), ("_high", span.high)):
            if suffix and confidence is None:
                continue
            if whole:
                values = np.nan_to_num(values).astype(np.int64)
            numbers = pa.array(values, from_pandas=True)  # NaN is NULL
            columns[aggregate.name + suffix] = _moments(numbers, aggregate) if aggregate.moment else numbers
        if confidence is not None and aggregate.kind in ("count", "sum"):
            half = [halves.get(aggregate.name)] * len(span.value)
            columns[aggregate.name + HALF] = pa.array(half, pa.float64())
    if not columns:
        columns["nothing"] = pa.array([0] * released.table.num_rows)
    return _without_null_groups(leaf, pa.table(columns))


def _without_null_groups(leaf: Leaf, table: pa.Table) -> pa.Table:
    """The table without groups whose key is NULL, where the owner declares that none is.

    Rows that break the declaration belong to no group, as rows with values outside a domain do.
    """
    for key in leaf.keys:
        if not key.nullable and table.column(key.name).null_count:
            table = table.filter(pc.is_valid(table.column(key.name)))
    return table


def _in_62_bits(span: Span) -> bool:
    """Whether a whole number and its interval can be integers; cut to fit, they would miss the truth."""
    return all(
        bool((np.abs(np.nan_to_num(values)) <= 2.0**62).all()) for values in (span.value, span.low, span.high)
    )


def _moments(numbers: pa.Array, aggregate: Aggregate) -> pa.Array:
    """Days or seconds since 1970 as dates or timestamps."""
    if aggregate.moment == "date":
        return numbers.cast(pa.int32()).cast(pa.date32())
    return numbers.cast(pa.timestamp("s")).cast(pa.timestamp("us"))


def _sample(leaf: Leaf, numbers: Sequence[int]) -> pa.Table:
    """A released table with these numbers in every column of numbers, and keys of all sorts."""
    columns = {}
    for key in leaf.keys:
        columns[key.name] = pa.array(_KEYS[key.kind][: len(numbers)], arrow_type(key.kind))
    for aggregate in leaf.aggregates:
        for suffix in ("", "_low", "_high"):
            if aggregate.moment:
                days = [0 if day is None else day.toordinal() - _EPOCH for day in _DAYS[: len(numbers)]]
                seconds = [day * (1 if aggregate.moment == "date" else 86_400) for day in days]
                columns[aggregate.name + suffix] = _moments(pa.array(seconds, pa.int64()), aggregate)
                continue
            kind = pa.int64() if aggregate.whole else pa.float64()
            columns[aggregate.name + suffix] = pa.array(numbers, pa.int64()).cast(kind, safe=False)
        if aggregate.kind in ("count", "sum"):
            columns[aggregate.name + HALF] = pa.array(numbers, pa.int64()).cast(pa.float64())
    return pa.table(columns or {"nothing": pa.array(numbers, pa.int64())})


def _run(query: exp.Query, tables: Sequence[pa.Table], public: Mapping[str, pa.Table]) -> pa.Table:
    """The result of a query; SandboxError where there is none."""
    named = {**{released_name(index): table for index, table in enumerate(tables)}, **public}
    sql = query.sql(DIALECT)
    if not _plain(query):
        return sandbox().run(sql, named)
    with scratch() as local:
        for name, table in named.items():
            local.register(name, table)
        try:
            return local.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise SandboxError(str(error).splitlines()[0]) from None


def _plain(query: exp.Query) -> bool:
    """Whether a query only copies, compares and computes what one released table holds."""
    tables = list(query.find_all(exp.Table))
    nested = any(kind.args.get("nested") for kind in query.find_all(exp.DataType))
    return (
        all(type(node) in _PLAIN for node in query.walk())
        and len(tables) == 1
        and released_index(tables[0].name) is not None
        and not nested
    )


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the types that were promised; a number that does not fit is NULL."""
    with scratch() as local:
        local.register("made", table)
        local.register("promised", schema.empty_table())
        kinds = local.sql("DESCRIBE promised").fetchall()
        casts = [f"TRY_CAST({quoted(name)} AS {kind}) AS {quoted(name)}" for name, kind, *_ in kinds]
        try:
            return local.sql(f"SELECT {', '.join(casts)} FROM made").to_arrow_table()
        except duckdb.Error as error:
            raise SandboxError(str(error).splitlines()[0]) from None
