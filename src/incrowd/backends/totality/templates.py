"""Whether an expression is written like another one, with some expression in the place of a column of it.

Engines' dialects write some constructs in many steps that are total only together. Those are recognised as a
whole, by writing them once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from incrowd.backends.totality.walk import Keys

HOLE = "__hole"
"""The name of the column of a template that stands for any expression."""


def filled(template: exp.Expr, node: exp.Expr, keys: Keys) -> exp.Expr | None:
    """The expression in the place of the column, the same wherever it stands; None if they are not alike."""
    found: list[exp.Expr] = []
    return found[0] if _alike(template, node, keys, found) and found else None


def _alike(template: Any, part: Any, keys: Keys, found: list[exp.Expr]) -> bool:
    if isinstance(template, exp.Paren):
        return _alike(template.this, part, keys, found)
    if isinstance(template, exp.Column) and template.name == HOLE:
        if not isinstance(part, exp.Expr):
            return False
        found.append(part)
        return keys.of(found[0]) == keys.of(part)
    if isinstance(template, exp.Expr):
        if isinstance(part, exp.Paren):
            part = part.unnest()
        if type(template) is not type(part):
            return False
        names = {name for each in (template, part) for name, value in each.args.items() if value}
        return all(_alike(template.args.get(name), part.args.get(name), keys, found) for name in names)
    if isinstance(template, list):
        return (
            isinstance(part, list)
            and len(template) == len(part)
            and all(_alike(one, two, keys, found) for one, two in zip(template, part, strict=True))
        )
    return bool(template == part)
