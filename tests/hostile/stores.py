"""Where rows may lie in DuckDB's house: frames of three libraries, CSV, Parquet, database files.

A store writes one side of a case and opens a curator over it, as an owner would. Everything about a store
(how many files, which quotes, which page sizes) is drawn once for both sides: only rows differ.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd import Curator
from incrowd.backends import open_backend
from incrowd.catalog.loading import check
from incrowd.curator.ledger import Ledger
from tests.backends.houses import cities
from tests.hostile import cases, values
from tests.hostile.cases import Case, Rows, Storage

PRIVATE = ("visits", "steps")


@dataclass(frozen=True)
class Store:
    """A kind of store: its name, its types, and how a side of a case is written, to be opened then."""

    name: str
    storages: Sequence[Storage]
    written: Callable[[Case, Rows, Path], Callable[[], Curator]]
    texts: Sequence[Any] = ()


def arrow_tables(case: Case, rows: Rows) -> dict[str, pa.Table]:
    """The private tables as Arrow has them."""
    kinds = {
        "m": pa.int64(),
        "w": pa.float64(),
        **{name: storage.made for name, storage in case.storages.items()},
    }
    return {
        name: pa.table(
            {column: values.array(list(held), kinds[column]) for column, held in rows[name].items()}
        )
        for name in PRIVATE
    }


def by_file(case: Case, folder: Path, sources: Mapping[str, Any], places: Mapping[str, Any]) -> Curator:
    """A curator opened from the owner's file, as YAML (of which JSON is a part)."""
    file, first = folder / "curator.yaml", not (folder / "curator.ledger").exists()
    if first:  # later it holds the id of its ledger
        file.write_text(json.dumps(case.declaration(sources, places)))
    return Curator.open(file, new_ledger=first)


def by_frames(case: Case, frames: Mapping[str, Any]) -> Curator:
    """A curator over data frames, with the case's types declared."""
    places = {name: {"source": name} for name in frames}
    catalog = check(case.declaration({name: {"frame": name} for name in frames}, places))
    return Curator(catalog, open_backend(catalog, frames), Ledger.open(None, catalog))


# Frames.


def arrow_frames(rng: random.Random) -> Store:
    """Arrow tables, whole or in chunks."""
    chunk = rng.choice([0, 1, 3])

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        tables = arrow_tables(case, rows)
        if chunk:
            tables = {
                name: pa.concat_tables(
                    [table.slice(at, chunk) for at in range(0, max(1, table.num_rows), chunk)]
                )
                for name, table in tables.items()
            }
        return lambda: by_frames(case, {**tables, "cities": cities()})

    return Store(
        "Arrow frame", cases.ARROW, written, rng.choice([(), values.LONG_TEXTS, values.BROKEN_TEXTS, (), ()])
    )


def inferred_frames(rng: random.Random) -> Store:
    """Arrow tables whose types nobody declares."""

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        numbers = {f"visits.{name}": [-3, 8] for name in cases.BOUNDS}
        units: dict[str, Any] = {"row": "row", "user": "user_id", "per": {"column": "user_id", "per": "day"}}
        tables = arrow_tables(case, rows)
        return lambda: Curator.from_tables(
            unit=units[case.mode],
            bounds=numbers,
            relation=case.relation,
            budget=(1e6, 0.01),
            public=("cities",),
            cities=cities(),
            **tables,
        )

    plain = tuple(storage for storage in cases.ARROW if storage.natural not in (None, "boolean"))
    kept = tuple(storage for storage in plain if not (set(storage.roles) >= {"number", "text"}))
    texts = tuple(
        Storage(storage.made, storage.tame, storage.nasty, ("text", "truth", "unit"), "text")
        for storage in plain
        if storage not in kept
    )
    return Store("inferred frame", (*kept, *texts, cases._arrow(pa.bool_(), ("truth",))), written)


