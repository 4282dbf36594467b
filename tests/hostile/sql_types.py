"""The storage types of DuckDB's and PostgreSQL's own tables, with their extremes, as SQL literals."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.catalog import column_type
from tests.hostile import values
from tests.hostile.cases import Storage

NUMBERS = ("0", "1", "2", "3", "7")
MOMENTS = ("'2020-01-01'", "'2020-02-01'", "'2020-03-01'")
WORDS = ("'flu'", "'cold'", "'ss'", "'a'", "'i'")
TRUTHS = ("true", "false")
UUIDS = tuple(f"'{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}'" for digit in "0123f")


def quoted(text: str) -> str:
    """A text as a literal of standard SQL."""
    return "'" + text.replace("'", "''") + "'"


def _texts(nul: bool) -> tuple[str, ...]:
    return tuple(quoted(text) for text in values.NASTY_TEXTS if nul or "\x00" not in text)


SPELLED = tuple(quoted(text) for text in ("FLU", "COLD", "A", "SS", "I", *values.SPELLINGS))
"""What collations take for one text."""


def _storage(
    name: str, role: str, nasty: Sequence[str], tame: Sequence[str], exotic: bool = False
) -> Storage:
    """A type whose tame values are the same in each role, but for text, which spells them."""
    roles = {
        "number": ("number", "unit"),
        "moment": ("moment", "unit"),
        "truth": ("truth", "unit"),
        "text": ("number", "moment", "truth", "text", "text", "text", "unit"),
        "word": ("text", "unit"),
    }[role]
    every = dict.fromkeys(("number", "text", "moment", "truth"), tuple(tame))
    if role == "text":
        every = {
            "number": tuple(quoted(number) for number in NUMBERS),
            "text": tuple(tame),
            "moment": MOMENTS,
            "truth": tuple(quoted(truth) for truth in TRUTHS),
        }
    natural = {"word": "text"}.get(role) or column_type(name.partition(" COLLATE")[0])
    return Storage(name, every, tuple(nasty), roles, natural, exotic)


def _whole(bits: int, signed: bool = True) -> list[str]:
    powers = [2**power + more for power in (7, 15, 31, 53, 62, 63, 64, 127) for more in (-1, 0, 1)]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    ends = [low, high, high - 1, low + 1, 21, -6, *powers, *(-power for power in powers)]
    return [str(end) for end in dict.fromkeys(ends) if low <= end <= high]


def _decimal(digits: int, scale: int) -> tuple[list[str], list[str]]:
    most = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
    least = "0." + "0" * (scale - 1) + "1" if scale else "1"
    near = ["9007199254740993", "9223372036854775807", "100000000000000001", "100000000000000003"]
    fitting = [number for number in near if len(number) <= digits - scale]
    tame = [number for number in NUMBERS if digits > scale] or ["0." + number for number in NUMBERS]
    return [most, f"-{most}", least, f"-{least}", *fitting], tame


_FLOATS = [
    "'nan'",
    "'-nan'",
    "'inf'",
    "'-inf'",
    "'-0.0'",
    "'1e308'",
    "'-1e308'",
    "'5e-324'",
    "'0.1'",
    "'9007199254740993'",
]
_REALS = ["'nan'", "'inf'", "'-inf'", "'-0.0'", "'3.4e38'", "'1e-45'", "'0.1'", "'16777217'"]
_DATES = ["'0001-01-01'", "'9999-12-31'", "'10000-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'"]
_STAMPS = [*_DATES, "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'2020-06-30 12:00:00.000001'"]
_DUCK_DATES = [*_DATES, "'5881580-07-10'", "'5877642-06-25 (BC)'"]
_DUCK_STAMPS = [*_STAMPS, "'294247-01-10 04:00:54.775806'", "'290309-12-22 (BC) 00:00:00'"]
_NANOS = ["'1677-09-22 00:00:00'", "'2262-04-11 23:47:16.854775806'", "'2020-01-01 00:00:00.000000001'"]
_NANOS += ["'2020-01-01 00:00:00.000000002'", "'infinity'", "'-infinity'"]

DUCKDB = (
    *(_storage(f"{u}{name}", "number", _whole(bits, not u), NUMBERS)
      for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128))
      for u in ("", "U")),
    _storage("DOUBLE", "number", _FLOATS, NUMBERS),
    _storage("FLOAT", "number", _REALS, NUMBERS),
    *(_storage(f"DECIMAL({digits},{scale})", "number", *_decimal(digits, scale))
      for digits, scale in ((4, 0), (9, 2), (18, 0), (18, 18), (38, 0), (38, 10), (38, 38))),
    _storage("BOOLEAN", "truth", TRUTHS, TRUTHS),
    _storage("VARCHAR", "text", _texts(nul=False), WORDS),
    _storage("VARCHAR", "text", _texts(nul=False), WORDS),
    *(_storage(f"VARCHAR COLLATE {name}", "word", SPELLED, WORDS)
      for name in ("NOCASE", "NFC", "NOACCENT", "NOCASE.NOACCENT", "de")),
    _storage("UUID", "word", (*UUIDS, "'ffffffff-ffff-ffff-ffff-ffffffffffff'"), UUIDS[:4]),
    _storage("ENUM ('flu', 'cold', 'FLU', 'a', 'ss', 'i', '')", "word", ("'FLU'", "''"), WORDS),
    _storage("DATE", "moment", _DUCK_DATES, MOMENTS),
    *(_storage(name, "moment", _STAMPS, MOMENTS) for name in ("TIMESTAMP_S", "TIMESTAMP_MS")),
    *(_storage(name, "moment", _DUCK_STAMPS, MOMENTS) for name in ("TIMESTAMP", "TIMESTAMPTZ")),
    _storage("TIMESTAMP_NS", "moment", _NANOS, MOMENTS),
    _storage("TIME", "moment", ("'00:00:00'", "'24:00:00'"), ("'10:00:00'",), exotic=True),
    _storage("INTERVAL", "moment", ("'1000000 days'", "'-9 months'"), ("'1 day'",), exotic=True),
    _storage("BLOB", "word", (r"'\xFF\xFE'", r"'\x00'"), WORDS, exotic=True),
    _storage("BIT", "word", ("'1'", "'0101'"), ("'101'",), exotic=True),
)  # fmt: skip
"""Types of DuckDB's database files."""

