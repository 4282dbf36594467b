"""Row expressions in total form: whatever the data holds, no expression of a bounded plan can raise.

An error that depends on a row is a leak, so every construct is on a list with its never-raising version: a
cast that fails is NULL, and so is a division by zero, or a logarithm or root of a wrong argument; numbers are
computed in float64 and kept where no engine overflows (`magnitude`). What is not on the list is refused, and
so is anything the parser attached to a listed construct that is not understood. The same walk derives kind,
range and possible values (`Typed`).

Everything here is a function of one row (and of public tables), so it moves no more than that row's unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from incrowd.catalog.types import TIMES, VALUE_TYPES, Kind
from incrowd.errors import QueryError
from incrowd.query import casts, operations, wildcards
from incrowd.query.between import between_times, intervals_compared
from incrowd.query.combining import comparable, truth, unite
from incrowd.query.decimal_casts import decimal
from incrowd.query.functions import FUNCTIONS, by_name
from incrowd.query.growth import refuse_growth
from incrowd.query.magnitude import size_of
from incrowd.query.shifting import by_interval, moves
from incrowd.query.spans import interval_in
from incrowd.query.sql import number
from incrowd.query.typed import Field, Lookup, Typed, double, said

PUBLIC_LIST = "public_list"
"""The argument of an IN's node that holds its `PublicList`; the parser has none like it."""
_RANDOM = (exp.Rand, exp.Randn, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Uuid)
_CASTS: dict[object, Kind] = {
    exp.DataType.Type[name]: value_type.kind
    for value_type in VALUE_TYPES.values()
    for name in value_type.cast_names
}
# What the parser attaches to nodes without changing what they mean over one row.
_HARMLESS = {
    "is_left",
    "safe",
    "typed",
    "coalesce",
    "ignore_nulls",
    "big_int",
    "date_part_boundary",
    "kind",
    "unit",
    "zone",
}


@dataclass(frozen=True)
class PublicList:
    """What x IN (SELECT ...) is tested against: a checked query over public tables, with one column, v."""

    query: exp.Select
    facts: Field
    """What is known of the column."""


def total(node: exp.Expr, lookup: Lookup) -> Typed:
    """`node` in a form that cannot raise, with what is known of it."""
    typed = _total(node, lookup)
    typed = typed if typed.said else typed.but(said=said(node))
    refuse_growth(typed.sql, typed.said)
    return typed


