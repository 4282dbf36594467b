"""A doubt about a question: a condition that no row can meet, in a sentence that names what may be meant.

It is about declarations and the question's own text; rows may be otherwise than declared, so it is a warning
and never a refusal.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from incrowd.catalog.names import fold

MOST_LISTED = 6
"""The most values of a domain that are all named."""
_LONGEST = 40


@dataclass(frozen=True)
class Doubt:
    """A condition that no row can meet; where `domain` is to be looked up, one that perhaps no row can."""

    condition: str
    """As the user wrote it."""
    reason: str = ""
    """Why no row can meet it; empty while the domain is not looked up."""
    unlike: bool = False
    """Whether it asks for other values than a constant (`<>`), and leaves out nothing."""
    subject: str = ""
    """What is compared with constants."""
    wanted: tuple[Any, ...] = ()
    """The constants that must be among the values of a domain."""
    domain: exp.Query | None = None
    """Lists the values in a public table."""

    @property
    def sentence(self) -> str:
        """What to tell the user."""
        outcome = "leaves out no row" if self.unlike else "matches no row"
        return f"{' '.join(self.condition.split())} {outcome}: {self.reason}"

    def among(self, values: Sequence[Any]) -> Doubt | None:
        """The doubt, decided by the values of the domain; None if all constants are among them."""
        known = [value for value in dict.fromkeys(values) if value is not None]
        listed = set(known)
        wrong = [other for other in self.wanted if other not in listed]
        if not wrong or not known:
            return None
        near = nearest_values(wrong[0], known)
        condition = self.condition
        if len(self.wanted) > 1:
            condition = f"{spoken(wrong[0])} in {condition}"
        if len(known) <= MOST_LISTED:
            reason = f"{self.subject} can only be {alternatives(known)}"
        else:
            reason = f"{self.subject} can only be one of {len(known):,} other values"
        meant = f"; did you mean {alternatives(near)}?" if near else "."
        return replace(self, condition=condition, reason=reason + meant, domain=None)


def nearest_values(wrong: Any, known: Sequence[Any]) -> list[Any]:
    """Up to three values of a domain that are most like a constant, the nearest first.

    >>> nearest_values("credit-card", ["cash", "card", "Credit Card"]), nearest_values(7, [1, 5, 6, 30])
    (['Credit Card'], [6, 5, 1])
    """
    if isinstance(wrong, str):
        folded = {fold(value): value for value in known if isinstance(value, str)}
        close = difflib.get_close_matches(fold(wrong[:200]), list(folded)[:10_000], n=3, cutoff=0.55)
        if close:
            # One that is far nearer than the others is the one that is meant.
            return [
                folded[word] for word in close if _likeness(wrong, word) > 0.9 * _likeness(wrong, close[0])
            ]
        return [value for word, value in folded.items() if word and word in fold(wrong)][:3]
    numbers = [value for value in known if isinstance(value, int | float) and not isinstance(value, bool)]
    if isinstance(wrong, bool) or not isinstance(wrong, int | float):
        return []
    return sorted(numbers, key=lambda value: abs(value - wrong))[:3]


def _likeness(wrong: str, word: str) -> float:
    return difflib.SequenceMatcher(None, word, fold(wrong[:200])).ratio()


def spoken(value: Any) -> str:
    """A value as SQL would have it, in one short line.

    >>> spoken("it's"), spoken(2.0), spoken(dt.datetime(2024, 1, 2))
    ("'it''s'", '2', "'2024-01-02'")
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, dt.datetime) and value == dt.datetime.combine(value.date(), dt.time()):
        value = value.date()
    if isinstance(value, int | float):
        return f"{value:.15g}"
    text = " ".join(str(value).split())
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return "'" + text.replace("'", "''") + "'"


def alternatives(values: Sequence[Any]) -> str:
    """Some values with "or" between the last two.

    >>> alternatives(["a"]), alternatives([1, 2, 3])
    ("'a'", '1, 2 or 3')
    """
    *most, last = map(spoken, values)
    return f"{', '.join(most)} or {last}" if most else last
