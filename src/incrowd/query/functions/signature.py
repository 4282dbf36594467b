"""What every function of this folder is given, and the checks of its arguments that they share."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.combining import as_float
from incrowd.query.typed import Typed

Function = Callable[[exp.Expr, list[Typed]], Typed]
LONGEST_TEXT = 1_000_000


def name_of(node: exp.Expr) -> str:
    """The function's name as it is written in SQL."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    return node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()


def one(node: exp.Expr, arguments: list[Typed]) -> Typed:
    """The only argument."""
    if len(arguments) != 1:
        raise QueryError(f"{name_of(node)} takes one argument here.")
    return arguments[0]


def as_number(node: exp.Expr, typed: Typed) -> Typed:
    """A number, as float64."""
    return as_float(typed, name_of(node))


def as_text(node: exp.Expr, typed: Typed) -> Typed:
    """A text."""
    if typed.kind == "null":
        return typed.but(sql=exp.cast(exp.null(), "TEXT"), kind="text")
    if typed.kind != "text":
        raise QueryError(
            f"{name_of(node)} needs text, but {typed.said} is of type {typed.kind}; CAST it AS TEXT."
        )
    return typed


def whole_constant(node: exp.Expr, typed: Typed, what: str) -> int:
    """A constant whole number of modest size."""
    value = typed.constant
    if value is None or not value.is_integer() or abs(value) > LONGEST_TEXT:
        raise QueryError(f"{what} of {name_of(node)} must be a constant whole number.")
    return int(value)
