"""Finds conditions that no row can meet: a misspelt value, a number out of bounds, text that is no date.

Such a question is sound, and its answer is paid for in vain. Facts come from the owner's declarations and the
question's own text; no row is read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from incrowd.catalog.types import NUMERIC, TIMES
from incrowd.errors import QueryError
from incrowd.query.bounding import constant_in
from incrowd.query.doubts import Doubt, spoken
from incrowd.query.expressions import total
from incrowd.query.grammar import read
from incrowd.query.group_keys import column_values
from incrowd.query.ownership import Sources, World, sources
from incrowd.query.typed import Field, Typed, said

MOST_DOUBTS = 5
"""The most warnings of one question: after so many, a reader looks at the question."""
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def mismatches(tree: exp.Query, world: World) -> tuple[Doubt, ...]:
    """The conditions of a question that no row can meet. The rules have rewritten it already."""
    found: list[Doubt] = []
    for select in tree.find_all(exp.Select):
        if len(found) >= MOST_DOUBTS:
            break
        if not world.private(select):
            continue
        try:
            below = sources(select, world)
        except QueryError:
            continue  # It reads released numbers, not rows.
        for node in _own_parts(select):
            try:
                found += _doubts_of(node, below)
            except QueryError:
                continue  # It is about an aggregate, not about rows.
    return tuple(dict.fromkeys(found))[:MOST_DOUBTS]


def _own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    """The parts of a select, those of the queries inside it left out."""
    todo: list[exp.Expr] = [select]
    while todo:
        node = todo.pop()
        yield node
        todo += [part for part in node.iter_expressions(reverse=True) if not isinstance(part, exp.Query)]


def _doubts_of(node: exp.Expr, below: Sources) -> Iterator[Doubt]:
    if type(node) in _FLIPPED:
        one, other, kind = node.this, node.expression, type(node)
        if _constant(one):
            one, other, kind = other, one, _FLIPPED[kind]
        if _constant(other) and not _constant(one):
            yield from _compared(node, _subject(one, below), kind, [other], below)
    elif isinstance(node, exp.In) and node.expressions and not _constant(node.this):
        if all(map(_constant, node.expressions)):
            yield from _compared(node, _subject(node.this, below), exp.EQ, node.expressions, below)
    elif isinstance(node, exp.Like) and _is_plain(node.expression) and not _constant(node.this):
        yield from _compared(node, _subject(node.this, below), exp.EQ, [node.expression], below)
    elif isinstance(node, exp.Between) and not _constant(node.this):
        low, high = node.args["low"], node.args["high"]
        if _constant(low) and _constant(high):
            yield from _between(node, _subject(node.this, below), low, high, below)


def _constant(node: exp.Expr) -> bool:
    return node.find(exp.Column, exp.Query) is None


def _is_plain(pattern: exp.Expr) -> bool:
    """Whether a pattern has no wildcards."""
    return isinstance(pattern, exp.Literal) and not set("%_") & set(pattern.name)


@dataclass(frozen=True)
class _Subject:
    """What a condition is about, and what is declared of it."""

    label: str
    typed: Typed
    field: Field | None
    """The facts of a plain column."""

    @property
    def ends(self) -> tuple[Any, Any] | None:
        """The least and the largest of its values: numbers, or moments."""
        if self.typed.kind in NUMERIC and self.typed.bounded:
            return self.typed.low, self.typed.high
        if self.typed.kind in TIMES and self.field is not None and self.field.limits is not None:
            low, high = map(_moment, self.field.limits)
            return low, high
        return None

    @property
    def values(self) -> tuple[Any, ...] | None:
        """Its values, where they are listed one by one."""
        return self.typed.values if self.field is None else self.field.values


def _subject(node: exp.Expr, below: Sources) -> _Subject:
    fields = [below.field(column) for column in node.find_all(exp.Column)]
    if any(field.bought or field.unlisted for field in fields):
        # What was bought about a column is no declaration: rows may be otherwise.
        raise QueryError("Nothing is declared.")
    return _Subject(
        said(node), total(node, below.lookup), fields[0] if isinstance(node, exp.Column) else None
    )


def _moment(value: Any) -> Any:
    """A date as the moment at which it begins."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def _value(node: exp.Expr, subject: _Subject, below: Sources) -> Any:
    """The value of a constant, where it can be compared with the subject; None where that is not known."""
    if subject.typed.kind in TIMES:
        moment = constant_in(node)
        return moment if isinstance(moment, dt.datetime) else None
    typed = total(node, below.lookup)
    if typed.nullable or typed.values is None or len(typed.values) != 1:
        return None
    same = typed.kind == subject.typed.kind or {typed.kind, subject.typed.kind} <= NUMERIC
    return typed.values[0] if same else None


