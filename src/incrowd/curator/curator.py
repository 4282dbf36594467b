"""The curator: the only place where data, noise and budget meet.

A question goes through eight steps, one function each, in this order: parse -> bound -> price -> reserve ->
execute -> noise -> record -> answer. Everything that can be wrong with a question is found in the first
three, which read no private row and spend nothing. After `reserve` nothing is refunded, whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from incrowd.backends import Backend, DuckDB, Progress, Reader, Snapshot, open_backend, open_frame
from incrowd.catalog import Catalog, catalog_for, load, weak_promises
from incrowd.catalog.addresses import wrong_account
from incrowd.curator import adding_up, affording, declared, piloting, preparing, releasing
from incrowd.curator.answer import Answer
from incrowd.curator.census import ChosenCaps, choose_caps
from incrowd.curator.data_versions import closed_version
from incrowd.curator.grants import Grant
from incrowd.curator.ibis_questions import table_of
from incrowd.curator.ledger import Balance, Ledger
from incrowd.curator.ledger.owners import owner_of_tables
from incrowd.curator.ledger.tying import found_for
from incrowd.curator.paying import OvertakenError, Payment
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import Price
from incrowd.curator.profile import Profile
from incrowd.curator.reading import Rows
from incrowd.curator.released import Released, pack, unpack
from incrowd.curator.request import Options, Request, plain_number, request_of
from incrowd.curator.schedule import Kind, Step
from incrowd.curator.tuning import tune
from incrowd.errors import BackendError, CatalogError, InvalidInput, NotPermitted

if TYPE_CHECKING:
    import ibis.expr.types as ir

FREE = "The answer is on record for this price: asking for it costs nothing."
BETTER = "A better answer is on record, for epsilon {:g}: asking gets that one and costs nothing."


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
        self._fields = preparing.public_fields(catalog, backend)
        self._process = os.getpid()
        self._closed = False

    @classmethod
    def open(cls, path: str | Path, *, new_ledger: bool = False) -> Curator:
        """The curator of an owner's file, with its ledger beside it.

        The ledger must be there; `new_ledger` founds it instead, once, in a free place, and writes into the
        file which ledger it has, and the id by which they know each other.
        """
        catalog = load(path)
        _warn_of_weak(catalog)
        founded, backend = _switch(new_ledger), open_backend(catalog)
        if not founded:
            return cls(catalog, backend, Ledger.open(catalog.ledger_url, catalog))
        catalog, ledger = found_for(Path(path))
        return cls(catalog, backend, ledger)

    @classmethod
    def from_tables(
        cls,
        *,
        tables: Mapping[str, Any] | None = None,
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
        new_ledger: bool = False,
        **named: Any,
    ) -> Curator:
        """A curator over data frames (pandas, polars or Arrow), by name or as `tables={name: frame}`.

        The ledger is in memory unless `ledger` is a path, where it must lie already; `new_ledger` founds it.
        It belongs to curators that share one of its private tables, by name.

        The rows are copied: what becomes of the frames later changes no answer. Columns of types that cannot
        be asked about (lists, bytes, durations) are left out with a warning.
        """
        if ledger is not None and (not isinstance(ledger, str | Path) or not str(ledger).strip()):
            raise InvalidInput("ledger must be the path of a file, or left out for one in memory.")
        if wrong := wrong_account(str(ledger or "ledger")):
            raise InvalidInput(f"ledger cannot be kept there: {wrong}.")
        frames = {name: open_frame(frame, name) for name, frame in _by_name(tables, named).items()}
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
        _warn_of_weak(catalog)
        private = [name for name, table in catalog.tables.items() if table.private]
        catalog = catalog.model_copy(update={"id": owner_of_tables(private)})
        account = Ledger.found if _switch(new_ledger) else Ledger.open
        return cls(catalog, DuckDB(catalog, frames), account(ledger, catalog))

    def table(self, name: str) -> ir.Table:
        """A table as ibis sees it, without rows: expressions over it can be priced and asked like SQL.

        Needs the extra `ibis`.
        """
        return table_of(self.catalog, name, self._fields)

    def ask(
        self,
        sql: str | ir.Expr,
        epsilon: float | None = None,
        *,
        progress: Progress | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """The answer to a question, in SQL or as an ibis expression over tables that `table` gave.

        epsilon, delta: the price; or `within`: the cheapest epsilon whose error stays within it at
        `confidence`; both: epsilon is the most. Where half-widths depend on the data, a tenth of the most
        (the owner's default, if no epsilon is named) buys a pilot that says what is needed.

        contribution, groups: how many rows, and groups, one unit may count for; chosen privately where nobody
        says. rescale: undo the shrinking of heavy units with a privately measured total. analyst: who pays.
        dialect: what the SQL is written in, if not DuckDB's: postgres, bigquery, snowflake or spark.
        progress: called with the share of work done.
        """
        if progress is not None and not callable(progress):
            raise InvalidInput("progress must be a function that is called with the share of work done.")
        request = request_of("ask", sql, epsilon, options)
        free = declared.free_answer(self, request, self._fields)
        if free is not None:
            return free
        question = self.prepare(request)

        def paid(question: Prepared) -> Answer:
            price = self.price_of(question)
            with self.rows_of(question) as rows:
                payment = self.reserve(question, price, rows, progress)
                if payment.recorded is None:
                    try:
                        with payment.held():
                            chosen = self.choose_caps(question, price, progress, payment.draw, rows)
                            exact = self.execute(question, chosen, progress, rows)
                            payment.draw()
                            released = self.noise(exact, price)
                            self.record(payment, released)
                    except OvertakenError:
                        payment = payment.awaited(progress)
            return self.answer(question, price, payment)

        steps = affording.piloted(question, self.catalog)
        return paid(question) if steps is None else piloting.ask(self, question, steps, paid)

    def price(self, sql: str | ir.Expr, epsilon: float | None = None, **options: Unpack[Options]) -> Price:
        """What a question would cost, how wrong its answer would be, and what would be left.

        Reads no private row. An answer on record is free, and the price's notes say so.
        """
        request = request_of("price", sql, epsilon, options)
        described = declared.free_answer(self, request, self._fields)
        if described is not None:
            return described.price
        question = self.prepare(request)
        price = self.price_of(question)
        recorded = None if price.steps else self.on_record(question, price)
        if recorded is None:
            return price
        free = FREE if recorded.epsilon == price.epsilon else BETTER.format(recorded.epsilon)
        return replace(price, notes=(free, *price.notes), free=True)

    def prepare(self, request: Request, catalog: Catalog | None = None) -> Prepared:
        """Steps 1 and 2, parse and bound: a plan in which one unit moves every number by a known amount.

        `catalog` declares the same tables otherwise, with other bounds, say.
        """
        self.refuse_unusable()
        self._backend.refresh(name for name, table in self.catalog.tables.items() if not table.private)
        return preparing.prepare(request, catalog or self.catalog, self._backend, self._fields)

    def price_of(self, question: Prepared) -> Price:
        """Step 3: what the question costs each cap of its analyst."""
        analyst = self.catalog.analyst(question.request.analyst)
        return replace(affording.price_of(question, self.catalog), before=self._ledger.remaining(analyst))

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """All tables at one moment, public ones too, for they make keys and labels.

        It is opened before the price is reserved: a database that cannot be reached costs nothing.
        """
        self.refuse_unusable()
        return self._backend.snapshot(self.catalog.tables)

    def rows_of(self, question: Prepared) -> Rows:
        """The tables of a question at one moment, which has not begun yet."""
        self.refuse_unusable()
        return Rows(self._backend, self.catalog, lambda: self._closed_version(question))

    def reserve(
        self, question: Prepared, price: Price, rows: Rows, progress: Progress | None = None
    ) -> Payment:
        """Step 4: spend the price durably, before any private row is read. An answer on record is free.

        The answer will be on record for the version of these rows.
        The same question that is at work elsewhere is waited for. A statement that might raise is refused
        while nothing is spent.
        """
        for version in rows.versions():
            payment = self._recalled(question, price, version)
            if payment.recorded is not None:
                return payment
        for index, leaf in enumerate(question.plan.leaves):
            if not leaf.adds_up(index):
                preparing.prove(leaf, self._backend)
        words = question.request.sql if self.catalog.keep_questions else None
        analyst = self.catalog.analyst(question.request.analyst)
        payment = Payment(self._ledger, analyst, question.fingerprint(price), rows.version)
        return payment.claim(price.guarantee, price.charged_delta, words, progress)

    def on_record(self, question: Prepared, price: Price) -> Price | None:
        """The price of the answer that is on record for this question: this one, or the highest above it.

        None also if the rows cannot be reached now, which is for `ask` to say.
        """
        with contextlib.suppress(BackendError, CatalogError):
            closed = self._closed_version(question)
            for version in (closed, self._backend.version(self.catalog.tables)):
                recorded = None if version is None else self._recorded_price(question, price, version)
                if recorded is not None:
                    return recorded
        return None

    def _recorded_price(self, question: Prepared, price: Price, version: str) -> Price | None:
        """The price of the answer that is on record for one version of the data."""
        analyst = self.catalog.analyst(question.request.analyst)
        exact = self._ledger.recall(question.fingerprint(price), version, analyst)
        return self._better(question, price, version) if exact is None else price

    def _recalled(self, question: Prepared, price: Price, version: str) -> Payment:
        """A payment of nothing so far, with the answer that is on record for one version of the data."""
        recorded = self._recorded_price(question, price, version)
        analyst = self.catalog.analyst(question.request.analyst)
        return Payment.recall(self._ledger, analyst, question.fingerprint(recorded or price), version)

    def _better(self, question: Prepared, price: Price, version: str) -> Price | None:
        """The highest price that was paid for this question, above this one.

        An answer that cost more errs less. To show it to whoever paid for it is post-processing, and free.
        """
        analyst = self.catalog.analyst(question.request.analyst)
        recorded = self._ledger.recorded_from(question.beginning(price), version, analyst)
        for fingerprint in reversed(recorded):
            with contextlib.suppress(InvalidInput, NotPermitted):  # budgets may be others by now
                better = self._price_stated(question, fingerprint)
                if question.fingerprint(better) == fingerprint:
                    return better
        return None

    def _price_stated(self, question: Prepared, fingerprint: str) -> Price:
        """What the question costs at the epsilon that a fingerprint states."""
        request = replace(question.request, epsilon=preparing.stated_epsilon(fingerprint), within=None)
        return self.price_of(replace(question, request=request))

    def _closed_version(self, question: Prepared) -> str | None:
        """The version of what a question about closed periods reads; None for every other question."""
        if not any(leaf.until for leaf in question.plan.leaves):
            return None
        return closed_version(question.plan, self.catalog, self._backend, self._ledger.today())

    def version(self) -> str:
        """The version of all data; of public tables too, for they make keys and labels."""
        self._backend.refresh(self.catalog.tables)
        return self._backend.version(self.catalog.tables)

    def choose_caps(
        self,
        question: Prepared,
        price: Price,
        progress: Progress | None = None,
        draw: Callable[[], None] | None = None,
        rows: Reader | None = None,
    ) -> tuple[ChosenCaps, ...]:
        """The first part of step 5: how much one unit may contribute, where nobody said it.

        `draw` is called before noise is drawn for it. `rows` are a snapshot; if None, rows as they are now.
        """
        pairs = zip(question.plan.leaves, question.keys, strict=True)
        chosen: list[ChosenCaps] = []
        for index, (leaf, keys) in enumerate(pairs):
            if leaf.totals is not None and leaf.adds_up(index):
                chosen.append(chosen[leaf.totals.finest])
            else:
                chosen.append(choose_caps(index, leaf, price, rows or self._backend, keys, progress, draw))
        return tuple(chosen)

    def execute(
        self,
        question: Prepared,
        chosen: Sequence[ChosenCaps],
        progress: Progress | None = None,
        rows: Reader | None = None,
    ) -> tuple[releasing.Exact, ...]:
        """Step 5: the exact numbers, from the engine; of a snapshot's rows, or as they are now."""
        exact: list[releasing.Exact] = []
        parts = zip(question.plan.leaves, chosen, question.keys, strict=True)
        for index, (leaf, caps, keys) in enumerate(parts):
            if leaf.totals is not None and leaf.adds_up(index):
                exact.append(adding_up.summed(exact[leaf.totals.finest], caps.bounded(leaf)))
                continue
            numbers = releasing.execute(leaf, caps, rows or self._backend, keys, progress)
            exact.append(numbers if leaf.totals is None else adding_up.of_declared_groups(numbers))
        return tuple(exact)

    def noise(self, exact: Sequence[releasing.Exact], price: Price) -> tuple[Released, ...]:
        """Step 6: noisy numbers in their place."""
        return adding_up.noisy(exact, price)

    def record(self, payment: Payment, released: Sequence[Released]) -> None:
        """Step 7: keep what was released, so that the same question is free."""
        payment.record(pack(released))

    def answer(self, question: Prepared, price: Price, payment: Payment) -> Answer:
        """Step 8: the released numbers with intervals, cost and what is left."""
        assert payment.recorded is not None
        if payment.question != question.fingerprint(price):
            price = self._price_stated(question, payment.question)
        return Answer(
            question.plan,
            unpack(payment.recorded),
            price,
            self._ledger.remaining(payment.analyst),
            question.public,
            recalled=payment.recalled,
        )

    def budget(self, analyst: str | None = None) -> tuple[Balance, ...]:
        """What is left of every cap that holds an analyst."""
        self.refuse_unusable()
        return self._ledger.remaining(self.catalog.analyst(analyst))

    def grant(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        purpose: str,
        schedule: Mapping[Kind, int] | Sequence[Step] = MappingProxyType({"sums": 1}),
        about: Mapping[str, Any] | None = None,
        analyst: str | None = None,
        confidence: float | None = None,
    ) -> Grant:
        """A whole price, reserved now for a purpose: the seam for releases of many parts.

        schedule: what will be released, such as {"sums": 10, "select": 2}; the questions may be chosen later,
        from what was released before. about: what else tells this grant from others with its purpose, such as
        the parameters of a model; a grant that is the same in everything is recalled from the record.
        """
        self.refuse_unusable()
        return Grant.reserve(
            self,
            plain_number(epsilon, "epsilon"),
            plain_number(delta, "delta"),
            purpose=purpose,
            schedule=schedule,
            about=about,
            analyst=self.catalog.analyst(analyst),
            confidence=plain_number(
                self.catalog.defaults.confidence if confidence is None else confidence, "confidence"
            ),
            version=self.version(),
        )

    def tune(
        self,
        epsilon: float,
        table: str | None = None,
        *,
        columns: Collection[str] | None = None,
        delta: float | None = None,
        progress: Progress | None = None,
    ) -> Profile:
        """A private profile of every private table, or of one; its proposals hold from now on here.

        For the owner, who pays from the dataset's budget. `profile.written(text)` is the text of her file
        with the proposals in it. columns: which to measure; all if None. delta: for the values of text
        columns; a hundredth of the budget's if None.
        """
        profile = tune(self, epsilon, table, columns, delta, progress)
        self.catalog = profile.catalog
        return profile

    @property
    def backend(self) -> Backend:
        """The engine that holds the tables."""
        return self._backend

    @property
    def ledger(self) -> Ledger:
        """The account of what was spent."""
        return self._ledger

    def close(self) -> None:
        """Let go of the tables and the ledger. Nothing can be asked afterwards."""
        if not self._closed and self._process == os.getpid():
            self._closed = True
            self._backend.close()
            self._ledger.close()

    def refuse_unusable(self) -> None:
        """Refuse to go on after `close`, or in a forked child, while nothing is spent.

        A fork copies no threads: in the child the engine would wait for its own for ever.
        """
        if self._closed:
            raise InvalidInput("The curator is closed; open it again to ask.")
        if self._process != os.getpid():
            raise InvalidInput(
                "The curator was opened by another process, of which this one is a fork; open it here too, "
                "with Curator.open (tables in memory need a ledger in a file to share one budget)."
            )

    def __repr__(self) -> str:
        private = {name: table for name, table in self.catalog.tables.items() if table.private}
        tables = ", ".join(f"{name} (unit: {table.unit})" for name, table in private.items())
        return f"<Curator of {tables}; budget: epsilon {self.catalog.budget.epsilon:g}>"

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _warn_of_weak(catalog: Catalog) -> None:
    for sentence in weak_promises(catalog):
        warnings.warn(sentence, stacklevel=3)


def _switch(new_ledger: object) -> bool:
    if not isinstance(new_ledger, bool):
        raise InvalidInput("new_ledger must be True or False.")
    return new_ledger


def _by_name(tables: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
    if tables is not None and not isinstance(tables, Mapping):
        raise InvalidInput("tables must map names to data frames, such as tables={'people': frame}.")
    doubled = next((name for name in named if tables and name in tables), None)
    if doubled is not None:
        raise InvalidInput(f"The table {doubled} is given twice; leave out one of them.")
    frames = {**(tables or {}), **named}
    if not frames:
        raise InvalidInput("Give at least one table by name, such as Curator.from_tables(people=frame, ...).")
    return frames
