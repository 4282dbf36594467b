"""One table whose columns are declared in every way, and DuckDB as the judge of what is claimed about it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st
from sqlglot import exp

from incrowd.query.expressions import total
from incrowd.query.sql import parse
from incrowd.query.typed import Field, Typed, lookup_in

Row = dict[str, Any]
FIELDS = {
    "x": Field("integer", -5, 20, limits=(-5, 20)),
    "y": Field("integer", 1, 4, nullable=False, limits=(1, 4)),
    "n": Field("integer"),
    "f": Field("float", -2.5, 7.5),
    "g": Field("float", 0.5, 2.0, nullable=False),
    "u": Field("float"),
    "k": Field("integer", nullable=False, values=(1, 2, 3)),
    "b": Field("boolean"),
    "s": Field("text"),
    "c": Field("text", nullable=False, values=("a", "B", "cd")),
    "d": Field("date"),
    "m": Field("timestamp"),
}
LOOKUP = lookup_in({"t": FIELDS})
_ENGINE = duckdb.connect(":memory:")
_TYPES = {"integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
_TYPES |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
DAYS = [None, dt.date(1, 1, 1), dt.date(2020, 2, 29), dt.date(2024, 12, 30), dt.date(9999, 12, 31)]
ENDS: dict[str, list[Any]] = {
    "x": [-5, 20, 0, 3, None],
    "y": [1, 4, 2],
    "n": [None, 0, -(2**63), 2**63 - 1, 2**53 + 1],
    "f": [-2.5, 7.5, 0.0, 1.25, None],
    "g": [0.5, 2.0, 1.0],
    "u": [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -0.0],
    "k": [1, 2, 3],
    "b": [True, False, None],
    "s": [None, "", "a", "Aß", "12", "2020-02-29", "yes", "%_"],
    "c": ["a", "B", "cd"],
    "d": DAYS,
    "m": [None if day is None else dt.datetime(day.year, day.month, day.day, 23, 59, 58) for day in DAYS],
}


def rows() -> st.SearchStrategy[list[Row]]:
    """Rows that keep to what is declared: the ends, and what lies between them."""
    between = {"x": st.integers(-5, 20), "f": st.floats(-2.5, 7.5), "g": st.floats(0.5, 2.0)}
    columns = {
        name: st.one_of(st.sampled_from(ends), between[name]) if name in between else st.sampled_from(ends)
        for name, ends in ENDS.items()
    }
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=8)


def corner_rows(*columns: str) -> list[Row]:
    """Every combination of the ends of some columns; the others stay at their first."""
    made: list[Row] = [{name: ends[0] for name, ends in ENDS.items()}]
    for column in columns:
        made = [{**row, column: end} for row in made for end in ENDS[column]]
    return made


def tree_of(sql: str) -> exp.Expr:
    """An expression over the table, with its columns qualified as the rules leave them."""
    tree = parse(f"SELECT {sql}").tree.selects[0].unalias()
    for column in list(tree.find_all(exp.Column)):
        column.set("table", exp.to_identifier("t", quoted=True))
    return tree


def typed(sql: str) -> Typed:
    """The total form of an expression over the table, and what is claimed of it."""
    return total(tree_of(sql), LOOKUP)


def computed(sql: str | exp.Expr, given: Sequence[Row]) -> list[Any]:
    """The values of an expression on rows, by DuckDB."""
    text = sql if isinstance(sql, str) else sql.sql("duckdb")
    types = {name: _TYPES[field.kind] for name, field in FIELDS.items()}
    t = pa.table({name: pa.array([row[name] for row in given], kind) for name, kind in types.items()})
    _ENGINE.register("t", t)
    return [value for (value,) in _ENGINE.execute(f"SELECT {text} FROM t").fetchall()]


def refuted(claim: Typed, given: Sequence[Row]) -> list[str]:
    """What rows say against a claim."""
    kinds: dict[str, Any] = {"integer": int | float, "float": float, "text": str, "boolean": bool}
    kinds |= {"date": dt.date, "timestamp": dt.datetime}
    against = []
    for value in computed(claim.sql, given):
        if value is None:
            if not claim.nullable:
                against.append("NULL")
            continue
        if claim.kind != "null" and not isinstance(value, kinds[claim.kind]):
            against.append(f"{value!r} is no {claim.kind}")
        if claim.integral != (isinstance(value, int) and not isinstance(value, bool)):
            against.append(f"{value!r} is held otherwise")
        if isinstance(value, float) and math.isnan(value):
            continue
        if claim.values is not None and value not in claim.values:
            against.append(f"{value!r} is not listed")
        if isinstance(value, int | float):
            against += _beyond(claim, float(value))
    return against


def _beyond(claim: Typed, value: float) -> list[str]:
    against = []
    if math.isinf(value):
        # Numbers beyond 2^200 are tamed to infinity, and no bound reaches as far.
        value = math.copysign(2.0**200, value)
    if claim.low is not None and value < claim.low:
        against.append(f"{value!r} is below {claim.low!r}")
    if claim.high is not None and value > claim.high:
        against.append(f"{value!r} is above {claim.high!r}")
    if claim.kind == "integer" and value != math.floor(value):
        against.append(f"{value!r} is not whole")
    known = value not in (0.0, 2.0**200, -(2.0**200))
    if known and not math.ldexp(1.0, -min(claim.size, 1074)) <= abs(value):
        against.append(f"{value!r} is closer to zero than 2^-{claim.size}")
    if known and claim.size < 1024 and abs(value) > math.ldexp(1.0, claim.size):
        against.append(f"{value!r} is larger than 2^{claim.size}")
    return against


def range_of(sql: str, *columns: str) -> tuple[Any, Any]:
    """The least and the largest value of an expression over the ends of its columns."""
    values = [value for value in computed(typed(sql).sql, corner_rows(*columns)) if value is not None]
    return min(values), max(values)
