r"""Regular expressions that mean the same to RE2 (DuckDB), PostgreSQL and Java (Spark), on every text.

A constant pattern is read here, and written again for each engine; what is not listed is refused:

    a letter, \. and the like    that letter
    . \d \w \s \D \W \S [a-z_]   one letter of a class; . is all but a line break, the others are ASCII's
    ^ at the start, $ at the end the ends of the text
    (a|b) (?:a|b)                one of several
    ? * + {m} {m,n} {m,}         how often the letter or class before it stands; after a group only ?

Only whether a text matches is asked, so which of several matches an engine prefers makes no difference:
each decides whether the text is in the same language, over code points.

No text makes an engine raise: only classes are repeated without end, which Java does in a loop, never one
call deeper per letter, and PostgreSQL's patterns stay far below its limits of size. Time: RE2 and PostgreSQL
take linear time. Java goes back over what it tried, so `_cost` bounds how often it can on `LONGEST` letters:
a repetition goes on in one way if what follows cannot begin with a letter that it takes.

>>> read(r"^[^@]+@\w+[.]com$").written("duckdb")
'^[^\\@]+\\@[0-9A-Z_a-z]+\\.com$'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from incrowd.errors import QueryError
from incrowd.query.patterns import CONTROLS, Choice, Class, Part, Pattern

LONGEST = 1_000
"""The most letters that a text may have to be matched."""
MOST_LETTERS = 300
MOST_TIMES = 50
MOST_STATES = 500
MOST_STEPS = 1_100_000
_DIGITS = frozenset("0123456789")
_WORD = _DIGITS | frozenset("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": frozenset(" \t\n\f\r")}
_TIMES = re.compile(r"\{([0-9]{1,3})(,([0-9]{0,3}))?\}")
_SIGNS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def read(text: str) -> Pattern:
    """The pattern that a constant text holds; QueryError where engines read it differently, or may fail."""
    if not text or len(text) > MOST_LETTERS:
        raise QueryError(f"A regular expression has 1 to {MOST_LETTERS} letters here; write several of them.")
    reader = _Reader(text)
    start = reader.take("^")
    choice = reader.choice(top=True)
    end = reader.take("$") or reader.take(r"\z")
    if reader.rest:
        raise reader.fault()
    if (start or end) and len(choice.branches) > 1:
        raise QueryError(
            f"In the regular expression {text}, ^ and $ belong to one side of | alone; write ^(a|b)$."
        )
    pattern = Pattern(choice, start, end)
    if choice.states > MOST_STATES or _cost(pattern) > MOST_STEPS:
        raise QueryError(
            f"The regular expression {text} repeats too much to be fast on every text; begin it with ^, "
            "write [^,]* in place of .* before a comma, or use LIKE or several simpler ones with AND."
        )
    return pattern


def is_known(text: str, engine: str) -> bool:
    """Whether a text is what `Pattern.written` writes for an engine."""
    try:
        return read(text).written(engine) == text
    except QueryError:
        return False


def _cost(pattern: Pattern) -> float:
    """At most so many steps does Java go back on a text of `LONGEST` letters, up to the pattern's length."""
    starts = 1 if pattern.start else LONGEST
    return starts * sum(_ways(branch, True) for branch in pattern.choice.branches)


def _ways(branch: tuple[Part, ...], last: bool) -> float:
    """In how many ways a sequence is tried at one place, with what is read again after it was left open."""
    ways, scans = 1.0, 1.0
    for place, part in enumerate(branch):
        after = branch[place + 1 :]
        many = LONGEST if part.most is None else part.most - part.least + 1
        if isinstance(part.what, Choice):
            ways *= sum(_ways(inner, False) for inner in part.what.branches) + (part.least == 0)
            continue
        if many == 1:
            continue
        if not after and last:
            # It takes all it can: then comes the end of the text, or of the pattern, which needs no more.
            scans = max(scans, many)
        elif after and _excludes(part.what, after[0]):
            scans = max(scans, many)
        else:
            ways *= many
    return ways * scans


def _excludes(what: Class, part: Part) -> bool:
    """Whether what follows begins with a letter that the class does not take."""
    return part.least > 0 and isinstance(part.what, Class) and not what.meets(part.what)


