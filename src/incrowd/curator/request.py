"""A request: the SQL that was asked, and everything else that decides its price and its answer."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from typing import Any, TypedDict

import numpy as np

from incrowd.catalog.declaration import nearest
from incrowd.curator.ibis_questions import as_sql
from incrowd.errors import InvalidInput
from incrowd.noise.readings import (
    NUMBERS,
    decimal,
    is_number,
    plain,
    shown,
)
from incrowd.query.dialects import DIALECTS

_LEAST = 1e-300
"""The least epsilon and error that can be asked for: below, their inverses are no floats."""


def plain_number(value: Any, name: str) -> Any:
    """A number of NumPy, Decimal or Fraction as Python's own; what is no number is left to those who read it.

    >>> plain_number(np.float32(0.1), "epsilon"), plain_number(Decimal("2"), "epsilon")
    (0.1, 2.0)
    """
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        return value
    if type(value) is float:
        return value
    if not math.isfinite(finite := _as_float(value, name)):
        return finite
    return int(value) if isinstance(value, numbers.Integral) else finite


def _as_float(value: Any, name: str) -> float:
    if isinstance(value, Decimal) and not value.is_finite():
        return math.nan
    with contextlib.suppress(OverflowError):
        return float(decimal(value, name)) if math.isfinite(value) else math.nan
    raise InvalidInput(f"{name} must be a number that is below 1e308, not {shown(value)}.")


class Options(TypedDict, total=False):
    """The keywords of `Curator.ask` and `Curator.price`; `Request` says what they mean."""

    delta: float | None
    within: float | None
    confidence: float | None
    analyst: str | None
    contribution: int | None
    groups: int | None
    rescale: bool
    dialect: str | None


@dataclass(frozen=True)
class Request:
    """One question with its options; None leaves a choice to the SQL's own options and the owner's defaults.

    >>> Request("SELECT COUNT(*) FROM people", 0.5, analyst="ana").within is None
    True
    """

    sql: str
    epsilon: float | None = None
    """The price; the most that may be spent if `within` is given too."""
    _: KW_ONLY
    delta: float | None = None
    within: float | None = None
    """Ask for the cheapest epsilon whose error stays within this, at `confidence`."""
    confidence: float | None = None
    """The probability with which intervals contain the truth."""
    analyst: str | None = None
    """Who asks and pays."""
    contribution: int | None = None
    """How many rows one unit may count for; chosen privately where nobody says."""
    groups: int | None = None
    """How many groups one unit may count for."""
    rescale: bool = True
    """Whether to undo the shrinking of heavy units with a privately measured total."""
    dialect: str | None = None
    """The dialect of SQL that the question is written in; DuckDB's if none is named."""

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "within", "confidence", "contribution", "groups"):
            object.__setattr__(self, name, plain_number(getattr(self, name), name))
        for name in ("epsilon", "within"):
            value = getattr(self, name)
            if isinstance(value, bool | np.bool_):
                raise InvalidInput(f"{name} must be a positive number, not a truth value.")
            if type(value) is float and 0 < value < _LEAST:
                raise InvalidInput(f"{name} must be a positive number of at least {_LEAST:g}, not {value!r}.")
        if self.delta is not None and not is_number(self.delta):
            raise InvalidInput(
                f"delta must be a number from 0 up to but not including 1, not {shown(self.delta)}."
            )
        confidence = self.confidence
        if confidence is not None and not (type(confidence) in (int, float) and 0 < confidence < 1):
            raise InvalidInput(f"confidence must lie between 0 and 1, not {shown(confidence)}.")
        if not isinstance(self.rescale, bool | np.bool_):
            raise InvalidInput("rescale must be True or False.")
        object.__setattr__(self, "rescale", bool(self.rescale))
        if self.dialect is not None and not (isinstance(self.dialect, str) and self.dialect in DIALECTS):
            hint = nearest(str(self.dialect)[:50], tuple(DIALECTS))
            raise InvalidInput(f"dialect names a dialect of SQL, not {shown(self.dialect)}; {hint}.")


def request_of(asked: str, sql: Any, epsilon: float | None, options: Mapping[str, Any]) -> Request:
    """The request of a call of `ask` or `price`, with the options that it was given.

    sql: the question as text, or as an ibis expression.
    """
    for name in options:
        if name not in Options.__annotations__:
            hint = nearest(name, ("epsilon", *Options.__annotations__))
            raise InvalidInput(f"{asked} has no option {name}; {hint}.")
    text = as_sql(sql)
    if text is not sql and options.get("dialect") is not None:
        raise InvalidInput("An ibis expression is in no dialect; leave dialect out.")
    return Request(text, epsilon, **options)
