"""Joins of FROM items, so that every row still belongs to one unit (`ownership`).

Which rows one person's change can reach, by what is on the two sides (A on the left):

- A public, B private. A row of the join is one row of B with one of A: it is about B's unit. LEFT JOIN adds
  rows of A that match nothing; they have no unit, belong to nobody and are left out wherever rows of people
  are counted, so it is the inner join. (Keys of A are public and appear all the same, empty.) Likewise A
  private and B public: RIGHT JOIN is the inner join, and FULL JOIN is LEFT JOIN.
- Both private: the condition must equate all of the unit's columns. Two rows match only if they are of one
  unit, so whether a row finds a match depends on rows of its own unit alone, also where it finds none. In a
  RIGHT JOIN the rows are about B's unit, in a FULL JOIN about COALESCE(A's unit, B's unit): they are equal
  where both are there. A row whose unit is NULL matches nothing and belongs to nobody.

A column on a side that may be missing is NULL there, so none of that side is marked as the unit's any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from incrowd.errors import QueryError
from incrowd.query.bounding import conjuncts
from incrowd.query.expressions import condition
from incrowd.query.ownership import Relation, Sources, unit_columns, unit_parts
from incrowd.query.typed import Typed, lookup_in

_SIDES = ("", "LEFT", "RIGHT", "FULL")


def joined(left: Sources, join: exp.Join, right: Relation) -> Sources:
    """The sources with one more relation."""
    alias = join.this.alias_or_name
    items = {**left.items, alias: right}
    on = join.args.get("on")
    lookup = lookup_in({name: relation.fields for name, relation in items.items()})
    test = None if on is None else condition(on, lookup, "JOIN ... ON")
    side, kind = _side_and_kind(join, left, right)
    if side == "SWAPPED":
        others = {name: _optional(relation) for name, relation in left.items.items()}
        written = _written(exp.Join(this=left.from_.this), "LEFT", "", test)
        start = exp.From(this=right.sql)
        return Sources({**others, alias: right}, start, (written,), unit_columns(alias, right), False, False)
    units = _joined_units(left, right, alias, test, items)
    if side in ("LEFT", "FULL"):
        items[alias] = _optional(right)
    if side in ("RIGHT", "FULL"):
        items = {name: relation if name == alias else _optional(relation) for name, relation in items.items()}
    joins = (*left.joins, _written(exp.Join(this=right.sql), side, kind, test))
    if side in ("RIGHT", "FULL"):
        theirs = unit_columns(alias, right)
        # With a condition of its own, a unit's row on either side may find no match: then it has both.
        single = side == "RIGHT" and left.single and right.single
        units = theirs if side == "RIGHT" else _either(units, theirs)
        return Sources(items, left.from_, joins, units, single, False)
    unique = right.unique is not None and right.unique <= _equated(test, alias)
    single = left.single and (unique or (right.private and right.single))
    return Sources(items, left.from_, joins, units, single, left.unmultiplied and unique)


def _either(
    one: tuple[exp.Expr, ...] | None, other: tuple[exp.Expr, ...] | None
) -> tuple[exp.Expr, ...] | None:
    """The unit of a row of a FULL JOIN."""
    if one is None or other is None:
        raise QueryError("A FULL JOIN of public tables is not possible here; use JOIN or LEFT JOIN.")
    both = zip(one, other, strict=True)
    return tuple(exp.Coalesce(this=left.copy(), expressions=[right.copy()]) for left, right in both)


def _written(join: exp.Join, side: str, kind: str, test: Typed | None) -> exp.Join:
    join.set("side", side or None)
    join.set("kind", kind or None)
    join.set("on", None if test is None else test.sql)
    return join


def _side_and_kind(join: exp.Join, left: Sources, right: Relation) -> tuple[str, str]:
    """Which rows without a match stay, as the join is to be written, and INNER, CROSS, OUTER or nothing.

    SWAPPED: LEFT JOIN with the sides swapped.
    """
    side, kind = join.side.upper(), join.kind.upper()
    if kind not in ("", "INNER", "CROSS", "OUTER"):
        raise QueryError(f"A {kind} JOIN is not possible here; use JOIN ... ON or LEFT JOIN ... ON.")
    if side not in _SIDES:
        raise QueryError(f"A {side} JOIN is not possible here; use JOIN ... ON or LEFT JOIN ... ON.")
    if kind == "OUTER" and side == "":
        raise QueryError("An OUTER JOIN needs its side; write LEFT JOIN.")
    if (left.units is None) == (not right.private):
        return side, kind
    if left.units is not None:
        return ("", "") if side == "RIGHT" else ("LEFT", "") if side == "FULL" else (side, kind)
    if side == "LEFT":
        return "", ""
    if side in ("RIGHT", "FULL"):
        if left.joins:
            alias = join.this.alias_or_name
            raise QueryError(
                f"Put the private table {alias} first: FROM {alias} LEFT JOIN the public tables, one by one."
            )
        return "SWAPPED", ""
    return side, kind


def _joined_units(
    left: Sources, right: Relation, alias: str, test: Typed | None, items: Mapping[str, Relation]
) -> tuple[exp.Expr, ...] | None:
    """Whose rows the join yields, those of its left side if both are private; refuses to mix two units."""
    if not right.private:
        return left.units
    if left.units is None:
        return unit_columns(alias, right)
    if len(left.units) != len(right.units or ()) or not _joins_on_unit(test, items, alias):
        raise QueryError(
            f"Joining {alias} would mix rows of different people; join private tables on the protected unit "
            f"({_unit_said(items)}), with AND for more conditions."
        )
    return left.units


def _optional(side: Relation) -> Relation:
    """A side of a join that may be missing. Its columns are NULL there, so none names the unit."""
    fields = {name: replace(field, nullable=True, unit="") for name, field in side.fields.items()}
    return replace(side, fields=fields)


def _unit_said(items: Mapping[str, Relation]) -> str:
    """The unit's columns, as the user would join them."""
    names = [
        f"{alias}.{name}"
        for alias, relation in items.items()
        for name, field in relation.fields.items()
        if field.unit and relation.private
    ]
    return (
        " = ".join(names) or "each row is a unit of its own here and cannot be joined to other private rows"
    )


def _joins_on_unit(test: Typed | None, items: Mapping[str, Relation], alias: str) -> bool:
    """True if the condition equates every column of the unit on both sides; AND may add more conditions.

    Only bare columns count: a cast or any other function may map two units to one value.
    """
    parts = unit_parts(items[alias].units)
    equated = set()
    for node in conjuncts(None if test is None else test.sql):
        if isinstance(node, exp.EQ):
            sides = (node.this, node.expression)
            if all(isinstance(column, exp.Column) for column in sides) and alias in {
                column.table for column in sides
            }:
                one, two = (items[column.table].fields[column.name].unit for column in sides)
                if one == two and sides[0].table != sides[1].table:
                    equated.add(one)
    return bool(parts) and set(parts) <= equated


def _equated(test: Typed | None, alias: str) -> set[str]:
    """The columns of a relation that a condition equates with something of the others.

    Only bare columns count: two values of one column may be cast to one.
    """
    names = set()
    for node in conjuncts(None if test is None else test.sql):
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                others = {column.table for column in other.find_all(exp.Column)}
                if isinstance(one, exp.Column) and one.table == alias and alias not in others:
                    names.add(one.name)
    return names
