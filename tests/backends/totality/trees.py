"""Random expressions out of every construct that statements are made of, with constants next to every edge.

Half of them are a dangerous construct behind a guard that may or may not be tight enough: that is where a
rule would be wrong. They are written in DuckDB's dialect, over the columns of `COLUMNS`.
"""

from __future__ import annotations

import datetime as dt
import random

COLUMNS = {
    "i": "BIGINT",
    "j": "INTEGER",
    "f": "DOUBLE",
    "t": "VARCHAR",
    "d": "DATE",
    "s": "TIMESTAMP",
    "b": "BOOLEAN",
}
FLOATS = [
    *("0.0", "1.0", "-1.0", "0.5", "3.0", "1e-300", "5e-324", "1e+300", "-1e+300", "1.7976931348623157e+308"),
    *("700.0", "-700.0", "600.0", "710.0", "-746.0", "1e+60", "1e-60", "9.223372036854776e+18", "Infinity"),
    *("9.223372036854775e+18", "-9.223372036854776e+18", "-9.223372036854778e+18", "4611686018427387904.0"),
    *("2147483647.0", "-Infinity", "1e+150", "1e-150", "0.1"),
]
WHOLES = [
    0,
    1,
    -1,
    2,
    10,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32,
    2**53,
    2**61,
    2**62,
    2**63 - 1,
    -(2**63) + 1,
    1000,
]
DAYS = ["0001-01-01", "0001-01-08", "1970-01-01", "2020-02-29", "9999-12-24", "9999-12-31"]

SHIFTS = tuple(f"CAST('{days}' AS INTEGER)" for days in (0, 1, -1, 365, -4000, 3_000_000, 2**31 - 1))
INTERVALS = tuple(
    f"{sign} INTERVAL '{count}' {unit}"
    for sign in "+-"
    for count, unit in ((1, "MONTH"), (120_000, "MONTH"), (1, "DAY"), (4_000, "DAY"), (1, "MICROSECOND"))
)


