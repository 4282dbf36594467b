"""Regular expressions as trees, and their text for each engine: what `pattern_reading` has read.

Only punctuation has a backslash, classes are lists and ranges of letters and digits, and groups are
`(?:...)`: that much RE2, PostgreSQL and Java read alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from incrowd.catalog.names import fold
from incrowd.errors import QueryError

_ENDS = {"spark": r"\z"}
"""How the end of the text is written where $ also stands before a line break."""
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {letter: "\\" + name for name, letter in CONTROLS.items()}


@dataclass(frozen=True)
class Class:
    """One letter: of these, or of all others."""

    letters: frozenset[str]
    others: bool = False

    def written(self) -> str:
        """The class in every engine's words."""
        if len(self.letters) == 1 and not self.others:
            return _letter(next(iter(self.letters)))
        inside = "".join(_runs(sorted(self.letters)))
        return f"[{'^' if self.others else ''}{inside}]"

    def meets(self, other: Class) -> bool:
        """Whether some letter is in both."""
        if self.others and other.others:
            return True
        if self.others or other.others:
            some, but = (other, self) if self.others else (self, other)
            return bool(some.letters - but.letters)
        return bool(self.letters & other.letters)


@dataclass(frozen=True)
class Part:
    """A class or a group, and how often it stands; `most` is None without an end."""

    what: Class | Choice
    least: int = 1
    most: int | None = 1

    def written(self) -> str:
        """The part in every engine's words."""
        return self.what.written() + self._times()

    def _times(self) -> str:
        known = {(1, 1): "", (0, 1): "?", (0, None): "*", (1, None): "+"}
        if (self.least, self.most) in known:
            return known[self.least, self.most]
        if self.least == self.most:
            return f"{{{self.least}}}"
        return f"{{{self.least},{'' if self.most is None else self.most}}}"

    @property
    def states(self) -> int:
        """How many letters an engine unrolls it into."""
        times = max(self.least, self.most or 0, 1)
        return times * (1 if isinstance(self.what, Class) else self.what.states)


@dataclass(frozen=True)
class Choice:
    """One of several sequences."""

    branches: tuple[tuple[Part, ...], ...]

    def written(self) -> str:
        """The group in every engine's words."""
        return f"(?:{self.alternatives()})"

    def alternatives(self) -> str:
        """Its branches, without brackets."""
        return "|".join("".join(part.written() for part in branch) for branch in self.branches)

    @property
    def states(self) -> int:
        """How many letters an engine unrolls it into."""
        return sum(part.states for branch in self.branches for part in branch)


@dataclass(frozen=True)
class Pattern:
    """A pattern that every engine reads alike; with `start` and `end`, from and to the ends of the text."""

    choice: Choice
    start: bool = False
    end: bool = False

    def written(self, engine: str) -> str:
        """The pattern in an engine's words, to be found anywhere in a text."""
        several = (self.start or self.end) and len(self.choice.branches) > 1
        inside = self.choice.written() if several else self.choice.alternatives()
        return f"{'^' if self.start else ''}{inside}{_ENDS.get(engine, '$') if self.end else ''}"

    def whole(self) -> Pattern:
        """The pattern, to match whole texts."""
        return Pattern(self.choice, True, True)

    def in_lower_case(self, said: str) -> Pattern:
        """The pattern for texts in lower case, in which A to Z stand for a to z."""

        def lower(part: Part) -> Part:
            if isinstance(part.what, Choice):
                return replace(part, what=lowered(part.what))
            if any(not letter.isascii() and letter.lower() != letter.upper() for letter in part.what.letters):
                raise QueryError(f"{said} asks for letters beyond A to Z in either case; write both of them.")
            return replace(part, what=replace(part.what, letters=frozenset(map(fold, part.what.letters))))

        def lowered(choice: Choice) -> Choice:
            return Choice(tuple(tuple(map(lower, branch)) for branch in choice.branches))

        return replace(self, choice=lowered(self.choice))


def _letter(letter: str) -> str:
    if letter in _WRITTEN:
        return _WRITTEN[letter]
    special = letter.isascii() and not letter.isalnum() and letter not in " _"
    return "\\" + letter if special else letter


def _runs(letters: list[str]) -> Iterator[str]:
    """Sorted letters, with ranges of digits and of letters of one case."""
    place = 0
    while place < len(letters):
        stop = place
        while (
            stop + 1 < len(letters)
            and ord(letters[stop + 1]) == ord(letters[stop]) + 1
            and letters[stop].isascii()
            and letters[stop].isalnum()
            and letters[stop + 1].isascii()
            and letters[stop + 1].isalnum()
        ):
            stop += 1
        if stop - place >= 2:
            yield f"{letters[place]}-{letters[stop]}"
        else:
            yield from map(_letter, letters[place : stop + 1])
        place = stop + 1
