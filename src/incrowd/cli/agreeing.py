"""Asks before a question takes most of what is left, where its price was found and not named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli import screen
from incrowd.errors import NotPermitted

if TYPE_CHECKING:
    from incrowd.curator import Balance, Price

Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Pay for --within without asking, even most of what is left.")
]
MOST = 0.5
"""What part of the rest is most of it."""


def refuse_unless_agreed(price: Price) -> None:
    """Raise NotPermitted unless the price takes little, is nothing, or is agreed to on the terminal."""
    tightest = max(price.before, key=lambda balance: _taken(price, balance), default=None)
    if price.free or not price.fits or tightest is None or _taken(price, tightest) <= MOST:
        return
    most = "at most " if price.steps else ""
    cost = f"{most}{screen.promise(price.epsilon, price.delta)}"
    taken = f"{screen.percent(_taken(price, tightest))} of what is left of {_lower(tightest.cap.whose)}"
    if not sys.stdin.isatty():
        raise NotPermitted(
            f"The question would take {cost}, {taken}; say --yes to pay that, or --epsilon for the most that "
            "may be paid."
        )
    if not typer.confirm(f"This takes {cost}, {taken}. Go on?", err=True):
        raise NotPermitted(
            "Nothing was spent; name a larger error with --within, or the most with --epsilon."
        )


def _taken(price: Price, balance: Balance) -> float:
    """What part of the rest of a cap a price takes."""
    left = balance.affordable
    return min(1.0, price.epsilon / left) if left > 0 else 0.0


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]
