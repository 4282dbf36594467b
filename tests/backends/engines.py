"""The engines behind one face, for the suite that every one of them must pass.

An engine here is a backend over the houses' tables, and a way to put other rows into them. DuckDB is the
reference: what it returns, the others return, to the bit. To prove another engine, add it to `ENGINES`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import psycopg
import pyarrow as pa

from incrowd.backends import Backend, DuckDB
from incrowd.backends.postgres import Postgres
from tests import servers
from tests.backends.houses import catalog_at, catalog_of, cities, tables_from
from tests.backends.spark_houses import SparkConnectHouse, SparkHouse

_CLOSED_AT_EXIT = contextlib.ExitStack()
atexit.register(_CLOSED_AT_EXIT.close)
INFINITE_DAY, INFINITE_INSTANT = 2**31 - 1, 2**63 - 1


class House(Protocol):
    """An engine with tables that can be filled anew."""

    @property
    def backend(self) -> Backend:
        """The engine."""
        ...

    def furnish(self, tables: Mapping[str, pa.Table]) -> None:
        """Put other rows into the private tables."""


class DuckHouse:
    """Frames in DuckDB."""

    def __init__(self, mode: str) -> None:
        self.backend = DuckDB(catalog_of(mode), {**tables_from(0, True), "cities": cities()})

    def furnish(self, tables: Mapping[str, pa.Table]) -> None:
        for name, table in tables.items():
            self.backend._connection.register(f"frame_{name}", table)


_POSTGRES_TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.decimal128(20, 9): "numeric",
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
}


class PostgresHouse:
    """Tables of a PostgreSQL database of its own, read by a role that may do nothing else."""

    def __init__(self, mode: str) -> None:
        self._url = _CLOSED_AT_EXIT.enter_context(servers.postgres().database())
        self._owner = _CLOSED_AT_EXIT.enter_context(psycopg.connect(self._url, autocommit=True))
        for name, table in {**tables_from(0, True), "cities": cities()}.items():
            columns = ", ".join(f'"{field.name}" {_POSTGRES_TYPES[field.type]}' for field in table.schema)
            self._owner.execute(f'CREATE TABLE "{name}" ({columns})'.encode())
        self.furnish({"cities": cities()})
        self.backend = Postgres(catalog_at(self._url, mode))
        _CLOSED_AT_EXIT.callback(self.backend.close)

    def furnish(self, tables: Mapping[str, pa.Table]) -> None:
        for name, table in tables.items():
            self._owner.execute(f'TRUNCATE "{name}"'.encode())
            with self._owner.cursor().copy(f'COPY "{name}" FROM STDIN'.encode()) as copy:
                columns = [_postgres_values(column) for column in table.columns]
                for row in zip(*columns, strict=True):
                    copy.write_row(row)


def _postgres_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values as PostgreSQL reads them; its dates know more days than Python's."""
    if pa.types.is_date(column.type):
        return [_moment(day, INFINITE_DAY, 86_400_000_000) for day in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(column.type):
        return [_moment(instant, INFINITE_INSTANT, 1) for instant in column.cast(pa.int64()).to_pylist()]
    return list(column.to_pylist())


def _moment(value: int | None, infinite: int, unit: int) -> str | None:
    if value is None or abs(value) == infinite:
        return None if value is None else ("infinity" if value > 0 else "-infinity")
    days, rest = divmod(value * unit, 86_400_000_000)
    julian = days + 2440588  # PostgreSQL reads Julian days, which every calendar day has
    seconds, micros = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return f"J{julian}" if unit > 1 else f"J{julian} {clock}"


ENGINES: dict[str, Callable[[str], House]] = {
    "postgres": PostgresHouse,
    "spark": SparkHouse,
    "spark connect": SparkConnectHouse,
}
"""Every engine but the reference, by name."""


@functools.cache
def house(engine: str, mode: str) -> House:
    """A house, made once."""
    return DuckHouse(mode) if engine == "duckdb" else ENGINES[engine](mode)
