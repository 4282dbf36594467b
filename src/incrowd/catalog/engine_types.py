"""The catalog's type for a type name that an engine or a data frame reports.

Only names are read, never data. A name that is not known maps to None, and the owner is asked.
"""

from __future__ import annotations

import re

_INTEGER = (
    r"(u?(tiny|small|big|huge)?int|u?integer|bignum"
    r"|u?int(8|16|32|64|128)|int[248]|long|short|byte|(big|small)?serial)"
)
_TEXT = (
    r"((var|bp)?char|character( varying)?|n?varchar|(large_)?(string|utf8)|string_view|text|str|uuid|enum"
    r"|category)"
)
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("boolean", r"bool(ean)?(\[pyarrow\])?|logical"),
    ("integer", _INTEGER),
    ("decimal", r"(decimal|numeric|number|decimal(32|64|128|256))"),
    ("float", r"(float|double|double precision|real|(half_?)?float(4|8|16|32|64)?)"),
    ("timestamp", r"(timestamp(tz)?(_s|_ms|_ns)?|timestamp with(out)? time zone|datetime(64)?)"),
    ("date", r"date(32|64)?"),
    ("text", _TEXT),
)


def column_type(engine_type: str) -> str | None:
    """The catalog's type for `engine_type`, or None.

    >>> column_type("BIGINT"), column_type("DECIMAL(18,2)"), column_type("timestamp[us, tz=UTC]")
    ('integer', 'decimal', 'timestamp')
    >>> column_type("STRUCT(a INTEGER)") is None, column_type("INTEGER[]") is None
    (True, True)
    """
    word = engine_type.strip().lower()
    # An array of integers is not an integer: only parameters in brackets may be dropped.
    if re.search(r"\[\]|\[\d+\]$|^(list|struct|map|union|array|dictionary)\b", word):
        return None
    word = re.sub(r"\s*[(\[<].*[)\]>]\s*", " ", word).strip()
    for kind, pattern in _PATTERNS:
        if re.fullmatch(pattern, word):
            return kind
    return None