def _compared(
    node: exp.Expr, subject: _Subject, kind: type[exp.Expr], others: Sequence[exp.Expr], below: Sources
) -> Iterator[Doubt]:
    condition = said(node)
    wanted = []
    for other in others:
        text = f"{said(other)} in {condition}" if len(others) > 1 else condition
        reason = _unreadable(other, subject)
        value = None if reason else _value(other, subject, below)
        if not reason and value is not None:
            reason = _beyond(value, subject, kind)
        if reason:
            yield Doubt(text, reason)
        elif value is not None:
            wanted.append(value)
    if wanted and kind in (exp.EQ, exp.NEQ):
        yield from _listed(Doubt(condition, "", kind is exp.NEQ, subject.label, tuple(wanted)), subject)


def _between(
    node: exp.Expr, subject: _Subject, low: exp.Expr, high: exp.Expr, below: Sources
) -> Iterator[Doubt]:
    unreadable = _unreadable(low, subject) or _unreadable(high, subject)
    if unreadable:
        yield Doubt(said(node), unreadable)
        return
    least, most = _value(low, subject, below), _value(high, subject, below)
    if least is None or most is None:
        return
    if least > most:
        yield Doubt(
            said(node), f"its ends are the wrong way round; write BETWEEN {said(high)} AND {said(low)}."
        )
        return
    reason = _beyond(least, subject, exp.GTE) or _beyond(most, subject, exp.LTE)
    if reason:
        yield Doubt(said(node), reason)


def _unreadable(other: exp.Expr, subject: _Subject) -> str:
    """Why a constant compares with nothing at all; empty if it may."""
    if isinstance(other, exp.Null):
        return f"nothing equals NULL; write {subject.label} IS NULL or {subject.label} IS NOT NULL."
    if subject.typed.kind not in TIMES:
        return ""
    text = other.this if isinstance(other, exp.Cast | exp.TryCast) else other
    if not isinstance(text, exp.Literal) or not text.is_string or read(text.name, "timestamp") is not None:
        return ""
    return f"{spoken(text.name)} is no day that exists; write it as in '2024-12-31' or '2024-12-31 18:30'."


def _beyond(value: Any, subject: _Subject, kind: type[exp.Expr]) -> str:
    """Why no value between the subject's ends compares so with a constant; empty if one may."""
    if subject.ends is None or kind is exp.NEQ or isinstance(value, bool | str):
        return ""
    low, high = subject.ends
    impossible: dict[type[exp.Expr], bool] = {
        exp.EQ: value < low or value > high,
        exp.GT: value >= high,
        exp.GTE: value > high,
        exp.LT: value <= low,
        exp.LTE: value < low,
    }
    return f"{subject.label} lies between {spoken(low)} and {spoken(high)}." if impossible[kind] else ""


def _listed(doubt: Doubt, subject: _Subject) -> Iterator[Doubt]:
    """The doubt whether constants are among the values of the subject, decided if these are known here."""
    if subject.values is not None:
        decided = doubt.among(subject.values)
        if decided is not None:
            yield decided
    elif subject.field is not None and subject.field.domain is not None:
        table, _, column = subject.field.domain.partition(".")
        if table and column:
            yield Doubt(
                doubt.condition,
                "",
                doubt.unlike,
                doubt.subject,
                doubt.wanted,
                column_values(subject.field),
            )
