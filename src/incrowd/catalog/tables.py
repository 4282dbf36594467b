"""What the owner declares of sources and tables: where the rows lie, and whom they are about.

The unit is what the guarantee protects: one row (`unit: row`), everything of one person (`unit: user_id`), or
everything of one person within a partition (`unit: {column: user_id, per: day}`). Two tables are neighbours
under the relation `add-remove` if one has one unit more; under `replace` if one unit's rows are different,
which is twice the distance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from incrowd.catalog.addresses import local_path, server_url
from incrowd.catalog.columns import Column
from incrowd.catalog.declaration import (
    PLACEHOLDER,
    Count,
    Declaration,
    Name,
    Switch,
    Text,
    fault,
    is_placeholder,
    name,
    nearest,
    shown,
)
from incrowd.catalog.names import fold, same_but_for_case, spelling_of
from incrowd.catalog.periods import Period
from incrowd.catalog.types import TIMES, Type, kind_of

SourceKind = Literal["duckdb", "csv", "parquet", "url", "frame"]


def _paths(value: object) -> tuple[str, ...]:
    paths = value if isinstance(value, list | tuple) else [value]
    if not paths or not all(isinstance(path, str) and path.strip() for path in paths):
        raise fault("expected a path, or a list of paths")
    return tuple(paths)


def _local_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(local_path, paths))


Paths = Annotated[tuple[str, ...], BeforeValidator(_paths)]
LocalPath = Annotated[Name, AfterValidator(local_path)]
ServerURL = Annotated[Name, AfterValidator(server_url)]
LocalPaths = Annotated[Paths, AfterValidator(_local_paths)]


_SIZE = re.compile(r"([1-9][0-9]{0,11})(?:\.([0-9]{1,3}))? ?([KMGT])i?B", re.IGNORECASE)
_SMALLEST, _LARGEST = 100 << 20, 1000 << 40
_LONGEST = 2_000_000
"""Seconds that a statement may take: PostgreSQL counts milliseconds in 31 bits."""


def _memory(value: object) -> int:
    """A number of bytes, written as 4GB; a thousand or 1,024 makes no difference worth a distinction."""
    if type(value) is int and _SMALLEST <= value <= _LARGEST:
        return value
    size = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if size is None:
        raise fault(f"expected an amount of memory, such as 500MB or 4GB, not {shown(value)}")
    amount = int(float(f"{size[1]}.{size[2] or 0}") * 1024 ** ("KMGT".index(size[3].upper()) + 1))
    if amount < _SMALLEST:
        raise fault(f"must be at least 100MB, not {shown(value)}")
    if amount > _LARGEST:
        raise fault(f"must be at most 1000TB, not {shown(value)}; leave it out for the engine's own limit")
    return amount


def _timeout(value: int) -> int:
    if value > _LONGEST:
        raise fault(f"must be at most {_LONGEST:,} seconds, not {shown(value)}")
    return value


Memory = Annotated[int, BeforeValidator(_memory)]
Timeout = Annotated[Count, AfterValidator(_timeout)]


class Source(Declaration):
    """Where rows come from: exactly one of a DuckDB file, CSV or Parquet paths, a URL, a frame in memory.

    Paths are relative to the catalog's file, and those of CSV and Parquet may hold the wildcards * ? [ ].
    `timeout` is the number of seconds that one statement may take. `memory` is what the engine may take
    before it writes to disk, such as 4GB; a server at a URL has settings of its own for that.
    """

    duckdb: LocalPath | None = None
    csv: LocalPaths | None = None
    parquet: LocalPaths | None = None
    url: Annotated[Name, AfterValidator(server_url)] | None = Field(
        default=None, repr=False
    )  # it may hold a password
    frame: Name | None = None
    timeout: Timeout | None = None
    memory: Memory | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Source:
        given = [field for field in get_args(SourceKind) if getattr(self, field) is not None]
        if len(given) != 1:
            said = f"not {' and '.join(given)}" if given else "none is given"
            raise fault(f"expected exactly one of duckdb, csv, parquet, url or frame, {said}")
        if self.memory is not None and self.url is not None:
            raise fault(
                "a server's memory is set at the server (work_mem in PostgreSQL, spark.executor.memory in "
                "Spark); leave it out",
                "memory",
            )
        return self

    @property
    def kind(self) -> SourceKind:
        """Which of the five it is."""
        for kind in ("duckdb", "csv", "parquet", "url"):
            if getattr(self, kind) is not None:
                return kind
        return "frame"


class Unit(Declaration):
    """Whom a private table protects: a row (column is None), a column's value, or that per partition."""

    column: Name | None = None
    per: Name | None = None

    @model_validator(mode="after")
    def _per_needs_a_column(self) -> Unit:
        if self.per is not None and self.column is None:
            raise fault("say which column holds the unit, as in {column: user_id, per: day}", "column")
        if self.per is not None and fold(self.per) == fold(self.column or ""):
            raise fault("the partition must be another column than the unit", "per")
        return self

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit of its own."""
        return self.column is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values identify a unit."""
        return tuple(column for column in (self.column, self.per) if column is not None)

    def __str__(self) -> str:
        if self.column is None:
            return "row"
        return self.column if self.per is None else f"{self.column} per {self.per}"


