"""The profile that tuning buys: what was measured about tables, and what it proposes for the owner's file.

Everything in it is private already and may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.catalog import BoughtColumn, BoughtTable, Catalog, Table
from incrowd.catalog.bought import BoughtBounds, BoughtContribution, BoughtDomain
from incrowd.catalog.columns import typed
from incrowd.catalog.writing import inline
from incrowd.curator.views import html_of, text_of
from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import pandas

Mark = BoughtContribution | BoughtBounds | BoughtDomain


@dataclass(frozen=True)
class Proposal:
    """A value for the owner's file.

    field: contribution, bounds or domain. interval: what holds of it at 95%, in words. mark: the measurement
    that goes into the file beside it.
    """

    table: str
    column: str
    field: str
    value: Any
    interval: str
    mark: Mark

    @property
    def path(self) -> tuple[str, ...]:
        """Where it stands in the owner's file."""
        columns = ("columns", self.column) if self.column else ()
        return ("tables", self.table, *columns, self.field)


@dataclass(frozen=True)
class Reading:
    """One line of a profile: what was measured, the number or value, and what holds of it at 95%."""

    table: str
    column: str
    what: str
    value: str
    interval: str
    epsilon: float
    delta: float = 0.0
    proposed: bool = False


@dataclass(frozen=True, repr=False)
class Profile:
    """A private profile of tables: its readings, proposals and remarks, and what it cost.

    recalled: whether it was on record and cost nothing this time. catalog: the owner's file with the
    proposals in it.
    """

    readings: tuple[Reading, ...]
    proposals: tuple[Proposal, ...]
    remarks: tuple[str, ...]
    epsilon: float
    delta: float
    answer: str
    """The start of the question's fingerprint in the ledger."""
    catalog: Catalog = field(repr=False)
    recalled: bool = False

    def to_arrow(self) -> pa.Table:
        """The readings as an Arrow table."""
        names = ("table", "column", "what", "value", "interval", "epsilon", "delta", "proposed")
        columns: dict[str, list[Any]] = {
            name: [getattr(reading, name) for reading in self.readings] for name in names
        }
        return pa.table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """The readings as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise InvalidInput("to_pandas needs the package pandas: pip install 'incrowd[pandas]'.") from None
        frame = self.to_arrow().to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        return frame

    def to_json(self) -> dict[str, Any]:
        """Everything in the profile, as plain values."""
        return {
            "epsilon": 0.0 if self.recalled else self.epsilon,
            "delta": 0.0 if self.recalled else self.delta,
            "recalled": self.recalled,
            "answer": self.answer,
            "readings": self.to_arrow().to_pylist(),
            "proposals": [
                {
                    "path": list(proposal.path),
                    "value": proposal.value,
                    "interval": proposal.interval,
                    "bought": proposal.mark.model_dump(mode="json"),
                }
                for proposal in self.proposals
            ],
            "remarks": list(self.remarks),
        }

    def written(self, text: str) -> str:
        """The owner's file, given as text, with the proposals in it; comments and order are kept."""
        from incrowd.catalog.amending import amended

        notes = {proposal.path: f"{proposal.mark.at}: {proposal.interval}" for proposal in self.proposals}
        values = {proposal.path: proposal.value for proposal in self.proposals}
        return amended(text, values, notes, self.catalog.bought)

    def __str__(self) -> str:
        shown = self.to_arrow().select(["table", "column", "what", "value", "interval", "epsilon"])
        return "\n".join([text_of(shown), *self.remarks])

    def __repr__(self) -> str:
        cost = "on record, free" if self.recalled else f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        return f"{self}\n\n({cost})"

    def _repr_html_(self) -> str:
        return html_of(self.to_arrow(), list(self.remarks))


def applied(catalog: Catalog, proposals: Sequence[Proposal]) -> Catalog:
    """The catalog with the proposals in it, each marked as bought."""
    tables, bought = dict(catalog.tables), dict(catalog.bought)
    for proposal in proposals:
        table, marks = tables[proposal.table], bought.get(proposal.table, BoughtTable())
        change: dict[str, Any] = {proposal.field: proposal.value}
        mark: dict[str, Any] = {proposal.field: proposal.mark}
        if proposal.column:
            column = table.columns[proposal.column].model_copy(update=change)
            marked = marks.columns.get(proposal.column, BoughtColumn()).model_copy(update=mark)
            change = {"columns": {**table.columns, proposal.column: column}}
            mark = {"columns": {**marks.columns, proposal.column: marked}}
        tables[proposal.table] = table.model_copy(update=change)
        bought[proposal.table] = marks.model_copy(update=mark)
    return catalog.model_copy(update={"tables": tables, "bought": bought})


def without_bought(catalog: Catalog, tables: Sequence[str]) -> Catalog:
    """The catalog in which nothing about some tables was bought: bounds are those that the owner declared."""
    declared = {name: _declared(catalog.tables[name], catalog.bought_of(name)) for name in tables}
    bought = {name: marks for name, marks in catalog.bought.items() if name not in tables}
    return catalog.model_copy(update={"tables": {**catalog.tables, **declared}, "bought": bought})


def _declared(table: Table, bought: BoughtTable) -> Table:
    columns = dict(table.columns)
    for name, marks in bought.columns.items():
        change: dict[str, Any] = {}
        if marks.contribution is not None:
            change["contribution"] = None
        if marks.domain is not None:
            change["domain"] = None
        if marks.bounds is not None:
            change["bounds"] = tuple(typed(end, columns[name].type) for end in marks.bounds.declared)
        columns[name] = columns[name].model_copy(update=change)
    rows: Mapping[str, Any] = {"contribution": None} if bought.contribution is not None else {}
    return table.model_copy(update={**rows, "columns": columns})


def listed(values: Sequence[Any], most: int = 6) -> str:
    """Values on one line, the first of them where there are many."""
    shown = inline(list(values[:most]))
    return shown if len(values) <= most else f"{shown[:-1]}, ... {len(values):,} values]"
