"""UNION, INTERSECT and EXCEPT of rows of people, so that every row still belongs to one unit (`ownership`).

- UNION ALL: a row of the result is a row of one part, and keeps its unit. Removing a unit removes its rows
  from every part and changes no other.
- UNION, INTERSECT [ALL] and EXCEPT [ALL], where all of the unit's columns stand in the same places of all
  parts: rows are compared as wholes, so rows of two units never meet. Whether a row is in the result, and how
  often, is a function of the rows of its own unit. Rows whose unit is NULL belong to nobody, and never equal
  one that belongs to somebody. Without the unit's columns a row of one person would hide another's: refused.

Every part carries the unit as columns of its own too; where rows are compared, they equal the named ones.
Columns are put into one type by casts that never raise: what two parts hold apart stays apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from incrowd.catalog.types import SQL_TYPES, TIMES, Kind
from incrowd.errors import QueryError
from incrowd.query.combining import comparable
from incrowd.query.group_keys import as_key
from incrowd.query.ownership import RESERVED, UNIT, Relation, World, select_rows, unit_parts
from incrowd.query.typed import Field, Typed, UnitPart, double, lookup_in

_WORDS: dict[type[exp.SetOperation], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}
_PART = f"{RESERVED}part"


def stacked(node: exp.SetOperation, world: World) -> Relation:
    """The rows of a set operation over private rows."""
    word = _WORDS.get(type(node), node.key.upper())
    _refuse_modifiers(node, word)
    parts = [_part(node.args[side], world, word) for side in ("this", "expression")]
    one, other = parts
    if unit_parts(one.units) == () or len(one.units or ()) != len(other.units or ()):
        raise QueryError(
            f"{word} of rows that are units of their own, or of public rows beside private ones, is not "
            "possible; ask each part by itself."
        )
    _refuse_other_units(parts, world, word)
    names = list(one.fields)
    if len(names) != len(other.fields):
        raise QueryError(
            f"The parts of {word} must have as many columns each: {len(names)} and {len(other.fields)}."
        )
    distinct = not (isinstance(node, exp.Union) and not node.args.get("distinct"))
    pairs = list(zip(one.fields.values(), other.fields.values(), strict=True))
    units: list[UnitPart] = [left.unit if left.unit == right.unit else "" for left, right in pairs]
    if distinct and not set(unit_parts(one.units)) <= set(units):
        remedy = ", or write UNION ALL" if isinstance(node, exp.Union) else ""
        raise QueryError(
            f"{word} compares rows of different people unless each part shows the protected unit; add it to "
            f"both parts, in the same place{remedy}."
        )
    columns = [
        _alike(list(one.fields)[place], list(other.fields)[place], pairs[place], units[place], distinct)
        for place in range(len(names))
    ]
    sides = [
        _projected(part, [(one, other)[side] for one, other, _ in columns], names)
        for side, part in enumerate(parts)
    ]
    tree = type(node)(this=sides[0], expression=sides[1], distinct=bool(node.args.get("distinct")))
    fields = {
        name: _field(name, pair, unit, kind, first)
        for name, pair, unit, (first, _, kind) in zip(names, pairs, units, columns, strict=True)
    }
    single = bool(node.args.get("distinct")) and set(units) == set(unit_parts(one.units))
    if isinstance(node, exp.Except | exp.Intersect):
        single = single or one.single
    carried = tuple(f"{UNIT}{index}" for index in range(len(one.units or ())))
    return Relation(
        _selectable(tree, [*names, *carried]),
        fields,
        carried,
        (*one.tables, *other.tables),
        any(part.materialize for part in parts),
        single,
    )


def _refuse_modifiers(node: exp.SetOperation, word: str) -> None:
    allowed = {"this", "expression", "distinct"}
    for key, value in node.args.items():
        if value and key not in allowed:
            said = {"by_name": "BY NAME"}.get(key, key.strip("_").upper())
            raise QueryError(f"{said} on {word} of private rows is not possible; leave it out.")


def _part(node: exp.Expr, world: World, word: str) -> Relation:
    inner = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(inner, exp.SetOperation):
        return stacked(inner, world)
    if not isinstance(inner, exp.Select) or not world.private(inner):
        raise QueryError(f"Every part of {word} must be a SELECT over private rows; leave the others out.")
    return select_rows(inner, world)


def _refuse_other_units(parts: Sequence[Relation], world: World, word: str) -> None:
    """Refuse tables whose units are values of different kinds: one column could not hold both."""
    kinds = {}
    for name in (name for part in parts for name in part.tables):
        unit = world.catalog.tables[name].unit
        fields = world.fields(name).values()
        marks = ("column", "partition")[: len(unit.columns)] if unit is not None else ()
        kinds[name] = [next(field.kind for field in fields if field.unit == mark) for mark in marks]
    first, *others = kinds
    for name in others:
        if kinds[name] != kinds[first]:
            raise QueryError(
                f"{word} of {first} and {name} is not possible: the protected unit is of type "
                f"{', '.join(kinds[first])} in one and {', '.join(kinds[name])} in the other."
            )


def _alike(
    one: str, other: str, pair: tuple[Field, Field], unit: str, distinct: bool
) -> tuple[exp.Expr, exp.Expr, Kind]:
    """Both sides of a column in one type, and its kind; bare columns where both name the unit."""
    sides = []
    for name, field in zip((one, other), pair, strict=True):
        lookup = lookup_in({_PART: {name: field}})
        sides.append(lookup(exp.column(name, table=_PART, quoted=True)).but(said=name))
    if unit:
        return sides[0].sql, sides[1].sql, sides[0].kind
    left, right = comparable(sides[0], sides[1], f"A column of both parts, {one},")
    kinds: set[Kind] = {left.kind, right.kind} - {"null"}
    kind: Kind = kinds.pop() if len(kinds) == 1 else "float" if kinds else "text"
    return _typed(left, kind, distinct), _typed(right, kind, distinct), kind


def _typed(typed: Typed, kind: Kind, distinct: bool) -> exp.Expr:
    """A column in the type of its kind: floats in float64 whatever they were, NULL in the other's type."""
    whole = typed.kind == "integer" and typed.integral
    if typed.kind == "null":
        return exp.cast(exp.null(), SQL_TYPES[kind])
    if kind == "float" or (kind == "integer" and not whole):
        number = exp.cast(typed.sql, "DOUBLE")
        return exp.Add(this=number, expression=double(0.0)) if distinct else number
    return as_key(typed) if distinct and kind != "integer" else typed.sql


