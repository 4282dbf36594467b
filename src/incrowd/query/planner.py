"""From a parsed question to a bounded plan: apply the rules, cut out the leaves, bound them.

Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from incrowd.catalog import Catalog
from incrowd.errors import QueryError
from incrowd.query.growth import within_time
from incrowd.query.leaves import Cutter
from incrowd.query.lone_rows import lone_rows
from incrowd.query.mismatches import mismatches
from incrowd.query.ownership import World
from incrowd.query.plan import Plan, released_index
from incrowd.query.rules import rewrite
from incrowd.query.sql import Question, count_bounds
from incrowd.query.typed import Field


@dataclass(frozen=True)
class Contribution:
    """The analyst's limits on what one unit contributes; None if not given."""

    rows: float | None = None
    groups: float | None = None


def bound(
    question: Question,
    catalog: Catalog,
    public_columns: Mapping[str, Mapping[str, Field]] | None = None,
    contribution: Contribution | None = None,
) -> Plan:
    """The bounded plan of a question."""
    limits = contribution or Contribution()
    options = question.options
    rows = _whole("rows", options.get("max_rows_contributed") if limits.rows is None else limits.rows)
    groups = _whole(
        "groups", options.get("max_groups_contributed") if limits.groups is None else limits.groups
    )
    world = World(catalog, public_columns or {})
    cutter = Cutter(world, rows, groups)
    try:
        with within_time():
            tree = rewrite(question.tree.copy(), world)
            written = tree.copy()
            outer = cutter.cut(tree)
            doubts = mismatches(written, world)
            lone = lone_rows(written, world)
        _check_outer(outer, world)
    except RecursionError:
        raise QueryError("The SQL is nested too deeply to be planned; write it in smaller steps.") from None
    columns = tuple(column.alias_or_name for column in outer.selects)
    if "" in columns:
        raise QueryError("A column of the answer has an empty name; give it one with AS.")
    doubled = next((name for name in columns if columns.count(name) > 1), None)
    if doubled is not None:
        raise QueryError(
            f"Two columns of the answer are called {doubled}; give one of them another name with AS."
        )
    return Plan(tuple(cutter.leaves), outer, question.options, columns, (*_notes(question), *lone), doubts)


def _notes(question: Question) -> tuple[str, ...]:
    """What to say of a question whose clause stands in several SELECTs."""
    if question.clauses < 2 or "epsilon" not in question.options:
        return ()
    return (
        (
            f"The DIFFERENTIAL_PRIVACY clause stands in {question.clauses} SELECTs; its epsilon is paid once "
            "for all together."
        ),
    )


def _whole(name: str, value: float | None) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 1 <= value < 2**30 and float(value).is_integer()):
        raise QueryError(
            f"The number of {name} that one unit contributes must be a whole number from 1 to 2^30."
        )
    return value


def _check_outer(outer: exp.Query, world: World) -> None:
    """Refuse a query above the leaves that reads anything but released and public tables."""
    for table in outer.find_all(exp.Table):
        name = world.catalog.find(table.name)
        if released_index(table.name) is not None:
            if name is not None:
                raise QueryError(
                    f"The table name {name} is reserved for released numbers; ask the owner to rename it."
                )
        elif name is None or world.catalog.tables[name].private:
            raise QueryError(
                f"{table.name} cannot be read beside released numbers; join it inside the SELECT that "
                "aggregates."
            )
    if count_bounds(outer):
        raise QueryError("Contribution bounds must stand in the SELECT that aggregates private rows.")
