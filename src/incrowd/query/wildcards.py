"""Patterns of LIKE, in one spelling that every engine reads alike.

Engines differ about a backslash and about an escape that stands before an ordinary letter. So a pattern with
ESCAPE is read here, to letters and wildcards, and written again: with `!` before each letter that is one of
`%`, `_` and `!`, which all engines read as that letter.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError

ESCAPE = "!"
_SPECIAL = "%_"


def respelled(pattern: str, escape: str, said: str) -> str:
    """A pattern whose letters are escaped with `escape`, escaped with `!` where they need it.

    >>> respelled("50#% off!_", "#", "")
    '50!% off!!_'
    """
    if len(escape) != 1 or escape in _SPECIAL:
        raise QueryError(
            f"{said} needs one letter other than % and _ after ESCAPE, as in x LIKE '50!%' ESCAPE '!'."
        )
    written, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, "")
            if escaped not in (*_SPECIAL, escape) or not escaped:
                raise QueryError(
                    f"In {said}, {escape} must stand before %, _ or {escape}; write it twice where it stands "
                    "for itself."
                )
            written.append(ESCAPE + escaped if escaped in (*_SPECIAL, ESCAPE) else escaped)
        elif letter == ESCAPE:
            written.append(ESCAPE + ESCAPE)
        else:
            written.append(letter)
    return "".join(written)


def is_respelled(pattern: str) -> bool:
    """True for what `respelled` writes: `!` stands before `%`, `_` or `!` alone."""
    letters = iter(pattern)
    return all(letter != ESCAPE or next(letters, "") in (*_SPECIAL, ESCAPE) for letter in letters)


def escaped(like: exp.Expr) -> exp.Escape:
    """A LIKE whose pattern is respelled, with its ESCAPE."""
    return exp.Escape(this=like, expression=exp.Literal.string(ESCAPE))