_PG_DATES = ["'0001-01-01'", "'9999-12-31'", "'10000-01-01'", "'infinity'", "'-infinity'", "'4713-01-01 BC'"]
_PG_DATES += ["'5874897-12-31'", "'0044-03-15 BC'"]
_PG_STAMPS = [date for date in _PG_DATES if "5874897" not in date]
_PG_STAMPS += ["'294276-12-31 23:59:59.999999'", "'2020-06-30 12:00:00.000001'", "'0001-01-01 00:00:00'"]
_NUMERICS = [
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "1e-210",
    "1e-220",
    "1e300",
    "-1e300",
    "9223372036854775807.4",
]
_NUMERICS += [
    "100000000000000001",
    "100000000000000003",
    "9223372036854775808",
    "1e130000",
    "1e-16000",
    "0.1",
    "1.0",
    "1.00",
]

POSTGRES = (
    _storage("smallint", "number", _whole(16), NUMBERS),
    _storage("integer", "number", _whole(32), NUMBERS),
    _storage("bigint", "number", _whole(64), NUMBERS),
    _storage("numeric", "number", _NUMERICS, NUMBERS),
    _storage("numeric(38,10)", "number", *_decimal(38, 10)),
    _storage("numeric(5,-2)", "number", ("'NaN'", "9999900", "-100"), ("0", "100", "200", "300")),
    _storage(
        "double precision",
        "number",
        ["'nan'", "'inf'", "'-inf'", "'-0.0'", "'1e308'", "'5e-324'", "'0.1'"],
        NUMBERS,
    ),
    _storage("real", "number", _REALS, NUMBERS),
    _storage("cents", "number", ("'NaN'", "9999999999.99", "-0.01"), NUMBERS),
    _storage("boolean", "truth", TRUTHS, TRUTHS),
    _storage("text", "text", _texts(nul=False), WORDS),
    _storage("text", "text", _texts(nul=False), WORDS),
    _storage("varchar", "text", _texts(nul=False), WORDS),
    _storage("char(12)", "word", ("'FLU'", "'flu   '", "''", "'ﬂu'", "E'a\\nb'", "'%'", "'_'"), WORDS),
    _storage("text COLLATE plain", "word", SPELLED, WORDS),
    _storage("text COLLATE caseless", "word", SPELLED, WORDS),
    _storage("text COLLATE accentless", "word", SPELLED, WORDS),
    _storage("word", "word", _texts(nul=False), WORDS),
    _storage("short_word", "word", ("'FLU'", "'ﬂu'", "''"), WORDS),
    _storage("mood", "word", ("'FLU'", "''"), WORDS),
    _storage("uuid", "word", (*UUIDS, "'ffffffff-ffff-ffff-ffff-ffffffffffff'"), UUIDS[:4]),
    _storage("date", "moment", _PG_DATES, MOMENTS),
    _storage("timestamp", "moment", _PG_STAMPS, MOMENTS),
    _storage("timestamptz", "moment", _PG_STAMPS, MOMENTS),
    _storage("timestamp(0)", "moment", _PG_STAMPS, MOMENTS),
    _storage("time", "moment", ("'00:00:00'", "'24:00:00'"), ("'10:00:00'",), exotic=True),
    _storage("interval", "moment", ("'1000000 days'",), ("'1 day'",), exotic=True),
    _storage("bytea", "word", (r"'\xff'", r"'\x00'"), (r"'\x61'",), exotic=True),
    _storage("inet", "word", ("'::1'", "'255.255.255.255/32'"), ("'10.0.0.1'",), exotic=True),
    _storage("jsonb", "word", ("'null'", "'{}'", "'1e400'"), ("'1'", "'\"flu\"'"), exotic=True),
    _storage(
        "money", "number", ("'-92233720368547758.08'", "'92233720368547758.07'"), ("1", "2"), exotic=True
    ),
)
"""Types of PostgreSQL's tables; the domains and collations are made by `postgres_stores.py`."""