_MOST_SECONDS = 2**63 // 1000
IN_MILLISECONDS = tuple(
    replace(storage, nasty=tuple(value for value in storage.nasty if abs(value) < _MOST_SECONDS))
    if str(storage).startswith("timestamp[s")
    else storage
    for storage in cases.ARROW
)
"""Parquet and polars keep seconds as milliseconds; polars wraps around, and makes one person of two."""


def _nullable() -> dict[pa.DataType, Any]:
    """Types of pandas for which one missing value does not make floats or objects of a column."""
    import pandas as pd

    whole = {getattr(pa, f"{sign}int{bits}")(): sign for sign in ("", "u") for bits in (8, 16, 32, 64)}
    named = {kind: getattr(pd, f"{sign.upper()}Int{kind.bit_width}Dtype")() for kind, sign in whole.items()}
    return {**named, pa.bool_(): pd.BooleanDtype()}


def pandas_frames(rng: random.Random) -> Store:
    """pandas: its own types, or Arrow's inside, or Python's objects of any kind."""
    how = rng.choice(["own", "own", "arrow", "arrow", "objects"])

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        import pandas as pd

        frames: dict[str, Any] = {}
        for name, table in arrow_tables(case, rows).items():
            if how == "arrow":
                frames[name] = table.to_pandas(types_mapper=pd.ArrowDtype)
            elif how == "own":
                frames[name] = table.to_pandas(date_as_object=True, types_mapper=_nullable().get)
            else:
                frames[name] = pd.DataFrame(
                    {key: pd.Series(list(held), dtype=object) for key, held in rows[name].items()}
                )
        return lambda: by_frames(case, {**frames, "cities": cities()})

    if how != "objects":
        return Store(f"pandas frame ({how})", cases.ARROW, written)
    odd = (
        7,
        1.5,
        b"x",
        "x",
        float("nan"),
        2**70,
        True,
        [1],
        {"a": 1},
        (),
        object(),
        values.MARK,
        *values.NASTY_TEXTS[:30],
    )
    objects = Storage("object", cases.TEXT.tame, odd, cases.TEXT.roles, "text")
    numbers = Storage(
        "object", {**cases.TEXT.tame, "number": (0, 1, 2, 3, 7)}, odd, ("number", "unit"), "integer"
    )
    return Store(f"pandas frame ({how})", (objects, numbers), written)


def polars_frames(rng: random.Random) -> Store:
    """polars."""

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        import polars as pl

        frames = {name: pl.from_arrow(table) for name, table in arrow_tables(case, rows).items()}
        return lambda: by_frames(case, {**frames, "cities": cities()})

    # polars panics on decimals of 256 bits.
    known = tuple(storage for storage in IN_MILLISECONDS if not str(storage).startswith("decimal256"))
    return Store("polars frame", known, written)


# Files.

PARQUET = tuple(storage for storage in IN_MILLISECONDS if str(storage) != "string_view")


