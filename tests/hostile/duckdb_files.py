"""DuckDB's own database files: every type, collated and generated columns, and views over tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from incrowd import Curator
from tests.backends.houses import cities
from tests.hostile import values
from tests.hostile.cases import Case, Rows
from tests.hostile.sql_types import DUCKDB, quoted
from tests.hostile.stores import Store, by_file

VIEWS = (
    "SELECT * FROM {t}",
    "SELECT * FROM {t} WHERE true UNION ALL SELECT * FROM {t} WHERE false",
    "SELECT * FROM {t} ORDER BY 1, 2",
    "SELECT * REPLACE (day AS day) FROM (SELECT * FROM {t})",
)


def literal(value: Any) -> str:
    """A raw value of a case as SQL: those of SQL types are literals already."""
    return "NULL" if value is None else value if isinstance(value, str) else repr(value)


def insert(table: str, columns: list[str], rows: list[tuple[Any, ...]], kinds: list[str]) -> str:
    """One INSERT, each value cast to its column's type."""
    lines = []
    for row in rows:
        cells = [f"CAST({literal(value)} AS {kind})" for value, kind in zip(row, kinds, strict=True)]
        lines.append(f"({', '.join(cells)})")
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join(lines)}"


def numbers_as_sql(column: list[Any]) -> list[Any]:
    """Floats of steps as literals."""
    return [quoted(repr(value)) if isinstance(value, float) else value for value in column]


def duckdb_files(rng: random.Random) -> Store:
    """A database file with tables, or with views over them."""
    view = rng.choice([None, None, None, *VIEWS])

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        file = folder / "people.duckdb"
        with duckdb.connect(str(file)) as made:
            for name in ("visits", "steps"):
                kinds = {"m": "BIGINT", "w": "DOUBLE"}
                kinds |= {column: str(storage) for column, storage in case.storages.items()}
                columns = list(rows[name])
                typed = [kinds[column].replace(" COLLATE", "\x00COLLATE").split("\x00") for column in columns]
                home = f"{name}_rows" if view else name
                declared = ", ".join(
                    f"{column} {' '.join(kind)}" for column, kind in zip(columns, typed, strict=True)
                )
                made.execute(f"CREATE TABLE {home} ({declared})")
                lines = list(
                    zip(*(numbers_as_sql(list(column)) for column in rows[name].values()), strict=True)
                )
                if lines:
                    made.execute(insert(home, columns, lines, [kind[0].strip() for kind in typed]))
                if view:
                    made.execute(f"CREATE VIEW {name} AS {view.format(t=home)}")
            public = cities()
            made.register("public", public)
            made.execute("CREATE TABLE cities AS SELECT * FROM public")
        sources = {"file": {"duckdb": file.name}}
        return lambda: by_file(case, folder, sources, {name: {} for name in ("visits", "steps", "cities")})

    kind = "view in a DuckDB file" if view else "DuckDB file"
    return Store(
        kind, DUCKDB, written, rng.choice([(), (), tuple(quoted(text) for text in values.LONG_TEXTS)])
    )
