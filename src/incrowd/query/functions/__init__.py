"""The functions that may be applied to private rows, each in its total (never-raising) form.

A function takes the parsed node and its arguments, already total, and gives the total call with what is known
of its result. To add one: prove that no argument makes any engine raise, or guard the call with CASE; put
it into the list of its file.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.functions.bits import BITS, bit_count
from incrowd.query.functions.choices import CHOICES, first_known
from incrowd.query.functions.matching import MATCHING
from incrowd.query.functions.numbers import NUMBERS
from incrowd.query.functions.padding import PADDING
from incrowd.query.functions.powers import POWERS, squared
from incrowd.query.functions.scales import SCALES, exponential_less_one, logarithm_plus_one
from incrowd.query.functions.searching import SEARCHING, ends_with
from incrowd.query.functions.signature import Function
from incrowd.query.functions.texts import TEXTS
from incrowd.query.functions.times import TIMES, TIMES_BY_NAME
from incrowd.query.suggestions import meant
from incrowd.query.typed import Typed

FUNCTIONS: dict[type[exp.Expr], Function] = {
    **NUMBERS,
    **POWERS,
    **SCALES,
    **BITS,
    **CHOICES,
    **TEXTS,
    **SEARCHING,
    **PADDING,
    **MATCHING,
    **TIMES,
}
_BY_NAME: dict[str, Function] = {
    "BIT_COUNT": bit_count,
    "ENDSWITH": ends_with,
    "EXPM1": exponential_less_one,
    "ISNULL": first_known,
    "LOG1P": logarithm_plus_one,
    "SQUARE": squared,
    "SUFFIX": ends_with,
    **TIMES_BY_NAME,
}


def known_names() -> tuple[str, ...]:
    """What the functions are called in SQL."""
    called = (name for node in FUNCTIONS if issubclass(node, exp.Func) for name in node.sql_names())
    return (*called, *_BY_NAME)


def by_name(node: exp.Anonymous, arguments: list[Typed]) -> Typed:
    """A function that the parser has no node for."""
    name = str(node.this)
    function = _BY_NAME.get(name.upper())
    if function is None:
        if other := meant(name, known_names()):
            raise QueryError(f"There is no function {name.upper()} here; did you mean {other}?")
        raise QueryError(
            f"{name.upper()} is not among the functions that are safe over private rows; write it with CASE, "
            "arithmetic, text or date functions."
        )
    return function(node, arguments)


__all__ = ["FUNCTIONS", "Function", "by_name", "known_names"]