class Trees:
    """A source of expressions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def real(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("f", "f", self.constant(), f"CAST({self.whole(0)} AS DOUBLE)")
        one, two = self.real(depth - 1), self.real(depth - 1)
        shape = self._random.randrange(13)
        if shape < 5:
            return self.guarded(depth)
        if shape == 5:
            return f"({one} {self.pick('+', '-', '*', '/')} {two})"
        if shape == 6:
            return f"({one} / NULLIF({two}, CAST('0.0' AS DOUBLE)))"
        if shape == 7:
            return f"{self.pick('ABS', 'FLOOR', 'CEIL', 'TRUNC', 'ROUND')}({one})"
        if shape == 8:
            return f"{self.pick('SQRT', 'LN', 'EXP')}({one})"
        if shape == 9:
            return f"{self.pick('LEAST', 'GREATEST')}({one}, {self.constant()}, {two})"
        if shape == 10:
            return f"COALESCE({one}, {two})"
        if shape == 11:
            return f"CASE WHEN {self.truth(depth - 1)} THEN {one} ELSE {two} END"
        return f"CAST({self.whole(depth - 1)} AS DOUBLE)"

    def constant(self) -> str:
        return f"CAST('{self._random.choice(FLOATS)}' AS DOUBLE)"

    def number(self) -> str:
        return f"CAST({self._random.choice(WHOLES)} AS BIGINT)"

    def guarded(self, depth: int) -> str:
        """A construct that raises on some floats, behind tests of its operand."""
        one = self.real(depth - 2)
        risky = self.pick(
            f"SQRT({one})",
            f"LN({one})",
            f"EXP({one})",
            f"({one} * {self.constant()})",
            f"({one} * {one})",
            f"({self.constant()} / {one})",
            f"({one} + {self.constant()})",
            f"CAST(CAST({one} AS BIGINT) AS DOUBLE)",
            f"CAST(CAST(FLOOR({one}) AS BIGINT) * {self.number()} AS DOUBLE)",
        )
        return self.behind(one, risky, self.constant)

    def behind(self, one: str, risky: str, constant: object) -> str:
        """CASE with one to three tests of an expression, the last of which leads to the construct."""
        assert callable(constant)
        tested = one if self._random.random() < 0.8 or "AS DATE" in one else f"ABS({one})"
        signs = ("<", "<=", ">", ">=")
        tests = [f"{tested} {self.pick(*signs)} {constant()}" for _ in range(2)]
        if self._random.random() < 0.3:
            tests[1] = f"{tests[1]} AND {one} {self.pick(*signs)} {constant()}"
        if self._random.random() < 0.5:
            return f"CASE WHEN {tests[0]} THEN NULL WHEN {tests[1]} THEN {risky} END"
        return f"CASE WHEN {tests[0]} THEN NULL WHEN {tests[1]} THEN NULL ELSE {risky} END"

    def whole(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("i", "i", "j", self.number())
        one, two = self.whole(depth - 1), self.whole(depth - 1)
        shape = self._random.randrange(12)
        if shape < 4:
            operand = self.whole(depth - 2)
            risky = self.pick(
                f"({operand} * {self.number()})",
                f"({operand} + {self.number()})",
                f"({operand} - {self.number()})",
                f"({self.number()} // {operand})",
                f"({operand} // {self.number()})",
                f"({operand} * ({self.number()} // {operand}))",
                f"ABS({operand})",
                f"(-{operand})",
                f"CAST({operand} AS INTEGER)",
            )
            return self.behind(operand, risky, self.number)
        if shape == 4:
            return f"({one} {self.pick('+', '-', '*', '//')} {two})"
        if shape == 5:
            return f"CAST({self.real(depth - 1)} AS BIGINT)"
        if shape == 6:
            return f"TRY_CAST(CAST({self.real(depth - 1)} AS DOUBLE) AS BIGINT)"
        if shape == 7:
            return f"CAST(LENGTH({self.text(depth - 1)}) AS BIGINT)"
        if shape == 8:
            part = self.pick("YEAR", "MONTH", "WEEK", "DAY", "DOW", "QUARTER")
            return f"CAST(EXTRACT({part} FROM {self.day(depth - 1)}) AS BIGINT)"
        if shape == 9:
            return f"CAST(DATE_DIFF('day', {self.day(depth - 1)}, {self.day(depth - 1)}) AS BIGINT)"
        if shape == 10:
            return f"{self.pick('LEAST', 'GREATEST')}({one}, {self.number()})"
        return f"CASE WHEN {self.truth(depth - 1)} THEN {one} ELSE {two} END"

    def day(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("d", "d", f"CAST('{self._random.choice(DAYS)}' AS DATE)")
        if self._random.random() < 0.3:
            moment = self.moment(depth - 1)
            return self.pick(
                f"CAST({moment} AS DATE)", self.inside(moment, f"CAST({moment} AS DATE)", "TIMESTAMP")
            )
        day = self.day(depth - 1)
        if self._random.random() < 0.3:
            return self.inside(day, f"({day} + {self._random.choice(SHIFTS)})", "DATE")
        return self.inside(day, self.day(depth - 1), "DATE")

    def moment(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("s", "s", f"CAST('{self._random.choice(DAYS)}' AS TIMESTAMP)")
        day, moment = self.day(depth - 1), self.moment(depth - 1)
        unit = self.pick("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
        return self.pick(
            f"CAST({day} AS TIMESTAMP)",
            self.inside(day, f"CAST({day} AS TIMESTAMP)", "DATE"),
            self.inside(moment, f"CAST(DATE_TRUNC('{unit}', {moment}) AS TIMESTAMP)", "TIMESTAMP"),
            self.inside(moment, moment, "TIMESTAMP"),
            self.inside(moment, f"({moment} {self.pick(*INTERVALS)})", "TIMESTAMP"),
        )

    def inside(self, tested: str, result: str, kind: str) -> str:
        low, high = sorted(self._random.sample(DAYS, 2), key=dt.date.fromisoformat)
        ends = [f"CAST('{end}' AS {kind})" for end in (low, high)]
        return f"CASE WHEN {tested} >= {ends[0]} AND {tested} <= {ends[1]} THEN {result} END"

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("t", "t", "'ab'")
        one = self.text(depth - 1)
        length = self._random.choice([0, 1, 4, 10, 100, 10_000])
        return self.pick(
            f"LEFT({one}, {length})",
            f"RIGHT({one}, {length})",
            f"SUBSTRING({one}, {length + 1}, {length})",
            f"LOWER({one})",
            f"UPPER({one})",
            f"TRIM({one}, ' ')",
            f"REPLACE({one}, 'ab', 'c')",
            f"(LEFT({one}, 100) || {one})",
            f"CAST({self.whole(depth - 1)} AS TEXT)",
            f"CAST({self.day(depth - 1)} AS TEXT)",
            f"CASE WHEN {self.truth(depth - 1)} THEN {one} ELSE 'x' END",
        )

    def truth(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("b", "b", "TRUE")
        shape = self._random.randrange(8)
        if shape == 0:
            return f"({self.truth(depth - 1)} {self.pick('AND', 'OR')} {self.truth(depth - 1)})"
        if shape == 1:
            return f"(NOT ({self.truth(depth - 1)}))"
        if shape == 2:
            return f"(({self.real(depth - 1)}) IS NULL)"
        if shape == 3:
            return f"(({self.text(depth - 1)}) LIKE 'a%')"
        if shape == 4:
            return f"STARTS_WITH({self.text(depth - 1)}, {self.text(depth - 1)})"
        make = self._random.choice([self.real, self.whole, self.day, self.text])
        sign = self.pick("<", "<=", "=", "<>", ">", ">=", "IS DISTINCT FROM")
        return f"(({make(depth - 1)}) {sign} ({make(depth - 1)}))"

    def expression(self, depth: int = 3) -> str:
        """An expression of any kind."""
        kinds = [self.real, self.real, self.whole, self.whole, self.day, self.moment, self.text, self.truth]
        return self._random.choice(kinds)(depth)

    def aggregate(self) -> str:
        """An expression over aggregates of a group."""
        inner = self.whole(1)
        summed = self.pick(
            f"SUM({inner})", f"COALESCE(SUM({inner}), 0)", "COUNT(*)", f"COUNT({inner})", f"MAX({inner})"
        )
        bound = self._random.choice([2**61, 2**62, 2**63 - 1, 2**63, 10, 1])
        wide = f"CAST({bound} AS HUGEINT)"
        return self.pick(
            summed,
            f"CAST({summed} AS BIGINT)",
            f"CASE WHEN {summed} <= {wide} AND {summed} >= -{wide} THEN CAST({summed} AS BIGINT) END",
            f"CAST(CASE WHEN {summed} > {wide} THEN {wide} WHEN {summed} < -{wide} THEN -{wide} "
            f"ELSE {summed} END AS BIGINT)",
            f"CAST({self.number()} // {summed} AS BIGINT)",
            f"CASE WHEN {summed} <= {self.number()} THEN NULL ELSE {self.number()} // {summed} END",
            f"SQRT(CAST({self.number()} AS DOUBLE) / {summed})",
        )
