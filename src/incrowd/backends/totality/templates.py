"""Matches an expression against a template in which one column stands for any expression.

Dialects write some constructs in many steps that are total only together. Such a construct is recognised as a
whole: the dialect writes it once more around the column, and the two are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from incrowd.backends.totality.walk import Keys

HOLE = "__hole"
"""The name of the template's column that stands for any expression."""


def filled(template: exp.Expr, node: exp.Expr, keys: Keys) -> exp.Expr | None:
    """The expression in place of the column, which must be the same everywhere; None if there is no match."""
    fillings: list[exp.Expr] = []
    return fillings[0] if _alike(template, node, keys, fillings) and fillings else None


def _alike(template: Any, part: Any, keys: Keys, fillings: list[exp.Expr]) -> bool:
    if isinstance(template, exp.Paren):
        return _alike(template.this, part, keys, fillings)
    if isinstance(template, exp.Column) and template.name == HOLE:
        if not isinstance(part, exp.Expr):
            return False
        fillings.append(part)
        return keys.of(fillings[0]) == keys.of(part)
    if isinstance(template, exp.Expr):
        if isinstance(part, exp.Paren):
            part = part.unnest()
        if type(template) is not type(part):
            return False
        names = {name for node in (template, part) for name, value in node.args.items() if value}
        return all(_alike(template.args.get(name), part.args.get(name), keys, fillings) for name in names)
    if isinstance(template, list):
        return (
            isinstance(part, list)
            and len(template) == len(part)
            and all(_alike(one, two, keys, fillings) for one, two in zip(template, part, strict=True))
        )
    return bool(template == part)