def _total(node: exp.Expr, lookup: Lookup) -> Typed:
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, lookup)
    if isinstance(node, exp.Window):
        raise QueryError(
            "Window functions over private rows are not possible here; compute them in a sub-query of FROM, "
            "with PARTITION BY the person, and aggregate outside of it."
        )
    if isinstance(node, exp.AggFunc):
        raise QueryError(
            f"{said(node)} is an aggregate inside a row's expression; aggregate in SELECT or HAVING."
        )
    if isinstance(node, exp.Subquery | exp.Exists | exp.Select):
        raise QueryError(
            "A sub-query inside an expression over private rows is not possible; join a public table instead."
        )
    if isinstance(node, _RANDOM):
        raise QueryError(f"{said(node)} gives another value each time; write a constant instead.")
    between = between_times(node, lambda part: total(part, lookup), _combined)
    if between is not None:
        return between
    if isinstance(node, exp.Anonymous):
        return by_name(node, [total(argument, lookup) for argument in node.expressions])
    function = FUNCTIONS.get(type(node))
    if function is None:
        raise QueryError(
            f"{said(node)} is not among the expressions that are safe over private rows; write it with CASE, "
            "arithmetic, text or date functions."
        )
    arguments = [total(argument, lookup) for argument in _arguments(node)]
    try:
        return function(node, arguments)
    except IndexError:
        pass
    raise QueryError(f"{said(node)} has too few arguments; write all that the function takes.")


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a function; refuses any option that the parser attached to it."""
    operands: list[exp.Expr] = []
    for key, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and not isinstance(part, exp.Var | exp.DataType):
                operands.append(part)
            elif part and key not in _HARMLESS and not (isinstance(node, exp.Extract) and key == "this"):
                raise QueryError(f"{said(node)} has an option that is not understood; leave it out.")
    return operands


def _only(node: exp.Expr, *allowed: str) -> None:
    """Fail closed on parts of a node that its handler does not read."""
    for key, value in node.args.items():
        if value and key not in allowed and key not in _HARMLESS:
            raise QueryError(f"{said(node)} has an option that is not understood; leave it out.")


def _column(node: exp.Expr, lookup: Lookup) -> Typed:
    assert isinstance(node, exp.Column)
    return lookup(node)


def _literal(node: exp.Expr, lookup: Lookup) -> Typed:
    value = number(node)
    if value is None:
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise QueryError(f"The number {said(node)} is too large.")
        return Typed(node.copy(), "text", nullable=False, values=(node.name,))
    whole = _whole(node)
    if whole is not None and abs(whole) < 2**63:
        sql = exp.Literal.number(str(abs(whole)))
        held: exp.Expr = exp.paren(exp.Neg(this=sql)) if whole < 0 else sql
        return Typed(held, "integer", value, value, False, (whole,), integral=True, size=64)
    return Typed(double(value), "float", value, value, False, (value,), size=size_of(value))


def _whole(node: exp.Expr) -> int | None:
    """The value of a whole-number literal, with or without signs and parentheses; None for any other."""
    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return _whole(node.this)
    text = node.name
    return int(text) if text.isascii() and text.isdigit() else None


def _neg(node: exp.Expr, lookup: Lookup) -> Typed:
    if number(node) is not None:
        return _literal(node, lookup)
    return operations.negated(total(node.this, lookup))


def _null(node: exp.Expr, lookup: Lookup) -> Typed:
    return Typed(exp.null(), "null", values=(), said="NULL")


def _boolean(node: exp.Expr, lookup: Lookup) -> Typed:
    return Typed(node.copy(), "boolean", 0, 1, False, (bool(node.this),))


def _paren(node: exp.Expr, lookup: Lookup) -> Typed:
    inner = total(node.this, lookup)
    return inner.but(sql=exp.paren(inner.sql))


def _shifted(node: exp.Expr, lookup: Lookup) -> Typed | None:
    """A time moved by an interval; None for other sums and differences."""
    if not isinstance(node, exp.Add | exp.Sub | exp.DateAdd):
        return None
    back = isinstance(node, exp.Sub)
    for time, other in ((node.this, node.expression), (node.expression, node.this)):
        interval = interval_in(other)
        if interval is not None:
            span = interval.span.times(-1) if back else interval.span
            count = None if interval.count is None else total(interval.count, lookup)
            return by_interval(node, total(time, lookup), replace(interval, span=span), count)
        if back:
            break
    return None


def _arithmetic(node: exp.Expr, lookup: Lookup) -> Typed:
    shifted = _shifted(node, lookup)
    if shifted is not None:
        return shifted
    return _combined(node, total(node.this, lookup), total(node.expression, lookup))


def _combined(node: exp.Expr, left: Typed, right: Typed) -> Typed:
    """left + right, left - right or left * right."""
    if not isinstance(node, exp.Mul) and (left.kind in TIMES or right.kind in TIMES):
        return moves(node, left, right)
    return operations.combined(node, left, right)


def _date_add(node: exp.Expr, lookup: Lookup) -> Typed:
    """DATE_ADD(d, INTERVAL '3 days') or DATE_ADD(d, 3)."""
    if node.expression is None or node.args.get("unit") is not None:
        raise QueryError("DATE_ADD takes a date and an interval, as in DATE_ADD(d, INTERVAL '3 days').")
    shifted = _shifted(node, lookup)
    if shifted is not None:
        return shifted
    return moves(node, total(node.this, lookup), total(node.expression, lookup))


def _interval_alone(node: exp.Expr, lookup: Lookup) -> Typed:
    raise QueryError(
        f"{said(node)} stands by itself; add it to a date, or compare it with a difference of timestamps."
    )


def _divide(node: exp.Expr, lookup: Lookup) -> Typed:
    return operations.quotient(node, total(node.this, lookup), total(node.expression, lookup))


def _mod(node: exp.Expr, lookup: Lookup) -> Typed:
    return operations.remainder(total(node.this, lookup), total(node.expression, lookup))


def _compare(node: exp.Expr, lookup: Lookup) -> Typed:
    sides = intervals_compared(node, lambda part: total(part, lookup))
    if sides is None:
        sides = comparable(total(node.this, lookup), total(node.expression, lookup), said(node))
    left, right = sides
    test = truth(type(node)(this=_operand(left.sql), expression=_operand(right.sql)), left, right)
    return test.but(nullable=False) if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) else test


def _operand(sql: exp.Expr) -> exp.Expr:
    """Adds parentheses, unless the expression is a single term."""
    return sql if isinstance(sql, exp.Column | exp.Literal | exp.Cast | exp.Paren) else exp.paren(sql)


def condition(node: exp.Expr, lookup: Lookup, where: str) -> Typed:
    """`node` in total form, as a truth value."""
    return as_condition(total(node, lookup), node, where)


def as_condition(typed: Typed, node: exp.Expr, where: str) -> Typed:
    """An expression as a truth value; `node` is what the user wrote."""
    if typed.kind not in ("boolean", "null"):
        raise QueryError(f"{where} needs a condition, but {said(node)} is of type {typed.kind}.")
    if typed.kind == "null":
        # A bare NULL is text to some engines, and no condition.
        return typed.but(sql=exp.cast(exp.null(), "BOOLEAN"), kind="boolean")
    return typed


def _connect(node: exp.Expr, lookup: Lookup) -> Typed:
    left = condition(node.this, lookup, "AND/OR")
    right = condition(node.expression, lookup, "AND/OR")
    sides = (exp.paren(side.sql, copy=False) for side in (left, right))
    return truth(type(node)(this=next(sides), expression=next(sides)), left, right)


def _not(node: exp.Expr, lookup: Lookup) -> Typed:
    inner = condition(node.this, lookup, "NOT")
    return truth(exp.Not(this=exp.paren(inner.sql, copy=False)), inner)


def _is(node: exp.Expr, lookup: Lookup) -> Typed:
    inner = total(node.this, lookup)
    asked = node.expression
    if not isinstance(asked, exp.Null) and not (isinstance(asked, exp.Boolean) and inner.kind == "boolean"):
        raise QueryError(f"{said(node)} is not understood; use IS NULL, = or, for truth values, IS TRUE.")
    sql = exp.Is(this=exp.paren(inner.sql), expression=asked.copy())
    return Typed(sql, "boolean", 0, 1, False, (False, True))


def _between(node: exp.Expr, lookup: Lookup) -> Typed:
    _only(node, "this", "low", "high")
    both = exp.And(
        this=exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
        expression=exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
    )
    inner = total(both, lookup)
    return inner.but(sql=exp.paren(inner.sql))


def _in(node: exp.Expr, lookup: Lookup) -> Typed:
    _only(node, "this", "expressions", "query", PUBLIC_LIST)
    subject = total(node.this, lookup)
    if node.args.get("query") is not None:
        return _in_public(node, subject)
    if not node.expressions:
        raise QueryError("IN needs a list of values, as in x IN (1, 2).")
    tests = []
    for listed in node.expressions:
        left, right = comparable(subject, total(listed, lookup), "IN")
        tests.append((left, right))
    if all(left.sql == tests[0][0].sql for left, _ in tests):
        sql: exp.Expr = exp.In(this=_operand(tests[0][0].sql), expressions=[right.sql for _, right in tests])
    else:
        # Sides of different kinds are compared one by one, so that the engine adds no cast of its own.
        sql = exp.paren(
            exp.or_(*[exp.EQ(this=_operand(left.sql), expression=right.sql) for left, right in tests])
        )
    return truth(sql, subject, *[right for _, right in tests])


def _in_public(node: exp.Expr, subject: Typed) -> Typed:
    public: PublicList | None = node.args.get(PUBLIC_LIST)
    if public is None:
        raise QueryError("IN needs a list of values, or a sub-query over public tables alone, at this place.")
    said_as = public.facts.name or "the sub-query"
    column = Typed(exp.column("v", table="listed"), public.facts.kind, said=said_as)
    left, right = comparable(subject, column, "IN")
    # NULL in the list would make every miss unknown; the list holds values only.
    inner = (
        exp.select(exp.alias_(right.sql, "v"))
        .from_(exp.Subquery(this=public.query.copy(), alias=exp.TableAlias(this=exp.to_identifier("listed"))))
        .where(exp.Not(this=exp.Is(this=right.sql.copy(), expression=exp.null())))
    )
    return truth(exp.In(this=_operand(left.sql), query=exp.Subquery(this=inner)), subject)


def _escaped(node: exp.Expr, lookup: Lookup) -> Typed:
    """x LIKE pattern ESCAPE letter."""
    _only(node, "this", "expression")
    like, escape = node.this, node.expression
    if not (isinstance(like, exp.Like | exp.ILike) and escape.is_string and like.expression.is_string):
        raise QueryError(f"{said(node)} needs a constant pattern and a constant letter.")
    pattern = wildcards.respelled(like.expression.name, escape.name, said(node))
    plain = type(like)(this=like.this.copy(), expression=exp.Literal.string(pattern))
    test = wildcards.matched(plain, total(like.this, lookup), pattern, escaped=True)
    return truth(exp.Not(this=exp.paren(test.sql)), test) if like.args.get("negate") else test


def _like(node: exp.Expr, lookup: Lookup) -> Typed:
    if node.args.get("negate"):
        # The parser's NOT LIKE.
        plain = type(node)(this=node.this.copy(), expression=node.expression.copy())
        return _not(exp.Not(this=plain), lookup)
    _only(node, "this", "expression")
    subject, pattern = total(node.this, lookup), total(node.expression, lookup)
    constant = pattern.sql.name if isinstance(pattern.sql, exp.Literal) and pattern.sql.is_string else None
    return wildcards.matched(node, subject, constant)


def _case(node: exp.Expr, lookup: Lookup) -> Typed:
    subject = node.this
    tests, results = [], []
    for branch in node.args["ifs"]:
        test = branch.this if subject is None else exp.EQ(this=subject.copy(), expression=branch.this.copy())
        tests.append(condition(test, lookup, "CASE WHEN").sql)
        results.append(total(branch.args["true"], lookup))
    default = node.args.get("default")
    results.append(total(default, lookup) if default is not None else _null(node, lookup))
    facts, sqls = unite(results, "CASE")
    ifs = [exp.If(this=test, true=sql) for test, sql in zip(tests, sqls, strict=False)]
    return facts.but(sql=exp.Case(ifs=ifs, default=sqls[-1]))


def _if(node: exp.Expr, lookup: Lookup) -> Typed:
    default = node.args.get("false") or exp.null()
    case = exp.Case(
        ifs=[exp.If(this=node.this.copy(), true=node.args["true"].copy())], default=default.copy()
    )
    return _case(case, lookup)


def _cast(node: exp.Expr, lookup: Lookup) -> Typed:
    _only(node, "this", "to")
    inner = total(node.this, lookup)
    to = node.args["to"]
    if to.this == exp.DataType.Type.DECIMAL:
        return decimal(inner, to)
    target = _CASTS.get(to.this)
    if target is None or to.args.get("nested"):
        *most, last = (value_type.sql for value_type in VALUE_TYPES.values() if value_type.cast_names)
        raise QueryError(
            f"CAST to {to.sql()} is not possible here; use {', '.join(most)} or {last} "
            "(and DECIMAL(p, s) for decimals)."
        )
    return casts.cast(inner, target)


_HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Lookup], Typed]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _neg,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    exp.DateAdd: _date_add,
    exp.Interval: _interval_alone,
    exp.Div: _divide,
    exp.IntDiv: _divide,
    exp.Mod: _mod,
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ), _compare
    ),
    exp.And: _connect,
    exp.Or: _connect,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
