"""What identifies units is read so that no two of them become one, or refused."""

from __future__ import annotations

import pytest

from incrowd.backends.sources import refuse_merging
from incrowd.catalog.loading import check
from incrowd.errors import CatalogError

EXACT = [
    *(("BIGINT", "integer"), ("UBIGINT", "integer"), ("HUGEINT", "text"), ("DECIMAL(38,0)", "integer")),
    *(
        ("numeric", "text"),
        ("VARCHAR", "integer"),
        ("VARCHAR", "date"),
        ("uuid", "text"),
        ("BOOLEAN", "integer"),
        ("date", "date"),
    ),
    *(("timestamp with time zone", "timestamp"), ("TIMESTAMP_MS", "timestamp"), ("DATE", "timestamp")),
]
MERGING = [
    *(("DOUBLE", "integer"), ("REAL", "text"), ("float", "text"), ("TIMESTAMP_NS", "timestamp")),
    *(("timestamp[ns, tz=UTC]", "timestamp"), ("TIMESTAMPTZ_NS", "text"), ("TIMESTAMP", "date")),
    *(("VARCHAR", "boolean"), ("VARCHAR", "timestamp"), ("BIGINT", "boolean"), ("DECIMAL(18,3)", "boolean")),
]


@pytest.mark.parametrize(("engine_type", "declared"), EXACT)
def test_what_keeps_units_apart_may_identify_them(engine_type: str, declared: str) -> None:
    refuse_merging(engine_type, declared, "tables.t.columns.id")


@pytest.mark.parametrize(("engine_type", "declared"), MERGING)
def test_what_may_merge_units_is_refused(engine_type: str, declared: str) -> None:
    with pytest.raises(CatalogError, match="identifies units"):
        refuse_merging(engine_type, declared, "tables.t.columns.id")


@pytest.mark.parametrize("kind", ["float", "decimal"])
@pytest.mark.parametrize("unit", ["id", {"column": "n", "per": "id"}])
def test_a_type_that_is_computed_with_in_floating_point_identifies_nobody(kind: str, unit: object) -> None:
    columns = {"id": {"type": kind}, "n": {"type": "integer"}}
    with pytest.raises(CatalogError, match="cannot identify a unit"):
        check(
            {
                "sources": {"s": {"frame": "t"}},
                "tables": {"t": {"unit": unit, "columns": columns}},
                "budget": {"epsilon": 1.0},
            }
        )
