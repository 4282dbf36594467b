"""The nastiest values that one person's row can hold, for every storage type of Arrow frames and Parquet.

A *role* is what a column is for: a number, a text, a moment, a truth. `tame` values are what everybody else
has; `nasty` ones are the extremes of the type. Moments are raw integers: some lie beyond every calendar.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

MARK = "zqSecretxj"
"""A word that occurs in the hostile unit's rows only: no message may hold it."""


def _double(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value


FLOATS = (
    *(_double(bits) for bits in (0x7FF8000000000000, 0xFFF8000000000001, 0x7FF8DEADBEEF0001)),
    _double(0xFFFFFFFFFFFFFFFF),
    float("inf"),
    -float("inf"),
    -0.0,
    0.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    2.0**-200,
    2.0**200,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    9223372036854775808.0,
    -9223372036854775808.0,
    9007199254740993.0,
    0.1,
    2.5,
    -0.5,
    1e300,
    3.4028234663852886e38,
    1e-45,
)

# fmt: off
NUMBER_TEXTS = (
    *("1e+5", "1E5", "1e-5", "-.5", "+.5", ".5", "5.", "1_000", "1,000", "1.000", " 12", "12 ",
      "\t12", "12\n"),
    *("0x10", "0b11", "0o7", "1.4", "1.5", "2.5", "-1.5", "٣", "۱۲", "１２", "infinity", "-Infinity", "inf"),
    *("NaN", "nan", "-nan", "+12", "--1", "+-1", "1e400", "-1e400", "1e-400", "0e0", "-0", "-0.0",
      "007", "1/2"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("9223372036854775807.4", "9007199254740993", "18446744073709551615", "1" * 41, "0." + "9" * 41,
      "1d", "1f"),
    *("1e", "e1", ".", "-", "", " ", "12abc", "1 2", "½", "²", "①", "一", "1'000", "$1", "1%", "(1)",
      "1\u00a0"),
    "170141183460469231731687303715884105727",
)
DATE_TEXTS = (
    *("0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "-0001-01-01", "2020-02-30",
      "2020-1-1", "20200101"),
    *("2020/01/01", "01/02/2020", "01.02.2020", "2020-01-01 00:00", "2020-01-01T00:00:00Z",
      "2020-01-01 24:00:00"),
    *("2020-01-01 23:59:60", "2020-01-01 10:00:00.1234567", "2020-01-01 10:00:00+14:00", "infinity",
      "-infinity"),
    *("today", "now", "epoch", "yesterday", "tomorrow", "allballs", "J2451187", "2020-W01-1", "2020-001"),
    *("5874897-12-31", "294276-12-31", "290309-12-22 (BC)", "4713-01-01 BC", "0044-03-15 BC", "1 Jan 2020"),
    *("Jan 1, 2020", "2020-06-30 12:00 Europe/Berlin", "2020-06-30 12:00 PST", "2020-13-01",
      "2020-00-10", "2020-12"),
)
TRUTH_TEXTS = ("TRUE", "t", "T", "on", "off", "yes", "Y", "ſ", "true ", "İ", "2", "-1", "tru", "unknown")
LINE_ENDS = ("\n", "\r\n", "\r", "a\nb", "a\r\nb", "a\rb", "a\n\rb\r\n\n", "\u2028", "\u2029",
      "a\x85b", "\x0b\x0c")
SPELLINGS = (
    *("FLU", "Flu", "ﬂu", "flu ", " flu", "flu\u200b", "fl\u00fc", "flu\u0308", "FLÜ", "ß", "ss",
      "SS", "ẞ"),
    *("é", "e\u0301", "É", "ı", "İ", "i", "I", "ς", "σ", "Σ", "ǆ", "ǅ", "Ǆ", "Å", "\u212b", "K",
      "\u212a", "ｆｌｕ"),
)
ODD_TEXTS = (
    *("", " ", "\x00", "a\x00b", "flu\x00", '"', '""', '"flu', 'flu"', 'a"b', "'", "''", "\\", "\\\\",
      "\\N", "NULL"),
    *("null", "NA", "N/A", "None", ",", ";", "\t", "|", "a,b", '","', '"\n"', "#", "--", "/*", "%",
      "_", "%%", "$$"),
    *("\ufeff", "\ufeffflu", "\ufffd", "\ufffe", "\uffff", "\U0010ffff", "👩\u200d👧", "\u202eulf",
      "\x01", "\x1f"),
    *("\x7f", "\x80", "\x9f", "a" * 3000, "zip=1", "__HIVE_DEFAULT_PARTITION__", "{0}", "%s", "${x}",
      "{{x}}"),
    *("'; DROP TABLE visits; --", "<script>", "COUNT(*)", f"{MARK}", f"{MARK}\n{MARK}", "a" * 10_001),
)
LONG_TEXTS = ("x" * 2_000_000, "ß\n" * 700_000, '"' * 1_000_000, f"{MARK}," * 100_000)
NASTY_TEXTS = (*NUMBER_TEXTS, *DATE_TEXTS, *TRUTH_TEXTS, *LINE_ENDS, *SPELLINGS, *ODD_TEXTS)
BROKEN_TEXTS = (b"\xff", b"flu\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80",
                b"a\xe2\x82", b"\x80abc")
"""Bytes that are not UTF-8: a lone surrogate, an overlong NUL, a letter beyond Unicode, a letter cut off."""

# fmt: on
DAY = 86_400
# fmt: off
_CALENDAR = (  # in seconds: the ends of years 1 and 9999, of PostgreSQL's and DuckDB's calendars, of int32
    *(-62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800, -62_167_219_200, 0, -1),
    *(-210_866_803_200, 9_224_318_015_999, 9_223_372_036_854, -9_223_372_022_400, 2**31, -(2**31) - 1),
    *(185_542_587_100_800, -185_542_587_187_200),
)
# fmt: on
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _within(values: Sequence[int], bits: int, signed: bool = True) -> tuple[int, ...]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return tuple(dict.fromkeys(value for value in values if low <= value <= high))


def _integers(bits: int, signed: bool) -> tuple[int, ...]:
    powers = [2**power + more for power in (7, 8, 15, 16, 31, 32, 53, 61, 62, 63, 64) for more in (-1, 0, 1)]
    return _within([*powers, *(-power for power in powers), 21, -6, 0, -1, 100], bits, signed)


def _moments(unit: str) -> tuple[int, ...]:
    """Instants in a unit: the calendar's ends, the type's, and nanoseconds where others are meant."""
    scaled = [moment * _UNITS[unit] + more for moment in _CALENDAR for more in (-1, 0, 1)]
    raw = [2**63 - 1, -(2**63), -(2**63) + 1, 2**62, -(2**62), 1_577_836_800_000_000_000, 10**18, 10**15]
    return _within([*raw, *scaled], 64)


def _decimals(kind: pa.DataType) -> tuple[Decimal, ...]:
    digits, scale = kind.precision, kind.scale
    most = 10**digits - 1
    raw = [
        most,
        -most,
        most - 1,
        1,
        -1,
        0,
        2**53 + 1,
        2**63,
        2**64 + 1,
        -(2**63) - 1,
        10 ** (digits - 1),
        5,
        15,
    ]
    return tuple(_decimal(value, scale) for value in raw if abs(value) <= most)


def _decimal(value: int, scale: int) -> Decimal:
    # Put together from its digits: arithmetic of decimals rounds to 28 of them.
    return Decimal((int(value < 0), tuple(int(digit) for digit in str(abs(value))), -scale))


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array, whatever the values: raw integers as moments, bytes as text that is not UTF-8."""
    if pa.types.is_dictionary(kind):
        return array(values, kind.value_type).dictionary_encode()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        coded = [value.encode() if isinstance(value, str) else value for value in values]
        whole = pa.array(coded, pa.large_binary()).cast(pa.large_string(), safe=False)
        return whole if pa.types.is_large_string(kind) else whole.cast(kind, safe=False)
    if pa.types.is_float16(kind):
        with np.errstate(over="ignore"):
            return pa.array([None if value is None else np.float16(value) for value in values], kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(values, kind)


def nasty(kind: pa.DataType) -> tuple[Any, ...]:
    """The extremes of a type."""
    if pa.types.is_dictionary(kind):
        return nasty(kind.value_type)
    if pa.types.is_integer(kind):
        return _integers(kind.bit_width, pa.types.is_signed_integer(kind))
    if pa.types.is_float16(kind):
        return tuple(number for number in FLOATS if not 65504 < abs(number) < float("inf"))
    if pa.types.is_floating(kind):
        return FLOATS
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    if pa.types.is_boolean(kind):
        return (True, False)
    if pa.types.is_date32(kind):
        days = [moment // DAY + more for moment in _CALENDAR for more in (-1, 0, 1)]
        return _within([*days, 2**31 - 1, -(2**31), -(2**31) + 1, 2_147_483_646, 1_800_000_000], 32)
    if pa.types.is_date64(kind):
        days = [moment // DAY * DAY * 1000 for moment in _CALENDAR]
        most = 2**63 // (DAY * 1000) * DAY * 1000  # a date64 is whole days, or Arrow calls it malformed
        return _within([*days, most, -most, most // 2 // (DAY * 1000) * DAY * 1000], 64)
    if pa.types.is_time(kind):
        most = DAY * _UNITS[kind.unit]
        return (0, 1, most - 1, most // 2)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _moments(kind.unit)
    if pa.types.is_binary(kind):
        return (b"", b"\x00", b"\xff\xfe", b"flu", MARK.encode(), b"\\x41", b"'")
    return NASTY_TEXTS


_TAME: dict[str, tuple[Any, ...]] = {
    "number": (0, 1, 2, 3, 7),
    "text": ("flu", "cold", "ss", "a", "i"),
    "moment": (1_577_836_800, 1_580_515_200, 1_583_020_800),
    "truth": (True, False),
}


def tame(kind: pa.DataType, role: str) -> tuple[Any, ...]:
    """What everybody else has: values that are told apart in every type."""
    if pa.types.is_dictionary(kind):
        return tame(kind.value_type, role)
    plain = _TAME[role]
    if pa.types.is_temporal(kind):
        seconds = plain if role == "moment" else tuple(DAY * 365 * (year + 1) for year in range(3))
        if pa.types.is_date32(kind):
            return tuple(second // DAY for second in seconds)
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        return tuple(
            (second % DAY if pa.types.is_time(kind) else second) * _UNITS[unit] for second in seconds
        )
    if pa.types.is_boolean(kind):
        return (True, False)
    numbers = plain if role in ("number", "truth") else (0, 1, 3)
    if pa.types.is_integer(kind):
        return tuple(int(number) for number in numbers)
    if pa.types.is_floating(kind):
        return tuple(float(number) for number in numbers)
    if pa.types.is_decimal(kind):
        room = kind.precision - kind.scale
        return tuple(Decimal(int(number)).scaleb(min(0, room - 1)) for number in numbers)
    spelled = {
        "number": ("0", "1", "2", "3", "7"),
        "text": plain,
        "moment": ("2020-01-01", "2020-02-01", "2020-03-01"),
        "truth": ("true", "false"),
    }[role]
    return tuple(text.encode() for text in spelled) if pa.types.is_binary(kind) else spelled


INTEGERS = tuple(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATINGS = (pa.float16(), pa.float32(), pa.float64())
DECIMALS = (
    *(pa.decimal128(*shape) for shape in ((4, 0), (9, 2), (18, 0), (18, 18), (20, 9), (38, 0), (38, 37))),
    *(pa.decimal256(*shape) for shape in ((38, 10), (76, 0), (50, 30))),
)
TEXTS = (
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.string_view(),
    pa.binary(),
)
DATES = (pa.date32(), pa.date64())
TIMESTAMPS = tuple(
    pa.timestamp(unit, tz=zone) for unit in _UNITS for zone in (None, "UTC", "Asia/Kathmandu", "-09:30")
)
TIMES = (
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.duration("us"),
    pa.duration("s"),
)
EVERY = (*INTEGERS, *FLOATINGS, *DECIMALS, *TEXTS, *DATES, *TIMESTAMPS, *TIMES, pa.bool_())
