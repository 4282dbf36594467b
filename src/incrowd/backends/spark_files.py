"""The Parquet files of a table in Spark: their list, and the column types in their footers.

Footers and folder names decide here how a column is read; rows never do. Spark's own inference would depend
on rows: it guesses the types of folder columns from all folder names, takes a table's columns from the first
file in its list, and raises on a timestamp in milliseconds that does not fit into microseconds. So Spark is
given an explicit schema: each column as its footers store it, with timestamps and dates as plain integers.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.backends.copies import digest
from incrowd.backends.spark_session import inside
from incrowd.errors import CatalogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from incrowd.backends.spark_session import Session

Types = Mapping[str, str]
"""The types of a file's columns by column name, in the words of `engine_type`."""
_LISTED = ("path", "modificationTime", "length", "content")
NULLS = "null"
"""The type of a column without any value; some writers store such a column as integers."""
_WITH_NULLS = ("bigint", "int", "double")
_TAIL, _MAGIC = 1 << 16, b"PAR1"
_DIGITS = 38
_UNITS = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_PLAIN = {"BOOLEAN": "boolean", "INT32": "bigint", "INT64": "bigint", "FLOAT": "double", "DOUBLE": "double"}
_STORED = {"date": "int", "timestamp[ns, int96]": "timestamp_ltz"}
_FAMILIES = {"timestamp_ntz": "timestamp[us]", "timestamp": "timestamp[us, UTC]", "float": "double"}


@dataclass(frozen=True)
class File:
    """A file's path, length and time of change, as the file system reports them."""

    path: str
    length: int
    changed: int

    @property
    def mark(self) -> str:
        """A digest that changes whenever the file's content may have changed."""
        return digest(f"{self.path} {self.length} {self.changed}")


@dataclass(frozen=True)
class Listing:
    """The files of a table, and the columns that are names of folders (`zip=01234`)."""

    files: tuple[File, ...]
    folders: tuple[str, ...]


def listings(session: Session, paths: Mapping[str, Sequence[str]]) -> dict[str, Listing]:
    """The files of tables at their paths. Spark lists them by the same rules as Parquet files.

    CatalogError if two paths or links lead to one file: its rows would count twice.
    """
    frames = {table: _files_at(session, table, places) for table, places in paths.items()}
    folders: dict[str, tuple[str, ...]] = {}
    for table, (_, columns) in frames.items():
        folders[table] = tuple(column for column in columns if column not in _LISTED)
        if len(columns) != len(folders[table]) + len(_LISTED):
            raise CatalogError(f"tables.{table}: no folders can name a column {' or '.join(_LISTED)}.")
    # `content` is not selected, so Spark does not read it.
    changed = "unix_micros(CAST(modificationTime AS TIMESTAMP_LTZ)) AS changed"
    parts = [
        frame.selectExpr(f"{place} AS place", "path", "length", changed)
        for place, (frame, _) in enumerate(frames.values())
    ]
    told = functools.reduce(lambda one, other: one.unionAll(other), parts).collect() if parts else []
    return {
        table: Listing(_once(table, [File(*row[1:]) for row in told if row[0] == place]), folders[table])
        for place, table in enumerate(frames)
    }


