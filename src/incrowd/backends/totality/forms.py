"""Texts whose form is known: those that have passed a grammar, and parts of such texts.

PostgreSQL's casts from text raise, so such a cast is total only after a test of the grammar and, for dates, a
test that the day exists in the calendar.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from incrowd.backends.totality.guards import Fact
from incrowd.backends.totality.reading import as_read
from incrowd.backends.totality.templates import HOLE, filled
from incrowd.backends.totality.values import Kind, Value
from incrowd.query.grammar import GRAMMARS

if TYPE_CHECKING:
    from incrowd.backends.totality.walk import Environment, Walk

DAY, MOMENT = "existing date", "existing timestamp"
"""The forms of texts whose day exists, in addition to those of the grammars."""
_PARTS = {("date", 1, 4), ("date", 6, 2), ("date", 9, 2)}
"""The digits in a date's text: the form, the first letter, and the number of letters."""
_PATTERNS = {f"^({pattern})$": kind for kind, pattern in GRAMMARS.items()}


def text_facts(walk: Walk, test: exp.Expr, known: Environment) -> Iterator[Fact]:
    """The facts about the form of a text that follow from a true test."""
    while isinstance(test, exp.Paren):
        test = test.this
    if isinstance(test, exp.RegexpLike) and test.expression.is_string:
        kind = _PATTERNS.get(test.expression.name)
        if kind is not None:
            yield test.this, walk.value(test.this, known).but(form=kind)
    elif isinstance(test, exp.And) and walk.engine.name == "postgres":
        text = filled(_calendar(), test, walk.keys)
        if text is None:
            return
        value = walk.value(text, known)
        if value.form == "date":
            yield text, value.but(form=DAY)
            if isinstance(text, exp.Left):
                whole = walk.value(text.this, known)
                if whole.form == "timestamp":
                    yield text.this, whole.but(form=MOMENT)


def part_of(value: Value, start: int, length: int) -> str:
    """The form of `length` letters of a text from `start` on."""
    if value.form in ("timestamp", MOMENT) and start == 1 and length == 10:
        return "date"
    form = {"timestamp": "date", MOMENT: "date", DAY: "date"}.get(value.form, value.form)
    return "digits" if (form, start, length) in _PARTS else ""


@functools.cache
def _calendar() -> exp.Expr:
    """PostgreSQL's test that the day of a text exists."""
    from incrowd.backends.postgres_sql import _exists

    return as_read(_exists(exp.column(HOLE)), "postgres")


def is_text(value: Value) -> bool:
    """True if a value is text or NULL."""
    return value.kind in (Kind.TEXT, Kind.NULL)
