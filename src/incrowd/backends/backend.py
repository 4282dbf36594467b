"""The interface of an engine: describe public columns, run statements over integers, tell the version.

A backend returns exact numbers and knows neither noise nor budgets. Its results never leave the curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""


class Backend(Protocol):
    """An engine that holds the tables of a catalog, each under its declared name and columns."""

    def public_types(self, table: str) -> Mapping[str, str]:
        """The engine's type names of a public table's columns."""
        ...

    def refresh(self, tables: Iterable[str]) -> None:
        """Check again tables that may have changed since the last question, before anything is spent.

        CatalogError if one cannot be read any more.
        """
        ...

    def version(self, tables: Iterable[str]) -> str:
        """A text that changes when the rows of these tables may have changed."""
        ...

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the engine raise on a statement in DuckDB's dialect."""
        ...

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement that `prove` accepts."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...