def _unit(value: object) -> object:
    if is_placeholder(value):
        raise fault(f"still says {PLACEHOLDER}; name the column that identifies a person, or write row")
    if isinstance(value, str):
        return Unit() if value == "row" else Unit(column=name(value))
    if isinstance(value, Mapping) and not value.get("column"):
        raise fault("expected row, a column, or {column: user_id, per: day}")
    if not isinstance(value, Unit | Mapping):
        raise fault(f"expected row, a column, or {{column: user_id, per: day}}, not {shown(value)}")
    return value


class Table(Declaration):
    """A table: its source, whether its rows are private, whom they are about, and its columns.

    `contribution` is the number of rows that one unit counts for in a COUNT unless the query says otherwise.
    `max_rows` is a public estimate of the table's size for prices and warnings; no guarantee rests on it.
    `period` promises that rows of closed periods stay as they are (`Period`).
    """

    source: Name | None = None
    table: Name | None = None
    path: Paths | None = None
    private: Switch = True
    unit: Annotated[Unit, BeforeValidator(_unit)] | None = None
    relation: Literal["add-remove", "replace"] = "add-remove"
    contribution: Count | None = None
    max_rows: Count | None = None
    period: Period | None = None
    description: Text = ""
    columns: Mapping[Name, Column] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _columns_are_a_mapping(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            columns = data.get("columns")
            if columns is not None and not isinstance(columns, Mapping):
                raise fault("expected column names, each with its type", "columns")
            relation = data.get("relation", "add-remove")
            if not isinstance(relation, str) or relation not in ("add-remove", "replace"):
                raise fault(f"expected add-remove or replace, not {shown(relation)}", "relation")
            if columns is None and "columns" in data:
                return {**data, "columns": {}}
        return data

    @model_validator(mode="after")
    def _makes_sense(self) -> Table:
        twins = same_but_for_case(self.columns)
        if twins:
            raise fault(f"{twins[0]} and {twins[1]} are one name in SQL; rename one", "columns", twins[1])
        if self.table is not None and self.path is not None:
            raise fault("give either table, a name in a database, or path, files of the source", "path")
        if self.private:
            self._check_private()
        else:
            for field in ("unit", "contribution", "period"):
                if getattr(self, field) is not None:
                    raise fault(
                        f"a public table protects nobody; leave {field} out or say private: true", field
                    )
            if self.relation != "add-remove":
                raise fault("a public table has no neighbours; leave relation out", "relation")
        return self

    def _check_private(self) -> None:
        if self.unit is None:
            raise fault(
                "a private table must say whom it protects: row, or the column that identifies a person",
                "unit",
            )
        if not self.columns:
            raise fault("a private table must declare the columns that may be asked about", "columns")
        for field, column in zip(("column", "per"), self.unit.columns, strict=False):
            if column not in self.columns:
                place = ("unit", field) if self.unit.per else ("unit",)
                raise fault(f"no column {column} is declared, {nearest(column, self.columns)}", *place)
            if kind_of(self.columns[column].type) == "float":
                raise fault(
                    f"{column} is a {self.columns[column].type} column, which is computed with in floating "
                    "point and cannot identify a unit; declare it as integer or text",
                    "unit",
                )
        if self.period is not None:
            self._check_period(self.period.column)
        if self.unit.is_row and (self.contribution or 1) != 1:
            raise fault(
                "each row is a unit of its own and contributes 1; leave contribution out", "contribution"
            )

    def _check_period(self, column: str) -> None:
        if column not in self.columns:
            raise fault(
                f"no column {column} is declared, {nearest(column, self.columns)}", "period", "column"
            )
        if self.columns[column].type not in TIMES:
            raise fault(
                f"{column} is a {self.columns[column].type} column; periods are those of a date or timestamp",
                "period",
                "column",
            )

    def find(self, column: str) -> str | None:
        """The declared name of `column`, whatever its case; None if there is none."""
        return spelling_of(column, self.columns)

    def type_of(self, column: str) -> Type | None:
        """The declared type of `column`, or None where a public table leaves it to its source."""
        return self.columns[column].type if column in self.columns else None
