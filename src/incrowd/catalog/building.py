"""A catalog from code, for tables that are already at hand.

The arguments are those of `Curator.from_tables`: the same checks as for a file, with faults named after the
argument at fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from incrowd.catalog.catalog import Catalog
from incrowd.catalog.columns import Scalar
from incrowd.catalog.declaration import nearest
from incrowd.catalog.loading import check
from incrowd.catalog.types import column_type
from incrowd.errors import CatalogError

UnitLike = str | tuple[str, str] | Mapping[str, str]


def catalog_for(
    tables: Mapping[str, Mapping[str, str]],
    *,
    unit: UnitLike | Mapping[str, UnitLike] = "row",
    bounds: Mapping[str, Sequence[Scalar]] | None = None,
    domains: Mapping[str, Sequence[Scalar] | str] | None = None,
    budget: tuple[float, float] | float | Mapping[str, float] = (1.0, 0.0),
    public: Collection[str] = (),
    relation: str = "add-remove",
    contribution: Mapping[str, float] | None = None,
    not_null: Collection[str] = (),
    analysts: Mapping[str, Mapping[str, Any]] | None = None,
    left_out: Mapping[str, Mapping[str, str]] | None = None,
) -> Catalog:
    """The catalog for tables in memory, given the type of each column (the catalog's name or an engine's).

    `unit` holds for every private table, or maps table names to units. Bounds, domains and contributions
    are keyed `"table.column"`, or `"column"` where one table alone has it (a contribution also by table); a
    domain given as text is `"public_table.column"`; `not_null` names columns that hold no NULL, which is
    then no group of its own. Columns of unknown types are left out; `left_out` says of a table's other
    columns why they are not among the types, for whoever names one nevertheless.

    >>> c = catalog_for({"people": {"id": "int64", "age": "int64"}}, unit="id", bounds={"age": (18, 90)})
    >>> c.tables["people"].columns["age"].bounds
    (18, 90)
    """
    for said, facts in (("bounds", bounds), ("domains", domains), ("contribution", contribution)):
        if facts is not None and not isinstance(facts, Mapping):
            raise CatalogError(
                f"{said}: expected a dictionary by column, as in {said}={{'visits.age': ...}}."
            )
    if analysts is not None and not isinstance(analysts, Mapping):
        raise CatalogError(
            "analysts: expected a dictionary by name, as in analysts={'ana': {'epsilon': 1.0}}."
        )
    public, not_null = _names(public, "public", "towns"), _names(not_null, "not_null", "visits.age")
    declared: dict[str, dict[str, Any]] = {}
    for name, columns in tables.items():
        types = {column_name: column_type(kind) for column_name, kind in columns.items()}
        fields = {column_name: {"type": kind} for column_name, kind in types.items() if kind is not None}
        declared[name] = {"source": name, "private": name not in public, "columns": fields}
        if name not in public:
            chosen = _unit_of(name, unit, tables)
            _refuse_left_out(chosen, (left_out or {}).get(name, {}), name)
            declared[name] |= {"unit": chosen, "relation": relation}
    for name in public:
        if name not in tables:
            raise CatalogError(f"public: there is no table {name}, {nearest(name, tables)}.")
    column = partial(_column, declared, left_out or {})
    for key, pair in (bounds or {}).items():
        column(key, "bounds")["bounds"] = list(pair) if isinstance(pair, Sequence) else pair
    for key, values in (domains or {}).items():
        if not isinstance(values, str) and _listed(values) is None:
            raise CatalogError(f"domains: expected a list of values for {key}, or 'public_table.column'.")
        domain = {"from": values} if isinstance(values, str) else list(values)
        column(key, "domains")["domain"] = domain
    for key, cap in (contribution or {}).items():
        holder = declared[key] if key in declared else column(key, "contribution")
        holder["contribution"] = cap
    for key in not_null:
        column(key, "not_null")["nullable"] = False
    return check(
        {
            "sources": {name: {"frame": name} for name in tables},
            "tables": declared,
            "budget": _budget(budget),
            "analysts": dict(analysts or {}),
        },
        name="from_tables",
    )


def _names(given: object, argument: str, example: str) -> tuple[str, ...]:
    """A collection of names."""
    names = _listed(given)
    if names is None or not all(isinstance(name, str) for name in names):
        raise CatalogError(f"{argument}: expected a list of names, as in {argument}=['{example}'].")
    return tuple(names)


def _listed(values: Any) -> list[Any] | None:
    """The values of a collection; None for what is none, and for text, whose letters nobody means."""
    if isinstance(values, str | bytes | Mapping):
        return None
    try:
        return list(values)
    except Exception:  # whatever it is, it is no collection
        return None


def _budget(given: tuple[float, float] | float | Mapping[str, float]) -> Mapping[str, float]:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise CatalogError("budget: expected (epsilon, delta), such as (1.0, 1e-6).")
        return {"epsilon": given[0], "delta": given[1]}
    return {"epsilon": given}


def _unit_of(table: str, unit: Any, tables: Mapping[str, object]) -> Any:
    if isinstance(unit, Mapping) and "column" not in unit:
        unknown = next((name for name in unit if name not in tables), None)
        if unknown is not None:
            raise CatalogError(f"unit: there is no table {unknown}, {nearest(unknown, tables)}.")
        unit = unit.get(table)
    if isinstance(unit, tuple | list):
        if len(unit) != 2:
            raise CatalogError("unit: expected a column, or (column, per), such as ('user_id', 'day').")
        return {"column": unit[0], "per": unit[1]}
    return unit


def _refuse_left_out(unit: Any, left_out: Mapping[str, str], table: str) -> None:
    for column in unit.values() if isinstance(unit, Mapping) else [unit]:
        if isinstance(column, str) and column != "row" and column in left_out:
            raise CatalogError(f"unit: {table}.{column} is left out, for {left_out[column]}.")


def _column(
    declared: Mapping[str, Mapping[str, Any]],
    left_out: Mapping[str, Mapping[str, str]],
    key: str,
    argument: str,
) -> dict[str, Any]:
    """The declaration of the column that `key` names."""
    full = {
        f"{table}.{column}": fields
        for table, spec in declared.items()
        for column, fields in spec["columns"].items()
    }
    matches = _matches(key, full)
    if len(matches) == 1:
        fields_of_column: dict[str, Any] = full[matches[0]]
        return fields_of_column
    if matches:
        raise CatalogError(f"{argument}: {key} is in several tables; write {' or '.join(matches)}.")
    reasons = {
        f"{table}.{column}": why for table, columns in left_out.items() for column, why in columns.items()
    }
    for column in _matches(key, reasons):
        raise CatalogError(f"{argument}: {column} is left out, for {reasons[column]}.")
    raise CatalogError(f"{argument}: there is no column {key}, {nearest(key, full)}.")


def _matches(key: str, full: Collection[str]) -> list[str]:
    """The full names that `key` may stand for."""
    return [key] if key in full else [name for name in full if name.partition(".")[2] == key]
