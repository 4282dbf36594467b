"""The interface of an engine: describe public columns, run statements over integers at one version.

A backend returns exact numbers and knows neither noise nor budgets. Its results never leave the curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

Progress = Callable[[float], None]
"""Called now and then with the share of the work that is done, from 0 to 1."""


class Reader(Protocol):
    """Something that runs statements."""

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement that `Backend.prove` accepts."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """Tables at one moment: every statement that is run here sees the same rows, or ends with BackendError.

    version: the `Backend.version` of these rows. An answer is recorded under it. With any other version, it
    would be recalled for rows that it is not about.

    Privacy does not depend on this. A census and a release bound one unit's part in the rows that each of
    them reads, and the caps in between are released numbers. So caps of one moment with sums of another would
    be private too: both are releases about the same unit, and their losses add up. A single statement does
    need one moment, because it reads rows twice, to weigh units and to sum (`statement`).
    """

    version: str
    _run: Callable[[exp.Query, Progress | None], pa.Table]

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement that `Backend.prove` accepts."""
        return self._run(tree, progress)


class Backend(Reader, Protocol):
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

    def snapshot(self, tables: Iterable[str]) -> AbstractContextManager[Snapshot]:
        """These tables at one moment, after `refresh`, while the context lasts."""
        ...

    def prove(self, tree: exp.Query) -> None:
        """BackendError unless no row can make the engine raise on a statement in DuckDB's dialect."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...
