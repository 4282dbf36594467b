"""What the owner declares of people: the dataset's budget, analysts, groups, and the defaults of a question.

An (epsilon, delta) is the promise about everything that its holder ever sees. The dataset's holds against all
analysts together, who may talk to each other; a group's against its members together; an analyst's against
her alone; a window's against what she sees in one day (UTC), always beside her lifetime total. A delta that
is left out is that of the promise above it; 0 means a pure promise, which nothing with a delta fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from incrowd.catalog.addresses import account_place
from incrowd.catalog.declaration import (
    Confidence,
    Declaration,
    Delta,
    Name,
    Positive,
    Share,
    Text,
    fault,
    shown,
)

Sharing = Literal["own", "group", "all"]


def _names(value: object) -> object:
    if isinstance(value, str):
        raise fault(f"expected a list of names, such as [{value}]")
    if not isinstance(value, list | tuple):
        raise fault(f"expected a list of names, not {shown(value)}")
    again = next((entry for i, entry in enumerate(value) if entry in value[:i]), None)
    if again is not None:
        raise fault(f"{shown(again)} is listed twice")
    return value


Names = Annotated[tuple[Name, ...], BeforeValidator(_names)]


class Budget(Declaration):
    """The dataset's total over all analysts.

    `threshold_share` is the part of delta that is set aside for what costs delta alone: the thresholds that
    let private group keys through.
    """

    epsilon: Positive
    delta: Delta = 0.0
    threshold_share: Share | None = None


class Window(Declaration):
    """What an analyst may spend in one day (UTC)."""

    epsilon: Positive
    delta: Delta | None = None


class Analyst(Declaration):
    """One analyst: a lifetime total, perhaps a window per day, perhaps a cap on the epsilon of one query."""

    epsilon: Positive
    delta: Delta | None = None
    per_day: Window | None = None
    max_epsilon: Positive | None = None
    groups: Names = ()
    description: Text = ""

    @model_validator(mode="after")
    def _parts_below_the_total(self) -> Analyst:
        if self.per_day is not None:
            if self.per_day.epsilon > self.epsilon:
                raise fault("a day's budget is above the analyst's lifetime total", "per_day", "epsilon")
            if self.delta is not None and (self.per_day.delta or 0.0) > self.delta:
                raise fault("a day's delta is above the analyst's lifetime total", "per_day", "delta")
        if self.max_epsilon is not None and self.max_epsilon > self.epsilon:
            raise fault("the cap per query is above the analyst's lifetime total", "max_epsilon")
        return self


class Group(Declaration):
    """Analysts who share one total beside their own."""

    epsilon: Positive
    delta: Delta | None = None
    members: Names = ()
    description: Text = ""


class Defaults(Declaration):
    """Values for questions that leave them out."""

    epsilon: Positive | None = None
    delta: Delta | None = None
    confidence: Confidence = 0.95


def read_sharing(value: Any) -> Any:
    """One of own, group, all."""
    if isinstance(value, Mapping) or value not in ("own", "group", "all"):
        raise fault(f"expected own, group or all, not {shown(value)}")
    return value


def read_anchor(value: Any) -> Any:
    """A path, a URL, or the words of a command."""
    if isinstance(value, list | tuple):
        if not value or not all(isinstance(word, str) for word in value):
            raise fault("expected the words of a command, such as [ssh, host, keep-head]")
        if any("\0" in word for word in value):
            raise fault("the words of a command must not hold the character NUL; leave it out")
        return tuple(value)
    if not isinstance(value, str):
        raise fault(f"expected a path, a URL, or the words of a command as a list, not {shown(value)}")
    return account_place(value)
