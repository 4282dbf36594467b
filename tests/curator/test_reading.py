"""The rows of a question: looked at late, at one moment, under a version that is theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
import pytest
from sqlglot import exp

from incrowd.backends import Backend, Snapshot
from incrowd.catalog import Catalog, check
from incrowd.curator.reading import Rows

CATALOG = {
    "sources": {"s": {"csv": "t.csv"}},
    "tables": {"t": {"unit": "row", "columns": {"x": {"type": "integer"}}}},
    "budget": {"epsilon": 1},
}


class Moments:
    """A backend whose moments are counted; no rows are needed to tell when they are looked at."""

    def __init__(self) -> None:
        self.opened = self.ended = 0

    @contextlib.contextmanager
    def snapshot(self, tables: Iterable[str]) -> Iterator[Snapshot]:
        self.opened += 1
        try:
            yield Snapshot("whole", lambda tree, progress: pa.table({"tables": sorted(tables)}))
        finally:
            self.ended += 1


def rows_of(backend: Moments, *closed: str | None) -> Rows:
    answers = iter(closed)
    catalog: Catalog = check(cast(Any, CATALOG))
    return Rows(cast(Backend, backend), catalog, lambda: next(answers))


def test_what_is_closed_is_looked_up_before_any_row() -> None:
    backend = Moments()
    with rows_of(backend, "closed") as rows:
        assert next(rows.versions()) == "closed" and backend.opened == 0
    assert backend.ended == 0


@pytest.mark.parametrize(
    ("before", "after", "version"),
    [("closed", "closed", "closed"), ("closed", "other", "whole"), ("closed", None, "whole")],
)
def test_a_closed_version_counts_if_it_is_the_same_on_both_sides_of_the_moment(
    before: str, after: str | None, version: str
) -> None:
    backend = Moments()
    with rows_of(backend, before, after) as rows:
        assert list(rows.versions()) == ["closed", "whole"]
        assert rows.version == version


def test_all_statements_see_one_moment_which_ends_with_the_block() -> None:
    backend = Moments()
    with pytest.raises(KeyError), rows_of(backend, None) as rows:
        assert list(rows.versions()) == ["whole"] == [rows.version]
        assert rows.run(exp.select("1")) == rows.run(exp.select("2")) == pa.table({"tables": ["t"]})
        assert (backend.opened, backend.ended) == (1, 0)
        raise KeyError
    assert (backend.opened, backend.ended) == (1, 1)
