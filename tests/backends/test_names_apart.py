"""Names that the rule holds apart are two columns on every engine, and neither answers for the other."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from incrowd.backends import DuckDB, release_statement
from incrowd.backends.postgres import Postgres
from incrowd.catalog.loading import check
from incrowd.query import Contribution, bound, parse
from tests import servers
from tests.catalog.test_names import APART


def tables(source: str) -> dict[str, object]:
    """Both names as columns; the first is 1 on every row and the second 2."""
    numbers = {
        f"{place}{side}": {"type": "integer", "bounds": [0, 9]}
        for place, pair in enumerate(APART)
        for side in pair
    }
    return {"t": {"source": source, "unit": "id", "columns": {"id": {"type": "integer"}, **numbers}}}


FRAME = pa.table(
    {
        "id": [1, 2, 3],
        **{
            f"{place}{side}": [value] * 3
            for place, pair in enumerate(APART)
            for value, side in enumerate(pair, 1)
        },
    }
)


def sums(backend: DuckDB | Postgres, catalog: object) -> list[float]:
    totals = []
    for place, pair in enumerate(APART):
        for side in pair:
            (leaf,) = bound(
                parse(f'SELECT SUM("{place}{side}") AS z FROM t'), catalog, None, Contribution(1, 1)
            ).leaves  # type: ignore[arg-type]
            rows = backend.run(release_statement(leaf).tree).to_pylist()
            totals.append(sum(row["n0"] or 0 for row in rows) * leaf.measures["m0"].step)
    return totals


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_each_name_reads_its_own_column(engine: str) -> None:
    expected = [3.0, 6.0] * len(APART)
    if engine == "duckdb":
        catalog = check({"sources": {"s": {"frame": "s"}}, "tables": tables("s"), "budget": {"epsilon": 1.0}})
        assert sums(DuckDB(catalog, {"s": FRAME}), catalog) == expected
        return
    with servers.postgres().database() as url, psycopg.connect(url, autocommit=True) as owner:
        columns = ", ".join(f'"{name}" bigint' for name in FRAME.column_names)
        owner.execute(f"CREATE TABLE t ({columns})".encode())
        for row in FRAME.to_pylist():
            owner.execute(
                f"INSERT INTO t VALUES ({', '.join(str(number) for number in row.values())})".encode()
            )
        catalog = check({"sources": {"s": {"url": url}}, "tables": tables("s"), "budget": {"epsilon": 1.0}})
        backend = Postgres(catalog)
        try:
            assert sums(backend, catalog) == expected
        finally:
            backend.close()
