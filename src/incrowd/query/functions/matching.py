"""Tests of texts with regular expressions that every engine reads alike (`pattern_reading`).

One text decides, so one row. Texts of more than 1,000 letters are NULL: engines fail on patterns over texts
of hundreds of millions, and one of them goes back over what it has tried.
"""

from __future__ import annotations

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import truth
from incrowd.query.functions.signature import Function, as_text
from incrowd.query.pattern_reading import LONGEST, read
from incrowd.query.sql import DIALECT
from incrowd.query.typed import Typed, guarded, said


def _matches(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """REGEXP_MATCHES(x, p), REGEXP_LIKE, REGEXP_CONTAINS, x ~ p; REGEXP_FULL_MATCH and SIMILAR TO."""
    subject, pattern = as_text(node, arguments[0]), _constant(node, arguments[1])
    flag = _constant(node, arguments[2]) if len(arguments) > 2 else "c"
    if flag not in ("c", "i"):
        raise QueryError(f"{said(node)} has an option that engines differ about; use 'i', or none.")
    if isinstance(node, exp.SimilarTo) and set(pattern) & set("%_"):
        raise QueryError(
            f"{said(node)}: % and _ stand for letters in standard SQL, and for themselves in DuckDB; write "
            "REGEXP_FULL_MATCH(x, 'a.*'), or LIKE."
        )
    found = read(pattern)
    if isinstance(node, exp.SimilarTo | exp.RegexpFullMatch):
        found = read(found.whole().written(DIALECT))
    small = flag == "i" or isinstance(node, exp.RegexpILike)
    if small:
        found = read(found.in_lower_case(said(node)).written(DIALECT))
    most = exp.Literal.number(str(LONGEST))
    text: exp.Expr = exp.Left(this=subject.sql.copy(), expression=most.copy())
    if small:
        text = exp.Left(this=exp.Lower(this=text), expression=most.copy())
    test = exp.RegexpLike(this=text, expression=exp.Literal.string(found.written(DIALECT)))
    short = exp.LTE(this=exp.Length(this=subject.sql), expression=most)
    return truth(guarded(short, exp.paren(test)), subject).but(nullable=True)


def _constant(node: exp.Expr, typed: Typed) -> str:
    if not (isinstance(typed.sql, exp.Literal) and typed.sql.is_string):
        raise QueryError(f"{said(node)} needs a constant pattern.")
    return typed.sql.name


MATCHING: dict[type[exp.Expr], Function] = dict.fromkeys(
    (exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo), _matches
)
