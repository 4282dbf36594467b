"""What is known of an expression before any row is read: its kind, range, possible values, NULLs.

Facts come from the owner's declarations and from the query's text alone. No guarantee rests on them: a plan
clamps every value it sums into `low` and `high`, and a wrong declaration costs accuracy, never privacy.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlglot import exp

from incrowd.catalog import BoughtColumn, Column, DomainFrom
from incrowd.catalog.bought import BoughtContribution
from incrowd.catalog.names import fold as fold
from incrowd.catalog.types import NUMERIC, TIMES, Kind, kind_of
from incrowd.errors import QueryError
from incrowd.query.growth import marked
from incrowd.query.sql import DIALECT

UnitPart = Literal["", "column", "partition"]
LARGE = 1074
"""The size of a float of which nothing is known (`magnitude`): no float64 is larger, or closer to zero."""
ENUMERABLE = 10_000
"""The most values that bounds may span for their column to have a public domain by counting through them."""


@dataclass(frozen=True)
class Census:
    """How much units weigh, as the owner bought it beforehand: noisy, public, and no promise.

    cap: the most that one unit is to count for. units: about how many units weigh up to `up_to`, up to twice
    that, and so on; the last of them, how many weigh more. epsilon: what the noise of each keeps.
    """

    cap: float
    up_to: float
    units: tuple[int, ...]
    epsilon: float


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
    unit: UnitPart = ""
    """Whether it identifies the protected unit, or the partition within which it does."""
    floating: bool = False
    """Whether whole numbers are held in float64, as computed ones are."""
    size: int | None = None
    """Its size as a number (`magnitude`), where a sub-query computes it."""
    weight: int = 1
    """How large an expression it stands for (`growth`)."""
    census: Census | None = None
    """What the owner bought about what units' values add up to; `contribution` is then no promise."""
    bought: tuple[str, ...] = ()
    """What a reader must know about bounds that were bought."""
    unlisted: str = ""
    """What a reader must know about a domain that was bought."""
    wide: tuple[float, float] | None = None
    """Where low and high are not both known, what its values are cut off at all the same (`Typed.wide`)."""


@dataclass(frozen=True)
class Typed:
    """An expression that cannot raise, with what is known of it."""

    sql: exp.Expr
    kind: Kind
    low: float | None = None
    high: float | None = None
    nullable: bool = True
    values: tuple[Any, ...] | None = None
    said: str = ""
    """The expression as the user wrote it, for messages."""
    integral: bool = False
    """Whether the engine holds it as a 64-bit integer; whole numbers are else computed in float64."""
    size: int = LARGE
    """How large, and how close to zero, a number can be (`magnitude`)."""
    wide: tuple[float, float] | None = None
    """Where low and high are not both known, ends far beyond what is usual: of what a person adds up to.

    They take the place of bounds where noise does not grow with them. No list of values is made from them.
    """
    limits: tuple[Any, Any] | None = None
    """The bounds of a date or timestamp, in its own kind."""

    @property
    def reach(self) -> tuple[float, float] | None:
        """Both ends, or what takes their place; None if nothing is known."""
        return self.wide if self.low is None or self.high is None else (self.low, self.high)

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @property
    def constant(self) -> float | None:
        """The value of a constant number; None for anything else."""
        if self.kind not in NUMERIC or self.values is None or len(self.values) != 1 or self.nullable:
            return None
        return float(self.values[0])

    def but(self, **changes: Any) -> Typed:
        """A copy with some facts changed."""
        return replace(self, **changes)


Lookup = Callable[[exp.Column], Typed]


def said(node: exp.Expr) -> str:
    """An expression as the user would write it: no aliases of ours, quotes only where a name needs them.

    >>> import sqlglot
    >>> said(sqlglot.parse_one('SUM("t"."age" + "t"."my col")', read="duckdb"))
    'SUM(age + "my col")'
    """
    shown, cut = _beginning(node)
    for column in shown.find_all(exp.Column):
        column.set("table", None)
    for name in shown.find_all(exp.Identifier):
        name.set("quoted", re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.name) is None)
    text = shown.sql(DIALECT)
    return text if len(text) <= 80 and not cut else text[:77] + "..."


