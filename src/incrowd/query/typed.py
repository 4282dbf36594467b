"""What is known of an expression before any row is read: its kind, range, possible values, NULLs.

Facts come from the owner's declarations and from the query's text alone. `low` and `high` are promises only
together with clamping: a plan clamps every value it sums into them, so a wrong declaration costs accuracy,
never privacy.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlglot import exp

from incrowd.catalog import Column, DomainFrom

Kind = Literal["integer", "float", "text", "boolean", "date", "timestamp", "null"]
NUMBERS = frozenset({"integer", "float"})
TIMES = frozenset({"date", "timestamp"})
ENUMERABLE = 10_000
"""The most values that bounds may span for their column to have a public domain by counting through them."""


@dataclass(frozen=True)
class Field:
    """A column of a relation."""

    kind: Kind
    low: float | None = None
    high: float | None = None
    nullable: bool = True
    values: tuple[Any, ...] | None = None
    domain: str | None = None
    """`public_table.column` where the domain must be looked up."""
    name: str = ""
    """What the user calls it, for messages."""
    contribution: float | None = None
    limits: tuple[Any, Any] | None = None
    """The declared bounds as values of the column's own type (dates stay dates)."""
    per_unit: bool = False
    """Whether it identifies the protected unit."""


@dataclass(frozen=True)
class Typed:
    """An expression that cannot raise, with what is known of it."""

    sql: exp.Expression
    kind: Kind
    low: float | None = None
    high: float | None = None
    nullable: bool = True
    values: tuple[Any, ...] | None = None

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def but(self, **changes: Any) -> Typed:
        """A copy with some facts changed."""
        return replace(self, **changes)


Lookup = Callable[[exp.Column], Typed]


def field_of(table: str, name: str, column: Column) -> Field:
    """The facts that the owner declares of a column."""
    kind: Kind = "float" if column.type == "decimal" else column.type
    limits = column.limits
    low = high = None
    if limits is not None and kind in NUMBERS:
        low, high = float(limits[0]), float(limits[1])  # type: ignore[arg-type]
    domain = str(column.domain) if isinstance(column.domain, DomainFrom) else None
    return Field(
        kind,
        low,
        high,
        column.nullable,
        column.values,
        domain,
        f"{table}.{name}",
        None if column.contribution is None else float(column.contribution),
        limits,
    )


def enumerated(field: Field) -> tuple[Any, ...] | None:
    """The public values of a column: its listed domain, or every value between discrete bounds."""
    if field.values is not None or field.domain is not None:
        return field.values
    if field.limits is None or field.kind not in ("integer", "date"):
        return None
    low, high = field.limits
    if field.kind == "integer":
        return tuple(range(low, high + 1)) if high - low < ENUMERABLE else None
    days = (high - low).days + 1
    return tuple(low + dt.timedelta(days=day) for day in range(days)) if days <= ENUMERABLE else None


def literal(value: Any) -> exp.Expression:
    """A value of a declared type as SQL."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, dt.datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    if isinstance(value, str):
        return exp.Literal.string(value)
    return real(value)


def real(value: float) -> exp.Expression:
    """A number as SQL, exactly: integers as they are, other values as a cast of their shortest text."""
    if float(value).is_integer() and abs(value) < 2**53:
        number: exp.Expression = exp.Literal.number(str(abs(int(value))))
    else:
        number = exp.cast(exp.Literal.string(repr(abs(float(value)))), "DOUBLE")
    return exp.Neg(this=number) if value < 0 else number


def lookup_in(scope: Mapping[str, Mapping[str, Field]]) -> Lookup:
    """How column references resolve: alias and name to the field's facts."""

    def find(node: exp.Column) -> Typed:
        field = scope[node.table][node.name]
        return Typed(node.copy(), field.kind, field.low, field.high, field.nullable, enumerated(field))

    return find
