"""A request: the SQL that was asked, and everything else that decides its price and its answer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypedDict


class Options(TypedDict, total=False):
    """The keywords of `Curator.ask` and `Curator.price`; `Request` says what they mean."""

    delta: float | None
    within: float | None
    confidence: float | None
    analyst: str | None
    contribution: int | None
    groups: int | None
    rescale: bool


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
