"""What the owner declares of a column: its type, the bounds of its values, its public domain.

Bounds and domains are public: they are printed in prices and answers, and must come from what the owner
knows without looking at the private rows. What a declaration means:

- `bounds: [low, high]`: values are clamped into it before they count; both ends belong to it. A value that is
  not there (NULL, NaN) is left out of sums, averages and quantiles.
- `domain`: the values that may appear as group keys. Each of them appears in an answer, empty or not; a row
  with any other value belongs to no group.
- `nullable: true` (the default): NULL may occur, and is one more group key beside the domain; `false`
  promises that it does not, and a NULL that occurs all the same is treated as a value outside the domain.
- `contribution`: the most that one unit's values may add up to, in absolute value, in a SUM of the column.
- Timestamps have no time zone; one that is written with a zone is turned into UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from incrowd.catalog.declaration import (
    PLACEHOLDER,
    Declaration,
    Name,
    Positive,
    Switch,
    Text,
    fault,
    is_placeholder,
    nearest,
    shown,
)
from incrowd.catalog.declaration import number as read_number
from incrowd.catalog.types import NUMERIC, TIMES, TYPES, Type, column_type

Scalar = int | float | Decimal | str | bool | date | datetime
_INT64 = range(-(2**63), 2**63)


class DomainFrom(Declaration):
    """A domain that is the set of values in a column of a public table."""

    table: Name
    column: Name

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


def typed(value: object, kind: Type) -> Scalar:
    """`value` as a value of a column of type `kind`; a fault if it is none.

    >>> typed(3, "float"), typed("2024-02-29", "date")
    (3.0, datetime.date(2024, 2, 29))
    """
    if value is None:
        raise fault("NULL is not a value; say nullable: true instead")
    if is_placeholder(value):
        raise fault(f"still says {PLACEHOLDER}; write a value that you know without looking at the data")
    match kind:
        case "integer":
            return _integer(value)
        case "float":
            return read_number(float(value) if isinstance(value, Decimal) else value) + 0.0
        case "decimal":
            return _decimal(value)
        case "text":
            if isinstance(value, str):
                return value
        case "boolean":
            if isinstance(value, bool):
                return value
        case "date":
            return _date(value)
        case "timestamp":
            return _timestamp(value)
    hint = "; put quotes around it" if kind == "text" else ""
    raise fault(f"{shown(value)} is not a value of type {kind}{hint}")


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise fault(f"{shown(value)} is not a value of type integer")
    if not isinstance(value, int) and (not math.isfinite(value) or value != int(value)):
        raise fault(f"{shown(value)} is not a whole number; the column's type is integer")
    if int(value) not in _INT64:
        raise fault(f"{shown(value)} is beyond the 64-bit integers")
    return int(value)


def _decimal(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise fault(f"{shown(value)} is not a value of type decimal")
    try:
        # The shortest text of a float is what the owner wrote: 0.1 means one tenth.
        result = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except InvalidOperation:
        raise fault(f"{shown(value)} is not a value of type decimal") from None
    if not result.is_finite():
        raise fault("expected a finite number")
    return result


def _date(value: object) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise fault(f"{shown(value)} is not a date such as 2024-12-31") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise fault(f"{shown(value)} is not a date such as 2024-12-31")


def _timestamp(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise fault(f"{shown(value)} is not a timestamp such as 2024-12-31 23:59:59") from None
    if isinstance(value, datetime):
        try:
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        except OverflowError:
            raise fault(f"{shown(value)} leaves the calendar when it is turned into UTC") from None
    if isinstance(value, date):
        return datetime.combine(value, time())
    raise fault(f"{shown(value)} is not a timestamp such as 2024-12-31 23:59:59")


def _at(index: int, value: object, kind: Type) -> Scalar:
    """Like `typed`, but a fault names the place in the list."""
    try:
        return typed(value, kind)
    except PydanticCustomError as error:
        raise fault(error.message(), index) from None


class Column(Declaration):
    """A column: its type, and the public facts that bound what one row of it can do."""

    type: Type
    bounds: tuple[Any, Any] | None = None
    domain: Any = None
    nullable: Switch = True
    contribution: Positive | None = None
    description: Text = Field(default="")

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, value: object) -> object:
        if value in TYPES:
            return value
        if is_placeholder(value):
            raise fault(f"still says {PLACEHOLDER}; choose from {', '.join(TYPES)}")
        meant = column_type(str(value)) if isinstance(value, str) else None
        hint = f"perhaps you mean {meant}" if meant else nearest(value, TYPES)
        raise fault(f"{shown(value)} is not a type, {hint}")

    @field_validator("bounds", mode="before")
    @classmethod
    def _typed_bounds(cls, value: object, info: ValidationInfo) -> tuple[Scalar, Scalar] | None:
        kind = cast("Type | None", info.data.get("type"))
        if value is None or kind is None:
            return None
        if kind not in NUMERIC | TIMES:
            raise fault(f"a {kind} column has no bounds; declare a domain if its values are public")
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise fault("expected two values, [low, high]")
        low, high = (_at(index, end, kind) for index, end in enumerate(value))
        if low > high:  # type: ignore[operator]
            raise fault(f"the lower bound {low} is above the upper bound {high}; write [{high}, {low}]")
        if kind == "float" and not math.isfinite(cast("float", high) - cast("float", low)):
            raise fault("the bounds are too far apart: their difference overflows")
        return low, high

    @field_validator("domain", mode="before")
    @classmethod
    def _typed_domain(cls, value: object, info: ValidationInfo) -> tuple[Scalar, ...] | DomainFrom | None:
        kind = cast("Type | None", info.data.get("type"))
        if value is None or kind is None or isinstance(value, DomainFrom):
            return cast("DomainFrom | None", value)
        if isinstance(value, Mapping):
            return _domain_from(value)
        if not isinstance(value, list | tuple):
            raise fault("expected a list of values, or {from: public_table.column}")
        if not value:
            raise fault("an empty domain lets no row count; leave it out, or list the values")
        values = tuple(_at(index, entry, kind) for index, entry in enumerate(value))
        if len(set(values)) != len(values):
            again = next(i for i, entry in enumerate(values) if entry in values[:i])
            raise fault(f"{shown(values[again])} is listed twice", again)
        bounds = info.data.get("bounds")
        if bounds is not None:
            for index, entry in enumerate(values):
                if not bounds[0] <= entry <= bounds[1]:
                    raise fault(f"{shown(entry)} lies outside the bounds [{bounds[0]}, {bounds[1]}]", index)
        return values

    @model_validator(mode="after")
    def _contribution_of_numbers(self) -> Column:
        if self.contribution is not None and self.type not in NUMERIC:
            raise fault(f"a {self.type} column cannot be summed; leave contribution out", "contribution")
        return self

    @property
    def values(self) -> tuple[Scalar, ...] | None:
        """The listed domain; both truth values for a boolean column; None where it must be looked up."""
        if isinstance(self.domain, tuple):
            return self.domain
        return (False, True) if self.type == "boolean" and self.domain is None else None

    @property
    def limits(self) -> tuple[Scalar, Scalar] | None:
        """The bounds, or else the ends of a listed domain of numbers or dates."""
        if self.bounds is not None:
            return self.bounds
        if isinstance(self.domain, tuple) and self.type in NUMERIC | TIMES:
            return min(self.domain), max(self.domain)
        return None


def _domain_from(value: Mapping[Any, Any]) -> DomainFrom:
    if list(value) != ["from"] or not isinstance(value["from"], str) or "." not in value["from"]:
        raise fault("expected a list of values, or {from: public_table.column}")
    table, _, column = value["from"].partition(".")
    return DomainFrom(table=table, column=column)
