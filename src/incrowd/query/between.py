"""Questions about what lies between two times, where they are written: EXTRACT(DAY FROM a - b), AGE(a, b).

A difference of timestamps is an interval, which is no number. It has a meaning here where a part of it is
taken, or where it is compared with a constant interval; both are found before the difference itself is looked
at.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from incrowd.catalog.types import TIMES
from incrowd.errors import QueryError
from incrowd.query.differences import against_interval, age, part_of_difference
from incrowd.query.functions import FUNCTIONS, by_name
from incrowd.query.functions.parts import part_asked, part_named
from incrowd.query.spans import interval_in
from incrowd.query.typed import Typed, said

Total = Callable[[exp.Expr], Typed]
Combined = Callable[[exp.Expr, Typed, Typed], Typed]


def between_times(node: exp.Expr, total: Total, combined: Combined) -> Typed | None:
    """A part of a difference of two times, or of AGE; None for anything else.

    total, combined: how an expression, or a sum of two, becomes total. Each operand is looked at once only,
    so that nested differences take no longer than flat ones.
    """
    if _is_age(node):
        raise QueryError(
            f"{said(node)} is an interval, which is no number; write EXTRACT(YEAR FROM {said(node)}), or of "
            "MONTH."
        )
    asked = part_asked(node)
    operand = None if asked is None else asked[1].unnest()
    if asked is None or operand is None:
        return None
    if _is_age(operand):
        if len(operand.expressions) != 2:
            raise QueryError("AGE takes two dates, as in EXTRACT(YEAR FROM AGE(last, first)).")
        end, start = (total(side) for side in operand.expressions)
        return age(node, part_named(asked[0]), end, start)
    if not isinstance(operand, exp.Sub) or interval_in(operand.expression) is not None:
        return None
    end, start = total(operand.this), total(operand.expression)
    if end.kind in TIMES and start.kind in TIMES:
        return part_of_difference(node, part_named(asked[0]), end, start)
    value = combined(operand, end, start)
    value = value.but(said=said(operand))
    if isinstance(node, exp.Anonymous):
        return by_name(node, [*(total(part) for part in node.expressions[:-1]), value])
    return FUNCTIONS[type(node)](node, [value])


def intervals_compared(node: exp.Expr, total: Total) -> tuple[Typed, Typed] | None:
    """Both sides of a comparison of a difference with a constant interval, as numbers; None for others."""
    for difference, other, turned in (
        (node.this, node.expression, False),
        (node.expression, node.this, True),
    ):
        interval = interval_in(other)
        if interval is None:
            continue
        inner = difference.unnest()
        if not isinstance(inner, exp.Sub) or interval_in(inner.expression) is not None:
            break
        if interval.count is not None:
            raise QueryError(
                f"{said(node)} compares with an interval that is no constant; compare "
                f"EXTRACT(EPOCH FROM {said(inner)}) with a number of seconds."
            )
        sides = against_interval(node, total(inner.this), total(inner.expression), interval.span.normal)
        return (sides[1], sides[0]) if turned else sides
    return None


def _is_age(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "AGE"
