"""A catalog as YAML for its owner to read: sections in order, with a comment before each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

import yaml

from incrowd.catalog.bought import BoughtTable
from incrowd.catalog.catalog import Catalog
from incrowd.catalog.columns import Column, DomainFrom
from incrowd.catalog.declaration import Declaration
from incrowd.catalog.tables import Table, Unit

NOTES = {
    "sources": "Where the rows lie. Paths start from this file's folder.",
    "tables": (
        "Whom the rows are about (unit) and what the columns may hold. Bounds and domains are public:\n"
        "# take them from what you know without looking at the data, never from the private rows."
    ),
    "budget": (
        "What everything that anyone ever learns may add up to, over all analysts together. At epsilon 1\n"
        "# nobody's odds of any guess about one unit change by more than a factor of e."
    ),
    "groups": "Analysts who share a total beside their own.",
    "analysts": "Who may ask, and how much each may spend: for life, per day, per query.",
    "defaults": "What a question gets that does not say.",
    "sharing": "Whose recorded answers an analyst gets free: own, group or all.",
    "ledger": "Where the account of spending is kept.",
    "bought": (
        "What incrowd tune bought: noisy measurements behind values above, which are no promises. An entry\n"
        "# that is deleted makes its value one that you declare."
    ),
    "anchor": "Where the account's last entry is noted, out of reach of whoever may bring back an old copy.",
    "keep_questions": "Whether the account keeps the SQL that was asked, for owner and auditor.",
    "id": "Ties this file to its ledger; never change it, and never copy it to another file.",
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./*-]*( [A-Za-z0-9_./*-]+)*")
_WORDS = {"true", "false", "null"}


def scalar(value: object) -> str:
    """A value as YAML that `reading.scalar` reads back as the same value.

    >>> scalar("1e-6"), scalar(1e-6), scalar("north west"), scalar(None)
    ('"1e-6"', '1e-06', 'north west', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Decimal():
            exact = value == Decimal(repr(float(value))) and abs(value) < Decimal(10) ** 15
            return repr(float(value)) if exact else f'"{value}"'
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case str() if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
    quoted = yaml.dump(str(value), default_style='"', allow_unicode=True, width=2**30)
    return quoted.strip()


def inline(value: object) -> str:
    """A value on one line."""
    match value:
        case DomainFrom():
            return f"{{from: {scalar(str(value))}}}"
        case Unit():
            if value.per is None and value.column != "row":
                return scalar(value.column or "row")
            return inline({"column": value.column} | ({"per": value.per} if value.per else {}))
        case Declaration():
            return inline(_said(value))
        case Mapping():
            return "{" + ", ".join(f"{scalar(key)}: {inline(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(inline(item) for item in value) + "]"
    return scalar(value)


def _said(declaration: Declaration) -> dict[str, object]:
    """The fields that differ from their defaults."""
    kept = {}
    for name, field in type(declaration).model_fields.items():
        value = getattr(declaration, name)
        if field.is_required() or value != field.get_default(call_default_factory=True):
            single = name in ("csv", "parquet", "path") and isinstance(value, tuple) and len(value) == 1
            kept[name] = value[0] if single else value
    return kept


def dump(catalog: Catalog) -> str:
    """The catalog as YAML with comments; `parse(dump(c))` declares the same as `c`."""
    return "\n\n".join("\n".join(section) for section in _sections(catalog)) + "\n"


def _sections(catalog: Catalog) -> Iterator[list[str]]:
    said = _said(catalog)
    for name, note in NOTES.items():
        if name not in said:
            continue
        value = said[name]
        if name == "tables":
            lines = [
                line
                for table_name, table in catalog.tables.items()
                for line in table_lines(table_name, table)
            ]
            yield [f"# {note}", "tables:", *lines]
        elif name == "bought":
            yield bought_lines(catalog.bought)
        elif isinstance(value, Mapping):
            yield [
                f"# {note}",
                f"{name}:",
                *(f"  {scalar(key)}: {inline(item)}" for key, item in value.items()),
            ]
        else:
            yield [f"# {note}", f"{name}: {inline(value)}"]


def bought_lines(bought: Mapping[str, BoughtTable]) -> list[str]:
    """The section of what tuning bought, a measurement to a line."""
    lines = [f"# {NOTES['bought']}", "bought:"]
    for name, table in bought.items():
        lines.append(f"  {scalar(name)}:")
        if table.contribution is not None:
            lines.append(f"    contribution: {inline(table.contribution)}")
        if table.columns:
            lines.append("    columns:")
        for column, facts in table.columns.items():
            lines.append(f"      {scalar(column)}:")
            lines += [f"        {field}: {inline(value)}" for field, value in _said(facts).items()]
    return lines


def table_lines(name: str, table: Table) -> list[str]:
    """One table, its columns one to a line."""
    fields = _said(table)
    columns = fields.pop("columns", {})
    fields["private"] = table.private
    lines = [f"  {scalar(name)}:", *(f"    {key}: {inline(value)}" for key, value in fields.items())]
    if columns:
        lines += [
            "    columns:",
            *(column_line(column_name, column) for column_name, column in table.columns.items()),
        ]
    return lines


def column_line(name: str, column: Column) -> str:
    """One column on one line."""
    return f"      {scalar(name)}: {inline(column)}"
