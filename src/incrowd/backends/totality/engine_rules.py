"""The differences between engines: which arithmetic raises, how wide sums are, which types columns have.

The tests of this folder try each fact against the engine itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from incrowd.backends.totality.values import (
    LONGEST,
    Kind,
    Value,
    any_double,
    any_numeric,
    boolean,
    integer,
    other,
    text,
    time,
)
from incrowd.query.typed import fold


@dataclass(frozen=True)
class Engine:
    """The facts about an engine that decide what raises."""

    name: str
    """The name of its dialect in sqlglot."""
    columns: Callable[[str], Value]
    """Maps the engine's name of a column type to the values of such a column."""
    checks_floats: bool = False
    """True if a float64 that overflows, vanishes or is divided by zero raises."""
    integer_slash: bool = False
    """True if / of whole numbers is a whole number."""
    division_by_zero: bool = False
    """True if dividing whole numbers by zero raises."""
    sum_bits: int = 128
    """The width of a sum of whole numbers; 0 if it is unlimited."""
    folds_names: bool = False
    """True if names are compared without regard to case."""
    longest: int = LONGEST
    """The longest text, in letters, that functions of text take without raising."""
    tries: Mapping[str, tuple[Kind, ...]] = field(default_factory=dict)
    """For each column type, the kinds to which TRY_CAST converts any value. On other pairs it may raise."""

    def named(self, name: str) -> str:
        """A name as the engine compares it."""
        return fold(name) if self.folds_names else name


_TIMESTAMPS = ("timestamp", "timestamp without time zone", "timestamp_ntz")


def _common(word: str) -> Value | None:
    if word in ("boolean", "bool"):
        return boolean()
    if word in ("double", "double precision"):
        return any_double()
    if word in ("text", "varchar", "character varying", "string"):
        return text()
    return time(Kind.DATE) if word == "date" else None


_BITS = {"tinyint": 8, "smallint": 16, "integer": 32, "int": 32, "bigint": 64, "hugeint": 128}


def _word(engine_type: str) -> str:
    return re.sub(r"\(.*\)", "", engine_type.strip().lower(), flags=re.DOTALL).strip()


def _duckdb(engine_type: str) -> Value:
    word = _word(engine_type)
    if word in _BITS:
        return integer(_BITS[word])
    if word == "timestamp":
        return time(Kind.TIMESTAMP)
    return _common(word) or other(word)


def _postgres(engine_type: str) -> Value:
    word = _word(engine_type)
    length = re.fullmatch(r"(?:character varying|character|text)\(([0-9]+)\)", engine_type)
    if length:
        return text(int(length[1]))
    if word in _BITS and word != "hugeint":
        return integer(_BITS[word])
    if word in ("numeric", "decimal"):
        return any_numeric()
    if word in _TIMESTAMPS:
        return time(Kind.TIMESTAMP)
    return _common(word) or other(word)


def _spark(engine_type: str) -> Value:
    word = _word(engine_type)
    if word in _BITS and word != "hugeint":
        return integer(_BITS[word])
    if word in ("timestamp_ntz", "timestamp", "timestamp_ltz"):
        # All of them count microseconds, and the session's zone is UTC: they differ in name only.
        return time(Kind.TIMESTAMP)
    return _common(word) or other(word)


_MOMENTS = ("timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone", "timestamptz")
_WHOLE = ("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint")
DUCKDB = Engine(
    "duckdb",
    _duckdb,
    division_by_zero=True,
    folds_names=True,
    tries={
        **dict.fromkeys(_WHOLE, (Kind.INTEGER, Kind.DOUBLE, Kind.TEXT)),
        **dict.fromkeys(("float", "decimal"), (Kind.INTEGER, Kind.DOUBLE)),
        **dict.fromkeys(("enum", "uuid", "time"), (Kind.TEXT,)),
        # Not text: a timestamp beyond the calendar raises an error that ends the connection.
        **dict.fromkeys(_MOMENTS, (Kind.TIMESTAMP, Kind.DATE)),
    },
)
POSTGRES = Engine(
    "postgres",
    _postgres,
    checks_floats=True,
    integer_slash=True,
    division_by_zero=True,
    sum_bits=0,
    # Functions of text raise from about 100 million bytes on.
    longest=20_000_000,
)
SPARK = Engine(
    "spark",
    _spark,
    sum_bits=64,
    tries=dict.fromkeys(("decimal", "float"), (Kind.INTEGER, Kind.DOUBLE)),
)
ENGINES = {engine.name: engine for engine in (DUCKDB, POSTGRES, SPARK)}