def _beginning(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """A copy of an expression, or of what a long chain of operators begins with; and whether it was cut.

    Each operator of a chain writes at least three letters, so 40 of them fill the text that is shown. A
    balanced chain is cut where it has more parts than fill that.
    """
    spine = [node]
    while isinstance(spine[-1], exp.Binary | exp.Paren) and isinstance(spine[-1].this, exp.Expr):
        spine.append(spine[-1].this)
    start = max(0, len(spine) - 40)
    while start + 1 < len(spine) and _is_large(spine[start]):
        start += 1
    return spine[start].copy(), start > 0


def _is_large(node: exp.Expr) -> bool:
    """Whether an expression has more parts than can be shown."""
    return any(place > 400 for place, _ in enumerate(node.bfs()))


def field_of(table: str, name: str, column: Column, bought: BoughtColumn | None = None) -> Field:
    """The facts that the owner declares of a column, or bought."""
    kind = kind_of(column.type)
    limits = column.limits
    low = high = None
    if limits is not None and kind in NUMERIC:
        low, high = float(limits[0]), float(limits[1])  # type: ignore[arg-type]
    domain = str(column.domain) if isinstance(column.domain, DomainFrom) else None
    contribution = None if column.contribution is None else float(column.contribution)
    values = column.values
    if column.type == "decimal" and values is not None:
        values = tuple(float(value) for value in values)  # type: ignore[arg-type]
    declared = Field(
        kind, low, high, column.nullable, values, domain, f"{table}.{name}", contribution, limits
    )
    return declared if bought is None else _bought(declared, column, bought)


def _bought(field: Field, column: Column, bought: BoughtColumn) -> Field:
    """The field with what was bought about it: a census in place of a promise, and words for answers."""
    census, said = None, []
    if bought.contribution is not None and field.contribution is not None:
        census = census_of(field.contribution, bought.contribution)
    if bought.bounds is not None and column.bounds is not None:
        low, high = column.bounds
        many = bought.bounds.outside
        others = "no unit has" if many == 0 else f"at most {many:,} units have"
        said.append(
            f"values of {field.name} are clamped into [{low}, {high}], which was bought: at 95% confidence, "
            f"{others} others"
        )
    unlisted = ""
    if bought.domain is not None:
        unlisted = (
            f"The values of {field.name} were bought: one that fewer than about {bought.domain.least:,} "
            "units share may be missing, and rows with other values are in no group."
        )
    return replace(field, census=census, bought=tuple(said), unlisted=unlisted)


def census_of(cap: float, bought: BoughtContribution) -> Census:
    """What was bought about a contribution, with the cap that the owner's file states now."""
    return Census(float(cap), bought.up_to, bought.units, bought.epsilon)


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


def literal(value: Any) -> exp.Expr:
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
    if isinstance(value, int):
        return exp.cast(exp.Literal.string(str(value)), "BIGINT")
    return double(float(value))


def double(value: float) -> exp.Expr:
    """A number as a float64, exactly: a cast of its shortest text.

    Bare decimal literals are decimals in some engines, and decimals overflow with an error.

    >>> double(-0.5).sql("duckdb")
    "CAST('-0.5' AS DOUBLE)"
    """
    text = "Infinity" if value == float("inf") else repr(float(value))
    return exp.cast(exp.Literal.string(text), "DOUBLE")


def guarded(test: exp.Expr, sql: exp.Expr) -> exp.Expr:
    """The expression where the test holds, NULL elsewhere."""
    return exp.Case(ifs=[exp.If(this=test, true=sql)])


def lookup_in(scope: Mapping[str, Mapping[str, Field]]) -> Lookup:
    """How column references resolve: alias and name to the field's facts."""

    def find(node: exp.Column) -> Typed:
        field = scope.get(node.table, {}).get(node.name)
        if field is None:
            raise QueryError(
                f"{node.name} belongs to another SELECT; a sub-query cannot look at the rows around it, "
                "join it instead."
            )
        integral = field.kind == "integer" and not field.floating
        size = field.size if field.size is not None else 64 if integral else LARGE
        facts = (field.low, field.high, field.nullable, enumerated(field))
        # A column of NULLs has a type in every engine, and not the same one; NULL itself fits anywhere.
        sql: exp.Expr = exp.null() if field.kind == "null" else marked(node.copy(), field.weight)
        limits = field.limits if field.kind in TIMES else None
        return Typed(sql, field.kind, *facts, integral=integral, size=size, limits=limits, wide=field.wide)

    return find
