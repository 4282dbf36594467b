"""Questions written with ibis: tables without rows, and the SQL of an expression over them.

ibis (the extra `ibis`) knows the columns, completes their names and writes SQL; that SQL is planned, priced,
recorded and answered like any other, so nothing here decides about privacy. Only names and types are shown.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.catalog import Catalog
from incrowd.catalog.declaration import nearest
from incrowd.catalog.types import Kind, kind_of
from incrowd.errors import InvalidInput, QueryError
from incrowd.query import Field

if TYPE_CHECKING:
    import ibis.expr.types as ir

DIALECT = "duckdb"
_TYPES: Mapping[Kind, str] = {
    "integer": "int64",
    "float": "float64",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "null": "string",
}


def table_of(catalog: Catalog, name: str, public: Mapping[str, Mapping[str, Field]]) -> ir.Table:
    """A table of the owner's as ibis sees it: its columns and their types, and no rows."""
    try:
        import ibis
    except ModuleNotFoundError:
        raise InvalidInput("table() needs the package ibis: pip install 'incrowd[ibis]'.") from None
    if not isinstance(name, str):
        raise InvalidInput("table() needs the name of a table, as text.")
    declared = catalog.find(name)
    if declared is None:
        raise InvalidInput(f"There is no table {name[:100]!r}; {nearest(name, catalog.tables)}.")
    kinds: dict[str, tuple[Kind, bool]] = {
        column: (field.kind, field.nullable) for column, field in public.get(declared, {}).items()
    }
    for column, told in catalog.tables[declared].columns.items():
        kinds[column] = (kind_of(told.type), told.nullable)
    if not kinds:
        raise InvalidInput(f"The table {declared} declares no columns; ask about it in SQL.")
    types = {column: ("" if nullable else "!") + _TYPES[kind] for column, (kind, nullable) in kinds.items()}
    return ibis.table(types, name=declared)


def as_sql(question: Any) -> Any:
    """The SQL of an ibis expression; whatever else is asked stays as it is."""
    ibis = sys.modules.get("ibis")
    expression = getattr(ibis, "Expr", None)
    if ibis is None or expression is None or not isinstance(question, expression):
        return question
    try:
        return str(ibis.to_sql(question, dialect=DIALECT))
    except Exception as error:
        # ibis has errors of many kinds, and all of them are about the expression, for no row is at hand.
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise QueryError(f"ibis cannot write this expression as SQL for DuckDB ({what}).") from None
