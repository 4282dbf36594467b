"""What differs between engines: which arithmetic raises, how wide sums are, what the types of tables are.

Each fact here is tried against the engine itself by the tests of this folder.
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
    """An engine, as far as it matters to what raises."""

    name: str
    """As the parser knows its dialect."""
    columns: Callable[[str], Value]
    """The values of a table's column, by the engine's name of its type."""
    checks_floats: bool = False
    """Whether float64 that overflows, vanishes or is divided by zero raises."""
    integer_slash: bool = False
    """Whether / of whole numbers is a whole number."""
    division_by_zero: bool = False
    """Whether dividing whole numbers by zero raises."""
    sum_bits: int = 128
    """The width of a sum of whole numbers; 0 if it has no end."""
    folds_names: bool = False
    """Whether names are compared without regard to case."""
    longest: int = LONGEST
    """The longest text, in letters, that functions of text take without raising."""
    tries: Mapping[str, tuple[Kind, ...]] = field(default_factory=dict)
    """The types of tables that TRY_CAST makes others of whatever they hold. It raises on some."""

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
        # Both count microseconds, and the session's zone is UTC: they differ in name only.
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
        # Not text: of moments beyond the calendar, that fails with an error that ends the connection.
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
    # They raise from some 100 million bytes on.
    longest=20_000_000,
)
SPARK = Engine(
    "spark",
    _spark,
    sum_bits=64,
    tries=dict.fromkeys(("decimal", "float"), (Kind.INTEGER, Kind.DOUBLE)),
)
ENGINES = {each.name: each for each in (DUCKDB, POSTGRES, SPARK)}
