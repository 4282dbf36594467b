"""How text is read as a value: one grammar for every engine, NULL for what does not fit it.

Engines read text in ways of their own (`1_000`, ` 12 `, `2020-1-1`, `infinity`), so a cast checks it first:

    integer    [+-]digits, between -(2^63 - 1) and 2^63 - 1, at most 40 digits
    float      [+-]digits[.digits][e[+-]dd], at most 40 digits on either side
    boolean    true, t, yes, y, 1 and false, f, no, n, 0, in any case
    date       YYYY-MM-DD, a day that exists in the years 1 to 9999
    timestamp  a date, or YYYY-MM-DD HH:MM[:SS[.ffffff]], with a T instead of the space if need be
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from sqlglot import exp

from incrowd.catalog.names import fold
from incrowd.catalog.types import SQL_TYPES
from incrowd.query.typed import guarded, literal

_MOST = str(2**63 - 1)


def _up_to(most: str) -> str:
    """A pattern for the numbers from 0 to `most`, with as many digits: those that are less at some place."""
    less = [
        f"{most[:place]}[0-{int(digit) - 1}][0-9]{{{len(most) - place - 1}}}"
        for place, digit in enumerate(most)
        if digit > "0"
    ]
    return "|".join([*less, most])


# There is no year 0: engines that know one call it 1 BC.
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DAY = f"{_YEAR}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
GRAMMARS: dict[str, str] = {
    "integer": f"[+-]?(0{{0,22}}[0-9]{{1,18}}|0{{0,21}}({_up_to(_MOST)}))",
    "float": "[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})?",
    "date": _DAY,
    "timestamp": f"{_DAY}([ T]{_CLOCK})?",
}
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def read(text: str, kind: str) -> Any:
    """The value of a constant text as the grammar of its kind reads it; None where it does not.

    >>> read("2020-02-30", "date"), read("1e3", "float"), read("Yes", "boolean"), read("1.5", "integer")
    (None, 1000.0, True, None)
    """
    if kind == "boolean":
        said = fold(text)
        return True if said in _TRUE else False if said in _FALSE else None
    if re.fullmatch(GRAMMARS[kind], text) is None:
        return None
    makers: dict[str, Any] = {
        "integer": int,
        "float": float,
        "date": dt.date.fromisoformat,
        "timestamp": dt.datetime.fromisoformat,
    }
    try:
        return makers[kind](text)
    except ValueError:
        return None


def from_text(sql: exp.Expr, kind: str) -> exp.Expr:
    """Text of a row as a value of another kind."""
    if isinstance(sql, exp.Literal):
        return exp.cast(literal(read(sql.name, kind)), SQL_TYPES[kind])
    if kind == "boolean":
        lower = exp.Lower(this=exp.Left(this=sql, expression=exp.Literal.number("9")))
        cases = [
            exp.If(
                this=exp.In(this=lower.copy(), expressions=[exp.Literal.string(word) for word in words]),
                true=value,
            )
            for words, value in ((_TRUE, exp.true()), (_FALSE, exp.false()))
        ]
        return exp.Case(ifs=cases)
    # No grammar matches as many letters as this, so what is cut off makes no difference; but engines raise on
    # patterns over texts of hundreds of millions.
    text = exp.Left(this=sql, expression=exp.Literal.number("100"))
    test = exp.RegexpFullMatch(this=text.copy(), expression=exp.Literal.string(GRAMMARS[kind]))
    return guarded(test, exp.TryCast(this=text, to=exp.DataType.build(SQL_TYPES[kind])))