@dataclass
class _Reader:
    text: str
    place: int = 0
    depth: int = 0

    @property
    def rest(self) -> str:
        return self.text[self.place :]

    def take(self, sign: str) -> bool:
        """Whether a sign comes next, which is then read."""
        taken = self.rest.startswith(sign)
        self.place += len(sign) * taken
        return taken

    def fault(self) -> QueryError:
        return QueryError(
            f"The regular expression {self.text} cannot be read alike by every engine from {self.rest!r} on; "
            "use letters, classes such as [a-z] and \\d, (a|b), ? * + {1,3}, ^ at its start and $ at its end."
        )

    def choice(self, top: bool = False) -> Choice:
        """Branches up to a closing bracket, or the end."""
        branches = [self.branch()]
        while self.take("|"):
            branches.append(self.branch())
        return Choice(tuple(branches))

    def branch(self) -> tuple[Part, ...]:
        parts = []
        while self.rest and self.rest[0] not in "|)" and self.rest not in ("$", r"\z"):
            parts.append(self.part())
        if not parts:
            raise self.fault()
        return tuple(parts)

    def part(self) -> Part:
        what: Class | Choice
        if self.take("(?:") or self.take("("):
            self.depth += 1
            if self.depth > 10:
                raise self.fault()
            what = self.choice()
            if not self.take(")"):
                raise self.fault()
            self.depth -= 1
        else:
            what = self.one()
        least, most = self.times()
        if isinstance(what, Choice) and (least, most) not in ((1, 1), (0, 1)):
            raise QueryError(
                f"The regular expression {self.text} repeats a group, which some engines cannot do on every "
                "text; repeat single letters or classes, as in [ab]*, or write the group out."
            )
        return Part(what, least, most)

    def times(self) -> tuple[int, int | None]:
        pair: tuple[int, int | None]
        sign = next((sign for sign in _SIGNS if self.take(sign)), "")
        if sign:
            pair = _SIGNS[sign]
        else:
            found = _TIMES.match(self.rest)
            if found is None:
                return 1, 1
            self.place += found.end()
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            pair = (least, most)
            if max(least, most or 0) > MOST_TIMES or (most is not None and not least <= most) or most == 0:
                raise QueryError(f"A regular expression repeats up to {MOST_TIMES} times with {{m,n}} here.")
        if self.rest[:1] in ("?", "*", "+", "{"):
            raise self.fault()
        return pair

    def one(self) -> Class:
        if self.take("["):
            return self.bracket()
        if self.take("."):
            return Class(frozenset("\n"), others=True)
        if self.rest[:1] == "\\":
            return self.escaped()
        letter = self.rest[:1]
        if letter in "^$*+?{}[]()|" or not _is_plain(letter):
            raise self.fault()
        self.place += 1
        return Class(frozenset(letter))

    def escaped(self) -> Class:
        sign = self.rest[1:2]
        if sign and sign.lower() in _CLASSES:
            self.place += 2
            return Class(_CLASSES[sign.lower()], others=sign.isupper())
        if sign in CONTROLS or (sign and sign.isascii() and sign.isprintable() and not sign.isalnum()):
            self.place += 2
            return Class(frozenset(CONTROLS.get(sign, sign)))
        raise self.fault()

    def bracket(self) -> Class:
        others, letters = self.take("^"), set[str]()
        while not self.take("]"):
            low = self.member()
            if self.rest[:1] == "-" and self.rest[1:2] != "]" and len(low) == 1:
                self.place += 1
                high = self.member()
                (first,), last = low, "".join(high)
                if not (len(last) == 1 and first.isascii() and last.isascii() and first <= last):
                    raise self.fault()
                letters |= {chr(code) for code in range(ord(first), ord(last) + 1)}
            else:
                letters |= low
        if not letters:
            raise self.fault()
        return Class(frozenset(letters), others)

    def member(self) -> frozenset[str]:
        if self.rest[:1] == "\\":
            inner = self.escaped()
            if inner.others:
                raise self.fault()
            return inner.letters
        letter = self.rest[:1]
        if letter in ("[", "^", "]") or self.rest.startswith("&&") or not _is_plain(letter):
            raise self.fault()
        self.place += 1
        return frozenset(letter)


def _is_plain(letter: str) -> bool:
    """A letter that stands for itself; not a control, nor a mark that joins the one before it."""
    return len(letter) == 1 and letter.isprintable()
