"""A first catalog for tables of which only names and types are known.

No row is read here. What only the owner knows is marked FILL, and the file does not load until the marks that
matter are gone; bounds and domains may be filled later, column by column. Taking either from the private rows
is a leak: the largest income in a table is one person's income.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.catalog.columns import Scalar
from incrowd.catalog.declaration import PLACEHOLDER, nearest
from incrowd.catalog.names import fold
from incrowd.catalog.types import NUMERIC, TIMES, VALUE_TYPES, column_type
from incrowd.catalog.writing import NOTES, inline, scalar
from incrowd.errors import CatalogError

WARNING = """\
# Proposed by incrowd init from the names and types of columns; no row was read.
# Fill in what is marked FILL. Take bounds and domains from what you know without looking at the data (a
# form's limits, a law, a code list): a bound or a domain read off the private rows is published with every
# answer and tells, say, what the highest income is. That is a leak, and no noise is added to it."""
_BOUNDED = NUMERIC | TIMES


@dataclass(frozen=True)
class OwnersQuestion:
    """Something that only the owner knows. `key` is where the answer goes in `propose`."""

    key: str
    field: str
    text: str


def questions(schema: Mapping[str, Mapping[str, str]]) -> tuple[OwnersQuestion, ...]:
    """What to ask the owner of these tables: the unit of each, then bounds or a domain for each column.

    >>> [each.key for each in questions({"people": {"id": "BIGINT", "sex": "VARCHAR"}})]
    ['people', 'people.id', 'people.sex']
    """
    asked = []
    for table, columns in schema.items():
        text = f"Which column of {table} identifies a person (row if each row is one)?"
        asked.append(OwnersQuestion(table, "unit", text))
        for column, engine_type in columns.items():
            kind = column_type(engine_type)
            if kind in _BOUNDED:
                said = (
                    f"Between which values does {table}.{column} lie, as known without looking at the data?"
                )
                asked.append(OwnersQuestion(f"{table}.{column}", "bounds", said))
            elif kind == "text":
                said = f"Which values may {table}.{column} take, if that is public?"
                asked.append(OwnersQuestion(f"{table}.{column}", "domain", said))
    return tuple(asked)


def propose(
    schema: Mapping[str, Mapping[str, str]],
    *,
    source: Mapping[str, object] | None = None,
    unit: Mapping[str, str | Mapping[str, str]] | None = None,
    bounds: Mapping[str, Sequence[Scalar]] | None = None,
    domains: Mapping[str, Sequence[Scalar]] | None = None,
    budget: tuple[float, float] | None = None,
) -> str:
    """The text of a catalog for `schema` (table -> column -> engine type), with the owner's answers.

    `unit` is keyed by table, `bounds` and `domains` by `"table.column"`. With a source, a unit for every
    table and a budget the text loads as it is.
    """
    _refuse_unknown(schema, unit or {}, {**(bounds or {}), **(domains or {})})
    lines = [WARNING, "", f"# {NOTES['sources']}", "sources:"]
    lines.append(f"  main: {inline(source or {'duckdb': PLACEHOLDER})}")
    lines += ["", f"# {NOTES['tables']}", "tables:"]
    for table, columns in schema.items():
        lines += _table(table, columns, (unit or {}).get(table))
        for column, engine_type in columns.items():
            key = f"{table}.{column}"
            lines += _column(column, engine_type, (bounds or {}).get(key), (domains or {}).get(key))
    lines += ["", f"# {NOTES['budget']}"]
    if budget is None:
        lines.append(f"budget: {{epsilon: {PLACEHOLDER}, delta: 1e-6}}")
    else:
        lines.append(f"budget: {{epsilon: {scalar(float(budget[0]))}, delta: {scalar(float(budget[1]))}}}")
    lines += [
        "",
        f"# {NOTES['analysts']} Without this section one analyst may spend all.",
        "# analysts:",
        "#   ana: {epsilon: 1.0, per_day: {epsilon: 0.2}, max_epsilon: 0.1}",
    ]
    return "\n".join(lines) + "\n"


def _refuse_unknown(
    schema: Mapping[str, Mapping[str, str]], unit: Mapping[str, Any], answers: Mapping[str, Any]
) -> None:
    known = [f"{table}.{column}" for table, columns in schema.items() for column in columns]
    for table in unit:
        if table not in schema:
            raise CatalogError(f"unit: there is no table {table}, {nearest(table, schema)}.")
    for key in answers:
        if key not in known:
            raise CatalogError(f"{key}: there is no such column, {nearest(key, known)}.")


def _table(name: str, columns: Mapping[str, str], unit: str | Mapping[str, str] | None) -> list[str]:
    lines = [f"  {scalar(name)}:", "    source: main", "    private: true"]
    if unit is not None:
        return [*lines, f"    unit: {inline(unit)}", "    columns:"]
    likely = [column for column in columns if fold(column).endswith(("id", "uuid"))]
    hint = f"perhaps {' or '.join(likely)}; " if likely else ""
    comment = f"# the column that identifies a person: {hint}row if each row is one person"
    return [*lines, f"    unit: {PLACEHOLDER}  {comment}", "    columns:"]


def _column(name: str, engine_type: str, bounds: object, domain: object) -> list[str]:
    kind = column_type(engine_type)
    if kind is None:
        # An engine's type may run over lines; a comment must not.
        said = " ".join(engine_type.split())
        return [f"      # {scalar(name)}: left out, its type {said} cannot be asked about"]
    lines = [f"      {scalar(name)}:", f"        type: {kind}"]
    if bounds is not None:
        lines.append(f"        bounds: {inline(list(bounds))}")  # type: ignore[call-overload]
    if domain is not None:
        lines.append(f"        domain: {inline(list(domain))}")  # type: ignore[call-overload]
    if bounds is None and domain is None:
        if kind in _BOUNDED:
            example = f"such as {VALUE_TYPES[kind].example_bounds}; without them no SUM, AVG or quantile"
            lines.append(f"        # bounds: [{PLACEHOLDER}, {PLACEHOLDER}]  # {example}")
        elif kind == "text":
            lines.append(
                f"        # domain: [{PLACEHOLDER}]  # public values; without them GROUP BY costs delta"
            )
    return lines