def _projected(part: Relation, columns: list[exp.Expr], names: list[str]) -> exp.Select:
    rows = exp.Select()
    for name, column in zip(names, columns, strict=True):
        rows = rows.select(exp.alias_(column.copy(), name, quoted=True), copy=False)
    for index, name in enumerate(part.units or ()):
        own = exp.column(name, table=_PART, quoted=True)
        rows = rows.select(exp.alias_(own, f"{UNIT}{index}", quoted=True), copy=False)
    alias = exp.TableAlias(this=exp.to_identifier(_PART, quoted=True))
    return rows.from_(exp.Subquery(this=part.sql.copy(), alias=alias))


def _selectable(tree: exp.SetOperation, names: list[str]) -> exp.Select:
    alias = exp.TableAlias(this=exp.to_identifier(_PART, quoted=True))
    columns = [exp.column(name, table=_PART, quoted=True) for name in names]
    return exp.select(*columns).from_(exp.Subquery(this=tree, alias=alias))


def _field(name: str, pair: tuple[Field, Field], unit: UnitPart, kind: Kind, column: exp.Expr) -> Field:
    """What is known of a column of both parts: what holds in each of them."""
    nullable = any(field.nullable for field in pair)
    if unit:
        return replace(pair[0], nullable=nullable, name=name, values=None, domain=None, census=None)
    held = [field for field in pair if field.kind != "null"]
    lows, highs = [field.low for field in held], [field.high for field in held]
    known = Field(kind, name=name, nullable=nullable or len(held) < 2 or kind in TIMES)
    if held and None not in lows and None not in highs:
        known = replace(known, low=min(filter(_is_known, lows)), high=max(filter(_is_known, highs)))
    if held and all(field.kind == kind for field in held):
        values = [field.values for field in held]
        if None not in values:
            listed = dict.fromkeys(value for part in values for value in part or ())
            known = replace(known, values=tuple(listed))
        ends = [field.limits for field in held if field.limits is not None]
        if len(ends) == len(held):
            known = replace(known, limits=(min(low for low, _ in ends), max(high for _, high in ends)))
        if len({field.domain for field in held}) == 1:
            known = replace(known, domain=held[0].domain)
    return replace(known, floating=kind == "integer" and isinstance(column, exp.Cast | exp.Add))


def _is_known(end: float | None) -> TypeGuard[float]:
    return end is not None
