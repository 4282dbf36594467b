"""The catalog: everything the owner declares, checked as a whole.

Its parts check themselves; here is what only shows between them: names that must exist, promises that must
nest, domains that must not come from private rows.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from incrowd.catalog.addresses import account_place, is_url, wrong_path
from incrowd.catalog.bought import NOTHING, BoughtTable
from incrowd.catalog.budgets import (
    Analyst,
    Budget,
    Defaults,
    Group,
    Sharing,
    Window,
    read_anchor,
    read_sharing,
)
from incrowd.catalog.columns import DomainFrom
from incrowd.catalog.declaration import (
    Declaration,
    Delta,
    Name,
    Switch,
    Text,
    fault,
    nearest,
    shown,
)
from incrowd.catalog.names import same_but_for_case, spelling_of
from incrowd.catalog.tables import Source, Table
from incrowd.errors import CatalogError, NotPermitted

SOLE_ANALYST = "analyst"
"""Who asks where the catalog names no analysts."""
OWNER = "owner"
"""Who pays for what the owner buys where the catalog names analysts: from the dataset's budget alone."""
_NOT_DECLARED = "the value that this entry is about is not in the file any more; delete the entry too"


class Catalog(Declaration):
    """Sources, tables, budgets and people.

    `sharing` says whose recorded answers an analyst gets free: her `own` (the default), those of her `group`s
    too, or `all`. What she gets from others is not charged to her, so with `group` or `all` her own total no
    longer bounds what she sees: the group's, or the dataset's, does.

    `id` ties the file to its ledger: the ledger's first entry holds the same one. `anchor` keeps the ledger's
    last entry where a copy of the ledger brought back cannot reach it: a file elsewhere, a PostgreSQL
    database or a command. `keep_questions` says whether the ledger keeps the SQL that was asked.
    """

    id: Name | None = None

    sources: Mapping[Name, Source] = Field(default_factory=dict)
    tables: Mapping[Name, Table]
    budget: Budget
    groups: Mapping[Name, Group] = Field(default_factory=dict)
    analysts: Mapping[Name, Analyst] = Field(default_factory=dict)
    defaults: Defaults = Defaults()
    sharing: Annotated[Sharing, BeforeValidator(read_sharing)] = "own"
    ledger: Annotated[Name, AfterValidator(account_place)] | None = Field(
        default=None,
        repr=False,  # a URL may hold a password
    )
    anchor: Annotated[Name | tuple[Text, ...], BeforeValidator(read_anchor)] | None = Field(
        default=None, repr=False
    )
    keep_questions: Switch = True
    bought: Mapping[Name, BoughtTable] = Field(default_factory=dict)
    _root: Path | None = PrivateAttr(default=None)
    _stem: str = PrivateAttr(default="curator")

    @model_validator(mode="before")
    @classmethod
    def _sections_are_mappings(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        for section in ("sources", "tables", "groups", "analysts", "bought"):
            if section in data and not isinstance(data[section], Mapping):
                raise fault("expected names, each with its fields below it", section)
        if "tables" in data and not data["tables"]:
            raise fault("declare at least one table", "tables")
        return data

    @model_validator(mode="after")
    def _holds_together(self) -> Catalog:
        self._check_tables()
        self._check_domains()
        self._check_budgets()
        self._check_names()
        self._check_bought()
        return self

    def _check_tables(self) -> None:
        twins = same_but_for_case(self.tables)
        if twins:
            raise fault(f"{twins[0]} and {twins[1]} are one name in SQL; rename one", "tables", twins[1])
        for name, table in self.tables.items():
            if "." in name:
                raise fault("a table's name must not hold a dot", "tables", name)
            if table.source is None:
                if len(self.sources) != 1:
                    raise fault("say which source holds the rows", "tables", name, "source")
                kind = next(iter(self.sources.values())).kind
            elif table.source not in self.sources:
                hint = nearest(table.source, self.sources)
                raise fault(f"there is no source {table.source}, {hint}", "tables", name, "source")
            else:
                kind = self.sources[table.source].kind
            if table.path is not None and kind not in ("csv", "parquet", "url"):
                raise fault(f"a {kind} source has no files to choose; use table", "tables", name, "path")
            if kind in ("csv", "parquet"):
                self._check_paths(name, table.path or ())
            if table.table is not None and kind in ("csv", "parquet", "frame"):
                raise fault(f"a {kind} source holds one table; leave this out", "tables", name, "table")

    def _check_paths(self, name: str, paths: tuple[str, ...]) -> None:
        for path in paths:
            if is_url(path):
                said = "expected paths below the source's, not a URL; copy the file there"
                raise fault(said, "tables", name, "path")
            if wrong := wrong_path(path):
                raise fault(wrong, "tables", name, "path")

    def _check_domains(self) -> None:
        for name, table in self.tables.items():
            for column, declared in table.columns.items():
                if isinstance(declared.domain, DomainFrom):
                    path = ("tables", name, "columns", column, "domain")
                    self._check_domain(declared.domain, declared.type, path)

    def _check_domain(self, origin: DomainFrom, kind: str, path: tuple[str, ...]) -> None:
        public = [name for name, table in self.tables.items() if not table.private]
        if origin.table not in self.tables:
            raise fault(f"there is no public table {origin.table}, {nearest(origin.table, public)}", *path)
        table = self.tables[origin.table]
        if table.private:
            raise fault(
                f"{origin.table} is private, and a domain is public; take it from a public table or list it",
                *path,
            )
        if table.columns and origin.column not in table.columns:
            hint = nearest(origin.column, table.columns)
            raise fault(f"{origin.table} declares no column {origin.column}, {hint}", *path)
        other = table.type_of(origin.column)
        if other is not None and other != kind:
            raise fault(f"{origin} is of type {other}, but the column is of type {kind}", *path)

    def _check_budgets(self) -> None:
        total = self.budget
        for section, people in (("groups", self.groups), ("analysts", self.analysts)):
            for name, holder in people.items():
                if holder.epsilon > total.epsilon:
                    said = (
                        f"{holder.epsilon} is above the dataset's {total.epsilon} and could never be reached"
                    )
                    raise fault(said, section, name, "epsilon")
                if (holder.delta or 0.0) > total.delta:
                    said = f"{holder.delta} is above the dataset's {total.delta} and could never be reached"
                    raise fault(said, section, name, "delta")
        for name, analyst in self.analysts.items():
            if analyst.per_day and (analyst.per_day.delta or 0.0) > self.delta_of(analyst):
                raise fault("a day's delta is above the total's", "analysts", name, "per_day", "delta")
            for group in self.groups_of(name):
                if group in self.groups and analyst.epsilon > self.groups[group].epsilon:
                    said = f"{analyst.epsilon} is above the {self.groups[group].epsilon} of the group {group}"
                    raise fault(said, "analysts", name, "epsilon")
        if (self.defaults.epsilon or 0.0) > total.epsilon:
            raise fault("the default of one query is above the dataset's budget", "defaults", "epsilon")
        if (self.defaults.delta or 0.0) > total.delta:
            raise fault("the default of one query is above the dataset's budget", "defaults", "delta")

    def _check_names(self) -> None:
        for name, analyst in self.analysts.items():
            for index, group in enumerate(analyst.groups):
                if group not in self.groups:
                    hint = nearest(group, self.groups)
                    raise fault(f"there is no group {group}, {hint}", "analysts", name, "groups", index)
        for name, declared in self.groups.items():
            for index, member in enumerate(declared.members):
                if member not in self.analysts:
                    hint = nearest(member, self.analysts)
                    raise fault(f"there is no analyst {member}, {hint}", "groups", name, "members", index)

    def _check_bought(self) -> None:
        for name, table in self.bought.items():
            declared = self.tables.get(name)
            if declared is None or not declared.private:
                private = [name for name, table in self.tables.items() if table.private]
                raise fault(f"there is no private table {name}, {nearest(name, private)}", "bought", name)
            if table.contribution is not None and declared.contribution is None:
                raise fault(_NOT_DECLARED, "bought", name, "contribution")
            for column, facts in table.columns.items():
                path = ("bought", name, "columns", column)
                if column not in declared.columns:
                    raise fault(f"no column {column} is declared, {nearest(column, declared.columns)}", *path)
                for field in type(facts).model_fields:
                    if getattr(facts, field) is not None and getattr(declared.columns[column], field) is None:
                        raise fault(_NOT_DECLARED, *path, field)

    def bought_of(self, table: str) -> BoughtTable:
        """What tuning bought about a table."""
        return self.bought.get(table, NOTHING)

    def delta_of(self, holder: Analyst | Group | Window, analyst: Analyst | None = None) -> float:
        """The delta of a promise: its own, or that of the promise above it."""
        if holder.delta is not None:
            return holder.delta
        return self.budget.delta if analyst is None else self.delta_of(analyst)

    def analyst(self, name: str | None = None) -> str:
        """The analyst called `name`; the only one where it is None. NotPermitted for anyone else."""
        people = list(self.analysts) or [SOLE_ANALYST]
        if name is None:
            if len(people) == 1:
                return people[0]
            raise NotPermitted(f"Say who asks, with analyst=: {nearest('', people)}.", arguments=("analyst",))
        if not isinstance(name, str) or name not in people:
            raise NotPermitted(
                f"There is no analyst {shown(name)} in the catalog; the owner adds one under analysts."
            )
        return name

    @property
    def owner(self) -> str:
        """Who pays for what the owner buys."""
        return OWNER if self.analysts else SOLE_ANALYST

    def groups_of(self, analyst: str) -> tuple[str, ...]:
        """The groups of an analyst, in the order of the file; either side may declare the membership."""
        own = self.analysts[analyst].groups if analyst in self.analysts else ()
        known = [
            group_name
            for group_name, group in self.groups.items()
            if group_name in own or analyst in group.members
        ]
        return tuple(known) + tuple(group_name for group_name in own if group_name not in self.groups)

    def find(self, table: str) -> str | None:
        """The declared name of `table`, whatever its case; None if there is none."""
        return spelling_of(table, self.tables)

    def source_of(self, table: str) -> Source:
        """The source of a declared table."""
        return self.sources[self.tables[table].source or next(iter(self.sources))]

    @property
    def default_epsilon(self) -> float:
        """The epsilon of a question that names none: as declared, or a tenth of the budget, at most 0.1."""
        return self.defaults.epsilon or min(0.1, self.budget.epsilon / 10)

    @property
    def default_delta(self) -> Delta:
        """The delta of a question that names none: as declared, or a thousandth of the budget's."""
        return self.budget.delta / 1000 if self.defaults.delta is None else self.defaults.delta

    @property
    def root(self) -> Path:
        """The folder that relative paths start from: that of the catalog's file."""
        return self._root or Path.cwd()

    def located(self, file: Path) -> Catalog:
        """The same catalog, as read from `file`."""
        copy = self.model_copy()
        # A link to the file is the same file, with the same ledger.
        real = file.resolve()
        copy._root, copy._stem = real.parent, real.stem
        return copy

    @property
    def ledger_url(self) -> str | None:
        """Where the ledger lies: a URL or a path; None, in memory, for a catalog without file or ledger."""
        if self.ledger is not None:
            return self.ledger if "://" in self.ledger else str(self.root / self.ledger)
        return None if self._root is None else str(self.root / f"{self._stem}.ledger")

    @property
    def anchor_place(self) -> str | tuple[str, ...] | None:
        """Where the anchor is kept: a URL, a path, or the words of a command; None without one."""
        if self.anchor is None or isinstance(self.anchor, tuple):
            return self.anchor
        return self.anchor if "://" in self.anchor else str(self.root / self.anchor)

    @property
    def copies(self) -> Path | None:
        """The folder for private copies of files, beside the catalog's file; None for a catalog without."""
        return None if self._root is None else self.root / f"{self._stem}.copies"

    def patterns(self, table: str) -> tuple[str, ...]:
        """The paths of a table's DuckDB, CSV or Parquet source from the root on, wildcards as written; those
        of a table at a URL may be URIs of their own.
        """
        source, path = self.source_of(table), self.tables[table].path
        if source.url is not None:
            return tuple(part if "://" in part else str(self.root / part) for part in path or ())
        if source.duckdb is not None:
            return (str(self.root / source.duckdb),)
        roots = source.csv or source.parquet or ()
        if path is None:
            return tuple(str(self.root / root) for root in roots)
        return tuple(str(self.root / root / part) for root in roots for part in path)

    def files(self, table: str) -> tuple[str, ...]:
        """The files of a table that exist, sorted; CatalogError where a path leads nowhere.

        A file that several patterns or links lead to is there once: its rows are not to count twice.
        """
        by_inode: dict[tuple[int, int], str] = {}
        for pattern in self.patterns(table):
            for place in self._found(pattern, table):
                held = place.stat()
                by_inode.setdefault((held.st_dev, held.st_ino), str(place))
        return tuple(sorted(by_inode.values()))

    def _found(self, pattern: str, table: str) -> list[Path]:
        """The files at a pattern; CatalogError if there are none."""
        try:
            matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 (patterns may be absolute)
            matches = [pattern] if Path(pattern).is_file() else sorted(matches)
            places = [file for file in map(Path, matches) if file.is_file() and file.parent != self.copies]
            folder = Path(pattern).is_dir()
        except OSError:  # a path that is too long below its folder, say
            places, folder = [], False
        if places:
            return places
        source = f"sources.{self.tables[table].source or next(iter(self.sources))}"
        if folder:
            raise CatalogError(
                f"{source}: {pattern} is a folder, and table {table} needs files; name those in it, as in "
                f"{Path(pattern).name}/*.{self.source_of(table).kind}."
            )
        raise CatalogError(f"{source}: no file at {pattern}, which table {table} needs.")