def _files_at(session: Session, table: str, paths: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """The files at some paths, and the columns of that listing.

    CatalogError if a folder name has no value after its =; other writers name the folder of empty text so.
    """
    reader = session.read.format("binaryFile")
    try:
        frame = reader.load(list(paths))
        # Spark Connect looks at the files only when it is asked for the columns.
        return frame, frame.columns
    except Exception:
        plain = reader.option("recursiveFileLookup", "true").load(list(paths)).select("path")
        if not any("=/" in path for (path,) in plain.collect()):
            raise
    raise CatalogError(
        f"tables.{table}: a folder of its files has no value behind its =, which Spark cannot read; end its "
        "name in __HIVE_DEFAULT_PARTITION__, which is NULL, or keep the column in the files."
    )


def _once(table: str, files: list[File]) -> tuple[File, ...]:
    inodes = [(local[1].st_dev, local[1].st_ino) for local in map(_here, files) if local is not None]
    if len({file.path for file in files}) < len(files) or len(set(inodes)) < len(inodes):
        raise CatalogError(
            f"tables.{table}: two of its paths lead to the same file, whose rows would count twice; name "
            "each file once, and keep no links to it."
        )
    return tuple(sorted(files, key=lambda file: file.path))


def literal_path(path: str) -> str:
    """The path with its wildcard characters escaped."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


# Footers.


def footers(session: Session, files: Iterable[File], known: Mapping[File, Types]) -> dict[File, Types]:
    """The column types in the footers of files. Only footers that are not in `known` are read."""
    types = {file: known[file] for file in files if file in known}
    distant = []
    for file in files:
        if file in types:
            continue
        here = _here(file)
        if here is not None:
            types[file] = _arrow_types(pq.read_metadata(here[0]))
        elif inside(session):
            types[file] = _java_types(session, file.path)
        else:
            distant.append(file)
    return types | _distant_types(session, distant)


def _here(file: File) -> tuple[Path, os.stat_result] | None:
    """The file's local path and status; None unless this machine has the same file."""
    if not file.path.startswith("file:"):
        return None
    path = Path("/" + file.path.removeprefix("file:").lstrip("/"))
    try:
        seen = path.stat()
    except OSError:
        return None
    same = seen.st_size == file.length and seen.st_mtime_ns // 1_000_000 == file.changed // 1_000
    return (path, seen) if same else None


def _arrow_types(footer: pq.FileMetaData) -> Types:
    columns: list[tuple[str, str]] = []
    for place in range(footer.num_columns):
        column = footer.schema.column(place)
        if column.name != column.path or column.max_repetition_level:
            group = (column.path.partition(".")[0], "group")
            columns += [] if group in columns else [group]
            continue
        said = json.loads(column.logical_type.to_json())
        columns.append((column.name, engine_type(column.physical_type, _annotation(said))))
    return _by_name(columns)


def _annotation(said: Mapping[str, Any]) -> str:
    """A column's logical type, written as Parquet's Java library writes it."""
    kind = said["Type"].upper()
    if kind == "TIMESTAMP":
        unit = said["timeUnit"].removesuffix("econds").upper()
        return f"TIMESTAMP({unit},{str(said['isAdjustedToUTC']).lower()})"
    if kind == "INT":
        return f"INTEGER({said['bitWidth']},{str(said['isSigned']).lower()})"
    if kind == "DECIMAL":
        return f"DECIMAL({said['precision']},{said['scale']})"
    return "" if kind == "NONE" else str(kind)


def _java_types(session: SparkSession, path: str) -> Types:
    """Column types through the driver's own reader, which reaches every file system that Spark reaches."""
    jvm: Any = session._jvm
    conf = session._jsparkSession.sessionState().newHadoopConf()
    place = jvm.org.apache.hadoop.fs.Path(path)
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(place, conf)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        fields = list(reader.getFooter().getFileMetaData().getSchema().getFields())
    finally:
        reader.close()
    columns: list[tuple[str, str]] = []
    for field in fields:
        if not field.isPrimitive() or field.getRepetition().name() == "REPEATED":
            columns.append((field.getName(), "group"))
            continue
        said = field.getLogicalTypeAnnotation()
        physical = field.asPrimitiveType().getPrimitiveTypeName().name()
        columns.append((field.getName(), engine_type(physical, "" if said is None else said.toString())))
    return _by_name(columns)


def _distant_types(session: Session, files: list[File]) -> dict[File, Types]:
    """Column types from the ends of files that only a Spark Connect server reaches.

    The server reads each file whole for that, once.
    """
    types: dict[File, Types] = {}
    tail = _TAIL
    while files:
        frame = session.read.format("binaryFile").load([literal_path(file.path) for file in files])
        ends: dict[str, bytes] = dict(frame.selectExpr("path", f"substring(content, -{tail})").collect())
        missing = []
        for file in files:
            end = ends[file.path]
            size = int.from_bytes(end[-8:-4], "little") + 8
            if size > len(end) and len(end) < file.length:
                missing.append(file)
                tail = max(tail, size)
            else:
                # Magic bytes and a footer are enough for Arrow to read the metadata.
                types[file] = _arrow_types(pq.read_metadata(pa.BufferReader(_MAGIC + end[-size:])))
        files = missing
    return types


def _by_name(columns: Iterable[tuple[str, str]]) -> Types:
    types: dict[str, str] = {}
    for name, kind in columns:
        # With two columns of one name, Spark takes either or raises.
        types[name] = "two columns" if name in types else kind
    return types


def engine_type(physical: str, annotation: str) -> str:
    """The name of a column's type, which says how it is read. Types that we do not read get other names.

    >>> engine_type("INT64", "TIMESTAMP(MILLIS,true)"), engine_type("INT32", "INTEGER(8,false)")
    ('timestamp[ms, UTC]', 'bigint')
    >>> engine_type("INT64", "INTEGER(64,false)"), engine_type("BYTE_ARRAY", "STRING")
    ('decimal(20,0)', 'string')
    >>> engine_type("INT32", "TIME(MILLIS,true)"), engine_type("FIXED_LEN_BYTE_ARRAY", "DECIMAL(38,9)")
    ('int32 time', 'decimal(38,9)')
    >>> engine_type("FIXED_LEN_BYTE_ARRAY", "DECIMAL(50,30)"), engine_type("INT32", "NULL")
    ('wide decimal(50,30)', 'null')
    """
    word, _, rest = annotation.partition("(")
    physical = "BYTE_ARRAY" if physical == "BINARY" else physical
    if physical == "INT96":
        # INT96 holds nanoseconds of a day; Spark keeps microseconds.
        return "timestamp[ns, int96]"
    if word == "TIMESTAMP":
        unit, _, zoned = rest.rstrip(")").partition(",")
        return f"timestamp[{_UNITS[unit]}{', UTC' if zoned == 'true' else ''}]"
    if annotation == "INTEGER(64,false)":
        return "decimal(20,0)"
    if word == "DECIMAL":
        # Spark has no type for more digits and would raise in every question.
        return f"decimal({rest}" if int(rest.partition(",")[0]) <= _DIGITS else f"wide decimal({rest}"
    if word == "DATE":
        return "date"
    if word in ("NULL", "UNKNOWN"):
        return NULLS
    if word in ("STRING", "ENUM", "JSON") and physical == "BYTE_ARRAY":
        return "string"
    if word in ("", "INTEGER") and physical in _PLAIN:
        return _PLAIN[physical]
    return f"{physical.replace('BYTE_ARRAY', 'BINARY')} {word}".strip().lower()


def agreed(kinds: Iterable[str]) -> frozenset[str]:
    """The types that files store a column as, without NULLS if Spark reads it as one of the others.

    >>> sorted(agreed(["null", "date"])), sorted(agreed(["null"])), sorted(agreed(["null", "string"]))
    (['date'], ['null'], ['null', 'string'])
    """
    stored = frozenset(kinds)
    rest = stored - {NULLS}
    return rest if rest and all(stored_as(kind) in _WITH_NULLS for kind in rest) else stored


def stored_as(kind: str) -> str:
    """The Spark type as which a column is read, so that Spark raises on none of its values.

    >>> stored_as("timestamp[ms]"), stored_as("date"), stored_as("decimal(20,0)")
    ('bigint', 'int', 'decimal(20,0)')
    """
    return _STORED.get(kind) or ("bigint" if kind.startswith("timestamp[") else kind)


def family(kind: str) -> str:
    """The common name of a type, whether Spark's catalog or a file's footer names it.

    >>> family("smallint"), family("timestamp"), family("timestamp[ns, int96]"), family("timestamp[ms]")
    ('bigint', 'timestamp[us, UTC]', 'timestamp[us, UTC]', 'timestamp[us]')
    """
    if kind.startswith("timestamp["):
        kind = "timestamp" if "UTC" in kind or "int96" in kind else "timestamp_ntz"
    if kind in ("tinyint", "smallint", "int"):
        return "bigint"
    return "string" if kind.startswith(("char", "varchar", "string")) else _FAMILIES.get(kind, kind)
