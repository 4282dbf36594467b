"""The curator: the only place where data, noise and budget meet.

A question goes through eight steps, one function each, in this order: parse -> bound -> price -> reserve ->
execute -> noise -> record -> answer. Everything that can be wrong with a question is found in the first
three, which read no private row and spend nothing. After `reserve` nothing is refunded, whatever happens.
"""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.backends import Backend, DuckDB, Progress, open_backend, open_frame
from incrowd.catalog import Catalog, catalog_for, column_type, load
from incrowd.curator import local, releasing
from incrowd.curator.answer import Answer
from incrowd.curator.ledger import Balance, Ledger, Reservation
from incrowd.curator.pricing import Price, in_best_norm
from incrowd.curator.pricing import price as split
from incrowd.curator.released import Released
from incrowd.errors import InvalidInput, NotPermitted, QueryError
from incrowd.query import Contribution, Field, Plan, Question
from incrowd.query import bound as bound_plan
from incrowd.query import parse as parse_sql


class Curator:
    """Answers questions about private tables, and keeps the account of what that has cost.

    >>> import pyarrow as pa
    >>> people = pa.table({"user_id": [1, 2, 3], "age": [31, 44, 57]})
    >>> curator = Curator.from_tables(people=people, unit="user_id", budget=(3.0, 1e-6))
    >>> answer = curator.ask("SELECT COUNT(DISTINCT user_id) AS people FROM people", epsilon=1.0)
    >>> answer.to_arrow().column_names
    ['people']
    """

    def __init__(self, catalog: Catalog, backend: Backend, ledger: Ledger) -> None:
        self.catalog = catalog
        self._backend = backend
        self._ledger = ledger
        self._public = _public_fields(catalog, backend)

    @classmethod
    def open(cls, path: str | Path) -> Curator:
        """The curator of an owner's file, with its ledger beside it."""
        catalog = load(path)
        return cls(catalog, open_backend(catalog), Ledger.open(catalog.ledger_url, catalog))

    @classmethod
    def from_tables(
        cls,
        *,
        unit: Any = "row",
        bounds: Mapping[str, Sequence[Any]] | None = None,
        domains: Mapping[str, Any] | None = None,
        budget: Any = (1.0, 0.0),
        public: Collection[str] = (),
        relation: str = "add-remove",
        contribution: Mapping[str, float] | None = None,
        not_null: Collection[str] = (),
        analysts: Mapping[str, Mapping[str, Any]] | None = None,
        ledger: str | Path | None = None,
        **tables: Any,
    ) -> Curator:
        """A curator over data frames (pandas, polars or Arrow), given by name; its ledger is in memory
        unless a path is given.

        The rows are copied: what becomes of the frames later changes no answer. Columns of types that cannot
        be asked about (lists, bytes, durations) are left out with a warning.
        """
        if not tables:
            raise InvalidInput(
                "Give at least one table by name, such as Curator.from_tables(people=frame, ...)."
            )
        frames = {name: open_frame(frame, name) for name, frame in tables.items()}
        left_out = {name: frame.left_out for name, frame in frames.items()}
        catalog = catalog_for(
            {name: frame.types for name, frame in frames.items()},
            unit=unit,
            bounds=bounds,
            domains=domains,
            budget=budget,
            public=public,
            relation=relation,
            contribution=contribution,
            not_null=not_null,
            analysts=analysts,
            left_out=left_out,
        )
        for name, columns in left_out.items():
            for column, why in columns.items():
                warnings.warn(f"tables.{name}: {column} is left out, for {why}.", stacklevel=2)
        return cls(catalog, DuckDB(catalog, frames), Ledger.open(ledger, catalog))

    def parse(self, sql: str) -> Question:
        """Step 1: SQL to a tree."""
        return parse_sql(sql)

    def bound(
        self,
        question: Question,
        contribution: int | None = None,
        groups: int | None = None,
        delta: float | None = None,
    ) -> Plan:
        """Step 2: a plan in which one unit moves every number by a known amount."""
        self._backend.refresh(name for name, table in self.catalog.tables.items() if not table.private)
        plan = bound_plan(question, self.catalog, self._public, Contribution(contribution, groups))
        local.check(plan, self._public_tables(plan))
        return in_best_norm(plan, self._delta(plan.options, delta))

    def _public_tables(self, plan: Plan) -> dict[str, pa.Table]:
        """The public tables that the SQL above the released numbers reads."""
        found = {}
        for name in local.public_tables(plan):
            declared = self.catalog.find(name)
            if declared is None or self.catalog.tables[declared].private:
                raise QueryError(f"{name} cannot be read beside released numbers.")
            found[name] = self._backend.run(f'SELECT * FROM "{declared}"')
        return found

    def price(
        self,
        sql: str | Plan,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        analyst: str | None = None,
        contribution: int | None = None,
        groups: int | None = None,
        rescale: bool = True,
    ) -> Price:
        """Step 3: what a question would cost, how wrong its answer would be, and what would be left. Reads
        no private row.
        """
        plan = sql if isinstance(sql, Plan) else self.bound(self.parse(sql), contribution, groups, delta)
        who = self._analyst(analyst)
        level = self.catalog.defaults.confidence if confidence is None else confidence
        slack = self._delta(plan.options, delta)
        chosen = self._epsilon(plan, epsilon, within, slack, level, rescale)
        made = split(plan, chosen, slack, confidence=level, rescale=rescale)
        return replace(made, before=self._ledger.remaining(who))

    def _analyst(self, analyst: str | None) -> str:
        return self.catalog.analyst(analyst)

    def _delta(self, options: Mapping[str, float], delta: float | None) -> float:
        given = options.get("delta") if delta is None else delta
        return self.catalog.default_delta if given is None else given

    def _epsilon(
        self,
        plan: Plan,
        epsilon: float | None,
        within: float | None,
        delta: float,
        confidence: float,
        rescale: bool,
    ) -> float:
        """The epsilon that was asked; the cheapest one for an accuracy; the policy's default otherwise."""
        given = plan.options.get("epsilon") if epsilon is None else epsilon
        if given is not None and not (isinstance(given, int | float) and 0 < given < float("inf")):
            raise InvalidInput(f"epsilon must be a positive number, not {given!r}.")
        if given is not None and given > self.catalog.budget.epsilon:
            raise NotPermitted(
                f"epsilon {given:g} is above the dataset's whole budget of "
                f"{self.catalog.budget.epsilon:g}; ask for less."
            )
        if within is None:
            return self.catalog.default_epsilon if given is None else float(given)
        return self._cheapest(plan, within, delta, confidence, rescale, given or self.catalog.budget.epsilon)

    def _cheapest(
        self, plan: Plan, within: float, delta: float, confidence: float, rescale: bool, most: float
    ) -> float:
        if not (isinstance(within, int | float) and 0 < within < float("inf")):
            raise InvalidInput(f"within must be a positive number, not {within!r}.")

        def widest(epsilon: float) -> float:
            widths = split(plan, epsilon, delta, confidence=confidence, rescale=rescale).halfwidths
            if not widths or any(width is None for width in widths.values()):
                raise QueryError(
                    "within= needs counts or sums whose contribution per unit is declared: say epsilon= "
                    "instead, or contribution= for the number of rows that one unit counts for."
                )
            return max(width for width in widths.values() if width is not None)

        if widest(most) > within:
            raise NotPermitted(
                f"Answers within {within:g} at {confidence:.0%} confidence would need an epsilon above "
                f"{most:g}; accept a larger error."
            )
        low, high = most * 1e-9, most
        while high / low > 1 + 1e-6:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if widest(middle) <= within else (middle, high)
        return high

    def ask(
        self,
        sql: str,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        within: float | None = None,
        confidence: float | None = None,
        analyst: str | None = None,
        contribution: int | None = None,
        groups: int | None = None,
        rescale: bool = True,
        progress: Progress | None = None,
    ) -> Answer:
        """The answer to a question.

        epsilon, delta: the price; or `within`: the cheapest epsilon whose error stays within it at
        `confidence`; both: epsilon is the most. contribution, groups: how many rows, and groups, one unit
        may count for; chosen privately where nobody says. rescale: undo the shrinking of heavy units with a
        privately measured total.
        """
        who = self._analyst(analyst)
        plan = self.bound(self.parse(sql), contribution, groups, delta)
        price = self.price(
            plan, epsilon, delta=delta, within=within, confidence=confidence, analyst=who, rescale=rescale
        )
        keys = [releasing.public_keys(leaf, self._backend) for leaf in plan.leaves]
        public = self._public_tables(plan)
        # Public tables count too: they make keys and labels.
        self._backend.refresh(self.catalog.tables)
        version = self._backend.version(self.catalog.tables)
        question = _fingerprint(plan, price)
        recorded = self._ledger.recall(question, version, who)
        if recorded is not None:
            return Answer(plan, _unpack(recorded), price, self._ledger.remaining(who), public, recalled=True)
        for leaf in plan.leaves:
            # A statement that might raise is refused while nothing is spent.
            releasing.prove(leaf, self._backend)
        reservation = self.reserve(who, price, question, version)
        exact = self.execute(plan, price, keys, progress)
        released = self.noise(exact, price)
        self.record(reservation, released)
        return Answer(plan, released, price, self._ledger.remaining(who), public)

    def reserve(self, analyst: str, price: Price, question: str, version: str) -> Reservation:
        """Step 4: spend the price, durably, before any private row is read."""
        return self._ledger.reserve(analyst, price.guarantee, question, version, delta=price.charged_delta)

    def execute(
        self, plan: Plan, price: Price, keys: Sequence[pa.Table | None], progress: Progress | None = None
    ) -> list[releasing.Exact]:
        """Step 5: the exact numbers, from the engine."""
        return [
            releasing.execute(index, leaf, price, self._backend, keys[index], progress)
            for index, leaf in enumerate(plan.leaves)
        ]

    def noise(self, exact: Sequence[releasing.Exact], price: Price) -> tuple[Released, ...]:
        """Step 6: noisy numbers in their place."""
        return tuple(releasing.noise(index, each, price) for index, each in enumerate(exact))

    def record(self, reservation: Reservation, released: Sequence[Released]) -> None:
        """Step 7: keep what was released, so that the same question is free."""
        self._ledger.record(reservation, _pack(released))

    def budget(self, analyst: str | None = None) -> tuple[Balance, ...]:
        """What is left of every cap that holds an analyst."""
        return self._ledger.remaining(self._analyst(analyst))

    @property
    def ledger(self) -> Ledger:
        """The account of what was spent."""
        return self._ledger

    def close(self) -> None:
        """Let go of the tables and the ledger."""
        self._backend.close()
        self._ledger.close()

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _public_fields(catalog: Catalog, backend: Backend) -> dict[str, dict[str, Field]]:
    """The columns of public tables that the owner left to their sources."""
    found: dict[str, dict[str, Field]] = {}
    for name, table in catalog.tables.items():
        if not table.private:
            types = {column: column_type(kind) for column, kind in backend.public_types(name).items()}
            found[name] = {
                column: Field("float" if kind == "decimal" else kind, name=f"{name}.{column}")  # type: ignore[arg-type]
                for column, kind in types.items()
                if kind is not None
            }
    return found


def _fingerprint(plan: Plan, price: Price) -> str:
    """The question and its price in one word: what makes two asks the same."""
    lines = [
        [line.leaf, line.kind, line.target, line.noise, str(line.epsilon), line.mu, str(line.delta)]
        for line in price.lines
    ]
    text = json.dumps([plan.fingerprint, lines, price.confidence])
    return hashlib.sha256(text.encode()).hexdigest()


def _pack(released: Sequence[Released]) -> bytes:
    parts = [each.to_bytes() for each in released]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def _unpack(content: bytes) -> tuple[Released, ...]:
    (count,) = struct.unpack_from("<I", content)
    found, place = [], 4
    for _ in range(count):
        (size,) = struct.unpack_from("<Q", content, place)
        found.append(Released.from_bytes(content[place + 8 : place + 8 + size]))
        place += 8 + size
    return tuple(found)
