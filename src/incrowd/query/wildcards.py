"""Patterns of LIKE, in one spelling that every engine reads alike.

Engines differ about a backslash and about an escape that stands before an ordinary letter. So a pattern with
ESCAPE is read here, to letters and wildcards, and written again: with `!` before each letter that is one of
`%`, `_` and `!`, which all engines read as that letter.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import truth
from incrowd.query.typed import Typed, said

ESCAPE = "!"
MOST_WILDCARDS = 100
_SPECIAL = "%_"


def respelled(pattern: str, escape: str, written_as: str) -> str:
    """A pattern whose letters are escaped with `escape`, escaped with `!` where they need it.

    >>> respelled("50#% off!_", "#", "")
    '50!% off!!_'
    """
    if len(escape) != 1 or escape in _SPECIAL:
        raise QueryError(
            f"{written_as} needs one letter other than % and _ after ESCAPE, as in x LIKE '50!%' ESCAPE '!'."
        )
    written, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, "")
            if escaped not in (*_SPECIAL, escape) or not escaped:
                raise QueryError(
                    f"In {written_as}, {escape} must stand before %, _ or {escape}; write it twice where it "
                    "stands for itself."
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


def with_escape(like: exp.Expr) -> exp.Escape:
    """A LIKE whose pattern is respelled, with its ESCAPE."""
    return exp.Escape(this=like, expression=exp.Literal.string(ESCAPE))


def matched(node: exp.Expr, subject: Typed, pattern: str | None, escaped: bool = False) -> Typed:
    """x LIKE pattern; `pattern` is None where it is no constant."""
    if subject.kind != "text" or pattern is None:
        raise QueryError(f"{said(node)} needs text on the left and a constant pattern on the right.")
    if "\\" in pattern and not escaped:
        raise QueryError(
            "A LIKE pattern must not hold a backslash; engines read it differently. Say what it means, as in "
            "x LIKE '50!%' ESCAPE '!'."
        )
    if pattern.count("%") > MOST_WILDCARDS:
        # Engines match each of them one call deeper, but only on rows that match so far: with thousands they
        # run out of stack, on those rows alone.
        raise QueryError(f"A LIKE pattern holds at most {MOST_WILDCARDS} signs %; write several patterns.")
    text = exp.Literal.string(pattern)
    if isinstance(node, exp.ILike):
        # Engines fold case by rules of their own here, but LOWER is one for all of them.
        like = exp.Like(this=exp.Lower(this=subject.sql), expression=exp.Lower(this=text))
    else:
        like = exp.Like(this=exp.paren(subject.sql), expression=text)
    return truth(with_escape(like) if escaped else like, subject)
