"""The rows that a question reads: at one moment, under a version for which its answer is on record.

Rows are looked at as late as possible: an answer about closed periods (`data_versions`) is recalled first,
even while the files of later periods cannot be read. The moment begins before the price is reserved, so that
a database that cannot be reached costs nothing.

Theorem. An answer is recorded under a version of exactly the rows that it is computed from.
Proof. The version of all tables is that of the snapshot itself. The version of what a question about closed
periods reads is taken before the snapshot begins and again in it, and counts only if both are the same. A
version changes whenever rows may have changed, so the rows in between are those of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

import pyarrow as pa
from sqlglot import exp

from incrowd.backends import Backend, Progress, Snapshot
from incrowd.catalog import Catalog


class Rows:
    """All tables at one moment, which begins when it is first needed and ends with the block.

    closed: says the version of what the question reads, if it is about closed periods.
    """

    def __init__(self, backend: Backend, catalog: Catalog, closed: Callable[[], str | None]) -> None:
        self._backend, self._catalog, self._closed = backend, catalog, closed
        self._before: str | None = None
        self._opened = ExitStack()
        self._snapshot: Snapshot | None = None

    def versions(self) -> Iterator[str]:
        """The versions for which an answer may be on record; the last one only after rows are looked at."""
        self._before = self._closed()
        if self._before is not None:
            yield self._before
        yield self._at_one_moment().version

    @property
    def version(self) -> str:
        """The version for which an answer from these rows is recorded."""
        whole = self._at_one_moment().version
        return self._before if self._before is not None and self._before == self._closed() else whole

    def run(self, tree: exp.Query, progress: Progress | None = None) -> pa.Table:
        """The result of a statement over these rows."""
        return self._at_one_moment().run(tree, progress)

    def _at_one_moment(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = self._opened.enter_context(self._backend.snapshot(self._catalog.tables))
        return self._snapshot

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
