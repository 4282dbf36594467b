"""PostgreSQL's house: every type, collation and domain, in tables, partitions and views."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from incrowd import Curator
from tests.backends.houses import cities
from tests.hostile import values
from tests.hostile.cases import Case, Rows
from tests.hostile.duckdb_files import insert, numbers_as_sql
from tests.hostile.sql_types import POSTGRES, quoted
from tests.hostile.stores import Store, by_file

PRELUDE = """
CREATE COLLATION plain (provider = libc, locale = 'C');
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION accentless (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE FUNCTION chance(text) RETURNS float LANGUAGE sql STABLE AS 'SELECT random()';
CREATE DOMAIN cents AS numeric(12, 2);
CREATE DOMAIN word AS text;
CREATE DOMAIN short_word AS word CHECK (length(VALUE) < 20);
CREATE TYPE mood AS ENUM ('flu', 'cold', 'FLU', 'a', 'ss', 'i', '');
"""
SHAPES = ("table", "table", "table", "view", "partitions", "child", "unlogged")


class Database:
    """A database for many cases: each side of each has a schema of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._owner = psycopg.connect(url, autocommit=True)
        self._owner.execute(PRELUDE.encode())

    def run(self, *statements: str) -> None:
        """Statements of the owner."""
        for statement in statements:
            self._owner.execute(statement.encode())

    def close(self) -> None:
        """Let go of the connection."""
        self._owner.close()


def _create(shape: str, schema: str, name: str, columns: str) -> list[str]:
    home = f"{schema}.{name}"
    if shape == "view":
        return [f"CREATE TABLE {home}_rows ({columns})", f"CREATE VIEW {home} AS SELECT * FROM {home}_rows"]
    if shape == "partitions":
        parts = [
            f"CREATE TABLE {home}_{part} PARTITION OF {home} FOR VALUES WITH (MODULUS 2, REMAINDER {part})"
            for part in (0, 1)
        ]
        return [f"CREATE TABLE {home} ({columns}) PARTITION BY HASH (n_)", *parts]
    if shape == "child":
        return [f"CREATE TABLE {home} ({columns})", f"CREATE TABLE {home}_child () INHERITS ({home})"]
    return [f"CREATE {'UNLOGGED ' if shape == 'unlogged' else ''}TABLE {home} ({columns})"]


def postgres_stores(database: Database) -> Callable[[random.Random], Store]:
    """The stores of a database."""

    def maker(rng: random.Random) -> Store:
        shape = rng.choice(SHAPES)

        def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
            schema = f"s_{secrets.token_hex(6)}"
            database.run(f"CREATE SCHEMA {schema}")
            kinds: dict[str, str] = {"m": "bigint", "w": "double precision"}
            kinds |= {name: str(storage) for name, storage in case.storages.items()}
            for name in ("visits", "steps"):
                columns = [*rows[name], "n_"]
                types = [*(kinds[column] for column in rows[name]), "integer"]
                database.run(
                    *_create(
                        shape,
                        schema,
                        name,
                        ", ".join(f"{a} {b}" for a, b in zip(columns, types, strict=True)),
                    )
                )
                held = [numbers_as_sql(list(column)) for column in rows[name].values()]
                lines = [(*line, place) for place, line in enumerate(zip(*held, strict=True))]
                bare = [kind.partition(" COLLATE")[0] for kind in types]
                home = f"{schema}.{name}" + {"view": "_rows", "child": "_child"}.get(shape, "")
                if lines:
                    database.run(insert(home, columns, lines, bare))
            public = cities()
            database.run(f"CREATE TABLE {schema}.cities (city text, region text, size bigint)")
            lines = [
                tuple(quoted(value) if isinstance(value, str) else value for value in row.values())
                for row in public.to_pylist()
            ]
            database.run(
                insert(f"{schema}.cities", list(public.column_names), lines, ["text", "text", "bigint"])
            )
            places: dict[str, Any] = {
                name: {"table": f"{schema}.{name}"} for name in ("visits", "steps", "cities")
            }
            return lambda: by_file(case, folder, {"db": {"url": database.url}}, places)

        texts = rng.choice([(), (), (), tuple(quoted(text) for text in values.LONG_TEXTS[:2])])
        return Store(f"PostgreSQL, {shape}", POSTGRES, written, texts)

    return maker