def parquet_files(rng: random.Random) -> Store:
    """Parquet in one file or several, with small row groups and pages, old types and new."""
    files, group = rng.choice([1, 1, 2, 3]), rng.choice([1, 2, 5, 1000])
    options: dict[str, Any] = {
        "use_dictionary": rng.random() < 0.5,
        "compression": rng.choice(["none", "snappy", "zstd"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "data_page_size": rng.choice([16, 1024, 1 << 20]),
        "store_schema": rng.random() < 0.5,
        "use_deprecated_int96_timestamps": rng.random() < 0.15,
        "write_statistics": rng.random() < 0.7,
    }

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        for name, table in {**arrow_tables(case, rows), "cities": cities()}.items():
            (folder / name).mkdir()
            size = -(-table.num_rows // files) or 1
            for part in range(files):
                piece = table.slice(part * size, size)
                pq.write_table(piece, folder / name / f"{part}.parquet", row_group_size=group, **options)
        names = (*PRIVATE, "cities")
        sources = {name: {"parquet": f"{name}/*.parquet"} for name in names}
        return lambda: by_file(case, folder, sources, {name: {"source": name} for name in names})

    texts = rng.choice([(), (), values.LONG_TEXTS, values.BROKEN_TEXTS])
    return Store("Parquet", PARQUET, written, texts)


def hive_folders(rng: random.Random) -> Store:
    """Parquet in folders that say a column's value."""
    key = rng.choice(["grp", "cat", "t", "user_id", "x", "d"])

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        tables = arrow_tables(case, rows)
        (folder / "visits").mkdir()
        partitioned(tables["visits"], [*rows["visits"][key]], key, folder / "visits")
        for name in ("steps", "cities"):
            pq.write_table(cities() if name == "cities" else tables[name], folder / f"{name}.parquet")
        sources = {"visits": {"parquet": "visits/*/*.parquet"}, "steps": {"parquet": "steps.parquet"}}
        sources["cities"] = {"parquet": "cities.parquet"}
        return lambda: by_file(case, folder, sources, {name: {"source": name} for name in sources})

    return Store(f"Parquet in folders by {key}", PARQUET, written)


def partitioned(table: pa.Table, held: Sequence[Any], key: str, home: Path) -> None:
    """A folder for each value of a column, which the files in it leave out."""
    spelled = [_folder(value) for value in held]
    for place, word in enumerate(dict.fromkeys(spelled)):
        chosen = table.filter(pa.array([spelling == word for spelling in spelled])).drop_columns([key])
        (home / f"{key}={word}").mkdir()
        pq.write_table(chosen, home / f"{key}={word}" / f"{place}.parquet")


def _folder(value: Any) -> str:
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    kept = "".join(char if char.isalnum() or char in "-_. :+" else f"%{ord(char) % 256:02X}" for char in text)
    return kept[:60] or "%20"


def csv_files(rng: random.Random) -> Store:
    """CSV: quoted or not, each line end, packed or not, in one file or several."""
    files, packed = rng.choice([1, 1, 2]), rng.random() < 0.25
    always, end = rng.random() < 0.4, rng.choice(["\n", "\n", "\r\n"])
    other = rng.choice([end, end, "\n", "\r\n"])
    last = rng.random() < 0.8
    suffix = "csv.gz" if packed else "csv"

    def written(case: Case, rows: Rows, folder: Path) -> Callable[[], Curator]:
        for name in (*PRIVATE, "cities"):
            public = {column: cities().column(column).to_pylist() for column in cities().column_names}
            held = public if name == "cities" else rows[name]
            columns = list(held)
            lines = list(zip(*held.values(), strict=True))
            strange = set(case.mine["user_id"]) if name == "visits" else set()
            (folder / name).mkdir()
            size = -(-len(lines) // files) or 1
            for part in range(files):
                text = ",".join(columns) + end
                piece = lines[part * size : part * size + size]
                for number, line in enumerate(piece):
                    ending = other if name == "visits" and line[0] in strange else end
                    text += ",".join(_field(value, always) for value in line)
                    text += ending if last or number + 1 < len(piece) else ""
                place = folder / name / f"{part}.{suffix}"
                content = text.encode()
                place.write_bytes(gzip.compress(content, 1) if packed else content)
        sources = {name: {"csv": f"{name}/*.{suffix}"} for name in (*PRIVATE, "cities")}
        return lambda: by_file(case, folder, sources, {name: {"source": name} for name in sources})

    texts = rng.choice([(), (), (*values.LINE_ENDS, *values.ODD_TEXTS), values.LONG_TEXTS])
    return Store("CSV", (cases.TEXT,), written, texts)


def _field(value: Any, always: bool) -> str:
    if value is None:
        return ""
    text = str(value)
    if always or any(char in text for char in ',"\n\r') or text != text.strip() or not text:
        return '"' + text.replace('"', '""') + '"'
    return text
