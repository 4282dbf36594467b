"""Puts one statement together: common table expressions whose columns are made once, and stacked parts over
them.

Names of its own start with two underscores, which no name in a bounded plan does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from incrowd.query import Leaf
from incrowd.query.sql import DIALECT
from incrowd.query.typed import SQL_TYPES


@dataclass(frozen=True)
class Part:
    """One stacked part of a statement: what its number columns mean."""

    kind: str
    """`sums`, `pairs`, `histogram`, `totals` or `census`."""
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """SQL text with the meaning of its parts. Columns: part, the keys, cell, n0, n1, ..."""

    sql: str
    parts: tuple[Part, ...]
    keys: int


@dataclass(frozen=True)
class Stacked:
    """A part with its SQL: numbers over a source, by the keys (and a cell) or all together."""

    part: Part
    numbers: tuple[str, ...]
    source: str
    by_keys: bool
    cell: str | None = None


class Builder:
    """Collects the common table expressions and stacked parts of one leaf's statement."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.keys = tuple(key.name for key in leaf.keys)
        self.rows: dict[str, str] = {}
        self.totals: dict[str, str] = {}
        self.pairs: dict[str, str] = {}
        self.shares: dict[str, str] = {}
        self.stacked: list[Stacked] = []

    def row(self, sql: str) -> str:
        """A column of `rows`."""
        return _named(self.rows, sql, "v")

    def total(self, sql: str) -> str:
        """A column of `totals`."""
        return _named(self.totals, sql, "t")

    def pair(self, sql: str) -> str:
        """A column of `pairs`."""
        return _named(self.pairs, sql, "q")

    def share(self, sql: str) -> str:
        """A column of `shares`."""
        return _named(self.shares, sql, "s")

    def stack(self, part: Stacked) -> None:
        """One more part."""
        self.stacked.append(part)

    def joined(self, left: str, right: str) -> str:
        """Two common table expressions joined on the unit."""
        on = " AND ".join(f"{left}.{unit} = {right}.{unit}" for unit in self.leaf.units)
        return f"{left} JOIN {right} ON {on}"

    def _ctes(self) -> list[str]:
        rows = self.leaf.rows
        own = [f"{sql} AS {name}" for name, sql in self.rows.items()]
        picked = [each.sql(DIALECT) for each in rows.expressions] + own
        clauses = [rows.args["from_"], *(rows.args.get("joins") or []), rows.args.get("where")]
        tail = " ".join(each.sql(DIALECT).strip() for each in clauses if each is not None)
        made = [f"__rows AS {self._kept()}(SELECT {', '.join(picked) or '1 AS one'} {tail})"]
        if self.totals:
            made.append(f"__totals AS ({_grouped(self.totals, '__rows', self.leaf.units)})")
        if self.pairs or self.shares:
            by = [*self.leaf.units, *self.keys]
            made.append(f"__pairs AS MATERIALIZED ({_grouped(self.pairs, '__rows', by)})")
        if self.shares:
            made.append(f"__shares AS ({_grouped(self.shares, '__pairs', self.leaf.units)})")
        return made

    def _kept(self) -> str:
        """Rows that are numbered on the way must be computed once; a plain scan is cheaper read twice than
        kept.
        """
        if self.leaf.materialize:
            return "MATERIALIZED "
        plain = isinstance(self.leaf.rows.args["from_"].this, exp.Table) and not self.leaf.rows.args.get(
            "joins"
        )
        return "NOT MATERIALIZED " if plain else ""

    def build(self) -> Statement:
        """The whole statement."""
        width = max(len(each.numbers) for each in self.stacked)
        texts = []
        for index, each in enumerate(self.stacked):
            nulls = [f"CAST(NULL AS {SQL_TYPES[key.kind]}) AS {key.name}" for key in self.leaf.keys]
            padded = [*each.numbers, *["CAST(NULL AS BIGINT)"] * (width - len(each.numbers))]
            picked = [
                f"{index} AS part",
                *(self.keys if each.by_keys else nulls),
                f"{each.cell or 'CAST(NULL AS BIGINT)'} AS cell",
                *(f"{number} AS n{place}" for place, number in enumerate(padded)),
            ]
            by = [*(self.keys if each.by_keys else ()), *((each.cell,) if each.cell else ())]
            group = f" GROUP BY {', '.join(by)}" if by else ""
            where = f" WHERE {each.cell} IS NOT NULL" if each.cell else ""
            texts.append(f"SELECT {', '.join(picked)} FROM {each.source}{where}{group}")
        sql = f"WITH {', '.join(self._ctes())} {' UNION ALL '.join(texts)}"
        return Statement(sql, tuple(each.part for each in self.stacked), len(self.keys))


def _named(columns: dict[str, str], sql: str, prefix: str) -> str:
    """The name of a column, made once for each expression."""
    for name, text in columns.items():
        if text == sql:
            return name
    name = f"{prefix}{len(columns)}"
    columns[name] = sql
    return name


def _grouped(columns: Mapping[str, str], source: str, by: Iterable[str]) -> str:
    keys = list(by)
    picked = ", ".join([*keys, *(f"{text} AS {name}" for name, text in columns.items())])
    return f"SELECT {picked} FROM {source} GROUP BY {', '.join(keys)}"
