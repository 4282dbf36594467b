"""What a differential-privacy clause asks of the SELECT that aggregates: its unit, its groups, their size.

The owner alone decides who is protected and which groups are public, so the clause can only agree. The least
number of units is tested on a released number, after noise: it hides small groups as far as noise can tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.aggregates import Aggregates
from incrowd.query.clause import Clause
from incrowd.query.ownership import Sources
from incrowd.query.plan import Key

_MOST = 2**30


def held_to(clause: Clause, outer: exp.Select, keys: Sequence[Key], aggregates: Aggregates) -> exp.Select:
    """The select over released numbers as its clause wants it; refuses what the owner has not declared."""
    if clause.unit:
        _check_unit(clause.unit, aggregates.below)
    if clause.public:
        for key in keys:
            if not key.public:
                raise QueryError(
                    f"The groups of {key.label} are not public, so PUBLIC_GROUPS is not possible; leave "
                    "group_selection_strategy out, or have the owner declare a domain."
                )
    least = clause.least_units
    if least is None:
        return outer
    if not (1 <= least < _MOST and least.is_integer()):
        raise QueryError("min_privacy_units_per_group must be a whole number from 1 to 2^30.")
    if not keys:
        return outer
    units = exp.column(
        aggregates.units(f"Groups are shown whose noisy number of units is at least {least:g}.")
    )
    return outer.where(exp.GTE(this=units, expression=exp.Literal.number(int(least))))


def _check_unit(unit: tuple[str, ...], below: Sources) -> None:
    """Refuse a unit that is not the declared one."""
    *tables, name = unit
    said = ".".join(unit)
    declared = [
        (alias, column, field.unit)
        for alias, relation in below.items.items()
        if relation.private
        for column, field in relation.fields.items()
        if field.unit
    ]
    if not below.parts:
        raise QueryError(
            "Each row is a unit of its own here, so no column is; leave privacy_unit_column out."
        )
    columns = " and ".join(dict.fromkeys(column for _, column, _ in declared))
    if len(below.parts) > 1:
        raise QueryError(
            f"The owner protects {columns} together, not {said} alone; leave privacy_unit_column out."
        )
    if not any(column == name and tables in ([], [alias]) for alias, column, _ in declared):
        raise QueryError(
            f"The protected unit here is {columns}, as the owner declared, not {said}; write "
            f"privacy_unit_column={columns}, or leave it out."
        )
